package provision

import (
	"slices"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// staticContents is what a plan puts on one node that a static pool is short of.
type staticContents struct {
	classes []packing.ClassCount
	pods    []int32
	use     snapshot.Resources
}

// onStatic notes pods that go on a node of a static pool that is to be launched.
func (pl *planner) onStatic(p packing.Placed) {
	if pl.static == nil {
		pl.static = map[int]*staticContents{}
	}
	at := pl.w.Targets[p.Node]
	c := pl.static[at]
	if c == nil {
		c = &staticContents{}
		pl.static[at] = c
	}
	c.classes = append(c.classes, packing.ClassCount{Class: p.Class, Count: p.Count})
	c.pods = append(c.pods, pl.take(p.Class, p.Count)...)
	c.use = c.use.Add(times(pl.w.Classes[p.Class].Requests, int64(p.Count)))
}

// staticLaunches writes the nodes that static pools are short of. Their price is what
// any plan has to pay, as each is the cheapest that its pool allows.
func (pl *planner) staticLaunches() {
	bounds := map[string]*plan.Bound{}
	var order []string
	for i := range pl.w.Nodes {
		n := &pl.w.Nodes[i]
		if n.Launch == nil {
			continue
		}
		c := pl.static[i]
		if c == nil {
			c = &staticContents{}
		}
		pool := &pl.w.Pools[n.Launch.Pool]
		l, tm := pl.w.StaticLaunch(pl.p, n, c.classes)
		t := n.Launch.Template
		out := plan.Launch{
			Name: n.Name, NodePool: pool.Spec.Name, NodeClass: pool.Class.Name, Static: true,
			Daemons: n.Daemons, Allocatable: t.Type(l.Chosen).Allocatable, Labels: t.NodeLabels(l.Chosen),
			Chosen: t.Offer(l.Chosen), Worst: l.Worst, Limited: pl.limited(pool.Spec.Name, n.Name, l.Limited, l.Dear), Requests: n.Daemons.Add(c.use),
			Pods: make([]string, 0, len(c.pods)),
		}
		for _, o := range l.Options {
			out.Options = append(out.Options, t.Offer(o))
		}
		slices.SortFunc(out.Options, compareOffers)
		out.Relaxed = fewerValues(tm, l.Options)
		for _, k := range c.pods {
			out.Pods = append(out.Pods, pl.ref(k))
			pl.displace(k, out.Name)
		}
		slices.Sort(out.Pods)
		pl.out.Launches = append(pl.out.Launches, out)
		pl.launched(out.Name, t, &l)
		b := bounds[out.NodePool]
		if b == nil {
			b = &plan.Bound{Pools: []string{out.NodePool}, Kind: boundForced, Demand: map[string]float64{}, Duals: map[string]float64{}}
			bounds[out.NodePool] = b
			order = append(order, out.NodePool)
		}
		b.Pods += len(out.Pods)
		b.Total += out.Chosen.Price
		b.Linear = b.Total
		b.Demand[snapshot.Nodes]++
	}
	for _, name := range order {
		b := bounds[name]
		b.Duals[snapshot.Nodes] = float64(b.Total) / b.Demand[snapshot.Nodes]
		pl.forced = append(pl.forced, *b)
	}
}

// boundForced is the kind of bound of nodes that are launched whatever the pods.
const boundForced = "forced"
