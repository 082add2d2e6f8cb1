package packing

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

// addNode records a planned node and takes its pods from what is left.
func (s *solver) addNode(g *group, pt pattern, w int32) {
	b := g.bins[pt.bin]
	tm := &s.p.Templates[b.template]
	n := &pnode{template: b.template, level: w, typ: b.typ, offer: b.offer, price: b.price, use: make([]int64, s.d)}
	n.offers = s.sigs[s.sigOf[g.classes[0]]].offers[b.template]
	n.contents = make([]ClassCount, len(pt.cc))
	for i, cc := range pt.cc {
		c := g.classes[cc.Class]
		n.contents[i] = ClassCount{c, cc.Count}
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
