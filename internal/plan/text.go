package plan

import (
	"fmt"
	"slices"
	"strings"
)

// TextOptions say how a report is written.
type TextOptions struct {
	// Color paints with ANSI sequences; the caller knows whether it is a terminal.
	Color bool
	// Width is the most columns of a line, from 72 to 160; 0 means 100. Names longer
	// than that are not broken.
	Width int
}

// Text writes a plan for a person. A plan with an explanation is written as the
// explanation alone.
func Text(p *Plan, o TextOptions) string {
	t := newReport(p, o)
	t.header()
	if p.Explained != nil {
		t.explanations()
		return t.b.String()
	}
	if p.Diff != nil {
		t.diff(p.Diff)
		t.section("The plan, if it were so")
	}
	t.money()
	t.launches()
	t.placements()
	t.displaced()
	t.moves()
	t.cannotRun()
	t.remarks()
	t.notPlanned()
	t.memory()
	t.warnings(p.Warnings)
	return t.b.String()
}

// report is one text being written.
type report struct {
	style
	p     *Plan
	pods  Lookup
	width int
	b     strings.Builder
}

func newReport(p *Plan, o TextOptions) *report {
	if o.Width <= 0 {
		o.Width = 100
	}
	return &report{p: p, style: style(o.Color), width: min(max(o.Width, 72), 160), pods: p.Lookup()}
}

func (t *report) line(format string, args ...any) {
	t.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	t.b.WriteByte('\n')
}

// section opens a part of the report: a blank line and a title.
func (t *report) section(title string) {
	t.line("")
	t.line("%s", t.bold(title))
}

// para writes wrapped text: the first line after first, the others after rest.
func (t *report) para(first, rest, text string, paint func(string) string) {
	words := strings.Fields(clean(text))
	for prefix := first; ; prefix = rest {
		var line string
		line, words = takeLine(words, max(t.width-visible(prefix), 30))
		if paint != nil {
			line = paint(line)
		}
		t.line("%s%s", prefix, line)
		if len(words) == 0 {
			return
		}
	}
}

func (t *report) header() {
	t.title("Plan for ")
	t.para("", "", Outcome(t.p), nil)
	t.incomplete()
}

func (t *report) title(what string) {
	p := t.p
	name := "cluster " + clean(p.Cluster)
	if p.Cluster == "" {
		name = "a cluster without a name"
	}
	t.line("%s  %s", t.bold(what+name),
		t.dim(clean(p.Region)+"  "+p.Now.UTC().Format("2006-01-02 15:04:05 UTC")))
}

func (t *report) incomplete() {
	if p := t.p; !p.Complete {
		reason := "the reading of the cluster is not complete"
		if len(p.Incomplete) > 0 {
			reason += ": " + strings.Join(p.Incomplete, "; ")
		}
		t.para("", "  ", reason, t.red)
	}
}

// Outcome is the plan in one sentence.
func Outcome(p *Plan) string {
	s := &p.Summary
	total := s.PendingPods + p.Moving.Pods
	short := ""
	if n := p.staticLaunches(); n > 0 {
		short = "Static NodePools are short of " + Count(n, "node") + "."
	}
	if n := s.BufferUnits; n > 0 {
		kept := "Capacity buffers have room for " + thousands(int64(n-s.BufferMissing)) + " of " + Count(n, "unit") + "."
		short = strings.TrimSpace(kept + " " + short)
	}
	switch {
	case total == 0 && short != "":
		return "No pod is pending. " + short
	case total == 0:
		return "No pod is pending: there is nothing to launch."
	}
	placed := s.Placed + p.Moving.Placed
	launched := total - placed - s.Unschedulable
	var parts []string
	if placed > 0 {
		parts = append(parts, thousands(int64(placed))+" on nodes that are there or on their way")
	}
	if launched > 0 {
		parts = append(parts, fmt.Sprintf("%s on %s", thousands(int64(launched)), Count(s.Launches, "new node")))
	}
	if s.Unschedulable > 0 {
		parts = append(parts, thousands(int64(s.Unschedulable))+" cannot run")
	}
	head := Count(s.PendingPods, "pod") + " pending"
	if p.Moving.Pods > 0 {
		head += fmt.Sprintf(", %s of nodes that are going", thousands(int64(p.Moving.Pods)))
	}
	head += ": " + strings.Join(parts, ", ") + "."
	if short != "" {
		head += " " + short
	}
	return head
}

// staticLaunches counts the launches that no pod is the cause of.
func (p *Plan) staticLaunches() int {
	n := 0
	for i := range p.Launches {
		if p.Launches[i].Static {
			n++
		}
	}
	return n
}

func (t *report) money() {
	p, s := t.p, &t.p.Summary
	t.line("")
	t.line("  %s", t.dim(pad("", 26)+left("per hour", 12)+left("per month", 12)))
	row := func(label string, price int64, note string, paint func(string) string) {
		fig := left(Dollars(price), 12)
		if paint != nil {
			fig, label = paint(fig), paint(pad(label, 26))
		}
		t.noted("  "+pad(label, 26)+fig+t.dim(left(PerMonth(price), 12)), note)
	}
	row("now", s.PriceBefore, t.nodesNote(), nil)
	row("after this plan", s.PriceAfter, "", t.bold)
	if going := side(p); going.Going > 0 {
		note := Count(going.Going, "node") + " going"
		if going.Held > 0 {
			note += fmt.Sprintf(", %d kept by pods that may not be moved", going.Held)
		}
		row("once what can go is gone", going.Settled(), note, nil)
	}
	if s.Launches > 0 {
		t.line("")
		row("launches, as chosen", s.LaunchPrice, Count(s.Launches, "node"), t.green)
		if s.Committed > 0 {
			row("  of it committed", s.Committed, "Savings Plans and reserved instances: paid whether used or not", nil)
		}
		row("launches, dearest options", s.LaunchPriceWorst, over(s.LaunchPriceWorst, s.LaunchPrice, "more, if every cheaper option is gone"), nil)
		if s.LaunchLowerBound > 0 {
			row("lower bound", s.LaunchLowerBound, "no plan for these pods and pools costs less", nil)
			t.noted("  "+pad("gap", 26)+left(Gap(s.LaunchPrice, s.LaunchLowerBound), 12)+pad("", 12), "at most this far above the best price")
		}
	}
	if c := p.Catalogue; c.Region != "" || c.Source != "" {
		t.para("  ", "  ", "Prices: "+joined(c.Region, c.Date, c.Source), t.dim)
	}
}

// noted writes a line with a remark behind it, or below it where that is too wide.
func (t *report) noted(line, note string) {
	if note != "" && visible(line)+2+visible(note) > t.width {
		t.line("%s", line)
		t.line("      %s", t.dim(note))
		return
	}
	t.line("%s  %s", line, t.dim(note))
}

func over(price, base int64, note string) string {
	if price <= base || base <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %% %s", float64(price-base)/float64(base)*100, note)
}

func (t *report) nodesNote() string {
	n, flight, unknown := 0, 0, 0
	for i := range t.p.Nodes {
		switch u := &t.p.Nodes[i]; {
		case u.InFlight:
			flight++
		default:
			n++
		}
		if !t.p.Nodes[i].PriceKnown {
			unknown++
		}
	}
	note := Count(n, "node")
	if flight > 0 {
		note += fmt.Sprintf(", %d on the way", flight)
	}
	if unknown > 0 {
		note += fmt.Sprintf(", %d of unknown price", unknown)
	}
	return note
}

// legend explains the bars.
func (t *report) legend() {
	t.line("  %s", t.dim("░")+" daemonsets  "+t.blue("▓")+" pods there  "+t.green("█")+" pods this plan places  "+t.dim("·")+" free")
}

// bar draws how full a node is: daemonset pods, pods that are there, pods that the
// plan adds, free room.
func (t *report) bar(s Share, width int) string {
	cells := func(v int64) int {
		if s.Total <= 0 || v <= 0 {
			return 0
		}
		return int(float64(v)/float64(s.Total)*float64(width) + 0.5)
	}
	d := min(cells(s.Daemons), width)
	u := min(cells(s.Daemons+s.Used), width)
	a := min(cells(s.Daemons+s.Used+s.Added), width)
	return t.dim(strings.Repeat("░", d)) + t.blue(strings.Repeat("▓", u-d)) + t.green(strings.Repeat("█", a-u)) + t.dim(strings.Repeat("·", width-a))
}

func (t *report) shares(shares []Share, indent string) {
	w := len("memory")
	for _, s := range shares {
		w = max(w, len(s.Resource))
	}
	width := min(max(t.width-54-w, 10), 30)
	for _, s := range shares {
		pct := left(s.Percent(), 5)
		sum := s.Daemons + s.Used + s.Added
		note := ""
		if s.Daemons > 0 {
			note = ", daemonsets " + Rounded(s.Resource, s.Daemons)
		}
		t.line("%s%s %s %s  %s", indent, pad(clean(s.Resource), w), t.bar(s, width), pct,
			t.dim(Rounded(s.Resource, sum)+" of "+Rounded(s.Resource, s.Total)+note))
	}
}

func (t *report) groups(groups []PodGroup, indent string) {
	var items []string
	for i := range groups {
		g := &groups[i]
		it := clean(g.Label())
		if ask := g.Ask(); ask != "" {
			it += " (" + clean(ask) + ")"
		}
		items = append(items, it)
	}
	for _, l := range flow(items, ", ", t.width-len(indent)) {
		t.line("%s%s", indent, l)
	}
}

// joined lists what is not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
