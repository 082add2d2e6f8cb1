package packing

import (
	"cmp"
	"slices"
)

// fits reports whether nodes for patterns keep the limits of their pools.
func (s *solver) fits(g *group, ps []pattern) bool {
	if !s.limits {
		return true
	}
	sum := make([][]int64, len(s.p.Pools))
	for i := range ps {
		b := &g.bins[ps[i].bin]
		tm := &s.p.Templates[b.template]
		if sum[tm.Pool] == nil {
			sum[tm.Pool] = make([]int64, len(s.p.LimitDims))
		}
		for k, v := range b.book {
			sum[tm.Pool][k] += v
		}
	}
	for pool, v := range sum {
		if v != nil && !s.withinLimits(pool, v) {
			return false
		}
	}
	return true
}

// packLimited packs what it can within the limits. Dearer but smaller nodes are
// tried first, by adding a price to what a limit counts; when all pods do not fit,
// the largest stay and the smallest are left out.
func (s *solver) packLimited(g *group, count []int) (*group, []pattern) {
	count = slices.Clone(count)
	for c := range count {
		if !g.holds(c) {
			count[c] = 0
		}
	}
	ps := s.pack(g, count)
	if s.fits(g, ps) {
		return g, ps
	}
	s.hurry = 16 // a dozen searches follow
	defer func() { s.hurry = 1 }()
	if gp, ps := s.packPriced(g, count); ps != nil {
		return gp, ps
	}
	// The largest number of pods, largest first, that still fits.
	order := s.bySizeDesc(g)
	total := 0
	for _, n := range count {
		total += n
	}
	bestG, best := g, []pattern(nil)
	lo, hi := 0, total // lo fits, hi does not
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		some := prefix(order, count, mid)
		gp, ps := g, s.pack(g, some)
		if !s.fits(g, ps) {
			gp, ps = s.packPriced(g, some)
		}
		if ps != nil {
			lo, bestG, best = mid, gp, ps
		} else {
			hi = mid
		}
	}
	return bestG, best
}

// packPriced packs at prices that include what limits count, and returns the
// cheapest plan that keeps them; nil when none does.
func (s *solver) packPriced(g *group, count []int) (*group, []pattern) {
	base := int64(0)
	for _, b := range g.all {
		base = max(base, b.price)
	}
	var bestG *group
	var best []pattern
	bestPrice := NoLimit
	for _, weight := range []int64{1, 4, 16, 64, 1024} {
		gp := s.reprice(g, base, weight)
		ps := s.pack(gp, count)
		if !s.fits(gp, ps) || placed(ps) < sumOf(count) {
			continue
		}
		real := int64(0)
		for i := range ps {
			real += s.truePrice(gp.bins[ps[i].bin])
		}
		if real < bestPrice {
			bestG, best, bestPrice = gp, ps, real
		}
	}
	return bestG, best
}

func (s *solver) truePrice(b bin) int64 {
	return s.p.Templates[b.template].Offers[b.offer].Price + s.p.CostPerNode
}

func placed(ps []pattern) int {
	n := 0
	for i := range ps {
		for _, cc := range ps[i].cc {
			n += cc.Count
		}
	}
	return n
}

func sumOf(count []int) int {
	n := 0
	for _, v := range count {
		n += v
	}
	return n
}

// reprice is the group with bins that cost more the more of a limit they take.
func (s *solver) reprice(g *group, base, weight int64) *group {
	bins := slices.Clone(g.all)
	for i := range bins {
		tm := &s.p.Templates[bins[i].template]
		share := int64(0) // of what is left, in thousandths
		for k, v := range bins[i].book {
			if left := s.capacityLeft(tm.Pool, k); left < NoLimit && v > 0 {
				share = max(share, v/max(left/1000, 1))
			}
		}
		bins[i].price = s.truePrice(bins[i]) + base*weight*min(share, 1000)/1000
	}
	gp := *g
	gp.sized = nil
	gp.setBins(s, bins)
	return &gp
}

// bySizeDesc orders the classes by cpu, memory and the rest, largest first.
func (s *solver) bySizeDesc(g *group) []int {
	order := make([]int, len(g.classes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(slices.Compare(g.req(b), g.req(a)), cmp.Compare(a, b))
	})
	return order
}

// prefix keeps the first n pods in an order of classes.
func prefix(order, count []int, n int) []int {
	out := make([]int, len(count))
	for _, c := range order {
		out[c] = min(count[c], n)
		n -= out[c]
	}
	return out
}
