package packing

import (
	"cmp"
	"math"
	"slices"
)

// pattern is a filled bin: contents by local class, sparse.
type pattern struct {
	bin int
	cc  []ClassCount // Class is the index in group.classes
}

// Sizes that choose between methods. Below smallPods a problem is solved as one;
// above, most of it is packed in bulk and only the rest is searched.
const (
	smallPods  = 1200
	chunkPods  = 4000
	fewClasses = 16
	// someClasses is up to where contents can be generated at all.
	someClasses = 64
	// lumpyLoss is the share of whole nodes that spreading leaves empty before pods
	// count as lumpy; lumpyPrice the same for a plan, against the resource bound.
	lumpyLoss  = 0.006
	lumpyPrice = 1.01
	// spreadPrice is the price, against the resource bound, above which a plan of spread
	// pods is tried as lumps too.
	spreadPrice = 1.006
	divePods    = 250 // up to here both searches run and the cheaper plan wins
)

// pack finds nodes for count pods of each class; count is not changed. Pods that fit
// no bin stay out.
func (s *solver) pack(g *group, count []int) []pattern {
	left := slices.Clone(count)
	total := 0
	for c := range left {
		if !g.holds(c) {
			left[c] = 0
		}
		total += left[c]
	}
	if total == 0 || len(g.bins) == 0 {
		return nil
	}
	if len(g.classes) == 1 {
		return g.packEqual(left[0])
	}
	if ps, _ := s.packCapped(g, left); ps != nil {
		return ps
	}
	var out []pattern
	var pool [][]int32
	target := 0.0
	coarse := len(g.classes) <= fewClasses
	if coarse && total > divePods {
		if g.plain() {
			if out, target = s.packLumps(g, left); out != nil {
				return s.repair(g, out, target)
			}
		} else {
			out, pool, target = s.bulkColumns(g, left, nil)
		}
	}
	for !coarse {
		total = sumOf(left)
		if total <= smallPods {
			break
		}
		before, lost := len(out), 0.0
		again := slices.Clone(left)
		out, lost = s.bulkSpread(g, left, total, out)
		if lost > lumpyLoss && before == 0 && len(g.classes) <= someClasses {
			// Pods too lumpy to be spread: contents have to be chosen with care.
			copy(left, again)
			if g.plain() {
				if out, target = s.packLumps(g, left); out != nil {
					return s.repair(g, out, target)
				}
			} else {
				out, pool, target = s.bulkColumns(g, left, contents(out, len(left)))
			}
			break
		}
		if len(out) == before {
			break
		}
	}
	rest, lp := s.packRest(g, left, pool, restCare(out, left))
	if len(out) == 0 {
		target = lp
	}
	out = s.repair(g, append(out, rest...), target)
	if coarse || len(out) == 0 || len(g.classes) > someClasses || sumOf(count) <= smallPods || !g.plain() {
		return out
	}
	return s.orLumps(g, out)
}

// orLumps replaces a plan that spreading left dear by one of lumps, if that is cheaper.
func (s *solver) orLumps(g *group, out []pattern) []pattern {
	count := make([]int, len(g.classes))
	for i := range out {
		for _, cc := range out[i].cc {
			count[cc.Class] += cc.Count
		}
	}
	_, df := g.demandOf(count)
	if lb := total64(df, duals(g.d, g.caps, g.prices, df)); float64(g.price(out)) <= spreadPrice*lb {
		return out
	}
	other, target := s.packLumps(g, count)
	if other == nil {
		return out
	}
	if other = s.repair(g, other, target); g.price(other) < g.price(out) {
		return other
	}
	return out
}

// restCare is the share of the price that is not worth a search in what bulk packing
// left: the smaller a part of the plan, the less care it needs.
func restCare(out []pattern, left []int) float64 {
	if len(out) == 0 {
		return 0
	}
	return min(0.04, 0.0015*float64(placed(out))/float64(max(1, sumOf(left))))
}

// holds reports whether some bin holds one pod of class c.
func (g *group) holds(c int) bool {
	for b := range g.bins {
		if g.most[c] > 0 && g.takes(b, c) && covers(g.cap(b), g.req(c)) {
			return true
		}
	}
	return false
}

// packRest solves what bulk packing left, as one problem. It also returns the value
// of the linear program over node contents, 0 where none was solved.
func (s *solver) packRest(g *group, left []int, pool [][]int32, tol float64) ([]pattern, float64) {
	total := 0
	for _, n := range left {
		total += n
	}
	if total == 0 {
		return nil, 0
	}
	lp := 0.0
	lumpy := len(g.classes) > fewClasses && len(g.classes) <= someClasses && g.plain()
	s.settled = false
	var best []pattern
	limit := int64(math.MaxInt64)
	consider := func(p []pattern) {
		if p != nil && g.price(p) < limit {
			best, limit = p, g.price(p)
		}
	}
	if len(g.classes) <= fewClasses {
		var p []pattern
		p, lp = s.packColumns(g, left, pool, tol == 0)
		consider(p)
	}
	if len(g.classes) > fewClasses || total <= divePods {
		work := s.p.Work / 2 / s.hurry
		if tol > 0 {
			work /= 4
		} else if total > divePods && lumpy {
			work /= 8
		}
		consider(s.packSmall(g, left, effort{tol, work, limit}))
	}
	if few := len(g.classes); few > fewClasses && few <= someClasses && tol == 0 && !s.settled {
		_, df := g.demandOf(left)
		if lb := total64(df, duals(g.d, g.caps, g.prices, df)); float64(limit) > lumpyPrice*lb {
			var p []pattern
			if g.plain() {
				p, lp = s.packLumps(g, left)
			} else {
				p, lp = s.packColumns(g, left, append(pool, contents(best, len(left))...), true)
			}
			consider(p)
		}
	}
	if best == nil {
		best = s.packGreedy(g, left)
	}
	return best, lp
}

// contents lists what patterns hold, dense.
func contents(ps []pattern, n int) [][]int32 {
	var out [][]int32
	for i := range ps {
		a := make([]int32, n)
		for _, cc := range ps[i].cc {
			a[cc.Class] = int32(cc.Count)
		}
		out = append(out, a)
	}
	return out
}

// packGreedy fills node after node with the bundle that is worth the most for its
// price. It always ends and places every pod that some bin holds.
func (s *solver) packGreedy(g *group, count []int) []pattern {
	left := slices.Clone(count)
	k := newKnapsack(g)
	k.plain = len(left) > fewClasses
	pi := make([]float64, len(left))
	var out []pattern
	for {
		_, df := g.demandOf(left)
		y := duals(g.d, g.caps, g.prices, df)
		some := false
		for c := range pi {
			// Never worthless: a pod of no resources needs its slot too.
			pi[c] = value(g.d, g.req(c), y) + 1e-6
			some = some || left[c] > 0
		}
		if !some {
			return out
		}
		k.allow(left)
		bestE, bestB := 0.0, -1
		var best []int32
		for b := range g.bins {
			if v := k.best(b, pi, y, 3); v > 0 {
				if e := v / float64(max(g.prices[b], 1)); e > bestE*(1+1e-9) {
					bestE, bestB = e, b
					best = append(best[:0], k.out...)
				}
			}
		}
		if bestB < 0 {
			return out
		}
		times := math.MaxInt
		for c, n := range best {
			if n > 0 {
				times = min(times, left[c]/int(n))
			}
		}
		times = max(1, times/2)
		cc, b := sparse(best), g.cheapest(best)
		for range times {
			out = append(out, pattern{b, cc})
		}
		for c, n := range best {
			left[c] -= int(n) * times
		}
	}
}

// bulkColumns takes the whole copies of the linear program over node contents, and
// returns the contents it found useful and the program's value beside them.
func (s *solver) bulkColumns(g *group, left []int, known [][]int32) (out []pattern, pool [][]int32, lp float64) {
	_, df := g.demandOf(left)
	y := duals(g.d, g.caps, g.prices, df)
	within, gain, steps := 0.12, 1e-3, 3000
	if sumOf(left) > 3000 {
		gain = 2e-3 // measured: the price stays within 0.1 %, the time halves
	}
	if len(left) > fewClasses {
		within, gain, steps = 0.15, 3e-4, 9000
	}
	sub := g.promising(y, left, within)
	m := newMaster(sub, left, newGrid(sub, sub.efficientBins(y, 0.985)))
	m.gain = gain
	if !m.crash() {
		return nil, nil, 0
	}
	for _, a := range known {
		m.addColumn(a)
	}
	m.optimize(y, steps)
	s.work -= int64(m.steps * m.n * 50)
	lp = m.value()
	m.remember(s)
	for i, j := range m.basis {
		if j >= 0 {
			out = sub.take(out, left, m.cols[j], int(math.Floor(m.x[i]+1e-6)), g)
		}
	}
	return out, m.useful(), lp
}

// promising is the group with only the bins that a good fill makes nearly as good for
// their price as the best bin. What room is worth alone does not tell: coarse pods may
// not be able to fill it.
func (g *group) promising(y []float64, count []int, within float64) *group {
	k := newKnapsack(g)
	k.allow(count)
	pi := make([]float64, len(count))
	for c := range pi {
		pi[c] = value(g.d, g.req(c), y)
	}
	// No fill is worth more than the room: bins are filled from the best room down, and
	// not at all once their room is out of reach.
	full := make([]float64, len(g.bins))
	order := make([]int, len(g.bins))
	for b := range g.bins {
		full[b] = value(g.d, g.cap(b), y) / float64(max(g.prices[b], 1))
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(full[b], full[a]) })
	tops := map[*uint64]float64{} // by the set of classes that bins take
	for _, b := range order {
		key := g.takers(b)
		if full[b] < (1-within)*tops[key] {
			continue
		}
		full[b] = k.best(b, pi, y, 3) / float64(max(g.prices[b], 1))
		tops[key] = max(tops[key], full[b])
	}
	keep := make([]bool, len(g.bins))
	for b := range g.bins {
		keep[b] = full[b] >= (1-within)*tops[g.takers(b)]
	}
	for c, n := range count { // every class keeps a bin
		if n > 0 {
			one := -1
			for b := range g.bins {
				if g.takes(b, c) && covers(g.cap(b), g.req(c)) {
					if keep[b] {
						one = -1
						break
					}
					if one < 0 {
						one = b
					}
				}
			}
			if one >= 0 {
				keep[one] = true
			}
		}
	}
	sub := *g
	sub.bins, sub.caps, sub.prices, sub.tops = nil, nil, nil, nil
	for b := range g.bins {
		if keep[b] {
			sub.bins = append(sub.bins, g.bins[b])
			sub.caps = append(sub.caps, g.cap(b)...)
			sub.prices = append(sub.prices, g.prices[b])
		}
	}
	return &sub
}

// takers identifies the set of classes that a bin takes; nil: all of them.
func (g *group) takers(b int) *uint64 {
	if a := g.bins[b].allow; len(a) > 0 {
		return &a[0]
	}
	return nil
}

func total64(demand, y []float64) float64 {
	v := 0.0
	for r := range y {
		v += float64(y[r] * demand[r])
	}
	return v
}

// bySize lists the classes by cpu, then memory, then index: neighbours are alike.
func (g *group) bySize() []int {
	if g.sized == nil {
		g.sized = make([]int, len(g.classes))
		for c := range g.sized {
			g.sized[c] = c
		}
		slices.SortFunc(g.sized, func(a, b int) int {
			return cmp.Or(slices.Compare(g.req(a), g.req(b)), cmp.Compare(a, b))
		})
	}
	return g.sized
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

// price sums the bins of patterns.
func (g *group) price(ps []pattern) int64 {
	p := int64(0)
	for i := range ps {
		p += g.prices[ps[i].bin]
	}
	return p
}
