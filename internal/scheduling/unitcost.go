package scheduling

import (
	"math"
	"slices"
)

// costs finds what units cost on new nodes. Hundreds of types are looked at for each unit
// and cell, so floating point says first which of them can be the cheapest; what decides
// is exact, and the same as if all had been compared.
type costs struct {
	w       *World
	inverse [][][]float64 // by template and dim: 1 / what a type has left
	offered map[*cell][]prices
	// shares are those of the unit at hand, by template and type: no more than the share of
	// the node that it takes.
	unit   *unit
	shares [][]float64
}

// prices are those of the cheapest offer of each type of a template in a cell.
type prices struct {
	exact []int64   // negative where there is none
	about []float64 // infinite where there is none
}

// nothingLeft is the inverse of what nothing fits into; times no need at all it is 0.
const nothingLeft = 1e30

// shareError is more than what exact shares, which are cut to millionths, can differ by.
const shareError = 2.1e-6

func newCosts(w *World) *costs {
	n := len(w.Templates)
	return &costs{w: w, inverse: make([][][]float64, n), shares: make([][]float64, n), offered: map[*cell][]prices{}}
}

// of is the least, over the offers of a cell, of the price times the share of the node
// that the unit takes; -1 when no offer is large enough. In a cell that all nodes are in
// there is nothing to compare it with: then it is 0.
func (k *costs) of(u *unit, c *cell) int64 {
	if c.open() {
		if k.fits(u, c) {
			return 0
		}
		return -1
	}
	if k.unit != u {
		k.unit = u
		for t := range k.shares {
			k.shares[t] = k.shares[t][:0]
		}
	}
	best, limit := int64(-1), math.MaxFloat64
	for t, p := range k.pricesIn(c) {
		if len(p.exact) == 0 {
			continue
		}
		tm := &k.w.Templates[t]
		shares := k.sharesIn(u, t)[:len(p.about)]
		for i, price := range p.about {
			if !(price*shares[i] <= limit) || p.exact[i] < 0 {
				continue
			}
			share := shareOf(k.w.left(tm, i), u.need)
			if share < 0 {
				continue
			}
			if v := p.exact[i] * share / wholeMiss; best < 0 || v < best {
				best, limit = v, float64(v)*(1+1e-8)+2 // products are cut to whole micro-dollars
			}
		}
	}
	return best
}

// fits reports whether some offer of a cell is large enough for a unit.
func (k *costs) fits(u *unit, c *cell) bool {
	for t, bits := range c.offers {
		tm := &k.w.Templates[t]
		last := absent
		for o := range bits.All() {
			if typ := tm.offerType[o]; typ != last {
				if last = typ; covers(k.w.left(tm, int(typ)), u.need) {
					return true
				}
			}
		}
	}
	return false
}

// pricesIn lists the types of a cell, by template.
func (k *costs) pricesIn(c *cell) []prices {
	if out, ok := k.offered[c]; ok {
		return out
	}
	out := make([]prices, len(c.offers))
	for t, bits := range c.offers {
		if bits == nil {
			continue
		}
		tm := &k.w.Templates[t]
		p := prices{make([]int64, len(tm.types)), make([]float64, len(tm.types))}
		for i := range p.exact {
			p.exact[i], p.about[i] = -1, math.Inf(1)
		}
		bits.Members(func(o int) {
			i := tm.offerType[o]
			if v := tm.u.compared(tm.offers[o]); p.exact[i] < 0 || v < p.exact[i] {
				p.exact[i], p.about[i] = v, float64(v)
			}
		})
		out[t] = p
	}
	k.offered[c] = out
	return out
}

// sharesIn are the shares of the unit at hand on every type of a template. Pods are left
// out: that they are the scarcest is rare, and only more types are looked at then.
func (k *costs) sharesIn(u *unit, t int) []float64 {
	if len(k.shares[t]) > 0 {
		return k.shares[t]
	}
	inverse := k.inverseOf(t)
	n := len(k.w.Templates[t].types)
	out := slices.Grow(k.shares[t], n)[:n]
	cpu, memory := inverse[0][:n], inverse[1][:n]
	x, y := float64(u.need[0]), float64(u.need[1])
	for i := range out {
		out[i] = max(x*cpu[i], y*memory[i]) - shareError
	}
	for r := 3; r < len(u.need); r++ {
		if v := float64(u.need[r]); v > 0 {
			for i, x := range inverse[r][:n] {
				out[i] = max(out[i], v*x-shareError)
			}
		}
	}
	k.shares[t] = out
	return out
}

func (k *costs) inverseOf(t int) [][]float64 {
	if k.inverse[t] != nil {
		return k.inverse[t]
	}
	tm := &k.w.Templates[t]
	out := make([][]float64, len(k.w.Dims))
	for r := range out {
		out[r] = make([]float64, len(tm.types))
	}
	for i := range tm.types {
		left := k.w.left(tm, i)
		for r, v := range left {
			if out[r][i] = nothingLeft; v > 0 {
				out[r][i] = 1 / float64(v)
			}
		}
	}
	k.inverse[t] = out
	return out
}
