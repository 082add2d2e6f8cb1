package packing

import (
	"maps"
	"math"
	"slices"
)

// bounds certifies a lower bound for the pods in the launches, market by market:
// groups of classes that share no offer cannot share a node, so their bounds add.
func (s *solver) bounds() []Bound {
	inLaunch := make([]int64, len(s.p.Classes))
	active := map[int32]bool{}
	for _, n := range s.nodes {
		active[n.level] = true
		for _, cc := range n.contents {
			inLaunch[cc.Class] += int64(cc.Count)
		}
	}
	var used []int
	for i := range s.sigs {
		for _, c := range s.sigs[i].classes {
			if inLaunch[c] > 0 {
				used = append(used, i)
				break
			}
		}
	}
	parent := make([]int, len(used))
	for i := range parent {
		parent[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if parent[i] != i {
			parent[i] = find(parent[i])
		}
		return parent[i]
	}
	live := func(t int) bool { return active[s.p.Pools[s.p.Templates[t].Pool].Weight] }
	for i := range used {
		for j := range i {
			a, b := s.sigs[used[i]].offers, s.sigs[used[j]].offers
			for t := range s.p.Templates {
				if live(t) && t < len(a) && t < len(b) && a[t].Intersects(b[t]) {
					parent[find(i)] = find(j)
					break
				}
			}
		}
	}
	parts := map[int][]int{}
	for i := range used {
		parts[find(i)] = append(parts[find(i)], used[i])
	}
	var out []Bound
	for i := range used {
		if find(i) == i {
			out = append(out, s.bound(parts[i], inLaunch, live))
		}
	}
	return out
}

// bound is the certified dual value for some signatures together.
func (s *solver) bound(sigs []int, inLaunch []int64, live func(int) bool) Bound {
	b := Bound{Demand: make([]int64, s.d+1)}
	demand := make([]float64, s.d+1)
	for _, i := range sigs {
		for _, c := range s.sigs[i].classes {
			n := inLaunch[c]
			if n == 0 {
				continue
			}
			b.Pods += int(n)
			for r, v := range s.p.Classes[c].Need {
				b.Demand[r] += n * v
			}
		}
	}
	var all []int
	for _, i := range sigs {
		all = append(all, s.sigs[i].classes...)
	}
	b.Demand[s.d] = max(1, s.forced(all, func(c int) int64 { return inLaunch[c] }))
	for r, v := range b.Demand {
		demand[r] = float64(v)
	}
	var caps, prices []int64
	counted := s.countedOffers(sigs, live)
	free := false // an offer that costs nothing and has no end
	for t := range s.p.Templates {
		if !live(t) {
			continue
		}
		tm := &s.p.Templates[t]
		best := make([]int64, len(tm.Types))
		for ty := range best {
			best[ty] = -1
		}
		any := false
		for o := range tm.Offers {
			for _, i := range sigs {
				if of := s.sigs[i].offers; t < len(of) && of[t].Has(o) {
					ty := tm.Offers[o].Type
					if tm.Offers[o].Count == 0 && (best[ty] < 0 || tm.Offers[o].Price < best[ty]) {
						best[ty] = tm.Offers[o].Price
					}
					any = true
					break
				}
			}
		}
		if !any {
			continue
		}
		b.Templates = append(b.Templates, t)
		for ty, p := range best {
			free = free || p == 0
			if p > 0 {
				caps = append(caps, tm.Types[ty].Alloc...)
				prices = append(prices, p)
			}
		}
	}
	var needs []int64
	shapes := 0
	for _, i := range sigs {
		for _, c := range s.sigs[i].classes {
			if inLaunch[c] > 0 {
				if need := s.p.Classes[c].Need; shapes == 0 || !slices.Equal(need, needs[:s.d]) {
					needs = append(needs, need...)
					shapes++
				}
			}
		}
	}
	b.Steps = steps(s.d, needs)
	exact := slices.Clone(caps)
	roundDown(s.d, caps, b.Steps)
	b.Kind = BoundResources
	b.Duals = duals(s.d, caps, prices, demand)
	b.Linear = total(b.Duals, demand)
	b.Total = b.Linear
	if free || len(prices) == 0 {
		clear(b.Duals) // nothing is worth anything
		b.Linear, b.Total = 0, 0
		return b
	}
	if shapes == 1 {
		s.fewPods(exact, sigs, inLaunch)
		s.shapeBound(&b, exact, prices, needs, len(counted) > 0)
	}
	if len(counted) > 0 {
		s.credit(&b, counted, needs[:s.d])
		return b
	}
	// Closer bounds are worth their search only where there is something to close.
	if price := s.priceOf(sigs); price > b.Total+b.Total/500 {
		if s.nodesOf(sigs) <= wholeMost {
			s.wholeNodes(&b, caps, prices)
		}
		s.contentsBound(&b, sigs, inLaunch, caps, prices)
		s.groupsBound(&b, sigs, inLaunch, live)
	}
	return b
}

// priceOf is what the nodes that hold classes of some signatures cost.
func (s *solver) priceOf(sigs []int) int64 {
	in := make([]bool, len(s.sigs))
	for _, i := range sigs {
		in[i] = true
	}
	p := int64(0)
	for _, n := range s.nodes {
		if in[s.sigOf[n.contents[0].Class]] {
			p += n.price
		}
	}
	return p
}

func total(y, demand []float64) int64 {
	v := 0.0
	for r := range y {
		v += float64(y[r] * demand[r])
	}
	return int64(math.Floor(v * (1 - 1e-9)))
}

// shapeBound prices pods that are all alike by the best offer per pod that fits.
func (s *solver) shapeBound(b *Bound, caps, prices, need []int64, linear bool) {
	best := math.Inf(1)
	for i, p := range prices {
		k := int64(b.Pods)
		for r, v := range need {
			if v > 0 {
				k = min(k, caps[i*s.d+r]/v)
			}
		}
		if k > 0 {
			best = min(best, float64(p)/float64(k))
		}
	}
	if t := int64(math.Floor(best * float64(b.Pods) * (1 - 1e-9))); t > b.Total && !math.IsInf(best, 1) {
		b.Kind, b.Total, b.Linear = BoundShape, t, t
		clear(b.Duals)
		b.Duals[slices.Index(s.p.Dims, "pods")] = best * (1 - 1e-9)
		if !linear {
			s.shapeOptimum(b, caps, prices, need)
		}
	}
}

// shapeOptimum finds the least price of whole nodes for pods that are all alike, by
// the least price for every smaller number of them.
func (s *solver) shapeOptimum(b *Bound, caps, prices, need []int64) {
	const most = 4_000 // beyond, one odd node is nothing against the rest
	if b.Pods > most {
		return
	}
	least := map[int]int64{} // by how many pods fit: the cheapest
	for i, p := range prices {
		k := int64(b.Pods)
		for r, v := range need {
			if v > 0 {
				k = min(k, caps[i*s.d+r]/v)
			}
		}
		if old, ok := least[int(k)]; k > 0 && (!ok || p < old) {
			least[int(k)] = p
		}
	}
	ks := slices.Sorted(maps.Keys(least))
	ps := make([]int64, len(ks))
	for i, k := range ks {
		ps[i] = least[k]
	}
	cost := make([]int64, b.Pods+1)
	for n := 1; n <= b.Pods; n++ {
		cost[n] = math.MaxInt64
		for i, k := range ks {
			cost[n] = min(cost[n], cost[max(0, n-k)]+ps[i])
		}
	}
	if t := cost[b.Pods]; t > b.Total && t < math.MaxInt64 {
		b.Kind, b.Total = BoundOptimum, t
	}
}

// boundSteps is how many choices wholeNodes looks at before it settles.
const boundSteps = 400_000

// wholeNodes raises the bound of a small demand: as long as no choice of whole nodes
// below a price has room for it, that price is a bound too.
func (s *solver) wholeNodes(b *Bound, caps, prices []int64) {
	if b.Kind != BoundResources || b.Linear == 0 {
		return
	}
	g := &group{d: s.d, caps: caps, prices: prices, bins: make([]bin, len(prices))}
	for i := range g.bins {
		g.bins[i] = bin{price: prices[i], typ: i}
	}
	g.prune()
	cb := &combos{g: g, y: b.Duals, keep: 1, nodes: int(b.Demand[s.d]), worths: make([]float64, len(g.bins))}
	for i := range g.bins {
		cb.worths[i] = worth(s.d, g.cap(i), b.Duals)
		cb.order = append(cb.order, int32(i))
	}
	slices.Reverse(cb.order)
	most := boundSteps
	for eps := 0.0025; eps < 0.7; eps *= 1.3 {
		cb.limit, cb.most = float64(b.Linear)*(1+eps), most
		found := cb.search(nil, b.Demand[:s.d], 40)
		most = cb.most
		if most > 0 && !cb.cut && len(found) > 0 {
			// Something costs less than the limit: the least of all that do is the optimum.
			cb.keep = most
			found = cb.search(nil, b.Demand[:s.d], 40)
			if cb.most > 0 && !cb.cut {
				b.Kind, b.Total = BoundWholeNodes, found[0].price
			}
			return
		}
		if most <= 0 || cb.cut {
			return // not searched to the end
		}
		b.Kind, b.Total = BoundWholeNodes, int64(cb.limit)
	}
}
