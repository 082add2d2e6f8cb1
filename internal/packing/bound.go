package packing

import (
	"math"
	"slices"
)

// bounds certifies a lower bound for the pods in the launches, market by market:
// groups of classes that share no offer cannot share a node, so their bounds add.
func (s *solver) bounds() []Bound {
	type part struct {
		sigs map[int]bool
	}
	inLaunch := make([]int64, len(s.p.Classes))
	active := map[int32]bool{}
	for _, n := range s.nodes {
		active[n.level] = true
		for _, cc := range n.contents {
			inLaunch[cc.Class] += int64(cc.Count)
		}
	}
	var used []int
	for i := range s.sigs {
		for _, c := range s.sigs[i].classes {
			if inLaunch[c] > 0 {
				used = append(used, i)
				break
			}
		}
	}
	parent := make([]int, len(used))
	for i := range parent {
		parent[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if parent[i] != i {
			parent[i] = find(parent[i])
		}
		return parent[i]
	}
	live := func(t int) bool { return active[s.p.Pools[s.p.Templates[t].Pool].Weight] }
	for i := range used {
		for j := range i {
			a, b := s.sigs[used[i]].offers, s.sigs[used[j]].offers
			for t := range s.p.Templates {
				if live(t) && t < len(a) && t < len(b) && a[t].Intersects(b[t]) {
					parent[find(i)] = find(j)
					break
				}
			}
		}
	}
	parts := map[int][]int{}
	for i := range used {
		parts[find(i)] = append(parts[find(i)], used[i])
	}
	var out []Bound
	for i := range used {
		if find(i) == i {
			out = append(out, s.bound(parts[i], inLaunch, live))
		}
	}
	return out
}

// bound is the certified dual value for some signatures together.
func (s *solver) bound(sigs []int, inLaunch []int64, live func(int) bool) Bound {
	b := Bound{Demand: make([]int64, s.d+1)}
	demand := make([]float64, s.d+1)
	forced := int64(0)
	for _, i := range sigs {
		for _, c := range s.sigs[i].classes {
			n := inLaunch[c]
			if n == 0 {
				continue
			}
			b.Pods += int(n)
			for r, v := range s.p.Classes[c].Need {
				b.Demand[r] += n * v
			}
			if slices.Contains(s.p.Classes[c].Conflicts, int32(c)) {
				forced = max(forced, n)
			}
		}
	}
	b.Demand[s.d] = max(forced, 1)
	for r, v := range b.Demand {
		demand[r] = float64(v)
	}
	var caps, prices []int64
	for t := range s.p.Templates {
		if !live(t) {
			continue
		}
		tm := &s.p.Templates[t]
		best := make([]int64, len(tm.Types))
		any := false
		for o := range tm.Offers {
			for _, i := range sigs {
				if of := s.sigs[i].offers; t < len(of) && of[t].Has(o) {
					ty := tm.Offers[o].Type
					if best[ty] == 0 || tm.Offers[o].Price < best[ty] {
						best[ty] = tm.Offers[o].Price
					}
					any = true
					break
				}
			}
		}
		if !any {
			continue
		}
		b.Templates = append(b.Templates, t)
		for ty, p := range best {
			if p > 0 {
				caps = append(caps, tm.Types[ty].Alloc...)
				prices = append(prices, p)
			}
		}
	}
	b.Duals = duals(s.d, caps, prices, demand)
	v := 0.0
	for r, y := range b.Duals {
		v += float64(y * demand[r])
	}
	b.Total = int64(math.Floor(v * (1 - 1e-9)))
	return b
}
