package packing

import "slices"

// solveGroup opens nodes for what is left of a group at a weight, as far as limits
// allow.
func (s *solver) solveGroup(g *group, w int32) {
	for {
		total := 0
		for i, c := range g.classes {
			g.count[i] = s.left[c]
			total += g.count[i]
		}
		if total == 0 {
			return
		}
		gp, ps := s.packLimited(g, g.count)
		for _, pt := range ps {
			s.addNode(gp, pt, w)
		}
		if !s.limits || len(ps) == 0 {
			return
		}
		// What a limit kept out may still fit beside the others, or on smaller nodes.
		s.fillSpare(g)
		if g = s.narrow(g); g == nil {
			return
		}
	}
}

// narrow drops the bins that limits no longer admit; nil when none is left.
func (s *solver) narrow(g *group) *group {
	var bins []bin
	for _, b := range g.all {
		tm := &s.p.Templates[b.template]
		if s.withinLimits(tm.Pool, b.book) {
			bins = append(bins, b)
		}
	}
	if len(bins) == 0 {
		return nil
	}
	gp := *g
	gp.sized = nil
	gp.setBins(s, bins)
	return &gp
}

// addNode records a planned node and takes its pods from what is left.
func (s *solver) addNode(g *group, pt pattern, w int32) {
	b := g.bins[pt.bin]
	n := &pnode{book: b.book, template: b.template, level: w, typ: b.typ, offer: b.offer, price: s.truePrice(b), use: make([]int64, s.d)}
	n.offers = s.sharedOffers(g, pt, b.template)
	n.contents = make([]ClassCount, len(pt.cc))
	for i, cc := range pt.cc {
		c := g.classes[cc.Class]
		n.contents[i] = ClassCount{c, cc.Count}
		s.left[c] -= cc.Count
		for r, v := range s.p.Classes[c].Need {
			n.use[r] += int64(cc.Count) * v
		}
	}
	s.count(n, 1)
	s.nodes = append(s.nodes, n)
}

// sharedOffers are the offers of a template that all contents allow. A set that one
// signature alone decides is not copied.
func (s *solver) sharedOffers(g *group, pt pattern, t int) Bitset {
	var out Bitset
	first, own := -1, false
	for _, cc := range pt.cc {
		i := s.sigOf[g.classes[cc.Class]]
		switch {
		case first < 0:
			first, out = i, s.sigs[i].offers[t]
		case i != first:
			if !own {
				out, own = out.Clone(), true
			}
			out.And(s.sigs[i].offers[t])
		}
	}
	return out
}

// count books a node against its pool's limits, or takes it back (sign -1).
func (s *solver) count(n *pnode, sign int64) {
	pool := s.p.Templates[n.template].Pool
	for k, v := range n.book {
		s.used[pool][k] += sign * v
	}
}

// fillSpare puts pods of a group into room on nodes the plan opens anyway: the node
// keeps its type and its price, and its options are those that all its pods allow.
func (s *solver) fillSpare(g *group) {
	if len(s.nodes) == 0 {
		return
	}
	least := make([]int64, s.d)
	for r := range least {
		least[r] = NoLimit
	}
	for i, c := range g.classes {
		if s.left[c] > 0 {
			for r, v := range g.req(i) {
				least[r] = min(least[r], v)
			}
		}
	}
	var roomy []*pnode
	for _, n := range s.nodes {
		if !n.dead && s.room(n, least) > 0 {
			roomy = append(roomy, n)
		}
	}
	if len(roomy) == 0 {
		return
	}
	for _, i := range s.bySizeDesc(g) {
		c := g.classes[i]
		for _, n := range roomy {
			if s.left[c] == 0 {
				break
			}
			if k := s.take(n, c, s.left[c]); k > 0 {
				s.left[c] -= k
			}
		}
	}
}

// room is how many pods of a need fit beside what a node holds.
func (s *solver) room(n *pnode, need []int64) int {
	k := int(NoLimit)
	for r, v := range s.p.Templates[n.template].Types[n.typ].Alloc {
		if free := v - n.use[r]; free < need[r] {
			return 0
		} else if need[r] > 0 {
			k = min(k, int(free/need[r]))
		}
	}
	return k
}

// take puts up to k pods of class c on a planned node, if the rules of both leave
// the node's own offer, and returns how many it took.
func (s *solver) take(n *pnode, c, k int) int {
	cl := &s.p.Classes[c]
	k = min(k, s.room(n, cl.Need))
	if k <= 0 || n.template >= len(cl.Offers) || !cl.Offers[n.template].Has(n.offer) {
		return 0
	}
	if k = s.newAllows(n, c, k); k == 0 {
		return 0
	}
	offers := n.offers
	if !n.offers.Subset(cl.Offers[n.template]) {
		offers = n.offers.Clone()
		offers.And(cl.Offers[n.template])
	}
	use := slices.Clone(n.use)
	for r, v := range cl.Need {
		use[r] += int64(k) * v
	}
	if !s.stillHolds(n, use, offers) {
		return 0
	}
	n.offers, n.use = offers, use
	at, ok := n.find(c)
	if ok {
		n.contents[at].Count += k
	} else {
		n.contents = slices.Insert(slices.Clip(n.contents), at, ClassCount{c, k})
	}
	return k
}

func (n *pnode) find(c int) (int, bool) {
	return slices.BinarySearchFunc(n.contents, c, func(x ClassCount, c int) int { return x.Class - c })
}

// improve closes nodes whose pods all find room on other nodes of the plan: groups
// were solved one after another and may leave such nodes. It reports whether any was.
func (s *solver) improve() bool {
	if s.groups < 2 {
		return false
	}
	order := slices.Clone(s.nodes)
	slices.SortStableFunc(order, func(a, b *pnode) int { return int(min(max(b.price-a.price, -1), 1)) })
	closed := false
	for _, n := range order {
		if !n.dead && s.close(n) {
			closed = true
		}
	}
	return closed
}

// close moves the pods of a node elsewhere if all of them fit.
func (s *solver) close(n *pnode) bool {
	type undo struct {
		n        *pnode
		offers   Bitset
		use      []int64
		contents []ClassCount
	}
	var log []undo
	contents := slices.Clone(n.contents)
	slices.SortStableFunc(contents, func(a, b ClassCount) int {
		return slices.Compare(s.p.Classes[b.Class].Need, s.p.Classes[a.Class].Need)
	})
	for _, cc := range contents {
		left := cc.Count
		for _, o := range s.nodes {
			if left == 0 {
				break
			}
			if o == n || o.dead || s.uphill && o.level < n.level || s.room(o, s.p.Classes[cc.Class].Need) == 0 {
				continue
			}
			u := undo{o, o.offers, slices.Clone(o.use), slices.Clone(o.contents)}
			if k := s.take(o, cc.Class, left); k > 0 {
				left -= k
				log = append(log, u)
			}
		}
		if left > 0 {
			for i := len(log) - 1; i >= 0; i-- {
				u := log[i]
				u.n.offers, u.n.use, u.n.contents = u.offers, u.use, u.contents
			}
			return false
		}
	}
	n.dead = true
	s.count(n, -1)
	return true
}

// stillHolds reports whether a planned node meets minValues with other contents at no
// more than it has booked.
func (s *solver) stillHolds(n *pnode, use []int64, offers Bitset) bool {
	tm := &s.p.Templates[n.template]
	if len(tm.MinValues) == 0 {
		return true
	}
	s.count(n, -1)
	book := s.admit(tm, n.typ, use, offers)
	s.count(n, 1)
	return book != nil && covers(n.book, book)
}
