package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// podChanges are the changes of pods in the order of a report, the gravest first,
// with what a report calls them: one pod, several pods.
var podChanges = []struct {
	change    PodChange
	one, many string
}{
	{BecomesUnschedulable, "1 pod loses its place", "pods lose their place"},
	{Blocked, "1 pod may not leave its node", "pods may not leave their nodes"},
	{BecomesSchedulable, "1 pod becomes schedulable", "pods become schedulable"},
	{PodAdded, "1 pod more", "pods more"},
	{PodRemoved, "1 pod fewer", "pods fewer"},
	{Moves, "1 running pod moves", "running pods move"},
	{Stays, "1 pod may stay on its node", "pods may stay on their nodes"},
	{PlannedElsewhere, "1 pending pod goes elsewhere", "pending pods go elsewhere"},
	{OtherReason, "1 pod is left for another reason", "pods are left for another reason"},
}

// PodDiffSection are the pods with one change.
type PodDiffSection struct {
	Change PodChange
	Title  string
	Groups []PodDiffGroup // the largest first
}

// PodDiffGroup are pods of one workload to which the same happens.
type PodDiffGroup struct {
	Pods     PodGroup
	From, To string
	// Code and Detail are the reason why they have no place, in the second plan or,
	// where they get one there, in the first.
	Code   Code
	Detail string

	// repacked: both are new nodes, of pool and of these capacity types.
	repacked           bool
	pool, before, then string
}

// withoutRepacking makes one line of each pool's pods that go to another new node of
// that pool: what they are packed with has changed, and nothing that matters to them
// but, where it has, the capacity type.
func withoutRepacking(groups []PodDiffGroup) []PodDiffGroup {
	var out []PodDiffGroup
	lines := map[string]*PodDiffGroup{}
	workloads := map[string]map[string]bool{}
	for _, g := range groups {
		key := strings.Join([]string{g.pool, g.before, g.then}, "/")
		switch l := lines[key]; {
		case !g.repacked:
			out = append(out, g)
			continue
		case l == nil:
			lines[key] = &g
			workloads[key] = map[string]bool{g.Pods.Name: true}
		default:
			workloads[key][g.Pods.Name] = true
			l.Pods.Pods = append(l.Pods.Pods, g.Pods.Pods...)
			l.Pods.Requests, l.Pods.Most = least(l.Pods.Requests, g.Pods.Requests), l.Pods.Most.Max(g.Pods.Requests)
			l.From, l.To = "new "+g.before+" nodes of pool "+g.pool, "others of the same pool"
			if g.then != g.before {
				l.To = "new " + g.then + " nodes of the same pool"
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		l := lines[key]
		if n := len(workloads[key]); n > 1 {
			l.Pods.Name = Count(n, "workload")
			slices.Sort(l.Pods.Pods)
		}
		out = append(out, *l)
	}
	return out
}

// Sections gathers the pods by what happens to them, for people. Pods of one
// workload that change places with each other come to nothing and are left out.
func (d *Diff) Sections() []PodDiffSection {
	pods := d.withoutSwaps()
	var out []PodDiffSection
	for _, c := range podChanges {
		var of []*PodDiff
		for _, p := range pods {
			if p.Change == c.change {
				of = append(of, p)
			}
		}
		if len(of) == 0 {
			continue
		}
		s := PodDiffSection{Change: c.change, Title: c.one, Groups: groupPods(of)}
		if c.change == PlannedElsewhere {
			s.Groups = withoutRepacking(s.Groups)
		}
		if len(of) > 1 {
			s.Title = thousands(int64(len(of))) + " " + c.many
		}
		out = append(out, s)
	}
	return out
}

// place tells fates apart that a report tells apart pod by pod.
func (f *Fate) place() string {
	return fmt.Sprint(f.State, f.NodePool, f.Offer, cmp.Or(f.NodePool, f.Node), f.Telling)
}

func (d *Diff) withoutSwaps() []*PodDiff {
	type way struct{ workload, ask, from, to string }
	wayOf := func(p *PodDiff) way { return way{p.Workload, signature(p.Requests), p.Before.place(), p.After.place()} }
	count := map[way]int{}
	for i := range d.Pods {
		if p := &d.Pods[i]; p.Change == PlannedElsewhere {
			count[wayOf(p)]++
		}
	}
	back := maps.Clone(count)
	var out []*PodDiff
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Change == PlannedElsewhere {
			w := wayOf(p)
			if opposite := (way{w.workload, w.ask, w.to, w.from}); back[opposite] > 0 {
				back[opposite]--
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

func groupPods(pods []*PodDiff) []PodDiffGroup {
	type group struct {
		PodDiffGroup
		from, to []*Fate
	}
	var list []*group
	index := map[string]*group{}
	for _, p := range pods {
		key := strings.Join([]string{p.Workload, signature(p.Requests), p.Before.kind(), p.After.kind()}, "\x00")
		g := index[key]
		if g == nil {
			g = &group{PodDiffGroup: PodDiffGroup{Pods: PodGroup{
				Name: p.Workload, Requests: p.Requests, Most: p.Requests, Known: !p.Requests.IsZero(),
			}}}
			for _, f := range []*Fate{&p.After, &p.Before} {
				if f.Code != "" && g.Code == "" {
					g.Code, g.Detail = cmp.Or(f.Telling, f.Code), firstCause(f.Detail)
				}
			}
			index[key] = g
			list = append(list, g)
		}
		g.Pods.Pods = append(g.Pods.Pods, p.Pod)
		g.from, g.to = append(g.from, &p.Before), append(g.to, &p.After)
	}
	out := make([]PodDiffGroup, len(list))
	for i, g := range list {
		if len(g.Pods.Pods) == 1 {
			g.Pods.Name = g.Pods.Pods[0]
		}
		g.From, g.To = places(g.from), places(g.to)
		if a, b := g.from[0], g.to[0]; a.State == NewNode && b.State == NewNode && a.NodePool == b.NodePool {
			g.repacked, g.pool, g.before, g.then = true, a.NodePool, a.Offer.CapacityType, b.Offer.CapacityType
		}
		out[i] = g.PodDiffGroup
	}
	slices.SortStableFunc(out, func(a, b PodDiffGroup) int {
		return cmp.Or(cmp.Compare(len(b.Pods.Pods), len(a.Pods.Pods)), strings.Compare(a.Pods.Name, b.Pods.Name))
	})
	return out
}

// kind tells fates apart that are told apart when pods are gathered: not which node.
func (f *Fate) kind() string {
	return fmt.Sprint(f.State, "\x00", f.NodePool, "\x00", f.Offer.CapacityType, "\x00", cmp.Or(f.Telling, f.Code))
}

// places says where pods with fates of one kind are.
func places(fates []*Fate) string {
	f := fates[0]
	switch f.State {
	case Absent:
		return "not there"
	case NotPlanned:
		if f.Code == "" {
			return "not planned"
		}
		return string(f.Code)
	case CannotRun:
		return string(cmp.Or(f.Telling, f.Code))
	case NewNode:
		types, zones := distinct(fates, func(f *Fate) string { return f.Offer.InstanceType + " " + f.Offer.CapacityType }),
			distinct(fates, func(f *Fate) string { return f.Offer.Zone })
		s := "new " + few(types, 2)
		if len(types) > 2 {
			s = "new nodes of " + Count(len(types), "type")
		}
		return s + " in " + few(zones, 3) + ", pool " + f.NodePool
	}
	nodes := distinct(fates, func(f *Fate) string { return f.Node })
	if len(nodes) > 2 {
		return Count(len(nodes), "node")
	}
	return strings.Join(nodes, ", ")
}

func distinct(fates []*Fate, of func(*Fate) string) []string {
	var out []string
	for _, f := range fates {
		if v := of(f); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// Dearest are the differences of launches, the largest in price first.
func (d *Diff) Dearest() []LaunchDiff {
	out := slices.Clone(d.Launches)
	slices.SortStableFunc(out, func(a, b LaunchDiff) int { return cmp.Compare(abs(b.Delta()), abs(a.Delta())) })
	return out
}

func abs(p snapshot.Price) snapshot.Price {
	if p < 0 {
		return -p
	}
	return p
}

// Signed writes a difference of prices: "+$0.1632", "-$1.2000", "$0.0000".
func Signed(p snapshot.Price) string {
	if p > 0 {
		return "+" + Dollars(p)
	}
	return Dollars(p)
}

// Headline says in one sentence what a comparison comes to.
func (d *Diff) Headline() string {
	if d.Empty() {
		return "Nothing differs: the plan is the same with it and without it."
	}
	delta, was := d.PriceDelta(), d.Before.Settled()
	var parts []string
	switch {
	case delta == 0:
		parts = append(parts, "It costs the same")
	case delta > 0:
		parts = append(parts, fmt.Sprintf("It costs %s more per hour", Dollars(delta)))
	default:
		parts = append(parts, fmt.Sprintf("It costs %s less per hour", Dollars(-delta)))
	}
	if was > 0 && delta != 0 {
		parts[0] += fmt.Sprintf(" (%.1f %%, %s a month)", 100*float64(abs(delta))/float64(was), PerMonth(abs(delta)))
	}
	for _, s := range d.Sections() {
		parts = append(parts, s.Title)
	}
	switch n := d.After.Summary.BufferMissing - d.Before.Summary.BufferMissing; {
	case n > 0:
		parts = append(parts, Count(n, "buffer unit")+" more without room")
	case n < 0:
		parts = append(parts, Count(-n, "buffer unit")+" fewer without room")
	}
	const most = 4
	more := ""
	if len(parts) > most {
		parts, more = parts[:most], "; and more"
	}
	return strings.Join(parts, "; ") + more + "."
}

// ChangeText says what an overlay did to one object.
func (c *Change) Text() string {
	s := c.Object + " " + map[ChangeKind]string{
		Added: "added", Replaced: "replaced", Unchanged: "as it was", Removed: "removed", Going: "going",
	}[c.Kind]
	if c.Note != "" {
		s += ": " + c.Note
	}
	if len(c.With) > 0 {
		kinds := map[string]int{}
		for _, o := range c.With {
			kind, _, _ := strings.Cut(o, "/")
			kinds[kind]++
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			parts = append(parts, Count(kinds[k], k))
		}
		if len(c.With) == 1 {
			parts = c.With
		}
		s += " with " + strings.Join(parts, ", ")
	}
	return s
}
