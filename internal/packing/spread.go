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

	bins  []int     // open nodes
	left  []int64   // by open node, stride d
	room  []float64 // left in value units, stride d
	a     []int32   // contents: open node x class
	rest  []int     // pods not placed, by class
	score []float64 // by open node, for the class at hand
	mixed bool      // some bin does not take every class

	small  float64 // value that may stay unplaced in bulk
	preset []int32 // what open nodes hold from the start: open node x class; nil: nothing
}

func newSpreader(g *group, y []float64) *spreader {
	n := len(g.classes)
	sp := &spreader{g: g, y: y, order: make([]int32, n), val: make([]float64, n), rest: make([]int, n)}
	for b := range g.bins {
		sp.mixed = sp.mixed || g.bins[b].allow != nil
	}
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
	sp.score = slices.Grow(sp.score[:0], k)[:k]
	inv := make([]float64, k)
	for i, b := range bins {
		copy(sp.left[i*d:], g.cap(b))
		for r := range d {
			sp.room[i*d+r] = float64(g.caps[b*d+r]) * sp.y[r]
		}
		inv[i] = 1 / (worth(d, g.cap(b), sp.y) + 1)
	}
	if sp.preset != nil {
		sp.hold()
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
		// Only the node that takes a pod changes its score.
		best := sp.scoreAll(c, need, fuller, inv)
		for left := count[c]; left > 0; left-- {
			if best < 0 || math.IsInf(sp.score[best], -1) {
				sp.rest[c] = left
				lost += float64(left) * sp.val[c]
				break
			}
			for r := range d {
				sp.left[best*d+r] -= req[r]
				sp.room[best*d+r] -= need[r]
			}
			sp.a[best*n+int(c)]++
			if left > 1 {
				sp.score[best] = sp.scoreOf(best, c, need, fuller*inv[best])
				best = top(sp.score[:k])
			}
		}
	}
	return lost
}

// hold puts the preset contents on the open nodes.
func (sp *spreader) hold() {
	g, d, n := sp.g, sp.g.d, len(sp.g.classes)
	copy(sp.a, sp.preset)
	for i := range sp.bins {
		for c, k := range sp.a[i*n : (i+1)*n] {
			if k > 0 {
				for r, need := range g.req(c) {
					sp.left[i*d+r] -= int64(k) * need
					sp.room[i*d+r] = float64(sp.left[i*d+r]) * sp.y[r]
				}
			}
		}
	}
}

// scoreAll scores every open node for class c and returns the best, -1 if there is no
// node. It is scoreOf for all, with what does not change taken out of the loop.
func (sp *spreader) scoreAll(c int32, need []float64, fuller float64, inv []float64) int {
	g, d := sp.g, sp.g.d
	if g.most[c] != noMost || g.ruled(c) || d < 2 || sp.mixed {
		best := -1
		for i := range inv {
			sp.score[i] = sp.scoreOf(i, c, need, fuller*inv[i])
			if best < 0 || sp.score[i] > sp.score[best] {
				best = i
			}
		}
		return best
	}
	req := g.req(int(c))
	r0, r1, n0, n1 := req[0], req[1], need[0], need[1]
	scale := 1 / sp.val[c]
	best, at := math.Inf(-1), 0
nodes:
	for i := range inv {
		left := sp.left[i*d : i*d+d]
		sp.score[i] = math.Inf(-1)
		if left[0] < r0 || left[1] < r1 {
			continue
		}
		room := sp.room[i*d : i*d+d]
		dot := float64(room[0]*n0) + float64(room[1]*n1)
		norm := 1e-9 + float64(room[0]*room[0]) + float64(room[1]*room[1])
		for r := 2; r < d; r++ {
			if left[r] < req[r] {
				continue nodes
			}
			dot += float64(room[r] * need[r])
			norm += float64(room[r] * room[r])
		}
		norm = math.Sqrt(norm)
		v := float64(dot/norm*scale) - float64(fuller*inv[i]*norm)
		sp.score[i] = v
		if v > best {
			best, at = v, i
		}
	}
	if len(inv) == 0 {
		return -1
	}
	return at
}

// scoreOf tells how well class c suits open node i: the alignment of its need with the
// room that is left, less a share for how roomy the node still is; -Inf if it does not
// fit.
func (sp *spreader) scoreOf(i int, c int32, need []float64, fuller float64) float64 {
	g, d, n := sp.g, sp.g.d, len(sp.g.classes)
	req := g.req(int(c))
	for r, v := range sp.left[i*d : (i+1)*d] {
		if v < req[r] {
			return math.Inf(-1)
		}
	}
	a := sp.a[i*n : (i+1)*n]
	if !g.takes(sp.bins[i], int(c)) || a[c] >= g.most[c] || (g.ruled(c) && g.allows(a, c) <= 0) {
		return math.Inf(-1)
	}
	dot, norm := 0.0, 1e-9
	for r, v := range sp.room[i*d : (i+1)*d] {
		dot += float64(v * need[r])
		norm += float64(v * v)
	}
	norm = math.Sqrt(norm)
	return float64(dot/norm*(1/sp.val[c])) - float64(fuller*norm)
}

// top is the index of the first greatest value.
func top(v []float64) int {
	best, at := v[0], 0
	for i, x := range v {
		if x > best {
			best, at = x, i
		}
	}
	return at
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
