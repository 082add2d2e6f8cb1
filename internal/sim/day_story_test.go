package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/sim/daypage"
)

// dayStory is the day as the page tells it.
func dayStory(kerf, never *dayRecord) *daypage.Day {
	d := &daypage.Day{
		Begins: dayTime(0).In(dayZone), Step: daySample, Kerf: kerf.run(), Never: never.run(), Floor: kerf.floor,
		BadImage: dayBadImage, Interruptions: kerf.interruptions(), Moves: kerf.moves(), Pools: dayPools,
	}
	d.Image = kerf.image(d)
	d.Chapters = dayChapters(d)
	return d
}

// image is what became of the image whose nodes never join.
func (r *dayRecord) image(d *daypage.Day) (out daypage.Image) {
	for _, i := range r.w.aws.ec2.Instances() {
		if !slices.Contains(r.w.badImages, i.ImageID) {
			continue
		}
		out.Launched++
		if r.w.cluster.machines[i.ID].node != "" {
			out.Joined++
		}
		end := i.ShuttingFrom
		if end.IsZero() {
			end = r.w.now()
		}
		out.Cost += i.Price * int64(end.Sub(i.Launched)/time.Second) / 3600
	}
	for i := range d.Moves {
		m := &d.Moves[i]
		switch {
		case m.Reason != "Drifted":
		case m.Back() && m.At < d.BadImage.To:
			out.RolledBack++
		case !m.Back() && m.At >= d.BadImage.To:
			out.Renewed += len(m.Nodes)
			out.Until = max(out.Until, m.At+m.Took)
		}
	}
	return out
}

// chapter tells a part of the day.
type chapter struct {
	d *daypage.Day
	daypage.Chapter
}

func dayChapters(d *daypage.Day) []daypage.Chapter {
	var out []daypage.Chapter
	tell := func(from, to time.Duration, kind, title string, say func(c *chapter)) {
		c := &chapter{d, daypage.Chapter{Span: daypage.Span{From: from, To: to}, Kind: kind, Title: title}}
		say(c)
		out = append(out, c.Chapter)
	}
	tell(0, dayAt(6, 0), "calm", "Night", func(c *chapter) {
		c.say("%s on %s, for %s an hour.", c.pods(0), c.nodes(0), c.price(0))
		c.say("%s", c.moved("Empty", "Underutilized"))
	})
	tell(dayAt(6, 0), dayAt(9, 30), "up", "The morning ramp", func(c *chapter) {
		c.say("From %s to %s, a few at a time, as autoscalers ask for them. %s.", c.pods(c.From), c.pods(c.To), c.launched())
		c.say("%s", c.moved("Empty", "Underutilized"))
	})
	tell(dayAt(9, 30), dayAt(12, 20), "spot", "EC2 takes three spot nodes at once", func(c *chapter) { c.taken() })
	tell(dayAt(12, 20), dayAt(14, 0), "image", "A bad image", func(c *chapter) {
		i := &d.Image
		c.say("At %s a new AMI is published, and every node has drifted. Its nodes start and never join. Replacements come before anything is taken away, so this costs money and no pod: %d instances were launched from it, %d joined, %d moves were taken back when their replacement had not joined after 15 minutes. In the end it cost %s.",
			d.Clock(d.BadImage.From), i.Launched, i.Joined, i.RolledBack, daypage.Dollars(i.Cost))
		c.say("The nodes that were to go kept their pods. Each failure makes the next try wait longer, and never more than a tenth of the nodes are tried at a time.")
		c.say("No workload grows in this hour by design: a pod that needed a new node would have waited for the next image.")
	})
	tell(dayAt(14, 0), dayAt(18, 0), "calm", "The image that works", func(c *chapter) {
		c.say("Published at %s. %d nodes are replaced for it within the budget; the last of them is done at %s.", d.Clock(d.BadImage.To), d.Image.Renewed, d.Clock(d.Image.Until))
		c.taken()
	})
	tell(dayAt(18, 0), dayAt(24, 0), "down", "The evening ramp-down", func(c *chapter) {
		c.say("From %s to %s; from %s an hour to %s. Without consolidation it would still be %s.", c.pods(c.From), c.pods(c.To), c.price(c.From), c.price(c.To), c.priceNever(c.To))
		c.say("%s", c.moved("Empty", "Underutilized"))
		c.taken()
	})
	tell(dayAt(0, 0), dayLength, "calm", "Reports at night", func(c *chapter) {
		c.say("From 01:00 on six pods compute reports. They say that they may not be disturbed, so their nodes stay until they are done, and go then.")
		c.say("%s", c.moved("Empty", "Underutilized"))
		c.taken()
	})
	return out
}

func (c *chapter) say(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		c.Text = append(c.Text, text)
	}
}

func (c *chapter) at(at time.Duration) daypage.Sample {
	return c.d.Kerf.Samples[min(int(at/daySample), len(c.d.Kerf.Samples)-1)]
}

func (c *chapter) pods(at time.Duration) string {
	s := c.at(at)
	return plural(s.Running+s.Pending, "pod")
}

func (c *chapter) nodes(at time.Duration) string { return plural(c.at(at).Nodes(), "node") }
func (c *chapter) price(at time.Duration) string { return daypage.Dollars(c.at(at).Price) }
func (c *chapter) in(at time.Duration) bool      { return at >= c.From && at < c.To }
func (c *chapter) priceNever(at time.Duration) string {
	return daypage.Dollars(c.d.Never.Samples[at/daySample].Price)
}

// launched says how the nodes grew.
func (c *chapter) launched() string {
	a, b := c.at(c.From).Nodes(), c.at(c.To).Nodes()
	return fmt.Sprintf("%s become %d, from %s an hour to %s", plural(a, "node"), b, c.price(c.From), c.price(c.To))
}

// moved says what consolidation did in the time.
func (c *chapter) moved(reasons ...string) string {
	var parts []string
	var saved int64
	nodes, back := 0, 0
	for _, reason := range reasons {
		n := 0
		for i := range c.d.Moves {
			m := &c.d.Moves[i]
			switch {
			case m.Reason != reason || !c.in(m.At):
			case m.Back():
				back++
			default:
				n += len(m.Nodes)
				saved += m.Saving
			}
		}
		if nodes += n; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[string]string{"Empty": "that had become empty", "Underutilized": "whose pods fit elsewhere, or on something cheaper"}[reason]))
		}
	}
	if nodes == 0 {
		return ""
	}
	out := fmt.Sprintf("Consolidation takes %s away: %s. Together they cost %s an hour more than what stands in for them.", plural(nodes, "node"), strings.Join(parts, ", "), daypage.Dollars(saved))
	if len(parts) == 1 {
		_, what, _ := strings.Cut(parts[0], " ")
		out = fmt.Sprintf("Consolidation takes %s away %s, for %s an hour less.", plural(nodes, "node"), what, daypage.Dollars(saved))
	}
	if back > 0 {
		out += fmt.Sprintf(" %s found that its nodes could not go after all, and left them.", plural(back, "move"))
	}
	return out
}

// taken says which spot nodes EC2 took in the time: those of one moment together.
func (c *chapter) taken() {
	var at time.Duration = -1
	for _, w := range c.d.Interruptions {
		if !c.in(w.At) || w.At == at {
			continue
		}
		at = w.At
		var nodes []string
		pods, lost, empty := 0, 0, time.Duration(0)
		for _, o := range c.d.Interruptions {
			if o.At == at {
				nodes, pods, lost, empty = append(nodes, o.Node), pods+o.Pods, lost+o.Lost, max(empty, o.Empty)
			}
		}
		c.say("At %s EC2 takes %s, with a warning two minutes ahead: %s. %s", c.d.Clock(at), plural(len(nodes), "spot node"), strings.Join(nodes, ", "), gone(pods, lost, empty))
	}
}

func gone(pods, lost int, empty time.Duration) string {
	if lost > 0 {
		return fmt.Sprintf("%d of %s were still there when it did.", lost, plural(pods, "pod"))
	}
	return fmt.Sprintf("Their replacement is launched at once, and all of %s have left after %s.", plural(pods, "pod"), daypage.Long(empty))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// dayProblems says in which way a day is not as it has to be.
func dayProblems(d *daypage.Day) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if paid, never := d.Paid(), d.PaidNever(); paid*100 > never*(100-dayLess) {
		say("the day costs %s, and %s without consolidation: that is not %d %% less", daypage.Dollars(paid), daypage.Dollars(never), dayLess)
	}
	if d.Kerf.Longest.Long > dayWaits {
		say("pod %s waited %s from %s on until it ran", d.Kerf.Longest.Pod, d.Kerf.Longest.Long, d.Clock(d.Kerf.Longest.At))
	}
	for _, i := range d.Interruptions {
		if i.Lost > 0 {
			say("%d of %d pods were on a spot node when EC2 took it at %s", i.Lost, i.Pods, d.Clock(i.At))
		}
	}
	if i := &d.Image; i.Launched == 0 || i.Joined > 0 || i.RolledBack == 0 || i.Renewed == 0 {
		say("of the image whose nodes never join: %+v", *i)
	}
	return out
}
