package packing

import "slices"

// required lists the cheapest types (by their best allowed offer) that a node needs
// among its options to meet every minValues requirement of its template while holding
// use; ok is false when the allowed types cannot meet them. Exotic types count only
// where the node is exotic itself.
func (s *solver) required(tm *Template, use []int64, allowed Bitset, exotic bool) (types []int, ok bool) {
	if len(tm.MinValues) == 0 {
		return nil, true
	}
	var offers []int
	for o := range tm.Offers {
		ty := &tm.Types[tm.Offers[o].Type]
		if allowed.Has(o) && (exotic || !ty.Exotic) && tm.Offers[o].Count == 0 && covers(ty.Alloc, use) && s.withinLimits(tm.Pool, ty.Capacity) {
			offers = append(offers, o)
		}
	}
	slices.SortFunc(offers, func(a, b int) int { return compareOffers(tm, a, b) })
	for i := range tm.MinValues {
		mv := &tm.MinValues[i]
		seen := map[int32]bool{}
		for _, t := range types {
			for _, v := range mv.Values[t] {
				seen[v] = true
			}
		}
		for _, o := range offers {
			if len(seen) >= mv.Min {
				break
			}
			t := tm.Offers[o].Type
			for _, v := range mv.Values[t] {
				if !seen[v] {
					seen[v] = true
					if !slices.Contains(types, t) {
						types = append(types, t)
					}
				}
			}
		}
		if len(seen) < mv.Min {
			return nil, false
		}
	}
	return types, true
}

// book is what a node of a type counts against limits: the type itself, and the
// larger ones that minValues makes it keep as options.
func (s *solver) book(tm *Template, typ int, types []int) []int64 {
	if len(types) == 0 {
		return tm.Types[typ].Capacity
	}
	out := slices.Clone(tm.Types[typ].Capacity)
	for _, t := range types {
		for k, v := range tm.Types[t].Capacity {
			out[k] = max(out[k], v)
		}
	}
	return out
}

// admit tells what a node for use at the allowed offers would count against limits;
// nil when minValues or limits refuse it.
func (s *solver) admit(tm *Template, typ int, use []int64, allowed Bitset) []int64 {
	types, ok := s.required(tm, use, allowed, tm.Types[typ].Exotic)
	if !ok {
		return nil
	}
	b := s.book(tm, typ, types)
	if b == nil {
		b = []int64{} // no limited resource at all; nil means no
	}
	if !s.withinLimits(tm.Pool, b) {
		return nil
	}
	return b
}
