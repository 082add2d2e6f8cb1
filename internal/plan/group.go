package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// PodGroup are pods of one workload that ask for the same.
type PodGroup struct {
	Name     string // namespace/workload; the pod's own name when it is alone
	Requests snapshot.Resources
	Known    bool // Requests are known
	Pods     []string
}

// Label is "shop/web x 12", or just the name of a single pod.
func (g *PodGroup) Label() string {
	if len(g.Pods) == 1 {
		return g.Name
	}
	return fmt.Sprintf("%s x %s", g.Name, thousands(int64(len(g.Pods))))
}

// Ask is what each pod of the group asks for: "500m 1Gi", "2 CPU 4Gi", then what is out of the
// ordinary by name ("nvidia.com/gpu 1"); "" when it asks for nothing.
func (g *PodGroup) Ask() string {
	if !g.Known {
		return ""
	}
	var parts []string
	for _, n := range []string{snapshot.CPU, snapshot.Memory} {
		if v := g.Requests.Get(n); v != 0 {
			q := Quantity(n, v)
			switch {
			case n == snapshot.CPU && v >= 1000:
				q = Rounded(n, v) + " CPU"
			case len(q) > 8:
				q = Rounded(n, v)
			}
			parts = append(parts, q)
		}
	}
	for _, n := range g.Requests.Names() {
		switch n {
		case snapshot.CPU, snapshot.Memory, snapshot.Pods:
		case snapshot.EphemeralStorage:
			parts = append(parts, "ephemeral "+Rounded(n, g.Requests.Get(n)))
		default:
			parts = append(parts, n+" "+Quantity(n, g.Requests.Get(n)))
		}
	}
	if len(parts) == 0 {
		return "no requests"
	}
	return strings.Join(parts, " ")
}

// Lookup finds pods by name for the reports of one plan.
type Lookup map[string]*PodUse

// Lookup indexes the pods of a plan.
func (p *Plan) Lookup() Lookup {
	m := make(Lookup, len(p.Pods))
	for i := range p.Pods {
		m[p.Pods[i].Ref] = &p.Pods[i]
	}
	return m
}

// Groups gathers pods by workload and request, the largest group first, then by
// name.
func (m Lookup) Groups(refs []string) []PodGroup {
	var out []PodGroup
	index := map[string]int{}
	for _, ref := range refs {
		g := PodGroup{Name: ref}
		if u := m[ref]; u != nil {
			g.Name, g.Requests, g.Known = u.Workload, u.Requests, true
		}
		key := g.Name + "\x00" + signature(g.Requests)
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, g)
		}
		out[i].Pods = append(out[i].Pods, ref)
	}
	for i := range out {
		slices.Sort(out[i].Pods)
		if len(out[i].Pods) == 1 {
			out[i].Name = out[i].Pods[0]
		}
	}
	slices.SortFunc(out, func(a, b PodGroup) int {
		return cmp.Or(cmp.Compare(len(b.Pods), len(a.Pods)), strings.Compare(a.Name, b.Name), strings.Compare(a.Pods[0], b.Pods[0]))
	})
	return out
}

func signature(r snapshot.Resources) string {
	var b strings.Builder
	for _, n := range r.Names() {
		fmt.Fprintf(&b, "%s=%d,", n, r.Get(n))
	}
	return b.String()
}

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
		fmt.Fprintf(&b, "%s|%v|", options, l.Relaxed)
		for _, g := range pods {
			name := g.Name
			if u := m[g.Pods[0]]; u != nil {
				name = u.Workload
			}
			fmt.Fprintf(&b, "%s*%d(%s)|", name, len(g.Pods), signature(g.Requests))
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

// WarningGroups gathers warnings by code and text, in the order of the plan.
func (p *Plan) WarningGroups() []WarningGroup {
	var out []WarningGroup
	index := map[Warning]int{}
	for _, w := range p.Warnings {
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
				signature(n.Allocatable), signature(n.Used), groupKey(m, g))
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

func groupKey(m Lookup, groups []PodGroup) string {
	var b strings.Builder
	for _, g := range groups {
		name := g.Name
		if u := m[g.Pods[0]]; u != nil {
			name = u.Workload
		}
		fmt.Fprintf(&b, "%s*%d(%s)", name, len(g.Pods), signature(g.Requests))
	}
	return b.String()
}

// Share is how full a node is of one resource.
type Share struct {
	Resource                    string
	Daemons, Used, Added, Total int64 // Used without Daemons
}

// Fraction is the filled part, at most 1 for a node that is not overcommitted.
func (s Share) Fraction() float64 {
	if s.Total <= 0 {
		return 0
	}
	return float64(s.Daemons+s.Used+s.Added) / float64(s.Total)
}

// Percent writes the fraction; a node is only 100 % full when it is full.
func (s Share) Percent() string {
	sum := s.Daemons + s.Used + s.Added
	switch f := s.Fraction(); {
	case f >= 0.995 && sum < s.Total:
		return "99 %"
	case f < 0.005 && sum > 0:
		return "1 %"
	default:
		return fmt.Sprintf("%.0f %%", f*100)
	}
}

// Shares gives cpu and memory and, where another resource is fuller than both,
// that one too; with pods, pods is always there.
func Shares(daemons, used, added, total snapshot.Resources, pods bool) []Share {
	one := func(n string) Share {
		return Share{n, daemons.Get(n), used.Get(n), added.Get(n), total.Get(n)}
	}
	out := []Share{one(snapshot.CPU), one(snapshot.Memory)}
	if pods {
		out = append(out, one(snapshot.Pods))
	}
	most := -1.0
	for _, s := range out {
		most = max(most, s.Fraction())
	}
	var best *Share
	for _, n := range total.Names() {
		if n == snapshot.CPU || n == snapshot.Memory || pods && n == snapshot.Pods {
			continue
		}
		asked := n != snapshot.Pods && n != snapshot.EphemeralStorage && added.Get(n) > 0
		if s := one(n); asked || s.Fraction() > most {
			if asked {
				out = append(out, s)
			} else if best == nil || s.Fraction() > best.Fraction() {
				best = &s
			}
		}
	}
	if best != nil {
		out = append(out, *best)
	}
	return out
}

// Shares of a launch: its requests less the daemonset share are what is added.
func (l *Launch) Shares(pods bool) []Share {
	return Shares(l.Daemons, snapshot.Resources{}, l.Requests.Sub(l.Daemons).Floor(), l.Allocatable, pods)
}

// Shares of a node.
func (n *NodeUse) Shares(pods bool) []Share {
	return Shares(n.Daemons, n.Used.Sub(n.Daemons).Floor(), n.Added, n.Allocatable, pods)
}
