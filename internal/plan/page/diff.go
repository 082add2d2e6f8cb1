package page

import (
	"strings"

	"kerf.sh/kerf/internal/plan"
)

// How much of a comparison a page shows.
const (
	maxDiffLaunches = 24
	maxDiffNodes    = 24
	maxDiffGroups   = 24 // of each section
)

// comparison is what differs between two plans, ready to print.
type comparison struct {
	Changes  []string
	Headline string
	Figures  []diffFigure
	Bars     []diffBar
	Launches []diffRow
	Nodes    []diffRow
	Sections []diffSection
	More     string // launches that are not shown
	NodeMore string
}

type diffFigure struct{ Label, Before, After, Delta, Class string }

// diffBar is one side of the picture: percent of the dearer side.
type diffBar struct {
	Label, Value  string
	Stays, Change float64
}

type diffRow struct {
	Count, Title, Facts, Note, Delta, Class string
	Held                                    string
}

type diffSection struct {
	Title, Class string
	Groups       []diffGroup
	More         string
}

type diffGroup struct {
	Pods, From, To string
	Code           plan.Code
	Detail         string
}

func newComparison(d *plan.Diff) *comparison {
	v := &comparison{Headline: d.Headline()}
	for i := range d.Changes {
		v.Changes = append(v.Changes, d.Changes[i].Text())
	}
	if d.Empty() {
		return v
	}
	b, a := &d.Before, &d.After
	price := func(label string, was, is int64) {
		v.Figures = append(v.Figures, diffFigure{label, plan.Dollars(was), plan.Dollars(is), plan.Signed(is - was), class(is - was)})
	}
	count := func(label string, was, is int) {
		v.Figures = append(v.Figures, diffFigure{label, plan.Number(was), plan.Number(is), plan.SignedNumber(is - was), class(int64(is - was))})
	}
	price("per hour, in the end", b.Settled(), a.Settled())
	price("launches, per hour", b.Summary.LaunchPrice, a.Summary.LaunchPrice)
	count("nodes launched", b.Summary.Launches, a.Summary.Launches)
	if a.Going != b.Going {
		count("nodes that are going", b.Going, a.Going)
	}
	if a.Held != b.Held {
		count("of them kept by pods", b.Held, a.Held)
	}
	count("pods that cannot run", b.Summary.Unschedulable, a.Summary.Unschedulable)
	if b.Summary.BufferMissing+a.Summary.BufferMissing > 0 {
		count("buffer units without room", b.Summary.BufferMissing, a.Summary.BufferMissing)
	}
	top := max(b.Settled(), a.Settled(), 1)
	for _, s := range []struct {
		label string
		side  *plan.Side
	}{{"as it is", b}, {"what if", a}} {
		all, launched := s.side.Settled(), s.side.Summary.LaunchPrice
		v.Bars = append(v.Bars, diffBar{s.label, plan.Dollars(all), percent(all-launched, top), percent(launched, top)})
	}
	v.launches(d)
	v.nodes(d)
	for _, s := range d.Sections() {
		v.Sections = append(v.Sections, sectionOf(&s))
	}
	return v
}

// class says whether a difference is for the better.
func class(delta int64) string {
	switch {
	case delta < 0:
		return "less"
	case delta > 0:
		return "more"
	}
	return ""
}

func (v *comparison) launches(d *plan.Diff) {
	rows := d.Dearest()
	if n := len(rows); n > maxDiffLaunches {
		rows = rows[:maxDiffLaunches]
		v.More = plan.Count(n-len(rows), "more offer")
	}
	for i := range rows {
		l := &rows[i]
		v.Launches = append(v.Launches, diffRow{
			Count: plan.SignedNumber(l.After - l.Before), Title: l.Offer.InstanceType,
			Facts: strings.Join([]string{l.Offer.CapacityType, l.Offer.Zone, "pool " + l.NodePool}, ", "),
			Note:  plan.Number(l.Before) + " → " + plan.Number(l.After), Delta: plan.Signed(l.Delta()), Class: class(l.Delta()),
		})
	}
}

func (v *comparison) nodes(d *plan.Diff) {
	rows := d.Nodes
	if n := len(rows); n > maxDiffNodes {
		rows = rows[:maxDiffNodes]
		v.NodeMore = plan.Count(n-len(rows), "more node")
	}
	for i := range rows {
		n := &rows[i]
		r := diffRow{
			Count: strings.ToLower(string(n.Kind)), Title: n.Node.Name, Class: class(int64(n.Sign)), Delta: n.Delta(),
			Facts: strings.Join(strings.Fields(n.Node.InstanceType+" "+n.Node.CapacityType+" "+n.Node.Zone), ", "),
			Held:  few(n.Blockers, 6),
		}
		v.Nodes = append(v.Nodes, r)
	}
}

func sectionOf(s *plan.PodDiffSection) diffSection {
	out := diffSection{Title: s.Title}
	switch s.Change {
	case plan.BecomesUnschedulable, plan.Blocked:
		out.Class = "bad"
	case plan.BecomesSchedulable, plan.Stays:
		out.Class = "good"
	}
	groups := s.Groups
	if len(groups) > maxDiffGroups {
		more := 0
		for _, g := range groups[maxDiffGroups:] {
			more += len(g.Pods.Pods)
		}
		groups, out.More = groups[:maxDiffGroups], "and "+plan.Count(more, "more pod")
	}
	for i := range groups {
		g := &groups[i]
		out.Groups = append(out.Groups, diffGroup{chips([]plan.PodGroup{g.Pods})[0], g.From, g.To, g.Code, g.Detail})
	}
	return out
}
