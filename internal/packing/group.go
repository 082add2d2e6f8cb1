package packing

// pattern is a filled bin: contents by local class, sparse.
type pattern struct {
	bin int
	cc  []ClassCount // Class is the index in group.classes
}

// solveGroup opens nodes for what is left of a group at a weight.
func (s *solver) solveGroup(g *group, w int32) {
	total := 0
	for i, c := range g.classes {
		g.count[i] = s.left[c]
		total += g.count[i]
	}
	if total == 0 {
		return
	}
	for _, pt := range s.pack(g, g.count) {
		s.addNode(g, pt, w)
	}
}

// pack finds nodes for count pods of each class; it does not change count.
func (s *solver) pack(g *group, count []int) []pattern {
	return s.packGreedy(g, count)
}

// packGreedy fills node after node with the bundle that is worth the most for its
// price, and reprices resources as the demand shrinks.
func (s *solver) packGreedy(g *group, count []int) []pattern {
	left := append([]int(nil), count...)
	k := newKnapsack(g)
	pi := make([]float64, len(left))
	demand := make([]float64, g.d+1)
	var out []pattern
	for {
		clear(demand)
		for c, n := range left {
			for r := range g.d {
				demand[r] += float64(n) * float64(g.need[c*g.d+r])
			}
		}
		if demand[indexOf(s.p.Dims, "pods")] == 0 {
			return out
		}
		y := duals(g.d, g.caps, g.prices, demand)
		for c := range pi {
			pi[c] = value(g.d, g.req(c), y)
		}
		k.allow(left)
		bestE, bestB := 0.0, -1
		var best []int32
		for b := range g.bins {
			if v := k.best(b, pi, y, 4); v > 0 {
				if e := v / float64(max(g.prices[b], 1)); e > bestE*(1+1e-9) {
					bestE, bestB = e, b
					best = append(best[:0], k.out...)
				}
			}
		}
		if bestB < 0 {
			return out // what is left fits no bin
		}
		times := 1 << 30
		for c, n := range best {
			if n > 0 {
				times = min(times, left[c]/int(n))
			}
		}
		times = max(1, times/2)
		b := g.cheapest(best)
		for range times {
			out = append(out, pattern{b, sparse(best)})
		}
		for c, n := range best {
			left[c] -= int(n) * times
		}
	}
}

func sparse(a []int32) []ClassCount {
	var out []ClassCount
	for c, n := range a {
		if n > 0 {
			out = append(out, ClassCount{c, int(n)})
		}
	}
	return out
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// addNode records a planned node and takes its pods from what is left.
func (s *solver) addNode(g *group, pt pattern, w int32) {
	b := g.bins[pt.bin]
	tm := &s.p.Templates[b.template]
	n := &pnode{template: b.template, level: w, typ: b.typ, offer: b.offer, price: b.price, use: make([]int64, s.d)}
	sg := &s.sigs[s.sigOf[g.classes[0]]]
	n.offers = sg.offers[b.template].Clone()
	for _, cc := range pt.cc {
		c := g.classes[cc.Class]
		n.contents = append(n.contents, ClassCount{c, cc.Count})
		s.left[c] -= cc.Count
		for r, v := range s.p.Classes[c].Need {
			n.use[r] += int64(cc.Count) * v
		}
	}
	for k, v := range tm.Types[b.typ].Capacity {
		s.used[tm.Pool][k] += v
	}
	s.nodes = append(s.nodes, n)
}

func (s *solver) fillSpare(g *group) {}
func (s *solver) improve()           {}
