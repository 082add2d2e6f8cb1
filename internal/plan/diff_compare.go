package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Compare says what differs between two plans: what is launched, which nodes are
// there, what becomes of which pod. Both should be described (see Describe), each
// with the pods that the other names. All lists are sorted.
func Compare(before, after *Plan) *Diff {
	return &Diff{
		Before: side(before), After: side(after),
		Launches: compareLaunches(before, after),
		Nodes:    compareNodes(before, after),
		Pods:     comparePods(before, after),
		Warnings: keep(after.Warnings, func(w *Warning) bool { return !slices.Contains(before.Warnings, *w) }),
	}
}

func side(p *Plan) Side {
	s := Side{ID: p.ID, Complete: p.Complete, Summary: p.Summary}
	var held map[string][]string
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !n.Going {
			continue
		}
		if held == nil {
			held = blockers(p)
		}
		s.Going++
		if held[n.Name] != nil {
			s.Held++
		} else {
			s.GoingPrice += n.Price
		}
	}
	return s
}

type offerOfPool struct {
	pool  string
	offer Offer
}

func compareLaunches(before, after *Plan) []LaunchDiff {
	counts := map[offerOfPool][2]int{}
	for side, p := range []*Plan{before, after} {
		for i := range p.Launches {
			l := &p.Launches[i]
			k := offerOfPool{l.NodePool, l.Chosen}
			c := counts[k]
			c[side]++
			counts[k] = c
		}
	}
	var out []LaunchDiff
	for k, c := range counts {
		if c[0] != c[1] {
			out = append(out, LaunchDiff{k.pool, k.offer, c[0], c[1]})
		}
	}
	slices.SortFunc(out, func(a, b LaunchDiff) int {
		return cmp.Or(strings.Compare(a.NodePool, b.NodePool), a.Offer.compare(&b.Offer))
	})
	return out
}

func (o *Offer) compare(p *Offer) int {
	return cmp.Or(strings.Compare(o.InstanceType, p.InstanceType), strings.Compare(o.Zone, p.Zone), strings.Compare(o.CapacityType, p.CapacityType),
		cmp.Compare(o.Price, p.Price), strings.Compare(o.ReservationID, p.ReservationID))
}

func compareNodes(before, after *Plan) []NodeDiff {
	then := map[string]*NodeUse{}
	for i := range before.Nodes {
		then[before.Nodes[i].Name] = &before.Nodes[i]
	}
	was, is := blockers(before), blockers(after)
	// stays is 1 for a node that is there in the end.
	stays := func(n *NodeUse, held map[string][]string) int {
		if n.Going && len(held[n.Name]) == 0 {
			return 0
		}
		return 1
	}
	var out []NodeDiff
	for i := range after.Nodes {
		n := &after.Nodes[i]
		d := NodeDiff{Kind: Added, Node: *n, Sign: stays(n, is)}
		if n.Going {
			d.Blockers = is[n.Name]
		}
		if old := then[n.Name]; old != nil {
			delete(then, n.Name)
			d.Sign -= stays(old, was)
			switch {
			case n.Going == old.Going && d.Sign == 0:
				continue
			case n.Going && (!old.Going || d.Sign < 0):
				d.Kind = Going
			default:
				d.Kind = Staying
			}
		}
		out = append(out, d)
	}
	for _, n := range then {
		out = append(out, NodeDiff{Kind: Removed, Node: *n, Sign: -stays(n, was)})
	}
	slices.SortFunc(out, func(a, b NodeDiff) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return out
}

// blockers are the pods that may not be moved, by the node that they keep.
func blockers(p *Plan) map[string][]string {
	on := make(map[string]string, len(p.Pods))
	for i := range p.Pods {
		on[p.Pods[i].Ref] = p.Pods[i].Node
	}
	out := map[string][]string{}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if ref, ok := strings.CutPrefix(v.Object, "pod/"); ok && v.Code == EvictionBlocked {
			out[on[ref]] = append(out[on[ref]], ref)
		}
	}
	return out
}

// fates are what a plan has for the pods that it names.
func fates(p *Plan) map[string]Fate {
	out := make(map[string]Fate, len(p.Pods))
	for i := range p.Launches {
		l := &p.Launches[i]
		for _, ref := range l.Pods {
			out[ref] = Fate{State: NewNode, Node: l.Name, NodePool: l.NodePool, Offer: l.Chosen}
		}
	}
	for i := range p.Placements {
		out[p.Placements[i].Pod] = Fate{State: ExistingNode, Node: p.Placements[i].Node}
	}
	for i := range p.Displaced {
		d := &p.Displaced[i]
		f, ok := out[d.Pod]
		if !ok {
			f = Fate{State: ExistingNode, Node: d.To}
		}
		f.From = d.From
		out[d.Pod] = f
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		ref, ok := strings.CutPrefix(v.Object, "pod/")
		if !ok {
			continue
		}
		f := Fate{State: CannotRun, Code: v.Code, Telling: Telling(v), Detail: v.Detail}
		if Info(v.Code).Kind == KindNotPlanned {
			f.State = NotPlanned
		}
		if len(v.Pools) > 0 && v.Code == Unschedulable {
			f.Detail = v.Pools[0].Detail
		}
		out[ref] = f
	}
	for i := range p.Pods {
		u := &p.Pods[i]
		f, named := out[u.Ref]
		switch {
		case !named && u.Node != "":
			out[u.Ref] = Fate{State: Running, Node: u.Node}
		case !named:
			out[u.Ref] = Fate{State: NotPlanned}
		case f.From == "" && u.Node != "":
			f.From = u.Node
			out[u.Ref] = f
		}
	}
	return out
}

func comparePods(before, after *Plan) []PodDiff {
	was, is := fates(before), fates(after)
	known := after.Lookup()
	maps.Copy(known, keepOnly(before.Lookup(), is))
	refs := map[string]bool{}
	for ref := range was {
		refs[ref] = true
	}
	for ref := range is {
		refs[ref] = true
	}
	var out []PodDiff
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if IsUnit(ref) {
			continue // no pod: counted in the sides
		}
		d := PodDiff{Pod: ref, Before: fateOf(was, ref, is), After: fateOf(is, ref, was)}
		if d.Before.same(&d.After) {
			continue
		}
		d.Change = podChange(&d.Before, &d.After)
		d.Workload = ref
		if u := known[ref]; u != nil {
			d.Workload, d.Requests = u.Workload, u.Requests
		}
		out = append(out, d)
	}
	return out
}

// keepOnly are the pods of a plan that the other does not have.
func keepOnly(m Lookup, other map[string]Fate) Lookup {
	out := Lookup{}
	for ref, u := range m {
		if _, ok := other[ref]; !ok {
			out[ref] = u
		}
	}
	return out
}

// fateOf is the fate of a pod in one plan. One that this plan does not name, and that
// the other moves off a node, runs there.
func fateOf(fates map[string]Fate, ref string, other map[string]Fate) Fate {
	if f, ok := fates[ref]; ok {
		return f
	}
	if o := other[ref]; o.From != "" {
		return Fate{State: Running, Node: o.From}
	}
	return Fate{State: Absent}
}

func podChange(before, after *Fate) PodChange {
	placed := func(f *Fate) bool { return f.State == NewNode || f.State == ExistingNode || f.State == Running }
	switch {
	case before.State == Absent:
		return PodAdded
	case after.State == Absent:
		return PodRemoved
	case after.Code == EvictionBlocked:
		return Blocked
	case placed(before) && after.State == CannotRun:
		return BecomesUnschedulable
	case before.State == CannotRun && placed(after):
		return BecomesSchedulable
	case after.State == Running:
		return Stays
	case before.State == Running && placed(after):
		return Moves
	case placed(before) && placed(after):
		return PlannedElsewhere
	}
	return OtherReason
}

// DescribeWith is Describe for two plans that are compared: each is told about the
// pods that the other names as well.
func DescribeWith(before *Plan, s *snapshot.Snapshot, after *Plan, t *snapshot.Snapshot) {
	named := mentioned(before)
	maps.Copy(named, mentioned(after))
	describe(before, s, maps.Clone(named))
	describe(after, t, named)
}
