package packing

import (
	"cmp"
	"slices"
)

// bin is a kind of node that a group of classes can be put on: a type of a template
// at its cheapest allowed offer.
type bin struct {
	template, typ, offer int
	price                int64   // what plans compare: offer price and cost per node
	book                 []int64 // what a node counts against limits
	// floor is what every type holds that minValues keeps among the options; nil: the
	// type's own allocatable.
	floor []int64
	// allow are the classes of the group that may go here; nil: all of them.
	allow Bitset
}

// group is a set of classes that are packed as one problem. Where they are under the
// same rules, every class may go on every bin.
type group struct {
	d       int
	bins    []bin
	caps    []int64 // by bin, stride d
	prices  []int64 // by bin
	classes []int   // index in Problem.Classes
	need    []int64 // by class, stride d
	count   []int
	most    []int32 // by class: the most on one node
	capped  bool    // some class has a most
	// clash lists, per class, the other classes of the group it may not share a node
	// with; nil when the group has no such pair.
	clash [][]int32
	// shared are caps over several classes; sharedOf lists them by class, nil if none.
	shared   []sharedCap
	sharedOf [][]capRef
	tops     []int64
	all      []bin // before pruning
	// exotic groups hold classes that only exotic types can host.
	exotic bool
	// counted groups are of classes that only counted offers can hold.
	counted bool
	sized   []int
}

func (g *group) cap(b int) []int64 { return g.caps[b*g.d : (b+1)*g.d] }
func (g *group) req(c int) []int64 { return g.need[c*g.d : (c+1)*g.d] }

// prune keeps the bins that no other bin beats in price and every dimension. What
// is left is sorted by price, then by template and type.
func (g *group) prune() {
	order := make([]binOrder, len(g.bins))
	sum := func(i int) float64 { // a tie-break that puts the larger one first
		s := 0.0
		for r, v := range g.cap(i) {
			if top := g.capMax(r); top > 0 {
				s += float64(v) / float64(top)
			}
		}
		return s
	}
	for i := range order {
		b := &g.bins[i]
		order[i] = binOrder{b.price, sum(i), b.template, b.typ, i}
	}
	slices.SortFunc(order, binOrder.compare)
	var bins []bin
	var caps, prices []int64
	for _, at := range order {
		i := at.at
		c := g.cap(i)
		beaten := false
		for k := 0; k < len(bins) && !beaten; k++ {
			beaten = covers(caps[k*g.d:(k+1)*g.d], c) && admits(&bins[k], &g.bins[i])
		}
		if !beaten {
			bins = append(bins, g.bins[i])
			caps = append(caps, c...)
			prices = append(prices, g.bins[i].price)
		}
	}
	g.bins, g.caps, g.prices = bins, caps, prices
	g.tops = nil
}

// binOrder is what bins are sorted by, and their place.
type binOrder struct {
	price             int64
	sum               float64
	template, typ, at int
}

func (a binOrder) compare(b binOrder) int {
	if a.price != b.price { // nearly always
		return cmp.Compare(a.price, b.price)
	}
	return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.template, b.template), cmp.Compare(a.typ, b.typ))
}

// admits reports whether a admits every class that b does.
func admits(a, b *bin) bool {
	return a.allow == nil || (b.allow != nil && b.allow.Subset(a.allow))
}

// takes reports whether bin b may carry class c.
func (g *group) takes(b, c int) bool {
	return g.bins[b].allow == nil || g.bins[b].allow.Has(c)
}

func covers(big, small []int64) bool {
	for r := range small {
		if big[r] < small[r] {
			return false
		}
	}
	return true
}

// capMax is the largest capacity of any bin in a dimension.
func (g *group) capMax(r int) int64 {
	if g.tops == nil {
		g.tops = make([]int64, g.d)
		for b := range g.bins {
			for k, v := range g.cap(b) {
				g.tops[k] = max(g.tops[k], v)
			}
		}
	}
	return g.tops[r]
}

// steps are the greatest common divisors of needs by dimension, 0 where nothing is
// needed: no node can hold an amount between two multiples.
func steps(d int, needs []int64) []int64 {
	out := make([]int64, d)
	for i, v := range needs {
		if v > 0 {
			out[i%d] = gcd(out[i%d], v)
		}
	}
	return out
}

// roundDown lowers every capacity to a multiple of its step, which loses no packing
// and makes bounds tighter; a dimension that nobody needs becomes 0.
func roundDown(d int, caps, step []int64) {
	for i := range caps {
		if st := step[i%d]; st > 0 {
			caps[i] -= caps[i] % st
		} else {
			caps[i] = 0
		}
	}
}
