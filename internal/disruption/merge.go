package disruption

import (
	"maps"
	"slices"

	"kerf.sh/kerf/internal/packing"
)

// merged lets the nodes that take the pods of others go with them where one cheaper node does
// for all: otherwise it would be found when the others are gone, and pods would move twice.
// What is merged keeps the removals that it stands for, in case it may not be.
func (x *search) merged(g *ground, victims []*node, found []removal) []removal {
	eligible := map[string]*node{}
	for _, n := range victims {
		eligible[n.name] = n
	}
	takes := map[string][]int{} // removals, by the node that takes their pods
	for i := range found {
		for _, n := range found[i].nodes {
			delete(eligible, n.name)
		}
		for _, h := range found[i].to {
			name := g.p.Nodes[h.to].Name
			if l := takes[name]; len(l) == 0 || l[len(l)-1] != i {
				takes[name] = append(l, i)
			}
		}
	}
	gone := map[int]bool{}
	known := map[int]*offers{}
	var out []removal
	for _, name := range slices.Sorted(maps.Keys(takes)) {
		if n := eligible[name]; n != nil && !x.tired() {
			if r := x.mergedInto(g, known, n, takes[name], found); r != nil {
				for _, i := range takes[name] {
					gone[i] = true
				}
				out = append(out, *r)
			}
		}
	}
	for i := range found {
		if !gone[i] {
			out = append(out, found[i])
		}
	}
	return out
}

// mergedInto is the cheaper node for a node that takes pods and for those whose pods it takes,
// nil when there is none that is worth the disruption of the node, too. known keeps the sorted
// offers of templates.
func (x *search) mergedInto(g *ground, known map[int]*offers, n *node, of []int, found []removal) *removal {
	group, instead := []*node{n}, []removal{}
	for _, i := range of {
		r := &found[i]
		for _, h := range r.to {
			if g.p.Nodes[h.to].Name != n.name {
				return nil // part of its pods goes elsewhere
			}
		}
		group, instead = append(group, r.nodes...), append(instead, *r)
	}
	for _, m := range group {
		if g.zone[g.at[m.name]] != g.zone[g.at[n.name]] {
			return nil
		}
		for _, p := range m.moving {
			if g.classOf[p] < 0 {
				return nil
			}
		}
	}
	if len(group) > mostReplaced {
		return nil
	}
	for t := range g.p.Templates {
		tm := &g.p.Templates[t]
		if tm.Name != n.pool.Name || tm.Name != g.w.Pools[tm.Pool].Spec.Name {
			continue
		}
		left := slices.Clone(g.p.Pools[tm.Pool].Remaining)
		if known[t] == nil {
			known[t] = g.offersOf(t)
		}
		r := x.standIn(g, known[t], group, left)
		if r == nil || r.add.price >= n.price || r.add.price > n.price-max(x.o.MinSaving, mulShare(n.price, x.o.MinSavingShare)) {
			continue
		}
		// The limits of the pool hold for what is added besides, too.
		for d, name := range g.p.LimitDims {
			if left[d] < packing.NoLimit {
				g.p.Pools[tm.Pool].Remaining[d] -= limited(&r.add.most, name)
			}
		}
		r.instead = instead
		return r
	}
	return nil
}
