package packing

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// fillReserved uses offers that exist a counted number of times (capacity
// reservations) before anything that is paid for, and never more of them than there
// are; what does not fit spills to the other offers in the same pass.
// Templates with minValues leave them alone: one offer cannot bring several values.
func (s *solver) fillReserved(g *group, w int32) {
	sg := &s.sigs[s.sigOf[g.classes[0]]]
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		if s.p.Pools[tm.Pool].Weight != w || len(tm.MinValues) > 0 || t >= len(sg.offers) || sg.offers[t] == nil {
			continue
		}
		for o := range tm.Offers {
			if exotic := tm.Types[tm.Offers[o].Type].Exotic; exotic && !g.exotic && !g.counted {
				continue // other offers hold these pods
			}
			if tm.Offers[o].Count > 0 && sg.offers[t].Has(o) {
				s.fillCounted(g, t, o, w)
			}
		}
	}
}

func (s *solver) fillCounted(g *group, t, o int, w int32) {
	tm := &s.p.Templates[t]
	of := &tm.Offers[o]
	one := *g
	one.sized = nil
	one.setBins(s, []bin{{template: t, typ: of.Type, offer: o, price: of.Price + s.p.CostPerNode, book: tm.Types[of.Type].Capacity}})
	k := newKnapsack(&one)
	pi := make([]float64, len(g.classes))
	y := make([]float64, s.d+1)
	for r, v := range one.cap(0) {
		if v > 0 {
			y[r] = 1 / float64(v)
		}
	}
	for c := range pi {
		pi[c] = value(s.d, g.req(c), y) + 1e-9
	}
	count := make([]int, len(g.classes))
	for s.reserved[s.reservation(t, o)] < of.Count && s.withinLimits(tm.Pool, tm.Types[of.Type].Capacity) {
		for i, c := range g.classes {
			count[i] = s.left[c]
		}
		k.allow(count)
		if k.best(0, pi, y, 6) <= 0 {
			return
		}
		s.addNode(&one, pattern{0, sparse(k.out)}, w)
		only := NewBitset(len(tm.Offers))
		only.Set(o)
		s.nodes[len(s.nodes)-1].offers = only
		if s.reserved == nil {
			s.reserved = map[string]int64{}
		}
		s.reserved[s.reservation(t, o)]++
	}
}

// countLeft reports whether a node may list offer o: counted offers belong to the
// nodes that were planned on them.
func (s *solver) countLeft(n *pnode, o int) bool {
	return o == n.offer || s.p.Templates[n.template].Offers[o].Count == 0
}

// reservation names what the instances of a counted offer are taken from: several
// templates may sell the same.
func (s *solver) reservation(t, o int) string {
	if id := s.p.Templates[t].Offers[o].Reservation; id != "" {
		return id
	}
	return strconv.Itoa(t) + "/" + strconv.Itoa(o)
}

// counted is an offer that exists a counted number of times.
type counted struct {
	id    string
	alloc []int64
	price int64
	count int64
}

// countedOffers lists those that some of the signatures may use.
func (s *solver) countedOffers(sigs []int, live func(int) bool) []counted {
	var out []counted
	for t := range s.p.Templates {
		if !live(t) {
			continue
		}
		tm := &s.p.Templates[t]
		for o := range tm.Offers {
			of := &tm.Offers[o]
			if of.Count > 0 && slices.ContainsFunc(sigs, func(i int) bool { return t < len(s.sigs[i].offers) && s.sigs[i].offers[t].Has(o) }) {
				out = append(out, counted{s.reservation(t, o), tm.Types[of.Type].Alloc, of.Price, of.Count})
			}
		}
	}
	return out
}

// credit lowers a bound by what counted offers can save at its duals: each instance at
// most what it can hold is worth, less its own price.
func (s *solver) credit(b *Bound, offers []counted, need []int64) {
	worth := func(alloc []int64) float64 {
		if b.Kind == BoundShape { // a price per pod, all alike
			k := int64(b.Pods)
			for r, v := range need {
				if v > 0 {
					k = min(k, alloc[r]/v)
				}
			}
			return float64(b.Duals[slices.Index(s.p.Dims, "pods")] * float64(k))
		}
		v := b.Duals[s.d] // one node of the forced count
		for r, a := range alloc {
			v += float64(b.Duals[r] * float64(a))
		}
		return v
	}
	most := map[string]float64{}
	for i := range offers {
		o := &offers[i]
		most[o.id] = max(most[o.id], (worth(o.alloc)-float64(o.price))*float64(o.count))
	}
	sum := 0.0
	for _, id := range slices.Sorted(maps.Keys(most)) {
		sum += most[id]
	}
	b.Credit = int64(math.Ceil(sum))
	b.Total = max(0, b.Total-b.Credit)
	b.Linear = b.Total
}

// reservedBins are the counted offers of a signature at a weight, which limits admit.
func (s *solver) reservedBins(sg *sig, w int32) []bin {
	var out []bin
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		if s.p.Pools[tm.Pool].Weight != w || len(tm.MinValues) > 0 || t >= len(sg.offers) || sg.offers[t] == nil {
			continue
		}
		for o := range tm.Offers {
			of := &tm.Offers[o]
			if of.Count > 0 && of.Count > s.reserved[s.reservation(t, o)] && sg.offers[t].Has(o) && s.withinLimits(tm.Pool, tm.Types[of.Type].Capacity) {
				out = append(out, bin{template: t, typ: of.Type, offer: o, price: of.Price + s.p.CostPerNode, book: tm.Types[of.Type].Capacity})
			}
		}
	}
	return out
}
