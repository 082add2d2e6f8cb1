package packing

// minValuesHold reports whether the types that can hold use at allowed offers bring
// enough different values for every minValues requirement of the template.
func (s *solver) minValuesHold(tm *Template, use []int64, allowed Bitset) bool {
	if len(tm.MinValues) == 0 {
		return true
	}
	ok := make([]bool, len(tm.Types))
	for o := range tm.Offers {
		t := tm.Offers[o].Type
		if !ok[t] && allowed.Has(o) && covers(tm.Types[t].Alloc, use) && s.withinLimits(tm.Pool, tm.Types[t].Capacity) {
			ok[t] = true
		}
	}
	for i := range tm.MinValues {
		mv := &tm.MinValues[i]
		seen := map[int32]bool{}
		for t := range ok {
			if ok[t] {
				for _, v := range mv.Values[t] {
					seen[v] = true
				}
			}
		}
		if len(seen) < mv.Min {
			return false
		}
	}
	return true
}
