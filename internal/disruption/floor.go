package disruption

import (
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// floor is a price that no cluster for the same pods goes below, under the rules of the
// scheduler and of NodePools: all pods that run on nodes of ours are packed anew, and what
// is certified of the packing counts. Who may be disrupted, when and how many at a time is
// left aside: that says how fast the floor can be reached, not where it is. Offers that are
// short of capacity count as if they were not. Nodes that nobody may take away (those of
// static NodePools, those without a NodeClaim) are paid for in any case, and lend their
// room.
func (x *search) floor() snapshot.Price {
	s := *bare(x.s)
	s.Shortages, s.Setbacks = nil, nil
	s.DaemonSets = x.s.DaemonSets
	var total snapshot.Price
	up := map[*snapshot.Pod]bool{}
	kept := map[string]float64{} // room that is paid for in any case, in the units of bounds
	for _, n := range x.nodes {
		if n.claim == nil || n.pool != nil && n.pool.Replicas != nil {
			total += n.price
			lend(kept, n.node, n.pods)
			continue
		}
		for _, p := range n.moving {
			up[p] = true
		}
	}
	x.strangers(kept)
	for i := range x.s.Pods {
		p := &x.s.Pods[i]
		if !up[p] {
			continue
		}
		q := *p
		q.NodeName, q.NominatedNode, q.Scheduled = "", "", nil
		s.Pods = append(s.Pods, q)
	}
	if len(s.Pods) == 0 {
		return total
	}
	// Static pools launch nothing here: their nodes are counted.
	s.NodePools = slices.DeleteFunc(slices.Clone(s.NodePools), func(p snapshot.NodePool) bool { return p.Replicas != nil })
	for _, b := range provision.Plan(&s, x.c, provision.Options{}).Bounds {
		if len(kept) == 0 {
			total += b.Total
			continue
		}
		total += max(0, b.Linear-b.Credit-lent(&b, kept))
	}
	return total
}

// strangers adds the room of nodes that are not ours at all.
func (x *search) strangers(kept map[string]float64) {
	var on map[string][]*snapshot.Pod
	for i := range x.s.Nodes {
		n := &x.s.Nodes[i]
		if x.byName[n.Name] != nil {
			continue
		}
		if on == nil {
			on = map[string][]*snapshot.Pod{}
			for k := range x.s.Pods {
				if p := &x.s.Pods[k]; p.NodeName != "" {
					on[p.NodeName] = append(on[p.NodeName], p)
				}
			}
		}
		lend(kept, n, on[n.Name])
	}
}

// lend adds what is free on a node.
func lend(kept map[string]float64, n *snapshot.Node, pods []*snapshot.Pod) {
	free := n.Allocatable
	for _, p := range pods {
		if p.Active() {
			free = free.Sub(p.Spec.Requests)
		}
	}
	for _, name := range free.Names() {
		v := float64(max(0, free.Get(name)))
		switch name {
		case snapshot.CPU:
			v /= 1000
		case snapshot.Memory, snapshot.EphemeralStorage:
			v /= 1 << 30
		}
		if v > 0 {
			kept[name] += v
		}
	}
}

// lent is what room that is paid for is worth at most, at the prices of a bound. How many
// nodes it forces says nothing where other nodes take pods.
func lent(b *plan.Bound, kept map[string]float64) snapshot.Price {
	worth := b.Duals[snapshot.Nodes] * b.Demand[snapshot.Nodes]
	for _, name := range sortedKeys(kept) {
		worth += b.Duals[name] * kept[name]
	}
	return snapshot.Price(worth) + 1
}
