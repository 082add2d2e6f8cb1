package packing

import "math"

// column is a way to fill a node: a bin and how many pods of each class.
type column struct {
	bin int
	a   []int32
}

// master is the linear program over columns: cover every class at the least cost.
type master struct {
	simplex
	g     *group
	k     *knapsack
	d     []int // demand
	cols  []column
	seen  map[string]bool
	steps int
	grid  *grid
	gain  float64 // least relative gain of a new column
	quick bool    // plain fills only
}

func newMaster(g *group, count []int, gr *grid) *master {
	return &master{
		simplex: newSimplex(len(count)), g: g, k: newKnapsack(g), d: append([]int(nil), count...),
		seen: map[string]bool{}, grid: gr, gain: 2e-4,
	}
}

func (m *master) key(b int, a []int32) string {
	buf := make([]byte, 0, 2*len(a)+2)
	buf = append(buf, byte(b), byte(b>>8))
	for _, v := range a {
		buf = append(buf, byte(v), byte(v>>8))
	}
	return string(buf)
}

// addColumn keeps a column on the cheapest bin that holds it; false: known already.
func (m *master) addColumn(a []int32) bool {
	b := m.g.cheapest(a)
	if b < 0 {
		return false
	}
	key := m.key(b, a)
	if m.seen[key] {
		return false
	}
	m.seen[key] = true
	m.put(b, append([]int32(nil), a...))
	return true
}

func (m *master) put(b int, a []int32) int {
	row := make([]float64, len(a))
	for c, v := range a {
		row[c] = float64(v)
	}
	m.cols = append(m.cols, column{b, a})
	return m.add(row, float64(m.g.prices[b]))
}

// cheapest is the cheapest bin that holds the contents, -1 if none does.
func (g *group) cheapest(a []int32) int {
	use := make([]int64, g.d)
	for c, n := range a {
		if n > 0 {
			for r := range g.d {
				use[r] += int64(n) * g.need[c*g.d+r]
			}
		}
	}
next:
	for b := range g.bins {
		if !covers(g.cap(b), use) {
			continue
		}
		if g.bins[b].allow != nil {
			for c, n := range a {
				if n > 0 && !g.takes(b, c) {
					continue next
				}
			}
		}
		return b
	}
	return -1
}

// crash starts from one column per class, the cheapest per pod.
func (m *master) crash() bool {
	for c := range m.n {
		best, bestB, bestK := math.Inf(1), -1, 0
		for b := range m.g.bins {
			if !m.g.takes(b, c) {
				continue
			}
			k := min(max(1, m.d[c]), int(m.g.most[c]))
			for r, need := range m.g.req(c) {
				if need > 0 {
					k = min(k, int(m.g.cap(b)[r]/need))
				}
			}
			if k > 0 {
				if p := float64(m.g.prices[b]) / float64(k); p < best {
					best, bestB, bestK = p, b, k
				}
			}
		}
		if bestB < 0 {
			return false
		}
		a := make([]int32, m.n)
		a[c] = int32(bestK)
		m.start(c, m.put(bestB, a), float64(bestK), float64(m.d[c]))
	}
	m.price()
	return true
}

// optimize runs the simplex over the known columns, then generates new ones, until
// nothing improves by more than a ten-thousandth or the budget ends.
func (m *master) optimize(y []float64, maxSteps int) {
	for m.steps < maxSteps {
		if j, ok := m.best(); ok {
			if m.steps++; !m.enter(j) {
				return
			}
			continue
		}
		if !m.generate(y) {
			return
		}
	}
}

// generate adds the best new column of each bin that promises a gain: quick fills
// first; only when those find nothing, exact contents from the grid where there is
// one, else a bounded search.
func (m *master) generate(y []float64) bool {
	m.k.allow(m.d)
	added := false
	// No contents are worth more than up times what the bin's room is worth at y.
	up := 0.0
	for c, v := range m.pi {
		if v > 0 && m.k.limit[c] > 0 {
			up = max(up, v/(value(m.g.d, m.g.req(c), y)+1e-9))
		}
	}
	for _, plain := range []bool{true, false} { // plain fills are ten times quicker
		if !plain && m.quick {
			break // a rest needs no care
		}
		m.k.plain = plain
		for b := range m.g.bins {
			if up*value(m.g.d, m.g.cap(b), y) <= m.goal(b) {
				continue
			}
			m.steps++
			if m.k.best(b, m.pi, y, 3) > m.goal(b) && m.addColumn(m.k.out) {
				added = true
			}
		}
		if added {
			return true
		}
	}
	if added || m.n > 64 || m.quick {
		return added
	}
	if m.grid != nil {
		m.grid.fill(m.pi)
		m.steps += 20
	}
	for b := range m.g.bins {
		if m.grid != nil && m.inGrid(b) {
			cell := m.grid.at(m.g.cap(b))
			if m.grid.best[cell] <= m.goal(b) {
				continue
			}
			m.steps++
			if m.grid.trace(cell, m.k.out, m.k.limit, m.g.cap(b)[2]) {
				if m.addColumn(m.k.out) {
					added = true
				}
				continue
			}
		}
		if up*value(m.g.d, m.g.cap(b), y) <= m.goal(b) {
			continue
		}
		m.k.best(b, m.pi, y, 3)
		if m.k.deepen(b, m.pi, m.goal(b), 3000) > 0 && m.addColumn(m.k.out) {
			added = true
		}
	}
	return added
}

// remember keeps the price of a pod per class, for the proof of a bound.
func (m *master) remember(s *solver) {
	if s.pis == nil {
		s.pis = map[int]float64{}
	}
	for c, v := range m.pi {
		if m.d[c] > 0 {
			s.pis[m.g.classes[c]] = v
		}
	}
}

// goal is the worth that new contents of a bin must pass to be worth a column.
func (m *master) goal(b int) float64 { return float64(m.g.prices[b]) * (1 + m.gain) }

func (m *master) inGrid(b int) bool {
	c := m.g.cap(b)
	return int(c[0]/m.grid.step[0]) < m.grid.size[0] && int(c[1]/m.grid.step[1]) < m.grid.size[1]
}
