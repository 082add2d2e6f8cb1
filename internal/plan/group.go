package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// LaunchGroup are launches that are the same but for their names and which of
// equal pods they carry.
type LaunchGroup struct {
	Launches []*Launch
	Pods     []PodGroup // of the first launch
}

// LaunchGroups gathers equal launches, in the order of the plan.
func (p *Plan) LaunchGroups(m Lookup) []LaunchGroup {
	var out []LaunchGroup
	index := map[string]int{}
	var options string // of the launch before, whose list is often the same
	for i := range p.Launches {
		l := &p.Launches[i]
		pods := m.Groups(l.Pods)
		if i == 0 || !sameList(p.Launches[i-1].Options, l.Options) {
			options = fmt.Sprint(l.Options)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s|%s|%v|%s|%s|%s|%d|", l.NodePool, l.NodeClass, l.Chosen, signature(l.Allocatable), signature(l.Requests), l.Limited, l.Worst)
		fmt.Fprintf(&b, "%s|%v|%v|", options, l.Relaxed, l.Notes)
		for _, g := range pods {
			name := g.Name
			if u := m[g.Pods[0]]; u != nil {
				name = u.Workload
			}
			fmt.Fprintf(&b, "%s*%d(%s)|", name, len(g.Pods), signature(g.Requests))
			if g.ranged() {
				b.WriteString(l.Name) // pods that differ: not the same launch
			}
		}
		key := b.String()
		j, ok := index[key]
		if !ok {
			j = len(out)
			index[key] = j
			out = append(out, LaunchGroup{Pods: pods})
		}
		out[j].Launches = append(out[j].Launches, l)
	}
	for i := range out {
		if len(out[i].Launches) == 1 {
			continue
		}
		// A single pod shows its own name, which would be true of one launch only.
		for k := range out[i].Pods {
			g := &out[i].Pods[k]
			if u := m[g.Pods[0]]; u != nil {
				g.Name = u.Workload
			}
		}
	}
	return out
}

// VerdictGroup are objects with the same verdict.
type VerdictGroup struct {
	Verdict *Verdict
	Pods    []PodGroup
	Count   int
}

// CannotRun gathers the pods that have no place by equal verdicts, the shortest
// reason first.
func (p *Plan) CannotRun(m Lookup) []VerdictGroup {
	out := p.verdictGroups(m, func(v *Verdict) bool {
		return strings.HasPrefix(v.Object, "pod/") && Info(v.Code).Kind != KindNotPlanned
	}, func(v *Verdict) string { return fmt.Sprintf("%s|%s|%v", v.Code, v.Detail, v.Pools) })
	slices.SortStableFunc(out, func(a, b VerdictGroup) int {
		return cmp.Or(cmp.Compare(len(a.Verdict.Pools), len(b.Verdict.Pools)), cmp.Compare(length(a.Verdict), length(b.Verdict)))
	})
	return out
}

// NotPlanned gathers the pods that are left alone by code, the most first.
func (p *Plan) NotPlanned(m Lookup) []VerdictGroup {
	out := p.verdictGroups(m, func(v *Verdict) bool {
		return strings.HasPrefix(v.Object, "pod/") && Info(v.Code).Kind == KindNotPlanned
	}, func(v *Verdict) string { return string(v.Code) })
	slices.SortStableFunc(out, func(a, b VerdictGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(string(a.Verdict.Code), string(b.Verdict.Code)))
	})
	return out
}

// Remarks are the verdicts about other objects than pods, in the order of the plan.
func (p *Plan) Remarks() []*Verdict {
	var out []*Verdict
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; !strings.HasPrefix(v.Object, "pod/") {
			out = append(out, v)
		}
	}
	return out
}

func (p *Plan) verdictGroups(m Lookup, want func(*Verdict) bool, key func(*Verdict) string) []VerdictGroup {
	var out []VerdictGroup
	refs := map[string][]string{}
	var order []string
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if !want(v) {
			continue
		}
		k := key(v)
		if _, ok := refs[k]; !ok {
			order = append(order, k)
			out = append(out, VerdictGroup{Verdict: v})
		}
		refs[k] = append(refs[k], strings.TrimPrefix(v.Object, "pod/"))
	}
	for i, k := range order {
		out[i].Pods = m.Groups(refs[k])
		out[i].Count = len(refs[k])
	}
	return out
}

func length(v *Verdict) int {
	n := len(v.Detail)
	for _, w := range v.Pools {
		n += len(w.Detail)
	}
	return n
}

// WarningGroup are warnings with the same code and text.
type WarningGroup struct {
	Code    Code
	Detail  string
	Objects []string
}

// WarningGroups gathers warnings by code and text, in their order.
func WarningGroups(ws []Warning) []WarningGroup {
	var out []WarningGroup
	index := map[Warning]int{}
	for _, w := range ws {
		key := Warning{Code: w.Code, Detail: w.Detail}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, WarningGroup{Code: w.Code, Detail: w.Detail})
		}
		if w.Object != "" {
			out[i].Objects = append(out[i].Objects, w.Object)
		}
	}
	return out
}

// MoveGroup are the pods that go from one node, which is going, to another.
type MoveGroup struct {
	From, To string
	Pods     []PodGroup
}

// Displacements gathers the displaced pods by where they come from and where they
// go to, in the order of names.
func (p *Plan) Displacements(m Lookup) []MoveGroup {
	refs := map[[2]string][]string{}
	var keys [][2]string
	for _, d := range p.Displaced {
		k := [2]string{d.From, d.To}
		if _, ok := refs[k]; !ok {
			keys = append(keys, k)
		}
		refs[k] = append(refs[k], d.Pod)
	}
	slices.SortFunc(keys, func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	var out []MoveGroup
	for _, k := range keys {
		out = append(out, MoveGroup{From: k[0], To: k[1], Pods: m.Groups(refs[k])})
	}
	return out
}

// NodeGroup is an existing or in-flight node with the pods that the plan puts there.
type NodeGroup struct {
	Nodes []*NodeUse
	Pods  []PodGroup
}

// PlacementGroups gathers the nodes that get pods; nodes that are alike and get
// alike pods are one group. Placements on a node that Nodes does not list have a
// NodeUse with a name only.
func (p *Plan) PlacementGroups(m Lookup) []NodeGroup {
	uses := map[string]*NodeUse{}
	for i := range p.Nodes {
		uses[p.Nodes[i].Name] = &p.Nodes[i]
	}
	refs := map[string][]string{}
	var order []string
	for _, pl := range p.Placements {
		if _, ok := refs[pl.Node]; !ok {
			order = append(order, pl.Node)
		}
		refs[pl.Node] = append(refs[pl.Node], pl.Pod)
	}
	slices.Sort(order)
	var out []NodeGroup
	index := map[string]int{}
	for _, name := range order {
		n := uses[name]
		if n == nil {
			n = &NodeUse{Name: name}
		}
		g := m.Groups(refs[name])
		key := name
		if !n.Allocatable.IsZero() {
			key = fmt.Sprintf("%s|%s|%s|%s|%d|%t|%s|%s|%s", n.NodePool, n.InstanceType, n.Zone, n.CapacityType, n.Price, n.InFlight,
				signature(n.Allocatable), signature(n.Used), groupKey(m, g, name))
		}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, NodeGroup{Pods: g})
		}
		out[i].Nodes = append(out[i].Nodes, n)
	}
	return out
}

func groupKey(m Lookup, groups []PodGroup, node string) string {
	var b strings.Builder
	for _, g := range groups {
		name := g.Name
		if u := m[g.Pods[0]]; u != nil {
			name = u.Workload
		}
		fmt.Fprintf(&b, "%s*%d(%s)", name, len(g.Pods), signature(g.Requests))
		if g.ranged() {
			b.WriteString(node)
		}
	}
	return b.String()
}
