package packing

import "slices"

// OptionsFor lists what one node may be launched as, outside of any solution: its
// chosen offer, and the other allowed offers of the template that hold use (by Dims)
// and cost little more. Limits are the caller's to keep. The chosen offer holds use
// and is among the allowed ones, of which it is the first by rank and price.
func OptionsFor(p *Problem, tm *Template, offer int, use []int64, allowed Bitset) Launch {
	q := *p
	q.Templates, q.Classes, q.Nodes, q.Caps = []Template{*tm}, nil, nil, nil
	q.Templates[0].Pool = 0
	q.Pools = []Pool{{}}
	q.LimitDims = nil
	q.Templates[0].Types = slices.Clone(tm.Types)
	for i := range q.Templates[0].Types {
		q.Templates[0].Types[i].Capacity = nil
	}
	s := newSolver(&q)
	n := &pnode{typ: tm.Offers[offer].Type, offer: offer, offers: allowed, use: use}
	l := Launch{Template: -1}
	s.options(n, &l)
	return l
}
