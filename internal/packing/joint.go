package packing

import "slices"

// Sizes up to which classes under different rules are packed as one problem.
const (
	jointClasses = 40
	jointPods    = 2000
	jointKinds   = 48
)

// kind is a set of rules that a node can be opened under: the offers, by template,
// that some signatures share, and the classes that allow all of them.
type kind struct {
	sigs   []int // members that made it, ascending
	offers []Bitset
}

// joint builds one group of several: a bin for every type under every set of rules
// that nodes of mixed contents could have. nil if there are too many of them.
func (s *solver) joint(groups []*group, w int32) *group {
	var classes, sigs []int
	for _, g := range groups {
		classes = append(classes, g.classes...)
		sigs = append(sigs, s.sigOf[g.classes[0]])
	}
	slices.Sort(classes)
	slices.Sort(sigs)
	sigs = slices.Compact(sigs)
	kinds := s.kinds(sigs)
	if kinds == nil || len(classes) > jointClasses {
		return nil
	}
	var bins []bin
	for k := range kinds {
		allow := NewBitset(len(classes))
		for i, c := range classes {
			if allowsAll(s.sigs[s.sigOf[c]].offers, kinds[k].offers) {
				allow.Set(i)
			}
		}
		for t := range s.p.Templates {
			if s.p.Pools[s.p.Templates[t].Pool].Weight != w || kinds[k].offers[t] == nil {
				continue
			}
			plain, _ := s.templateBins(t, kinds[k].offers[t])
			for _, b := range plain {
				b.allow = allow
				bins = append(bins, b)
			}
		}
	}
	if len(bins) == 0 {
		return nil
	}
	return s.newGroup(bins, classes)
}

// kinds closes signatures under intersection; nil if that makes too many.
func (s *solver) kinds(sigs []int) []kind {
	var out []kind
	add := func(k kind) {
		for i := range out {
			if slices.EqualFunc(out[i].offers, k.offers, sameSet) {
				return
			}
		}
		out = append(out, k)
	}
	for _, i := range sigs {
		add(kind{[]int{i}, s.fullOffers(i)})
	}
	for at := 1; at < len(out); at++ {
		for j := range at {
			if len(out) > jointKinds {
				return nil
			}
			if k, ok := meet(&out[at], &out[j]); ok {
				add(k)
			}
		}
	}
	return out
}

// fullOffers is a signature's offers with an entry per template.
func (s *solver) fullOffers(sig int) []Bitset {
	out := make([]Bitset, len(s.p.Templates))
	copy(out, s.sigs[sig].offers)
	return out
}

func sameSet(a, b Bitset) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// meet intersects two kinds; false if no offer is left.
func meet(a, b *kind) (kind, bool) {
	out := kind{sigs: append(slices.Clone(a.sigs), b.sigs...), offers: make([]Bitset, len(a.offers))}
	slices.Sort(out.sigs)
	out.sigs = slices.Compact(out.sigs)
	some := false
	for t := range a.offers {
		if a.offers[t] == nil || b.offers[t] == nil {
			continue
		}
		if set := a.offers[t].Clone(); set.And(b.offers[t]) {
			out.offers[t], some = set, true
		}
	}
	return out, some
}

// allowsAll reports whether have allows every offer of want.
func allowsAll(have, want []Bitset) bool {
	for t := range want {
		if want[t] == nil {
			continue
		}
		if t >= len(have) || have[t] == nil || !want[t].Subset(have[t]) {
			return false
		}
	}
	return true
}

// solveGroups opens nodes for the groups of one weight: market by market, the groups of
// one one after another and, where they are few enough, as one problem too; the cheaper
// way stays.
func (s *solver) solveGroups(groups []*group, w int32) {
	for _, g := range groups {
		s.fillReserved(g, w)
		s.fillSpare(g)
	}
	groups = slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return g.counted })
	// Nodes that only some pods can justify come first: others may use their room.
	special := slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return !g.exotic })
	s.inTurn(special, w)
	groups = slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return g.exotic })
	for _, g := range groups {
		s.fillSpare(g)
	}
	for _, apart := range s.markets(groups) {
		s.solveMarket(apart, w)
	}
}

// markets parts groups that have nothing to do with each other: they share no offer, and
// no pool with a limit. What changes in one of them leaves the others as they are.
func (s *solver) markets(groups []*group) [][]*group {
	of := make([]int, len(groups)) // the first group of its market
	for i := range groups {
		of[i] = i
		for k := range i {
			if of[k] != of[i] && s.meets(groups[k], groups[i]) {
				from, to := max(of[i], of[k]), min(of[i], of[k])
				for j := range i + 1 {
					if of[j] == from {
						of[j] = to
					}
				}
			}
		}
	}
	var out [][]*group
	for i := range groups {
		var one []*group
		for k := range groups {
			if of[k] == i {
				one = append(one, groups[k])
			}
		}
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// meets reports whether two groups may want the same node, or the same limit.
func (s *solver) meets(a, b *group) bool {
	x, y := s.sigs[s.sigOf[a.classes[0]]].offers, s.sigs[s.sigOf[b.classes[0]]].offers
	for t := range x {
		if t < len(y) && x[t] != nil && y[t] != nil && x[t].Intersects(y[t]) {
			return true
		}
	}
	if !s.limits {
		return false
	}
	pools := map[int]bool{}
	for _, b := range a.all {
		if pool := s.p.Templates[b.template].Pool; s.hasLimit(pool) {
			pools[pool] = true
		}
	}
	return slices.ContainsFunc(b.all, func(o bin) bool { return pools[s.p.Templates[o.template].Pool] })
}

// hasLimit reports whether a pool has a limit.
func (s *solver) hasLimit(pool int) bool {
	return slices.ContainsFunc(s.p.Pools[pool].Remaining, func(v int64) bool { return v < NoLimit })
}

// solveMarket opens nodes for groups that share offers or limits.
func (s *solver) solveMarket(groups []*group, w int32) {
	pods := 0
	for _, g := range groups {
		for _, c := range g.classes {
			pods += s.left[c]
		}
	}
	before := s.mark()
	s.inTurn(groups, w)
	if len(groups) < 2 || pods > jointPods || pods == 0 {
		return
	}
	price, left := s.openPrice(before), sumOf(s.left)
	turn := s.mark()
	s.restore(before)
	if g := s.joint(groups, w); g != nil {
		s.solveGroup(g, w)
		if l := sumOf(s.left); l < left || (l == left && s.openPrice(before) < price) {
			return
		}
	}
	s.restore(turn)
}

// inTurn solves groups one after another, each using the room that earlier ones left.
func (s *solver) inTurn(groups []*group, w int32) {
	for _, g := range groups {
		s.fillSpare(g)
		s.solveGroup(g, w)
		s.groups++
	}
}

// mark remembers what nodes, pods and limits are at.
type mark struct {
	nodes []*pnode
	kept  []pnode
	left  []int
	used  [][]int64
}

func (s *solver) mark() mark {
	m := mark{nodes: slices.Clone(s.nodes), left: slices.Clone(s.left)}
	for _, n := range s.nodes {
		k := *n
		k.use, k.contents = slices.Clone(n.use), slices.Clone(n.contents)
		m.kept = append(m.kept, k)
	}
	for _, u := range s.used {
		m.used = append(m.used, slices.Clone(u))
	}
	return m
}

func (s *solver) restore(m mark) {
	s.nodes = slices.Clone(m.nodes)
	for i, n := range s.nodes {
		*n = m.kept[i]
		n.use, n.contents = slices.Clone(n.use), slices.Clone(n.contents)
	}
	copy(s.left, m.left)
	for i := range s.used {
		copy(s.used[i], m.used[i])
	}
}

// openPrice is what the nodes opened since a mark cost.
func (s *solver) openPrice(m mark) int64 {
	p := int64(0)
	for _, n := range s.nodes[len(m.nodes):] {
		if !n.dead {
			p += n.price
		}
	}
	return p
}
