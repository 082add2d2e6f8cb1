package disruption

import (
	"cmp"
	"math"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// ground is the cluster as numbers: what is free on each node, what is on it, and which
// pods may go where. Rules between pods are kept in a narrower form that implies them:
// pods with a rule about zones stay in their zone, those with one about nodes are looked
// at one by one. What is found is proved under the rules themselves.
type ground struct {
	x    *search
	w    *scheduling.World
	p    *packing.Problem
	d    int
	free []int64 // by target, then dimension
	at   map[string]int
	// zone of each target, as a number.
	zone []int
	// classOf a pod, by reference; -1: it cannot be moved by this search.
	classOf map[*snapshot.Pod]int
	need    [][]int64
	bound   []bool // the class stays in its zone
	shy     []bool // the class has a rule about the pods beside it, or others have one about it
	size    []int64
	weight  []float64
	total   []float64
	// repel are the rules of pods that keep others off their node, by node.
	repel map[string][]repeller
}

// repeller is a rule of a pod that keeps others off its node.
type repeller struct {
	pod  *snapshot.Pod
	term *snapshot.PodAffinityTerm
}

// newGround reads the cluster with the pods of some nodes taken up: they are what may move.
func (x *search) newGround(movable []*node) *ground {
	up := map[*snapshot.Pod]bool{}
	for _, n := range movable {
		for _, p := range n.moving {
			up[p] = true
		}
	}
	s := *x.s
	s.Pods = make([]snapshot.Pod, 0, len(x.s.Pods))
	var orig []*snapshot.Pod
	for i := range x.s.Pods {
		p := &x.s.Pods[i]
		switch {
		case up[p]:
			q := *p
			q.NodeName, q.NominatedNode, q.Scheduled = "", "", nil
			q.Spec.Spread, q.Spec.Affinity, q.Spec.Anti, q.Spec.Preferred = nil, nil, nil, nil
			s.Pods, orig = append(s.Pods, q), append(orig, p)
		case p.NodeName != "":
			s.Pods, orig = append(s.Pods, *p), append(orig, p)
		}
	}
	s.Nominations, s.Buffers, s.Workloads = nil, nil, nil
	g := &ground{x: x, classOf: make(map[*snapshot.Pod]int, len(up)), at: map[string]int{}, repel: map[string][]repeller{}}
	g.w = scheduling.New(&s, x.c)
	g.p = g.w.Problem()
	g.d = len(g.p.Dims)
	g.free = make([]int64, 0, g.d*len(g.p.Nodes))
	zones := map[string]int{}
	for k := range g.p.Nodes {
		n := &g.p.Nodes[k]
		g.at[n.Name] = k
		g.free = append(g.free, n.Free...)
		z := ""
		if own := x.byName[n.Name]; own != nil {
			z = own.zone
		}
		if _, ok := zones[z]; !ok {
			zones[z] = len(zones)
		}
		g.zone = append(g.zone, zones[z])
	}
	g.classes(orig)
	for _, n := range movable {
		for _, p := range n.moving {
			if _, ok := g.classOf[p]; !ok {
				g.classOf[p] = -1 // nobody plans it
			}
		}
		k, ok := g.at[n.name]
		if !ok {
			continue
		}
		for _, p := range n.moving {
			if c, ok := g.classOf[p]; ok && c >= 0 {
				g.put(k, c)
			}
		}
	}
	g.reserve()
	g.weigh()
	return g
}

// classes numbers the pods, and says what keeps each class.
func (g *ground) classes(orig []*snapshot.Pod) {
	g.need = make([][]int64, len(g.p.Classes))
	g.bound, g.shy = make([]bool, len(g.p.Classes)), make([]bool, len(g.p.Classes))
	for i := range g.x.s.Pods {
		p := &g.x.s.Pods[i]
		for k := range p.Spec.Anti {
			t := &p.Spec.Anti[k]
			if t.Weight == 0 && t.TopologyKey == catalog.LabelHostname && p.Active() {
				g.repel[p.NodeName] = append(g.repel[p.NodeName], repeller{p, t})
			}
		}
	}
	shunned := g.shunned()
	for c := range g.w.Classes {
		cls := &g.w.Classes[c]
		if c >= len(g.p.Classes) {
			break
		}
		g.need[c] = g.p.Classes[c].Need
		for _, i := range cls.Pods {
			p := orig[i]
			g.classOf[p] = c
			if cls.PodsPerUnit() > 1 {
				g.classOf[p] = -1
				continue
			}
			bound, shy, fixed := rulesOf(p)
			g.bound[c], g.shy[c] = g.bound[c] || bound, g.shy[c] || shy || shunned(p)
			if fixed {
				g.classOf[p] = -1
			}
		}
	}
}

// rulesOf says what keeps a pod: bound to its zone, particular about the pods beside it, or
// fixed because it has to be beside another one.
func rulesOf(p *snapshot.Pod) (bound, shy, fixed bool) {
	for i := range p.Spec.Spread {
		if p.Spec.Spread[i].TopologyKey == catalog.LabelHostname {
			shy = true
		} else {
			bound = true
		}
	}
	for i := range p.Spec.Anti {
		if p.Spec.Anti[i].TopologyKey == catalog.LabelHostname {
			shy = true
		} else {
			bound = true
		}
	}
	for i := range p.Spec.Affinity {
		if p.Spec.Affinity[i].Weight != 0 {
			continue
		}
		if p.Spec.Affinity[i].TopologyKey == catalog.LabelHostname {
			fixed = true
		} else {
			bound = true
		}
	}
	return bound, shy, fixed
}

// shunned reports whether some pod's rule keeps it from sharing a node with a pod.
func (g *ground) shunned() func(*snapshot.Pod) bool {
	byNS := map[string][]repeller{}
	for _, list := range g.repel {
		for _, r := range list {
			byNS[r.pod.Namespace] = append(byNS[r.pod.Namespace], r)
		}
	}
	if len(byNS) == 0 {
		return func(*snapshot.Pod) bool { return false }
	}
	return func(p *snapshot.Pod) bool {
		for _, list := range byNS {
			for _, r := range list {
				if covers(r.pod, r.term, p) {
					return true
				}
			}
		}
		return false
	}
}

// covers reports whether a term of a pod selects another one. A namespace selector counts
// as selecting every namespace.
func covers(owner *snapshot.Pod, t *snapshot.PodAffinityTerm, p *snapshot.Pod) bool {
	ns := owner.Namespace == p.Namespace && len(t.Namespaces) == 0 || slices.Contains(t.Namespaces, p.Namespace) || t.NamespaceSelector != nil
	return ns && owner != p && scheduling.Selects(t.Selector, p.Labels)
}

// reserve takes the room of pods that the plan of the same snapshot puts on nodes.
func (g *ground) reserve() {
	var taken []plan.Placement
	if g.x.o.Base != nil {
		taken = append(taken, g.x.o.Base.Placements...)
	}
	for _, m := range g.x.promises {
		taken = append(taken, plan.Placement{Pod: m.Namespace + "/" + m.Pod, Node: m.Node})
	}
	if len(taken) == 0 {
		return
	}
	pods := make(map[string]*snapshot.Pod, len(g.x.s.Pods))
	for i := range g.x.s.Pods {
		pods[g.x.s.Pods[i].Ref()] = &g.x.s.Pods[i]
	}
	asks := make(map[string]*snapshot.Resources, len(taken))
	for _, pl := range taken {
		if p := pods[pl.Pod]; p != nil {
			asks[pl.Pod] = &p.Spec.Requests
		}
	}
	if g.x.o.Base != nil {
		for i := range g.x.o.Base.Pods {
			if p := &g.x.o.Base.Pods[i]; p.Buffer {
				asks[p.Ref] = &p.Requests
			}
		}
	}
	for _, pl := range taken {
		k, ok := g.at[pl.Node]
		need := asks[pl.Pod]
		if !ok || need == nil || g.x.housed[pl.Pod] {
			continue
		}
		for d, name := range g.p.Dims {
			g.free[k*g.d+d] -= need.Get(name)
		}
	}
}

// weigh gives resources their weight: what is scarcer among all pods that may move and all
// nodes counts more. It orders, it decides nothing.
func (g *ground) weigh() {
	g.weight, g.total = make([]float64, g.d), make([]float64, g.d)
	used := make([]float64, g.d)
	for k := range g.p.Nodes {
		for d := range g.d {
			g.total[d] += float64(max(0, g.free[k*g.d+d]))
		}
	}
	for c := range g.need {
		for d := range g.d {
			used[d] += float64(g.need[c][d]) * float64(len(g.w.Classes[c].Pods))
		}
	}
	for d := range g.d {
		g.total[d] += used[d]
		if g.total[d] > 0 {
			g.weight[d] = used[d] / g.total[d] / g.total[d] * 1e9
		}
	}
	g.size = make([]int64, len(g.need))
	for c := range g.need {
		var v float64
		for d := range g.d {
			v += g.weight[d] * float64(g.need[c][d])
		}
		g.size[c] = int64(v * 1e6)
	}
}

func (g *ground) put(k, c int) {
	f := g.free[k*g.d : (k+1)*g.d]
	for d, v := range g.need[c] {
		f[d] -= v
	}
}

func (g *ground) lift(k, c int) {
	f := g.free[k*g.d : (k+1)*g.d]
	for d, v := range g.need[c] {
		f[d] += v
	}
}

// fits reports whether a pod of a class has room on a target.
func (g *ground) fits(k, c int) bool {
	f := g.free[k*g.d : (k+1)*g.d]
	for d, v := range g.need[c] {
		if v > f[d] {
			return false
		}
	}
	return true
}

// order sorts the pods of a node for moving: the largest first.
func (g *ground) order(pods []*snapshot.Pod) []*snapshot.Pod {
	out := slices.Clone(pods)
	slices.SortStableFunc(out, func(a, b *snapshot.Pod) int { return cmp.Compare(g.sizeOf(b), g.sizeOf(a)) })
	return out
}

// sizeOf is the size of a pod, that of one that cannot be moved above all others.
func (g *ground) sizeOf(p *snapshot.Pod) int64 {
	if c := g.classOf[p]; c >= 0 {
		return g.size[c]
	}
	return math.MaxInt64
}
