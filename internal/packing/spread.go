package packing

import (
	"cmp"
	"math"
	"slices"
)

// spreader puts pods on a fixed list of open nodes, the most valuable pod first, each
// on the node whose remaining room has the shape closest to the pod's need.
type spreader struct {
	g     *group
	y     []float64
	order []int32 // classes, most valuable first
	val   []float64

	bins []int     // open nodes
	left []int64   // by open node, stride d
	room []float64 // left in value units, stride d
	a    []int32   // contents: open node x class
	rest []int     // pods not placed, by class

	small float64 // value that may stay unplaced in bulk
}

func newSpreader(g *group, y []float64) *spreader {
	n := len(g.classes)
	sp := &spreader{g: g, y: y, order: make([]int32, n), val: make([]float64, n), rest: make([]int, n)}
	for c := range n {
		sp.order[c] = int32(c)
		sp.val[c] = value(g.d, g.req(c), y)
		for r, need := range g.req(c) { // dimensions without a price still order a little
			if top := g.capMax(r); top > 0 {
				sp.val[c] += 1e-3 * float64(need) / float64(top)
			}
		}
	}
	slices.SortStableFunc(sp.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sp.val[b], sp.val[a]), cmp.Compare(a, b))
	})
	return sp
}

// run spreads count pods over bins and reports the value of what is left over.
func (sp *spreader) run(bins []int, count []int, fuller float64) float64 {
	g, d, n := sp.g, sp.g.d, len(sp.g.classes)
	k := len(bins)
	sp.bins = append(sp.bins[:0], bins...)
	sp.left = slices.Grow(sp.left[:0], k*d)[:k*d]
	sp.room = slices.Grow(sp.room[:0], k*d)[:k*d]
	sp.a = slices.Grow(sp.a[:0], k*n)[:k*n]
	clear(sp.a)
	inv := make([]float64, k)
	for i, b := range bins {
		copy(sp.left[i*d:], g.cap(b))
		for r := range d {
			sp.room[i*d+r] = float64(g.caps[b*d+r]) * sp.y[r]
		}
		inv[i] = 1 / (worth(d, g.cap(b), sp.y) + 1)
	}
	lost := 0.0
	need := make([]float64, d)
	for _, c := range sp.order {
		sp.rest[c] = 0
		if count[c] == 0 {
			continue
		}
		req := g.req(int(c))
		for r := range d {
			need[r] = float64(req[r]) * sp.y[r]
		}
		for left := count[c]; left > 0; left-- {
			best, bestS := -1, math.Inf(-1)
			for i := range k {
				l := sp.left[i*d : (i+1)*d]
				if !covers(l, req) || !g.takes(bins[i], int(c)) || (g.single[c] && sp.a[i*n+int(c)] > 0) || (g.clash != nil && sp.clashes(i*n, c)) {
					continue
				}
				dot, norm := 0.0, 1e-9
				for r := range d {
					v := sp.room[i*d+r]
					dot += float64(v * need[r])
					norm += float64(v * v)
				}
				norm = math.Sqrt(norm)
				s := dot/(norm*sp.val[c]) - float64(fuller*norm)*inv[i]
				if s > bestS {
					best, bestS = i, s
				}
			}
			if best < 0 {
				sp.rest[c] = left
				lost += float64(left) * sp.val[c]
				break
			}
			for r := range d {
				sp.left[best*d+r] -= req[r]
				sp.room[best*d+r] -= need[r]
			}
			sp.a[best*n+int(c)]++
		}
	}
	return lost
}

// clashes reports whether the node whose contents start at row holds a class that c
// may not share it with.
func (sp *spreader) clashes(row int, c int32) bool {
	for _, o := range sp.g.clash[c] {
		if sp.a[row+int(o)] > 0 {
			return true
		}
	}
	return false
}

// crowded reports whether another class that is left over may not share a node with
// c.
func (sp *spreader) crowded(c int32) bool {
	if sp.g.clash == nil {
		return false
	}
	for _, o := range sp.g.clash[c] {
		if sp.rest[o] > 0 {
			return true
		}
	}
	return false
}

// patterns returns the contents of the open nodes, each on the cheapest bin.
func (sp *spreader) patterns(out []pattern) []pattern {
	n := len(sp.g.classes)
	for i := range sp.bins {
		a := sp.a[i*n : (i+1)*n]
		if cc := sparse(a); len(cc) > 0 {
			out = append(out, pattern{sp.g.cheapest(a), cc})
		}
	}
	return out
}

// How much a fuller node is liked: negative values like roomy ones, which keeps the
// shapes of what is left alike; the end of the list packs tighter.
var fullness = []float64{-0.1, -0.3, 0.03}

// spreadBest runs the variants until one loses next to nothing and leaves sp at the
// one that lost the least.
func (s *solver) spreadBest(sp *spreader, bins, count []int) float64 {
	total := 0
	for _, n := range count {
		total += n
	}
	best, at := math.Inf(1), 0
	for i, f := range fullness {
		s.work -= int64(total*len(bins)) / 2
		lost := sp.run(bins, count, f)
		if lost < best {
			best, at = lost, i
		}
		if lost <= sp.small {
			return lost
		}
	}
	if at != len(fullness)-1 {
		sp.run(bins, count, fullness[at])
	}
	return best
}
