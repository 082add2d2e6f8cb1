package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

func (t *report) launches() {
	if len(t.p.Launches) == 0 {
		return
	}
	groups := t.p.LaunchGroups(t.pods)
	t.section(fmt.Sprintf("Launch %s", Count(len(t.p.Launches), "node")))
	if len(groups) > 8 {
		t.overview()
	}
	t.legend()
	for _, g := range groups {
		l := g.Launches[0]
		t.line("")
		price := Dollars(l.Chosen.Price)
		if len(g.Launches) > 1 {
			price += " each"
		}
		title := fmt.Sprintf("%s  %s  %s", l.Chosen.InstanceType, l.Chosen.CapacityType, l.Chosen.Zone)
		if len(g.Launches) > 1 {
			title = fmt.Sprintf("%d x %s", len(g.Launches), title)
		}
		head := fmt.Sprintf("  %s  %s", t.bold(clean(title)), t.green(price))
		t.noted(head, clean(nameRange(g.Launches, t.width-visible(head)-2)))
		t.para("    ", "    ", fmt.Sprintf("pool %s, %s", l.NodePool, Options(l)), t.dim)
		t.shares(l.Shares(false), "    ")
		t.groups(g.Pods, "    ")
		if l.Limited != "" {
			t.para("    ! ", "      ", l.Limited, t.yellow)
		}
		for _, r := range l.Relaxed {
			t.para("    ~ ", "      ", r, t.yellow)
		}
		for _, n := range l.Notes {
			t.para("    · ", "      ", n, t.dim)
		}
	}
}

// overview sums a long list of launches up by type.
func (t *report) overview() {
	counts := map[string]int{}
	for i := range t.p.Launches {
		c := &t.p.Launches[i].Chosen
		counts[c.InstanceType+" "+c.CapacityType]++
	}
	var names []string
	for n := range counts {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%d x %s", counts[n], clean(n))
	}
	for _, l := range flow(names, ", ", t.width-2) {
		t.line("  %s", l)
	}
}

// nameRange names launches: all of them when they are few and there is room.
func nameRange(ls []*Launch, width int) string {
	var names []string
	for _, l := range ls {
		names = append(names, l.Name)
	}
	for n := 3; n > 1; n-- {
		if s := few(names, n); len(s) <= width {
			return s
		}
	}
	return few(names, 1)
}

// few joins up to n names and counts the rest.
func few(names []string, n int) string {
	if len(names) <= max(n, 2) {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// Options says how many offers a launch has and what they cost.
func Options(l *Launch) string {
	if len(l.Options) == 0 {
		return "no other option"
	}
	types, zones := map[string]bool{}, map[string]bool{}
	lo, hi := l.Options[0].Price, l.Options[0].Price
	for _, o := range l.Options {
		types[o.InstanceType], zones[o.Zone] = true, true
		lo, hi = min(lo, o.Price), max(hi, o.Price)
	}
	s := fmt.Sprintf("%s (%s, %s)", Count(len(l.Options), "option"), Count(len(types), "type"), Count(len(zones), "zone"))
	price := " from " + Dollars(lo) + " to " + Dollars(hi)
	if lo == hi {
		price = " at " + Dollars(lo)
	}
	if c := l.Chosen.Commitment; c != "" {
		price += ", under commitment " + c + "; list price " + Dollars(l.Chosen.ListPrice)
	}
	return s + price
}

func (t *report) placements() {
	if len(t.p.Placements) == 0 {
		return
	}
	groups := t.p.PlacementGroups(t.pods)
	t.section(fmt.Sprintf("Place %s on nodes that are there or on their way", Count(len(t.p.Placements), "pod")))
	if len(t.p.Launches) == 0 {
		t.legend()
	}
	for _, g := range groups {
		n := g.Nodes[0]
		t.line("")
		var names []string
		for _, o := range g.Nodes {
			names = append(names, o.Name)
		}
		facts := strings.Join(strings.Fields(n.InstanceType+" "+n.CapacityType+" "+n.Zone), "  ")
		if n.InFlight {
			facts += "  on its way"
		}
		if n.NodePool != "" {
			facts += "  pool " + n.NodePool
		}
		title := few(names, 3)
		if len(g.Nodes) > 1 {
			title = fmt.Sprintf("%d nodes, alike: %s", len(g.Nodes), title)
		}
		t.noted("  "+t.bold(clean(title)), clean(facts))
		if !n.Allocatable.IsZero() {
			t.shares(n.Shares(false), "    ")
		}
		t.groups(g.Pods, "    ")
	}
}

func (t *report) displaced() {
	if len(t.p.Displaced) == 0 {
		return
	}
	t.section(Count(len(t.p.Displaced), "pod") + " of nodes that are going")
	for _, g := range t.p.Displacements(t.pods) {
		t.line("  %s → %s", t.bold(clean(g.From)), t.bold(clean(g.To)))
		t.groups(g.Pods, "    ")
	}
}

func (t *report) cannotRun() {
	groups := t.p.CannotRun(t.pods)
	if len(groups) == 0 {
		return
	}
	total := 0
	for i := range groups {
		total += groups[i].Count
	}
	t.section(Count(total, "pod") + " cannot run")
	for i := range groups {
		t.line("")
		t.verdict(&groups[i])
	}
}

func (t *report) verdict(g *VerdictGroup) {
	v := g.Verdict
	t.groups(g.Pods, "  ")
	detail, pools := v.Tree()
	t.para("    "+t.red(string(v.Code))+"  ", "      ", detail, nil)
	w := 0
	for _, p := range pools {
		w = max(w, utf8.RuneCountInString(p.NodePool))
	}
	w = min(w, 24)
	for i, p := range pools {
		branch, rest := "    ├─ ", "    │  "
		if i == len(pools)-1 {
			branch, rest = "    └─ ", "       "
		}
		t.para(branch+t.bold(pad(clean(p.NodePool), w))+"  "+t.red(string(p.Code))+"  ", rest+"    ", p.Detail, nil)
	}
	if do := Info(Telling(v)).Do; do != "" && do != "Nothing." {
		t.para("    → ", "      ", do, t.dim)
	}
}

func (t *report) remarks() {
	vs := t.p.Remarks()
	if len(vs) == 0 {
		return
	}
	t.section("Pools and nodes")
	for _, v := range vs {
		t.para("  "+t.bold(clean(v.Object))+"  "+t.yellow(string(v.Code))+"  ", "      ", v.Detail, nil)
	}
}

func (t *report) notPlanned() {
	groups := t.p.NotPlanned(t.pods)
	if len(groups) == 0 {
		return
	}
	total := 0
	for i := range groups {
		total += groups[i].Count
	}
	t.section(Count(total, "pod") + " not planned")
	for _, g := range groups {
		t.para(fmt.Sprintf("  %s %s  ", left(thousands(int64(g.Count)), 5), t.yellow(string(g.Verdict.Code))), "        ", Info(g.Verdict.Code).Meaning, t.dim)
		var names []string
		for i := range g.Pods {
			names = append(names, clean(g.Pods[i].Label()))
		}
		t.para("        ", "        ", few(names, 6), nil)
	}
}

func (t *report) warnings(ws []Warning) {
	groups := WarningGroups(ws)
	if len(groups) == 0 {
		return
	}
	t.section(Count(len(groups), "warning"))
	for _, g := range groups {
		text := g.Detail
		if len(g.Objects) > 0 {
			text = few(g.Objects, 4) + ": " + text
		}
		t.para("  "+t.yellow(string(g.Code))+"  ", "      ", text, nil)
	}
}

func (t *report) explanation(e *Explanation) {
	t.line("")
	t.line("%s", t.bold(clean(e.Object)))
	t.tree(e.Lines, "")
}

func (t *report) tree(lines []Line, prefix string) {
	for i := range lines {
		branch, rest := "├─ ", "│  "
		if i == len(lines)-1 {
			branch, rest = "└─ ", "   "
		}
		t.para(prefix+branch, prefix+rest, lines[i].Text, nil)
		t.tree(lines[i].Children, prefix+rest)
	}
}
