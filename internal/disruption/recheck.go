package disruption

import (
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Recheck asks again whether nodes may go for a reason, with the cluster as it is now: they
// carry the taint of nodes that go already, which counts for nothing here. add: a new node
// may stand in for them. It returns the move as it would be now, or why there is none.
func Recheck(s *snapshot.Snapshot, c *catalog.Catalog, o Options, reason plan.MoveReason, nodes []string, add bool) (*plan.Move, plan.Verdict) {
	x := newSearch(untainted(s, nodes), c, o)
	if Forceful(reason) {
		return x.stillForced(reason, nodes)
	}
	var list []*node
	need := map[*snapshot.NodePool]int{}
	for _, name := range nodes {
		n := x.byName[name]
		if n == nil {
			return nil, plan.Verdict{Object: "node/" + name, Code: plan.NodeGoing, Detail: "it is not there any more"}
		}
		if reason == plan.MoveDrifted && n.claim != nil && n.pool != nil {
			if kind, _ := x.drifted(n); kind == "" {
				return nil, plan.Verdict{Object: "node/" + name, Code: plan.NothingCheaper, Detail: "it is what is asked for again"}
			}
			if code, why := x.mayMigrate(n); code != "" {
				return nil, plan.Verdict{Object: "node/" + name, Code: code, Detail: why}
			}
		} else if n.code != "" {
			return nil, plan.Verdict{Object: "node/" + name, Code: n.code, Detail: n.detail}
		}
		if n.idle != "" && (reason == plan.MoveEmpty || reason == plan.MoveUnderutilized) {
			return nil, plan.Verdict{Object: "node/" + name, Code: n.idle, Detail: n.idleDetail}
		}
		need[n.pool]++
		if a := x.allowed(n.pool, reason); a.left < need[n.pool] {
			return nil, plan.Verdict{Object: "node/" + name, Code: plan.BudgetExhausted, Detail: a.why}
		}
		if why := x.crowded(n); why != "" {
			return nil, plan.Verdict{Object: "node/" + name, Code: plan.EvictionBlocked, Detail: why}
		}
		list = append(list, n)
	}
	switch reason {
	case plan.MoveEmpty:
		return x.stillEmpty(list)
	case plan.MoveDrifted:
		m, why := x.migrate(list[0], add)
		if why != "" {
			return nil, plan.Verdict{Object: "node/" + nodes[0], Code: plan.PodsWouldNotFit, Detail: why}
		}
		kind, detail := x.drifted(list[0])
		m.Detail = kind + ": " + detail
		return m, plan.Verdict{}
	}
	r, why := x.again(list, add)
	if r == nil {
		return nil, plan.Verdict{Object: "node/" + nodes[0], Code: plan.PodsWouldNotFit, Detail: why}
	}
	return r, plan.Verdict{}
}

// stillForced looks whether nodes would go at once now.
func (x *search) stillForced(reason plan.MoveReason, nodes []string) (*plan.Move, plan.Verdict) {
	x.forced()
	for i := range x.moves {
		if m := &x.moves[i]; m.Reason == reason && slices.Equal(m.Remove, nodes) {
			return m, plan.Verdict{}
		}
	}
	v, ok := x.verdicts[nodes[0]]
	if !ok {
		v = plan.Verdict{Object: "node/" + nodes[0], Code: plan.NodeGoing, Detail: "nothing calls for it any more"}
	}
	return nil, v
}

func (x *search) stillEmpty(list []*node) (*plan.Move, plan.Verdict) {
	m := &plan.Move{Reason: plan.MoveEmpty, Detail: "no pod would have to move"}
	for _, n := range list {
		if !n.empty() {
			return nil, plan.Verdict{Object: "node/" + n.name, Code: plan.PodsWouldNotFit, Detail: "it is not empty any more: " + n.moving[0].Ref() + " runs on it"}
		}
		m.Remove = append(m.Remove, n.name)
		m.Saving += n.price
		m.Cost += n.cost
	}
	m.ID = moveID(m.Reason, m.Remove)
	return m, plan.Verdict{}
}

// again finds a place for the pods of nodes, on others or on a new one.
func (x *search) again(list []*node, add bool) (*plan.Move, string) {
	g := x.newGround(list)
	closed := map[string]bool{}
	for _, n := range list {
		closed[n.name] = true
		if _, ok := g.at[n.name]; !ok {
			return nil, "the node takes no pods"
		}
	}
	found := x.removals(g, list, closed)
	whole := removal{nodes: list}
	for _, r := range found {
		whole.to = append(whole.to, r.to...)
	}
	if len(found) < len(list) {
		if !add {
			return nil, "its pods have no other place any more"
		}
		stand := x.standInFor(g, list)
		if stand == nil {
			return nil, "its pods have no other place any more, and nothing cheaper can stand in"
		}
		whole = *stand
	}
	proved := x.prove(g, []removal{whole}, nil)
	if len(proved) == 0 {
		return nil, x.verdicts[list[0].name].Detail
	}
	m := proved[0].move(g)
	return &m, ""
}

// standInFor is the cheapest node that stands in for nodes, of the pool of one of them.
func (x *search) standInFor(g *ground, list []*node) (best *removal) {
	pools := map[string]bool{}
	for _, n := range list {
		pools[n.pool.Name] = true
	}
	for t := range g.p.Templates {
		tm := &g.p.Templates[t]
		if name := g.w.Pools[tm.Pool].Spec.Name; !pools[name] || tm.Name != name {
			continue
		}
		if r := x.standIn(g, g.offersOf(t), list, slices.Clone(g.p.Pools[tm.Pool].Remaining)); r != nil && (best == nil || r.add.price < best.add.price) {
			best = r
		}
	}
	return best
}

// untainted is a snapshot in which nodes do not carry the taint of nodes that go.
func untainted(s *snapshot.Snapshot, nodes []string) *snapshot.Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if slices.Contains(nodes, n.Name) {
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t snapshot.Taint) bool { return t.Key == taintDisrupted })
		}
	}
	return &out
}
