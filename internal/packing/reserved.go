package packing

// fillReserved uses offers that exist a counted number of times (capacity
// reservations) before anything that is paid for, and never more of them than there
// are; what does not fit spills to the other offers in the same pass.
// Templates with minValues leave them alone: one offer cannot bring several values.
func (s *solver) fillReserved(g *group, w int32) {
	sg := &s.sigs[s.sigOf[g.classes[0]]]
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		if s.p.Pools[tm.Pool].Weight != w || len(tm.MinValues) > 0 || t >= len(sg.offers) || sg.offers[t] == nil {
			continue
		}
		for o := range tm.Offers {
			if tm.Offers[o].Count > 0 && sg.offers[t].Has(o) {
				s.fillCounted(g, t, o, w)
			}
		}
	}
}

func (s *solver) fillCounted(g *group, t, o int, w int32) {
	tm := &s.p.Templates[t]
	of := &tm.Offers[o]
	one := *g
	one.sized = nil
	one.setBins(s, []bin{{template: t, typ: of.Type, offer: o, price: of.Price + s.p.CostPerNode, book: tm.Types[of.Type].Capacity}})
	k := newKnapsack(&one)
	pi := make([]float64, len(g.classes))
	y := make([]float64, s.d+1)
	for r, v := range one.cap(0) {
		if v > 0 {
			y[r] = 1 / float64(v)
		}
	}
	for c := range pi {
		pi[c] = value(s.d, g.req(c), y) + 1e-9
	}
	count := make([]int, len(g.classes))
	for s.reserved[[2]int{t, o}] < of.Count && s.withinLimits(tm.Pool, tm.Types[of.Type].Capacity) {
		for i, c := range g.classes {
			count[i] = s.left[c]
		}
		k.allow(count)
		if k.best(0, pi, y, 6) <= 0 {
			return
		}
		s.addNode(&one, pattern{0, sparse(k.out)}, w)
		only := NewBitset(len(tm.Offers))
		only.Set(o)
		s.nodes[len(s.nodes)-1].offers = only
		if s.reserved == nil {
			s.reserved = map[[2]int]int64{}
		}
		s.reserved[[2]int{t, o}]++
	}
}

// countLeft reports whether a node may list offer o: counted offers belong to the
// nodes that were planned on them.
func (s *solver) countLeft(n *pnode, o int) bool {
	return o == n.offer || s.p.Templates[n.template].Offers[o].Count == 0
}
