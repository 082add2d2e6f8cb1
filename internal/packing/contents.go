package packing

import (
	"cmp"
	"math"
	"slices"
)

// This file proves bounds that see how pods share nodes: with a price per pod of each
// class, no offer costs less than the dearest contents it could hold. The largest
// pods are taken as whole; smaller ones may be cut, which can only raise what a node
// could hold, so the proof stands and the search stays small.

// maxWhole is how many kinds of pods are whole in a proof; proofSteps bounds the
// search per offer.
const (
	maxWhole   = 14
	proofSteps = 60_000
)

// ClassPrice is the price of one pod of a class in a proof by contents, in
// micro-dollars per hour.
type ClassPrice struct {
	Class int
	Price float64
}

// contentsBound raises a bound by the prices that packing found for the classes.
func (s *solver) contentsBound(b *Bound, sigs []int, inLaunch, caps, prices []int64) {
	if len(sigs) != 1 || b.Kind == BoundShape || b.Kind == BoundOptimum || s.pis == nil {
		return
	}
	pr := &proof{d: s.d}
	demand := 0.0
	for _, c := range s.sigs[sigs[0]].classes {
		n := inLaunch[c]
		if n == 0 {
			continue
		}
		pi, ok := s.pis[c]
		if !ok {
			return // some class was packed another way
		}
		pr.prices = append(pr.prices, ClassPrice{c, pi})
		pr.need = append(pr.need, s.p.Classes[c].Need)
		pr.count = append(pr.count, n)
		demand += float64(float64(n) * pi)
	}
	// Only bins that no other bin beats have to be looked at.
	g := &group{d: s.d, caps: slices.Clone(caps), prices: slices.Clone(prices), bins: make([]bin, len(prices))}
	for i := range g.bins {
		g.bins[i] = bin{price: prices[i], typ: i}
	}
	g.prune()
	worst := pr.worst(g, demand/float64(max(b.Total, 1)))
	if worst <= 0 {
		return
	}
	if t := int64(math.Floor(demand / worst * (1 - 1e-9))); t > b.Total {
		b.Kind, b.Total = BoundContents, t
		for i := range pr.prices {
			pr.prices[i].Price /= worst
		}
		b.Prices = pr.prices
	}
}

// proof is the search for the contents that are worth the most for a bin's price.
type proof struct {
	d      int
	prices []ClassPrice
	need   [][]int64
	count  []int64

	whole []int       // classes taken as whole, largest first
	fluid [][]float64 // prices per resource that no class which may be cut beats
	order []int
	w     []float64
	dens  []float64
	cap   []int64
	left  []int64
	best  float64
	tries int
}

// worst is the most that contents are worth, as a multiple of what their bin costs;
// 0 if that is more than useless allows or could not be found out.
func (p *proof) worst(g *group, useless float64) float64 {
	p.split(g)
	p.vertices()
	worst := 1e-9
	for b := range g.bins {
		goal := max(worst, 0.2) * float64(g.prices[b])
		v, done := p.search(g.cap(b), goal)
		if !done {
			return 0
		}
		worst = max(worst, v/float64(max(g.prices[b], 1)))
		if worst >= useless {
			return 0
		}
	}
	return worst
}

// split decides which classes are whole.
func (p *proof) split(g *group) {
	typical := g.cap(len(g.bins) / 2)
	size := make([]float64, len(p.need))
	for i, n := range p.need {
		for r := range min(2, p.d) {
			size[i] = max(size[i], float64(n[r])/float64(max(typical[r], 1)))
		}
	}
	for i := range p.need {
		p.whole = append(p.whole, i)
	}
	slices.SortStableFunc(p.whole, func(a, b int) int { return cmp.Compare(size[b], size[a]) })
	p.whole = p.whole[:min(maxWhole, len(p.whole))]
	p.w, p.dens = make([]float64, len(p.need)), make([]float64, len(p.need))
}

// vertices lists the corners of the prices per cpu and memory at which no class that
// may be cut is worth more than its resources: the least of them, for the room that
// is left, is exactly what cut pods could be worth there.
func (p *proof) vertices() {
	var lines [][3]float64 // need cpu, need memory, price
	for i := range p.need {
		if !slices.Contains(p.whole, i) {
			lines = append(lines, [3]float64{float64(p.need[i][0]), float64(p.need[i][1]), p.prices[i].Price})
		}
	}
	if len(lines) == 0 {
		p.fluid = [][]float64{{0, 0}}
		return
	}
	add := func(x, y float64) {
		if x < 0 || y < 0 || math.IsInf(x, 1) || math.IsInf(y, 1) || math.IsNaN(x) || math.IsNaN(y) {
			return
		}
		// Lift the corner until it is feasible to the last bit.
		up := 1.0
		for _, l := range lines {
			if v := float64(x*l[0]) + float64(y*l[1]); v < l[2] {
				if v <= 0 {
					return
				}
				up = max(up, l[2]/v)
			}
		}
		if up < 1+1e-6 {
			p.fluid = append(p.fluid, []float64{x * up * (1 + 1e-12), y * up * (1 + 1e-12)})
		}
	}
	cpu, mem := 0.0, 0.0
	for _, l := range lines {
		cpu, mem = max(cpu, l[2]/l[0]), max(mem, l[2]/l[1])
	}
	add(cpu, 0)
	add(0, mem)
	for i, a := range lines {
		for _, b := range lines[:i] {
			det := a[0]*b[1] - a[1]*b[0]
			if det != 0 {
				add((a[2]*b[1]-a[1]*b[2])/det, (a[0]*b[2]-a[2]*b[0])/det)
			}
		}
	}
}

// cut is the most that pods which may be cut are worth in some room.
func (p *proof) cut(room []int64) float64 {
	least := math.Inf(1)
	for _, v := range p.fluid {
		least = min(least, float64(v[0]*float64(room[0]))+float64(v[1]*float64(room[1])))
	}
	return least
}

// search finds the most that contents of a bin are worth, goal at least; done is
// false when it gave up.
func (p *proof) search(cap []int64, goal float64) (v float64, done bool) {
	if len(p.fluid) == 0 {
		return 0, false
	}
	p.cap = cap
	p.left = slices.Clone(cap)
	p.best, p.tries = goal, proofSteps
	// One corner, the tightest for the empty node, bounds the search.
	base := p.fluid[0]
	for _, f := range p.fluid {
		if f[0]*float64(cap[0])+f[1]*float64(cap[1]) < base[0]*float64(cap[0])+base[1]*float64(cap[1]) {
			base = f
		}
	}
	p.order = p.order[:0]
	for _, i := range p.whole {
		n := p.need[i]
		p.w[i] = p.prices[i].Price - float64(base[0]*float64(n[0])) - float64(base[1]*float64(n[1]))
		p.dens[i] = p.w[i] / p.weight(i)
		if covers(cap, n) && p.prices[i].Price > 0 {
			p.order = append(p.order, i)
		}
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return cmp.Compare(p.dens[b], p.dens[a]) })
	p.descend(0, 0, base, 2)
	return p.best, p.tries > 0
}

// weight is the share of a bin that a pod takes, cpu and memory added up.
func (p *proof) weight(i int) float64 {
	w := 1e-12
	for r := range min(2, p.d) {
		if p.cap[r] > 0 {
			w += float64(p.need[i][r]) / float64(p.cap[r])
		}
	}
	return w
}

func (p *proof) descend(at int, v float64, base []float64, rest float64) {
	p.tries--
	if p.tries <= 0 {
		return
	}
	p.best = max(p.best, v+p.cut(p.left))
	if at == len(p.order) {
		return
	}
	i := p.order[at]
	room := float64(base[0]*float64(p.left[0])) + float64(base[1]*float64(p.left[1]))
	if v+room+max(0, float64(p.dens[i]*rest)) <= p.best*(1+1e-12) {
		return
	}
	n := p.count[i]
	for r, need := range p.need[i] {
		if need > 0 {
			n = min(n, p.left[r]/need)
		}
	}
	w := p.weight(i)
	for k := n; k >= 0; k-- {
		for r, need := range p.need[i] {
			p.left[r] -= k * need
		}
		p.descend(at+1, v+float64(float64(k)*p.prices[i].Price), base, rest-float64(float64(k)*w))
		for r, need := range p.need[i] {
			p.left[r] += k * need
		}
		if p.tries <= 0 {
			return
		}
	}
}
