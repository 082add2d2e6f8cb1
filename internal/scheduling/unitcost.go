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
	// shares are those of the unit at hand, by template and type: about the largest share
	// of a resource that it takes, less shareError; infinite when it does not fit.
	unit   *unit
	shares [][]float64
	near   []int32 // scratch
}

// prices are those of the cheapest offer of each type of a template in a cell; negative
// where it has none there.
type prices struct {
	exact []int64
	about []float64 // infinite where there is none
}

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
	best := int64(-1)
	for t, p := range k.pricesIn(c) {
		if len(p.exact) == 0 {
			continue
		}
		k.near = cheapest(k.near[:0], p.about, k.sharesIn(u, t))
		for _, i := range k.near {
			if p.exact[i] < 0 {
				continue
			}
			share := shareOf(k.w.left(&k.w.Templates[t], int(i)), u.need)
			if share < 0 {
				continue
			}
			if v := p.exact[i] * share / wholeMiss; best < 0 || v < best {
				best = v
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

// cheapest appends the types whose product can be the least.
func cheapest(out []int32, price, share []float64) []int32 {
	share = share[:len(price)]
	limit := math.MaxFloat64
	for i, p := range price {
		if v := p * share[i]; v <= limit { // never for what is infinite, or not a number
			out = append(out, int32(i))
			// The exact product is cut to whole micro-dollars.
			limit = min(limit, (v+p*shareError)*(1+1e-8)+2)
		}
	}
	return out
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
			if v := tm.u.offers[tm.offers[o]].price; p.exact[i] < 0 || v < p.exact[i] {
				p.exact[i], p.about[i] = v, float64(v)
			}
		})
		out[t] = p
	}
	k.offered[c] = out
	return out
}

// sharesIn are the shares of the unit at hand on every type of a template.
func (k *costs) sharesIn(u *unit, t int) []float64 {
	if len(k.shares[t]) > 0 {
		return k.shares[t]
	}
	inverse := k.inverseOf(t)
	out := append(k.shares[t], make([]float64, len(k.w.Templates[t].types))...)
	for r, v := range u.need {
		if v <= 0 {
			continue
		}
		need := float64(v)
		for i, x := range inverse[r][:len(out)] {
			out[i] = max(out[i], need*x)
		}
	}
	for i, v := range out {
		if out[i] = max(0, v-shareError); v > 1+1e-12 {
			out[i] = math.Inf(1)
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
			out[r][i] = 1 / float64(v)
		}
		if slices.ContainsFunc(left, func(v int64) bool { return v < 0 }) {
			for r := range out {
				out[r][i] = math.Inf(1) // nothing fits
			}
		}
	}
	k.inverse[t] = out
	return out
}
