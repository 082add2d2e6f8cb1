package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"kerf.sh/kerf/internal/snapshot"
)

// How much of a comparison fits on a screen.
const (
	maxChangeRows = 6
	maxLaunchRows = 10
	maxNodeRows   = 8
	maxPodRows    = 6 // of each section
)

// DiffText writes the comparison of a plan (Plan.Diff) for a person, without the plan.
func DiffText(p *Plan, o TextOptions) string {
	t := newReport(p, o)
	t.title("What would change in ")
	t.incomplete()
	if p.Explained != nil {
		t.explanations()
		return t.b.String()
	}
	t.diff(p.Diff)
	t.warnings(p.Diff.Warnings)
	return t.b.String()
}

// diff is the comparison: what was changed, what it costs, what is launched, which
// nodes and pods it touches.
func (t *report) diff(d *Diff) {
	t.line("")
	var changes []string
	for i := range d.Changes {
		changes = append(changes, d.Changes[i].Text())
	}
	if len(changes) > maxChangeRows+1 {
		changes = append(changes[:maxChangeRows], fmt.Sprintf("and %d more", len(d.Changes)-maxChangeRows))
	}
	if len(changes) > 0 {
		t.para(t.bold("What if")+"  ", "         ", strings.Join(changes, ", "), nil)
	}
	t.para("", "", d.Headline(), t.bold)
	if d.Empty() {
		return
	}
	t.diffMoney(d)
	t.diffLaunches(d)
	t.diffNodes(d)
	t.diffPods(d)
}

func (t *report) diffMoney(d *Diff) {
	b, a := &d.Before, &d.After
	type row struct {
		label, was, is, delta, month string
		sign                         int64
	}
	rows := []row{{"", "as it is", "what if", "change", "per month", 0}}
	price := func(label string, was, is snapshot.Price) {
		month := ""
		if was != is {
			month = PerMonth(is - was)
			if is > was {
				month = "+" + month
			}
		}
		rows = append(rows, row{label, Dollars(was), Dollars(is), Signed(is - was), month, is - was})
	}
	count := func(label string, was, is int) {
		rows = append(rows, row{label, Number(was), Number(is), SignedNumber(is - was), "", int64(is - was)})
	}
	label := "per hour, in the end"
	if a.Going+b.Going == 0 {
		label = "per hour, after the plan"
	}
	price(label, b.Settled(), a.Settled())
	if b.Summary.Launches+a.Summary.Launches > 0 {
		price("launches", b.Summary.LaunchPrice, a.Summary.LaunchPrice)
		count("nodes launched", b.Summary.Launches, a.Summary.Launches)
	}
	if b.Going != a.Going {
		count("nodes that are going", b.Going, a.Going)
	}
	if b.Held != a.Held {
		count("  kept by pods", b.Held, a.Held)
	}
	count("pods that cannot run", b.Summary.Unschedulable, a.Summary.Unschedulable)
	if b.Summary.BufferMissing+a.Summary.BufferMissing > 0 {
		count("buffer units without room", b.Summary.BufferMissing, a.Summary.BufferMissing)
	}
	w := [4]int{10, 10, 10, 10}
	for _, r := range rows {
		for i, text := range []string{r.was, r.is, r.delta, r.month} {
			w[i] = max(w[i], utf8.RuneCountInString(text))
		}
	}
	t.line("")
	for i, r := range rows {
		paint := t.better(r.sign)
		if i == 0 {
			paint = func(text string) string { return text }
		}
		line := "  " + pad(r.label, 26) + left(r.was, w[0]) + left(r.is, w[1]+2) + paint(left(r.delta, w[2]+2)) + t.dim(left(r.month, w[3]+2))
		if i == 0 {
			line = t.dim(line)
		}
		t.line("%s", line)
	}
}

// better paints what is less green and what is more red.
func (t *report) better(delta int64) func(string) string {
	switch {
	case delta < 0:
		return t.green
	case delta > 0:
		return t.red
	}
	return func(text string) string { return text }
}

func (t *report) diffLaunches(d *Diff) {
	rows := d.Dearest()
	if len(rows) == 0 {
		return
	}
	t.section("Launches")
	more := 0
	if len(rows) > maxLaunchRows+1 {
		for _, l := range rows[maxLaunchRows:] {
			more += abs1(l.After - l.Before)
		}
		rows = rows[:maxLaunchRows]
	}
	typ, zone := 0, 0
	for i := range rows {
		typ = max(typ, utf8.RuneCountInString(rows[i].Offer.InstanceType))
		zone = max(zone, utf8.RuneCountInString(rows[i].Offer.Zone))
	}
	for i := range rows {
		l := &rows[i]
		n := SignedNumber(l.After - l.Before)
		paint := t.better(l.Delta())
		line := fmt.Sprintf("  %s  %s  %s  %s  %s", paint(left(n, 4)), pad(clean(l.Offer.InstanceType), typ),
			pad(clean(l.Offer.CapacityType), len("on-demand")), pad(clean(l.Offer.Zone), zone), paint(left(Signed(l.Delta()), 11)))
		t.noted(line, clean(fmt.Sprintf("%d → %d, pool %s", l.Before, l.After, l.NodePool)))
	}
	if more > 0 {
		t.line("        %s", t.dim("and "+Count(more, "node")+" in other offers"))
	}
}

func abs1(n int) int { return int(abs(int64(n))) }

func (t *report) diffNodes(d *Diff) {
	if len(d.Nodes) == 0 {
		return
	}
	t.section("Nodes")
	rows := d.Nodes
	if len(rows) > maxNodeRows+1 {
		rows = rows[:maxNodeRows]
	}
	for i := range rows {
		n := &rows[i]
		price := n.Delta()
		facts := strings.Join(strings.Fields(n.Node.InstanceType+" "+n.Node.CapacityType+" "+n.Node.Zone), "  ")
		t.noted(fmt.Sprintf("  %s  %s  %s", pad(strings.ToLower(string(n.Kind)), 7), t.bold(clean(n.Node.Name)), t.better(int64(n.Sign))(price)), clean(facts))
		if len(n.Blockers) > 0 {
			t.para("           ! ", "             ", "it stays as long as these pods may not be moved: "+few(n.Blockers, 4), t.yellow)
		}
	}
	if more := len(d.Nodes) - len(rows); more > 0 {
		t.line("           %s", t.dim("and "+Count(more, "more node")))
	}
}

func (t *report) diffPods(d *Diff) {
	for _, s := range d.Sections() {
		t.section(s.Title)
		rows := s.Groups
		if len(rows) > maxPodRows+1 {
			rows = rows[:maxPodRows]
		}
		for i := range rows {
			g := &rows[i]
			label := clean(g.Pods.Label())
			if ask := g.Pods.Ask(); ask != "" {
				label += " " + t.dim("("+clean(ask)+")")
			}
			t.line("  %s", label)
			text := g.From + " → " + g.To
			if g.Code != "" && s.Change != BecomesSchedulable && s.Change != Stays && s.Change != PodRemoved {
				text += ": " + g.Detail
				t.para("    ", "      ", text, nil)
				continue
			}
			t.para("    ", "      ", text, nil)
			if g.Code != "" {
				t.para("      ", "      ", g.Detail, t.dim)
			}
		}
		more := 0
		for _, g := range s.Groups[len(rows):] {
			more += len(g.Pods.Pods)
		}
		if more > 0 {
			t.line("    %s", t.dim("and "+Count(more, "more pod")))
		}
	}
}

// explanations are what both plans say of one object.
func (t *report) explanations() {
	d := t.p.Diff
	if d == nil || d.Explained == nil {
		t.explanation(t.p.Explained)
		return
	}
	var changes []string
	for i := range d.Changes {
		changes = append(changes, d.Changes[i].Text())
	}
	t.line("")
	t.para(t.bold("What if")+"  ", "         ", few(changes, maxChangeRows), nil)
	t.line("")
	t.line("%s", t.bold(clean(t.p.Explained.Object))+t.dim("  as it is"))
	t.tree(d.Explained.Lines, "")
	t.line("")
	t.line("%s", t.bold(clean(t.p.Explained.Object))+t.dim("  what if"))
	t.tree(t.p.Explained.Lines, "")
}
