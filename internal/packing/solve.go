package packing

import (
	"cmp"
	"slices"
)

// Solve packs the classes of a problem: first onto nodes that exist or are in
// flight, then onto new ones at the least cost it can find. The same problem gives
// the same result.
func Solve(p *Problem) *Result {
	s := newSolver(p)
	if !s.solveExact() {
		s.fillExisting()
		s.open()
		// A closed node may give its limit back to pods that were left out.
		for s.improve() && sumOf(s.left) > 0 {
			s.open()
		}
		for n := 0; n < maxHeavier && s.heavier(); n++ {
			s.open()
			for s.improve() && sumOf(s.left) > 0 {
				s.open()
			}
		}
		s.fillLeft()
	}
	return s.result()
}

// solver is the state of one call.
type solver struct {
	p    *Problem
	d    int
	left []int // pods still to place, by class

	free    [][]int64 // by existing node
	clashed []map[int]bool
	placed  []Placed

	sigs     []sig
	sigOf    []int // by class
	nodes    []*pnode
	used     [][]int64 // by pool and limit dimension: what planned nodes take
	limits   bool
	work     int64
	hurry    int64            // divides the effort of one search, where many follow
	uphill   bool             // nodes give no pods to lighter ones any more
	settled  bool             // the last search for choices of nodes left no cheaper one untried
	pis      map[int]float64  // by class: price of a pod in the first program over contents
	rank     [][]int          // by template: offers, best first
	groups   int              // solved so far
	reserved map[string]int64 // instances taken of counted offers, by reservation
	ceiling  int64            // the most an option may cost of the chosen offer, in thousandths; 0: any price
	scratch  []int64

	capsOf  [][]capRef // by class; nil without caps
	carried [][]int32  // by cap: what existing nodes carry, once that changed
	most    []int32    // by class: the most of it on one new node
	known   known      // contents found for the last group under rules
}

// pnode is a node the plan opens.
type pnode struct {
	template int
	level    int32 // weight of its pool
	typ      int
	offer    int
	price    int64  // compared price of the offer, cost per node included
	offers   Bitset // what all its classes allow
	use      []int64
	contents []ClassCount // ascending by class
	book     []int64      // what it counts against limits
	dead     bool
}

// sig is a set of classes that the same rules apply to.
type sig struct {
	offers  []Bitset
	classes []int
}

func newSolver(p *Problem) *solver {
	s := &solver{hurry: 1, ceiling: 10 * max(p.OptionPriceCap, 0), p: p, d: len(p.Dims), left: make([]int, len(p.Classes)), work: p.Work, scratch: make([]int64, len(p.Dims))}
	for c := range p.Classes {
		s.left[c] = p.Classes[c].Count
	}
	s.indexRules()
	s.used = make([][]int64, len(p.Pools))
	for i := range p.Pools {
		s.used[i] = make([]int64, len(p.LimitDims))
		for _, v := range p.Pools[i].Remaining {
			if v < NoLimit {
				s.limits = true
			}
		}
	}
	s.sigOf = make([]int, len(p.Classes))
	seen := map[*Bitset]int{}
	for c := range p.Classes {
		o := p.Classes[c].Offers
		var at *Bitset
		if len(o) > 0 {
			at = &o[0]
		}
		i, ok := seen[at]
		if !ok {
			i = s.findSig(o)
			seen[at] = i
		}
		s.sigOf[c] = i
		s.sigs[i].classes = append(s.sigs[i].classes, c)
	}
	return s
}

func (s *solver) findSig(o []Bitset) int {
	for i := range s.sigs {
		if slices.EqualFunc(s.sigs[i].offers, o, func(a, b Bitset) bool {
			return (a == nil) == (b == nil) && slices.Equal(a, b)
		}) {
			return i
		}
	}
	s.sigs = append(s.sigs, sig{offers: o})
	return len(s.sigs) - 1
}

// capacityLeft is what a pool's limit leaves in a dimension.
func (s *solver) capacityLeft(pool, dim int) int64 {
	if r := s.p.Pools[pool].Remaining; dim < len(r) && r[dim] < NoLimit {
		return r[dim] - s.used[pool][dim]
	}
	return NoLimit
}

func (s *solver) withinLimits(pool int, capacity []int64) bool {
	for k, v := range capacity {
		if v > s.capacityLeft(pool, k) {
			return false
		}
	}
	return true
}

// open walks the weights from the heaviest pool down. A class opens nodes only at
// the first weight that can host it within limits; what limits keep out goes on.
func (s *solver) open() {
	var weights []int32
	for _, pl := range s.p.Pools {
		weights = append(weights, pl.Weight)
	}
	slices.Sort(weights)
	weights = slices.Compact(weights)
	slices.Reverse(weights)
	for _, w := range weights {
		// Once a limit is reached, what is left may have only exotic types to go to.
		for again := true; again; {
			before := sumOf(s.left)
			s.solveGroups(s.groupsAt(w), w)
			after := sumOf(s.left)
			again = s.limits && after > 0 && after < before
		}
	}
}

// groupsAt builds the groups of classes that open nodes at a weight, the most
// restricted (fewest bins) first.
func (s *solver) groupsAt(w int32) []*group {
	var out []*group
	for i := range s.sigs {
		out = append(out, s.buildGroups(&s.sigs[i], w)...)
	}
	slices.SortStableFunc(out, func(a, b *group) int { return cmp.Compare(len(a.all), len(b.all)) })
	return out
}

// buildGroups turns one signature into at most three groups: classes that ordinary
// types can hold, those that only exotic types can, and those that only reservations
// can.
func (s *solver) buildGroups(sg *sig, w int32) []*group {
	var plain, exotic []bin
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		if s.p.Pools[tm.Pool].Weight != w || t >= len(sg.offers) || sg.offers[t] == nil {
			continue
		}
		p, e := s.templateBins(t, sg.offers[t])
		plain, exotic = append(plain, p...), append(exotic, e...)
	}
	reserved := s.reservedBins(sg, w)
	if len(plain)+len(exotic)+len(reserved) == 0 {
		return nil
	}
	fits := func(bins []bin, need []int64) bool {
		for i := range bins {
			if covers(s.roomOf(bins[i]), need) {
				return true
			}
		}
		return false
	}
	topOf := func(bins []bin) []int64 {
		top := make([]int64, s.d)
		for i := range bins {
			for r, v := range s.roomOf(bins[i]) {
				top[r] = max(top[r], v)
			}
		}
		return top
	}
	top := topOf(plain)
	var a, b, only []int
	for _, c := range sg.classes {
		if s.left[c] == 0 || s.most[c] == 0 {
			continue
		}
		need := s.p.Classes[c].Need
		switch {
		case len(plain) > 0 && covers(top, need) && fits(plain, need):
			a = append(a, c)
		case len(exotic) > 0 && fits(exotic, need):
			b = append(b, c)
		case len(reserved) > 0 && fits(reserved, need):
			only = append(only, c)
		}
	}
	var out []*group
	if len(a) > 0 {
		out = append(out, s.newGroup(plain, a))
	}
	if len(b) > 0 {
		g := s.newGroup(append(slices.Clone(plain), exotic...), b)
		g.exotic = true
		out = append(out, g)
	}
	if len(only) > 0 {
		g := s.newGroup(reserved, only)
		g.counted = true
		out = append(out, g)
	}
	return out
}

// templateBins lists the types of a template that some allowed offer sells and that
// the pool's limits still admit, at their best offer.
func (s *solver) templateBins(t int, allowed Bitset) (plain, exotic []bin) {
	tm := &s.p.Templates[t]
	last := -1
	var cur bin
	flush := func() {
		if last < 0 {
			return
		}
		if tm.Types[last].Exotic {
			exotic = append(exotic, cur)
		} else {
			plain = append(plain, cur)
		}
	}
	for o := range tm.Offers {
		of := &tm.Offers[o]
		if !allowed.Has(o) || of.Count > 0 {
			continue // counted offers are filled apart
		}
		if of.Type != last {
			flush()
			last = -1
			floor, book := s.floor(tm, of.Type, allowed)
			if book == nil {
				continue
			}
			last = of.Type
			cur = bin{template: t, typ: of.Type, offer: o, price: of.Price + s.p.CostPerNode, book: book, floor: floor}
			continue
		}
		if betterOffer(tm, o, cur.offer) {
			cur.offer, cur.price = o, of.Price+s.p.CostPerNode
		}
	}
	flush()
	return plain, exotic
}

// roomOf is what may be put on a bin.
func (s *solver) roomOf(b bin) []int64 {
	if b.floor != nil {
		return b.floor
	}
	return s.p.Templates[b.template].Types[b.typ].Alloc
}

// betterOffer orders offers by (reserved first, price, type, zone, capacity type).
func betterOffer(tm *Template, a, b int) bool { return compareOffers(tm, a, b) < 0 }

func compareOffers(tm *Template, a, b int) int {
	x, y := &tm.Offers[a], &tm.Offers[b]
	return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Price, y.Price), cmp.Compare(x.Type, y.Type), cmp.Compare(a, b))
}

func (s *solver) newGroup(bins []bin, classes []int) *group {
	g := &group{d: s.d, classes: classes}
	g.load(s)
	g.setBins(s, bins)
	return g
}

// setBins gives the group its bins: capacities in whole steps of what its classes
// need, dominated bins left out.
func (g *group) setBins(s *solver, bins []bin) {
	g.all = bins
	g.bins = slices.Clone(bins)
	g.caps = make([]int64, 0, len(bins)*g.d)
	g.prices = make([]int64, 0, len(bins))
	for _, b := range bins {
		g.caps = append(g.caps, s.roomOf(b)...)
		g.prices = append(g.prices, b.price)
	}
	roundDown(g.d, g.caps, steps(g.d, g.need))
	g.tops = nil
	g.prune()
}

// load copies what the group's classes need and how many are left.
func (g *group) load(s *solver) {
	n := len(g.classes)
	g.need = make([]int64, 0, n*s.d)
	g.count = make([]int, n)
	for i, c := range g.classes {
		cl := &s.p.Classes[c]
		g.need = append(g.need, cl.Need...)
		g.count[i] = s.left[c]
	}
	g.loadRules(s)
}
