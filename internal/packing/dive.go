package packing

import (
	"cmp"
	"math"
	"slices"
)

// packColumns solves the linear program over node contents and rounds it by diving:
// whole copies are taken first, then the most used column once, and the rest is
// solved again on the demand that is left, until nothing is. whole says that this is all
// of the group's demand, not a rest of it.
func (s *solver) packColumns(g *group, count []int, pool [][]int32, whole bool) (out []pattern, lp float64) {
	left := append([]int(nil), count...)
	_, df := g.demandOf(count)
	y := duals(g.d, g.caps, g.prices, df)
	var gr *grid
	if whole {
		gr = newGrid(g, g.efficientBins(y, 0.98))
	}
	full := g
	g = g.promising(y, count, 0.12)
	for {
		live := 0
		for _, n := range left {
			live += n
		}
		if live == 0 {
			return out, lp
		}
		m := newMaster(g, left, gr)
		gr = nil // only the first program is worth exact prices
		m.quick = !whole
		if !m.crash() {
			return nil, 0
		}
		for _, a := range pool {
			m.addColumn(trim(a, left))
		}
		m.optimize(y, 6000)
		s.work -= int64(m.steps * m.n * 50)
		if lp == 0 {
			lp = m.value()
			if whole {
				m.remember(s)
			}
		}
		pool = m.useful()
		taken := false
		best, bestX := -1, 0.0
		for i, j := range m.basis {
			if j < 0 {
				continue
			}
			if n := int(math.Floor(m.x[i] + 1e-6)); n > 0 {
				out = g.take(out, left, m.cols[j], n, full)
				taken = true
			}
			if m.x[i] > bestX+1e-9 {
				best, bestX = j, m.x[i]
			}
		}
		if !taken {
			out = g.take(out, left, m.cols[best], 1, full)
		}
	}
}

// useful are the contents of columns that are in use or nearly worth it.
func (m *master) useful() [][]int32 {
	var out [][]int32
	for i := range m.cols {
		if m.reduced(i) < 0.15*m.cost[i] {
			out = append(out, m.cols[i].a)
		}
	}
	return out
}

// trim cuts contents to what is still demanded.
func trim(a []int32, left []int) []int32 {
	out := make([]int32, len(a))
	for c, v := range a {
		out[c] = min(v, int32(left[c]))
	}
	return out
}

// take uses a column up to n times, as long as something of it is still wanted, each
// time on the cheapest bin of the full group that holds it.
func (g *group) take(out []pattern, left []int, col column, n int, full *group) []pattern {
	var last pattern
	for range n {
		a := trim(col.a, left)
		whole := true
		some := false
		for c, v := range a {
			some = some || v > 0
			whole = whole && v == col.a[c]
		}
		if !some {
			break
		}
		if !whole || last.cc == nil {
			last = pattern{full.cheapest(a), sparse(a)}
		}
		for c, v := range a {
			left[c] -= int(v)
		}
		out = append(out, last)
	}
	return out
}

// efficientBins lists the bins whose room is worth at least a share of their price, the
// best first.
func (g *group) efficientBins(y []float64, share float64) []int {
	var out []int
	gain := make([]float64, len(g.bins))
	for b := range g.bins {
		if gain[b] = worth(g.d, g.cap(b), y) / float64(max(g.prices[b], 1)); gain[b] >= share {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	return out
}
