package packing

import (
	"math"
	"slices"
)

// This file proves bounds that see how pods share nodes: with a price per pod of each
// class, no offer costs less than the dearest contents it could hold. The largest
// pods are taken as whole; smaller ones may be cut, which can only raise what a node
// could hold, so the proof stands and the search stays small.

// proofSteps bounds the search per offer, proofGain is the least part by which a proof
// has to promise more than is proved already.
const (
	proofSteps = 4_000
	proofGain  = 3e-4
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
	market := &group{d: s.d, caps: slices.Clone(caps), prices: slices.Clone(prices), bins: make([]bin, len(prices))}
	for i := range market.bins {
		market.bins[i] = bin{price: prices[i], typ: i}
	}
	var priced []ClassPrice
	var count []int
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
		priced, count = append(priced, ClassPrice{c, pi}), append(count, int(n))
		market.classes, market.need = append(market.classes, c), append(market.need, s.p.Classes[c].Need...)
		demand += float64(float64(n) * pi)
	}
	if demand < float64(b.Total)*(1+proofGain) {
		return
	}
	market.prune() // only offers that no other one beats have to be looked at
	market.loadRules(s)
	worst := 0.0
	if market.capped || market.d < 2 || slices.ContainsFunc(priced, func(c ClassPrice) bool { n := s.p.Classes[c.Class].Need; return n[0] == 0 || n[1] == 0 }) {
		worst = market.steepestRuled(priced, count, b.Duals)
	} else {
		worst = market.steepest(priced, count, b.Duals, demand/float64(max(b.Total, 1)))
	}
	if t := int64(math.Floor(demand / worst * (1 - 1e-9))); t > b.Total {
		b.Kind, b.Total, b.Prices = BoundContents, t, priced
		for i := range priced {
			priced[i].Price /= worst
		}
	}
}

// steepest is the most that contents are worth at prices per pod, as a multiple of what
// their bin costs, or more. It gives up beyond useless.
func (g *group) steepest(priced []ClassPrice, count []int, y []float64, useless float64) float64 {
	large, small := g.largeOf(count, y)
	least := math.Inf(1)
	for _, c := range small {
		least = min(least, priced[c].Price)
	}
	// A slot may have a price too, which pods pay: where slots run out, that tells more.
	chests := map[float64]*chest{}
	at := func(slot float64) *chest {
		if chests[slot] == nil {
			var items, fluids []item
			for _, c := range large {
				items = append(items, item{at: c, need: g.req(c), most: count[c], worth: max(0, priced[c].Price-slot)})
			}
			for _, c := range small {
				fluids = append(fluids, item{at: c, need: g.req(c), worth: max(0, priced[c].Price-slot)})
			}
			chests[slot] = newChest(g.d, items, fluids, g.cap(len(g.bins)/2))
		}
		return chests[slot]
	}
	worst := 1e-9
	for b := range g.bins {
		if worst >= useless {
			break
		}
		price := float64(g.prices[b])
		low := math.Inf(1)
		for _, part := range slotParts {
			slot := 0.0
			if part > 0 {
				slot = part * least
			}
			paid := slot * float64(g.cap(b)[slots])
			ch := at(slot)
			v := ch.most(g.cap(b), max(0, worst*price-paid), proofSteps, proofSteps)
			low = min(low, paid+max(v, ch.open))
			if low <= max(worst, 1+1e-4)*price || len(small) == 0 {
				break
			}
		}
		worst = max(worst, low/max(price, 1))
	}
	return worst
}
