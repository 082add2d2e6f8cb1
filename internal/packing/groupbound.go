package packing

import (
	"math"
	"slices"
)

// Sizes of the linear program over groups that are still worth solving.
const (
	maxBoundGroups = 24
	maxBoundCells  = 150_000
)

// share is a set of groups (bit by bit) that some offers are open to, and those
// offers as bins.
type share struct {
	mask         uint64
	caps, prices []int64
}

// groupsBound prices pods under different rules apart, where they share offers. With
// prices v[g][r] for group g and resource r, an offer open to groups A may cost no
// less than the sum over r of what it holds times the highest v[g][r] in A: whatever
// mix it carries is worth no more. The best such prices come from a linear program.
func (s *solver) groupsBound(b *Bound, sigs []int, inLaunch []int64, live func(int) bool) {
	if len(sigs) < 2 || len(sigs) > maxBoundGroups {
		return
	}
	groups := make([]BoundGroup, len(sigs))
	for k, i := range sigs {
		groups[k] = BoundGroup{Class: -1, Demand: make([]int64, s.d), Duals: make([]float64, s.d)}
		for _, c := range s.sigs[i].classes {
			if n := inLaunch[c]; n > 0 {
				if groups[k].Class < 0 {
					groups[k].Class = c
				}
				groups[k].Pods += int(n)
				for r, v := range s.p.Classes[c].Need {
					groups[k].Demand[r] += n * v
				}
			}
		}
	}
	shares := s.shares(sigs, live, b.Steps)
	vars := (len(shares) + len(groups)) * s.d
	rows := 0
	for i := range shares {
		rows += len(shares[i].prices)
	}
	rows += len(shares) * len(groups) * s.d
	if rows*(vars+1) > maxBoundCells {
		return
	}
	s.groupPrices(groups, shares)
	total := 0.0
	for k := range groups {
		for r, v := range groups[k].Demand {
			total += float64(groups[k].Duals[r] * float64(v))
		}
	}
	if t := int64(math.Floor(total * (1 - 1e-9))); t > b.Total {
		b.Kind, b.Total, b.Groups = BoundGroups, t, groups
	}
}

// shares sorts the offers of live templates by the groups they are open to, per type
// the cheapest, dominated ones left out.
func (s *solver) shares(sigs []int, live func(int) bool, step []int64) []share {
	type key struct {
		mask uint64
		t    int
		typ  int
	}
	least := map[key]int64{}
	var keys []key
	for t := range s.p.Templates {
		if !live(t) {
			continue
		}
		tm := &s.p.Templates[t]
		for o := range tm.Offers {
			mask := uint64(0)
			for k, i := range sigs {
				if of := s.sigs[i].offers; t < len(of) && of[t].Has(o) {
					mask |= 1 << k
				}
			}
			if mask == 0 {
				continue
			}
			id := key{mask, t, tm.Offers[o].Type}
			p, ok := least[id]
			if !ok {
				keys = append(keys, id)
			}
			if !ok || tm.Offers[o].Price < p {
				least[id] = tm.Offers[o].Price
			}
		}
	}
	var out []share
	for _, id := range keys {
		at := slices.IndexFunc(out, func(x share) bool { return x.mask == id.mask })
		if at < 0 {
			at = len(out)
			out = append(out, share{mask: id.mask})
		}
		out[at].caps = append(out[at].caps, s.p.Templates[id.t].Types[id.typ].Alloc...)
		out[at].prices = append(out[at].prices, least[id])
	}
	for i := range out {
		roundDown(s.d, out[i].caps, step)
		g := &group{d: s.d, caps: out[i].caps, prices: out[i].prices, bins: make([]bin, len(out[i].prices))}
		for k := range g.bins {
			g.bins[k] = bin{price: g.prices[k], typ: k}
		}
		g.prune()
		out[i].caps, out[i].prices = g.caps, g.prices
	}
	return out
}

// groupPrices solves for the prices and makes them exactly feasible. Variables are
// the highest price per share and resource, then the price per group and resource,
// each scaled by the largest capacity.
func (s *solver) groupPrices(groups []BoundGroup, shares []share) {
	d := s.d
	scale := make([]float64, d)
	for i := range shares {
		for k, v := range shares[i].caps {
			scale[k%d] = max(scale[k%d], float64(v), 1)
		}
	}
	m := (len(shares) + len(groups)) * d
	w := m + 1
	var tab []float64
	for i := range shares {
		for b, p := range shares[i].prices {
			row := make([]float64, w)
			for r := range d {
				row[i*d+r] = float64(shares[i].caps[b*d+r]) / scale[r]
			}
			row[m] = float64(p)
			tab = append(tab, row...)
		}
		for g := range groups {
			if shares[i].mask&(1<<g) == 0 {
				continue
			}
			for r := range d {
				row := make([]float64, w)
				row[(len(shares)+g)*d+r] = 1
				row[i*d+r] = -1
				tab = append(tab, row...)
			}
		}
	}
	gain := make([]float64, m)
	for g := range groups {
		for r, v := range groups[g].Demand {
			gain[(len(shares)+g)*d+r] = float64(v) / scale[r]
		}
	}
	y := maximize(tab, m, gain)
	for g := range groups {
		for r := range d {
			groups[g].Duals[r] = y[(len(shares)+g)*d+r] / scale[r]
		}
	}
	worst := 1.0
	high := make([]float64, d)
	for i := range shares {
		clear(high)
		for g := range groups {
			if shares[i].mask&(1<<g) != 0 {
				for r, v := range groups[g].Duals {
					high[r] = max(high[r], v)
				}
			}
		}
		for b, p := range shares[i].prices {
			if v := value(d, shares[i].caps[b*d:(b+1)*d], high); v > float64(worst*float64(p)) {
				worst = v / float64(max(p, 1))
			}
		}
	}
	worst *= 1 + 1e-9
	for g := range groups {
		for r := range groups[g].Duals {
			groups[g].Duals[r] /= worst
		}
	}
}
