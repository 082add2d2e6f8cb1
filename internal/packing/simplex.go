package packing

import "math"

// simplex is the revised simplex method for covering programs: minimise cost x
// subject to A x >= demand, x >= 0, with an explicit basis inverse. Columns are added
// as they are found. The number of rows is small.
type simplex struct {
	n     int
	rows  [][]float64 // columns, dense
	cost  []float64
	inv   []float64
	basis []int // column index; -1-i is the surplus of row i
	x     []float64
	pi    []float64
	u     []float64
}

func newSimplex(n int) simplex {
	return simplex{n: n, inv: make([]float64, n*n), basis: make([]int, n), x: make([]float64, n), pi: make([]float64, n), u: make([]float64, n)}
}

// start makes column i the basis of row i: it must be a unit column of size at.
func (m *simplex) start(i, column int, at, demand float64) {
	m.basis[i] = column
	m.inv[i*m.n+i] = 1 / at
	m.x[i] = demand / at
}

func (m *simplex) add(a []float64, cost float64) int {
	m.rows = append(m.rows, a)
	m.cost = append(m.cost, cost)
	return len(m.cost) - 1
}

func (m *simplex) costOf(j int) float64 {
	if j < 0 {
		return 0
	}
	return m.cost[j]
}

// prices recomputes the duals pi = c_B inv.
func (m *simplex) price() {
	clear(m.pi)
	for i, j := range m.basis {
		if c := m.costOf(j); c != 0 {
			row := m.inv[i*m.n : (i+1)*m.n]
			for k, v := range row {
				m.pi[k] += float64(c * v)
			}
		}
	}
}

// reduced is what column j costs beyond what it covers is worth.
func (m *simplex) reduced(j int) float64 {
	s := m.cost[j]
	for c, v := range m.rows[j] {
		if v != 0 {
			s -= float64(m.pi[c] * v)
		}
	}
	return s
}

// enter brings column j into the basis (j < 0: surplus of row -1-j).
func (m *simplex) enter(j int) bool {
	n := m.n
	for i := range n {
		row := m.inv[i*n : (i+1)*n]
		s := 0.0
		if j >= 0 {
			for c, v := range m.rows[j] {
				if v != 0 {
					s += float64(row[c] * v)
				}
			}
		} else {
			s = -row[-1-j]
		}
		m.u[i] = s
	}
	p, ratio := -1, math.Inf(1)
	for i := range n {
		if m.u[i] > 1e-9 {
			if t := m.x[i] / m.u[i]; t < ratio-1e-12 {
				ratio, p = t, i
			}
		}
	}
	if p < 0 {
		return false
	}
	inv := 1 / m.u[p]
	prow := m.inv[p*n : (p+1)*n]
	for c := range prow {
		prow[c] *= inv
	}
	m.x[p] = ratio
	for i := range n {
		if f := m.u[i]; i != p && f != 0 {
			row := m.inv[i*n : (i+1)*n]
			for c := range row {
				row[c] -= float64(f * prow[c])
			}
			m.x[i] = max(0, m.x[i]-float64(f*ratio))
		}
	}
	m.basis[p] = j
	m.price()
	return true
}

// best is the known column, or surplus, that lowers the cost most per unit; false if
// none does.
func (m *simplex) best() (int, bool) {
	at, low, found := 0, -1.0, false
	for j := range m.cost {
		if r := m.reduced(j); r < low {
			low, at, found = r, j, true
		}
	}
	for c, v := range m.pi {
		if v < low {
			low, at, found = v, -1-c, true
		}
	}
	return at, found
}

// value is the cost of the current solution.
func (m *simplex) value() float64 {
	v := 0.0
	for i, j := range m.basis {
		v += float64(m.costOf(j) * m.x[i])
	}
	return v
}
