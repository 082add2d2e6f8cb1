package packing

import (
	"cmp"
	"slices"
)

// table holds, for every combination of how full a bin's first two resources are, the
// contents that are worth the most.
type table struct {
	on    []bool
	value []float64
	use   []int64 // by cell, stride d
	last  []int32 // by cell: step that led here, -1: none
	steps []tableStep
	order []int32
}

// tableStep adds pods of a class to the contents of an earlier step.
type tableStep struct {
	before int32
	class  int32
	count  int32
}

// tableCells is how many grades of fullness of a resource there are.
const tableCells = 20

// table looks for contents of bin b worth more than goal class after class, the largest
// first. What it keeps is exact; what shares a cell with something better is lost. It
// returns the worth of the best, which out then holds, or 0.
func (f *filler) table(b int, pi []float64, goal float64) float64 {
	g, d := f.g, f.g.d
	if d < 2 || g.clash != nil || g.shared != nil || !f.settle(b, pi, goal) {
		return 0
	}
	t := &f.tab
	const k = tableCells
	if t.on == nil {
		t.on, t.value, t.use, t.last = make([]bool, k*k), make([]float64, k*k), make([]int64, k*k*d), make([]int32, k*k)
	}
	clear(t.on)
	t.steps, t.order = t.steps[:0], t.order[:0]
	for _, c := range f.order[b] {
		if pi[c] > 0 && f.limit[c] > 0 {
			t.order = append(t.order, c)
		}
	}
	slices.SortStableFunc(t.order, func(x, y int32) int { return cmp.Compare(f.weight[y], f.weight[x]) })
	cap := g.cap(b)
	scale := [2]float64{}
	for r := range scale {
		scale[r] = k / float64(cap[r]+1) // a full bin is in the last cell
	}
	t.on[0], t.value[0], t.last[0] = true, 0, -1
	clear(t.use[:d])
	best, at := 0.0, int32(-1)
	for _, c := range t.order {
		need := g.req(int(c))
		n := f.limit[c]
		for r, v := range need {
			if v > 0 {
				n = min(n, int32(cap[r]/v))
			}
		}
		for q := int32(1); n > 0; q *= 2 {
			q = min(q, n)
			n -= q
			worth := float64(q) * pi[c]
		cells:
			for i := k*k - 1; i >= 0; i-- {
				if !t.on[i] {
					continue
				}
				use := t.use[i*d : i*d+d]
				for r, v := range need {
					if use[r]+int64(q)*v > cap[r] {
						continue cells
					}
				}
				j := int(float64(use[0]+int64(q)*need[0])*scale[0])*k + int(float64(use[1]+int64(q)*need[1])*scale[1])
				v := t.value[i] + worth
				if t.on[j] && t.value[j] >= v {
					continue
				}
				t.steps = append(t.steps, tableStep{t.last[i], c, q})
				t.on[j], t.value[j], t.last[j] = true, v, int32(len(t.steps)-1)
				to := t.use[j*d : j*d+d]
				for r, x := range need {
					to[r] = use[r] + int64(q)*x
				}
				if v > best {
					best, at = v, t.last[j]
				}
			}
		}
	}
	if best <= goal {
		return 0
	}
	clear(f.out)
	for ; at >= 0; at = t.steps[at].before {
		f.out[t.steps[at].class] += t.steps[at].count
	}
	return best
}
