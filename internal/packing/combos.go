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
	nodes  int // how many there must be, whatever their room

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
	if more := cb.nodes - len(cb.stack); more > 0 {
		done = false
		rest += float64(cb.y[d] * float64(more))
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

// effort says how hard packSmall tries.
type effort struct {
	tol   float64 // share of the price that is not worth a search
	work  int64   // steps it may take
	limit int64   // only plans below this price count
}

// rings are how far above the bound choices of nodes are looked for, step by step.
var rings = []float64{0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.09, 0.16, 0.5}

// packSmall chooses nodes by their total room first and then tries to spread the
// pods over them, cheapest choice first; pods that find no room get one more node.
// nil when no plan below the limit was found.
func (s *solver) packSmall(g *group, count []int, e effort) []pattern {
	demand, df := g.demandOf(count)
	y := duals(g.d, g.caps, g.prices, df)
	lb := total64(df, y)
	total := sumOf(count)
	cb := &combos{g: g, y: y, worths: make([]float64, len(g.bins))}
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
	t := &trial{s: s, g: g, sp: sp, count: count, total: total, best: e.limit}
	floor := s.work - e.work
	for _, eps := range rings {
		if eps < e.tol {
			continue
		}
		cb.limit = min(lb*(1+eps), float64(t.best))
		steps := searchSteps
		if e.tol > 0 {
			steps /= 4
		}
		cb.most, cb.keep = steps, 4000
		found := cb.search(base, demand, 7)
		s.work -= int64(steps - cb.most)
		skip := 0.0
		for _, f := range found {
			if f.price >= t.best || s.work <= floor || t.after > moreTrials {
				break
			}
			if float64(f.price) < skip {
				continue
			}
			if lost := t.run(f); lost > 0 && total > 200 {
				skip = float64(f.price) + 0.1*lost
			}
			if e.tol > 0 && t.plan != nil {
				return t.plan // the first is good enough for a rest
			}
		}
		s.settled = len(base) == 0 && cb.limit >= float64(t.best) && cb.most > 0 && !cb.cut &&
			(len(found) == 0 || found[0].price >= t.best)
		if cb.limit >= float64(t.best) || s.work <= floor || t.after > moreTrials {
			break
		}
	}
	return t.plan
}

// moreTrials is how many choices are tried once one of them worked.
const moreTrials = 300

// trial spreads pods over choices of nodes and keeps the cheapest plan.
type trial struct {
	s     *solver
	g     *group
	sp    *spreader
	count []int
	total int
	best  int64
	plan  []pattern
	bins  []int
	after int // choices tried since there is a plan
}

// run tries one choice and returns the value of what found no room on it.
func (t *trial) run(f combo) float64 {
	t.bins = t.bins[:0]
	for _, b := range f.bins {
		t.bins = append(t.bins, int(b))
	}
	if t.plan != nil {
		t.after++
	}
	least := math.Inf(1)
	for _, fuller := range fullness[:2] {
		t.s.work -= int64(t.total*len(t.bins)) / 2
		lost := t.sp.run(t.bins, t.count, fuller)
		least = min(least, lost)
		t.keep(lost)
		if lost == 0 {
			break
		}
	}
	return least
}

// keep records the spread as a plan if it is the cheapest so far; what found no room
// must fit one more node.
func (t *trial) keep(lost float64) {
	g := t.g
	var more []pattern
	if lost > 0 {
		rest := make([]int32, len(t.count))
		for c, n := range t.sp.rest {
			rest[c] = int32(n)
		}
		if !g.permits(rest) {
			return
		}
		b := g.cheapest(rest)
		if b < 0 || g.prices[b] >= t.best {
			return
		}
		more = []pattern{{b, sparse(rest)}}
	}
	p := t.sp.patterns(more)
	if price := g.price(p); price < t.best {
		t.plan, t.best, t.after = p, price, 0
	}
}
