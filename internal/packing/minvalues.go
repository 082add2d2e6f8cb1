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

// floor is the room that nodes of a type may use, and what they count against limits.
// Where minValues wants other types among the options that hold less than this one,
// the room shrinks to what they all hold, by the types that cost the least of it; nil
// if limits or minValues refuse the type.
func (s *solver) floor(tm *Template, typ int, allowed Bitset) (floor, book []int64) {
	use := tm.Types[typ].Alloc
	if book = s.admit(tm, typ, use, allowed); book != nil || len(tm.MinValues) == 0 {
		return nil, book
	}
	usable := make([]bool, len(tm.Types))
	for o := range tm.Offers {
		t := tm.Offers[o].Type
		usable[t] = usable[t] || (allowed.Has(o) && tm.Offers[o].Count == 0 && (tm.Types[typ].Exotic || !tm.Types[t].Exotic) &&
			s.withinLimits(tm.Pool, tm.Types[t].Capacity))
	}
	floor = slices.Clone(use)
	const most = 50 // Karpenter: minValues is at most 50
	for range most {
		next, share := -1, 0.0
		for t := range tm.Types {
			if !usable[t] || covers(tm.Types[t].Alloc, floor) {
				continue
			}
			kept := 1.0
			for r, v := range tm.Types[t].Alloc {
				if floor[r] > 0 {
					kept = min(kept, float64(v)/float64(floor[r]))
				}
			}
			if kept > share {
				next, share = t, kept
			}
		}
		if next < 0 {
			return nil, nil
		}
		for r, v := range tm.Types[next].Alloc {
			floor[r] = min(floor[r], v)
		}
		if book = s.admit(tm, typ, floor, allowed); book != nil {
			return floor, book
		}
	}
	return nil, nil
}
