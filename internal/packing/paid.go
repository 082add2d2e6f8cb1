package packing

import "slices"

// penalized reports whether some offer counts as dearer than it is.
func (s *solver) penalized() bool {
	return slices.ContainsFunc(s.p.Templates, func(t Template) bool {
		return slices.ContainsFunc(t.Offers, func(o Offer) bool { return o.Penalty != 0 })
	})
}

// paidBounds are the bounds on what the launches cost, penalties left out: a bound speaks
// of the price that is paid, and no plan could have paid less.
func (s *solver) paidBounds() []Bound {
	compared := s.p
	p := *compared
	p.Templates = slices.Clone(p.Templates)
	for t := range p.Templates {
		offers := slices.Clone(p.Templates[t].Offers)
		for o := range offers {
			offers[o].Price, offers[o].Penalty = offers[o].Paid(), 0
		}
		p.Templates[t].Offers = offers
	}
	prices := make([]int64, len(s.nodes))
	for i, n := range s.nodes {
		prices[i] = n.price
		n.price -= compared.Templates[n.template].Offers[n.offer].Penalty
	}
	s.p = &p
	out := s.bounds()
	s.p = compared
	for i, n := range s.nodes {
		n.price = prices[i]
	}
	return out
}
