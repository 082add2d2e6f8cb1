package packing

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// repair takes the nodes that are filled worst for their price, a few at a time, and
// packs their pods again; what is cheaper stays. It rests when the price is near the
// target, which no plan can beat by much.
func (s *solver) repair(g *group, ps []pattern, target float64) []pattern {
	if len(ps) < 2 {
		return ps
	}
	count := make([]int, len(g.classes))
	for _, p := range ps {
		for _, cc := range p.cc {
			count[cc.Class] += cc.Count
		}
	}
	_, df := g.demandOf(count)
	y := duals(g.d, g.caps, g.prices, df)
	val := make([]float64, len(g.classes))
	for c := range val {
		val[c] = value(g.d, g.req(c), y)
	}
	loss := func(p *pattern) float64 {
		v := float64(g.prices[p.bin])
		for _, cc := range p.cc {
			v -= float64(val[cc.Class] * float64(cc.Count))
		}
		return v
	}
	target = max(target, total64(df, y))
	// The more nodes there are, the less a few of them matter.
	all := sumOf(count)
	near := goodEnough + min(0.004, 4e-7*float64(all))
	floor := s.work - s.p.Work/s.hurry*1000/int64(1000+all)
	ps = slices.Clone(ps)
	failed := map[string]bool{}
	const pool = 10 // the worst nodes, among which sets are drawn
	for round := 0; round < 40 && s.work > max(floor, 0); round++ {
		if float64(g.price(ps)) <= target*near {
			break
		}
		losses := make([]float64, len(ps))
		order := make([]int, len(ps))
		for i := range ps {
			losses[i], order[i] = loss(&ps[i]), i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(losses[b], losses[a]) })
		order = order[:min(pool, len(order))]
		if !s.repairOnce(g, &ps, order, count, failed, max(floor, 0)) {
			break
		}
	}
	return ps
}

// repairOnce tries sets of two, three and four of the worst nodes until one gets
// cheaper.
func (s *solver) repairOnce(g *group, ps *[]pattern, order []int, count []int, failed map[string]bool, floor int64) bool {
	var set []int
	var try func(from, k int) bool
	try = func(from, k int) bool {
		if k == 0 {
			key := setKey(*ps, set)
			if failed[key] {
				return false
			}
			ok := s.repack(g, ps, set, count)
			if !ok {
				failed[key] = true
			}
			return ok
		}
		for i := from; i+k <= len(order); i++ {
			set = append(set, order[i])
			if try(i+1, k-1) {
				return true
			}
			set = set[:len(set)-1]
			if s.work <= floor {
				return false
			}
		}
		return false
	}
	for k := 2; k <= 4; k++ {
		set = set[:0]
		if k <= len(order) && try(0, k) {
			return true
		}
	}
	return false
}

// repack packs the pods of a set of nodes anew and keeps the result if it is cheaper.
func (s *solver) repack(g *group, ps *[]pattern, set []int, count []int) bool {
	clear(count)
	before, pods := int64(0), 0
	for _, i := range set {
		p := &(*ps)[i]
		before += g.prices[p.bin]
		for _, cc := range p.cc {
			count[cc.Class] += cc.Count
			pods += cc.Count
		}
	}
	if pods > smallPods/2 {
		return false
	}
	better := s.packSmall(g, count, effort{work: max(s.work, 0), limit: before})
	if better == nil {
		return false
	}
	sorted := slices.Sorted(slices.Values(set))
	for k := len(sorted) - 1; k >= 0; k-- {
		*ps = slices.Delete(*ps, sorted[k], sorted[k]+1)
	}
	*ps = append(*ps, better...)
	return true
}

// goodEnough is the price, against the bound, at which the search rests.
const goodEnough = 1.004

// setKey names a set of nodes by what they are and hold.
func setKey(ps []pattern, set []int) string {
	var b []byte
	for _, i := range set {
		b = binary.AppendUvarint(b, uint64(ps[i].bin))
		for _, cc := range ps[i].cc {
			b = binary.AppendUvarint(b, uint64(cc.Class))
			b = binary.AppendUvarint(b, uint64(cc.Count))
		}
		b = append(b, 0xff, 0xff)
	}
	return string(b)
}
