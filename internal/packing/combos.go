package packing

import (
	"cmp"
	"math"
	"slices"
)

// combo is a choice of nodes, bins from dear to cheap, and its price.
type combo struct {
	price int64
	bins  []int32
}

// combos lists choices of nodes whose room covers the demand in every dimension and
// whose price is below limit, cheapest first: base is part of each, the rest is
// searched depth first, cut by what the remaining demand is worth.
type combos struct {
	g      *group
	y      []float64
	order  []int32   // bins from dear to cheap
	worths []float64 // by bin
	limit  float64
	most   int // nodes to visit
	keep   int

	stack []int32
	left  []int64 // by depth, stride d
	found []combo
	cut   bool // some choice was not followed to its end
}

func (cb *combos) search(base []int32, demand []int64, depth int) []combo {
	d := cb.g.d
	cb.stack = append(cb.stack[:0], base...)
	cb.left = make([]int64, (depth+1)*d)
	price := int64(0)
	copy(cb.left, demand)
	for _, b := range base {
		price += cb.g.prices[b]
		for r, v := range cb.g.cap(int(b)) {
			cb.left[r] -= v
		}
	}
	cb.found, cb.cut = cb.found[:0], false
	cb.step(0, depth, 0, price)
	slices.SortFunc(cb.found, func(a, b combo) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(len(a.bins), len(b.bins)), slices.Compare(a.bins, b.bins))
	})
	return cb.found
}

func (cb *combos) step(at, depth, from int, price int64) {
	d := cb.g.d
	left := cb.left[at*d : (at+1)*d]
	done, rest := true, 0.0
	for r, v := range left {
		if v > 0 {
			done = false
			rest += float64(cb.y[r] * float64(v))
		}
	}
	if done {
		cb.found = append(cb.found, combo{price, slices.Clone(cb.stack)})
		return
	}
	if at == depth {
		cb.cut = true
	}
	if at == depth || len(cb.found) >= cb.keep {
		return
	}
	for i := from; i < len(cb.order); i++ {
		if cb.most <= 0 {
			return
		}
		cb.most--
		b := cb.order[i]
		p := price + cb.g.prices[b]
		if float64(p)+max(0, rest-cb.worths[b]) >= cb.limit {
			continue
		}
		next := cb.left[(at+1)*d : (at+2)*d]
		cap := cb.g.cap(int(b))
		for r := range d {
			next[r] = left[r] - cap[r]
		}
		cb.stack = append(cb.stack, b)
		cb.step(at+1, depth, i, p)
		cb.stack = cb.stack[:len(cb.stack)-1]
	}
}

// demandOf sums what count pods need, in integers and for the linear program.
func (g *group) demandOf(count []int) ([]int64, []float64) {
	sum, f := make([]int64, g.d), make([]float64, g.d+1)
	for c, n := range count {
		if n > 0 {
			for r := range g.d {
				sum[r] += int64(n) * g.need[c*g.d+r]
			}
		}
	}
	for r, v := range sum {
		f[r] = float64(v)
	}
	return sum, f
}

// searchSteps bounds one search for choices of nodes.
const searchSteps = 150_000

// packSmall chooses nodes by their total room first and then tries to spread the
// pods over them, cheapest choice first. Only plans cheaper than limit count; nil
// when none was found.
//
// tol is the share of the price that is not worth a search: choices are first looked
// for within it of the bound, then in growing rings.
func (s *solver) packSmall(g *group, count []int, limit int64, tol float64) []pattern {
	demand, df := g.demandOf(count)
	y := duals(g.d, g.caps, g.prices, df)
	lb := 0.0
	for r := range g.d {
		lb += float64(y[r] * df[r])
	}
	total := 0
	for _, n := range count {
		total += n
	}
	cb := &combos{g: g, y: y}
	cb.worths = make([]float64, len(g.bins))
	for b := range g.bins {
		cb.worths[b] = value(g.d, g.cap(b), y)
		if cb.worths[b] > 0.8*float64(g.prices[b]) || float64(g.prices[b]) < 0.2*lb {
			cb.order = append(cb.order, int32(b))
		}
	}
	slices.Reverse(cb.order)
	x := primal(g, df, y)
	var base []int32
	for b := len(x) - 1; b >= 0; b-- {
		for range int(math.Floor(x[b])) - 1 {
			base = append(base, int32(b))
		}
	}
	sp := newSpreader(g, y)
	var best []pattern
	bestPrice := limit
	for _, eps := range []float64{0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.09, 0.16, 0.5} {
		if eps < tol {
			continue
		}
		cb.limit = min(lb*(1+eps), float64(bestPrice))
		steps := searchSteps
		if tol > 0 {
			steps /= 4
		}
		cb.most, cb.keep = steps, 4000
		found := cb.search(base, demand, 7)
		skip := 0.0
		for _, f := range found {
			if f.price >= bestPrice || s.work <= 0 {
				break
			}
			if float64(f.price) < skip {
				continue
			}
			bins := make([]int, len(f.bins))
			for i, b := range f.bins {
				bins[i] = int(b)
			}
			lost := s.spreadAny(sp, bins, count, total)
			if lost == 0 {
				if p := sp.patterns(nil); g.price(p) < bestPrice {
					best, bestPrice = p, g.price(p)
				}
				break
			}
			if total > 200 {
				skip = float64(f.price) + 0.1*lost
			}
		}
		s.work -= int64(steps - cb.most)
		if best != nil || cb.limit >= float64(limit) || s.work <= 0 {
			break
		}
	}
	return best
}

// spreadAny tries two ways to spread and reports the least value left over.
func (s *solver) spreadAny(sp *spreader, bins, count []int, total int) float64 {
	lost := math.Inf(1)
	for _, f := range fullness[:2] {
		s.work -= int64(total*len(bins)) / 2
		if lost = min(lost, sp.run(bins, count, f)); lost == 0 {
			break
		}
	}
	return lost
}
