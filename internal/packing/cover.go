package packing

import "math"

// cover is a covering program (minimise cost x subject to A x >= demand, x >= 0) that
// is solved again and again for less demand: the revised simplex method with an explicit
// inverse, primal steps for new columns, dual steps for less demand. Rows are few.
type cover struct {
	n     int
	rows  []float64 // columns, stride n
	cost  []float64
	inv   []float64
	basis []int // column; -1-i is the surplus of row i
	x     []float64
	pi    []float64
	u     []float64
	good  []int // columns that promised a gain when all were looked at last
	steps int
}

func newCover(n int) cover {
	return cover{n: n, inv: make([]float64, n*n), basis: make([]int, n), x: make([]float64, n), pi: make([]float64, n), u: make([]float64, n)}
}

// start makes column i the basis of row i: it must be a unit column of size at.
func (m *cover) start(i, column int, at, demand float64) {
	m.basis[i] = column
	m.inv[i*m.n+i] = 1 / at
	m.x[i] = demand / at
}

func (m *cover) add(a []int32, cost float64) {
	for _, v := range a {
		m.rows = append(m.rows, float64(v))
	}
	m.good = append(m.good, len(m.cost))
	m.cost = append(m.cost, cost)
}

func (m *cover) row(j int) []float64 { return m.rows[j*m.n : (j+1)*m.n] }

// reprice recomputes the prices per row.
func (m *cover) reprice() {
	clear(m.pi)
	for i, j := range m.basis {
		if j < 0 {
			continue
		}
		c := m.cost[j]
		for k, v := range m.inv[i*m.n : (i+1)*m.n] {
			m.pi[k] += float64(c * v)
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	b = b[:len(a)]
	for i, v := range a {
		s += float64(v * b[i])
	}
	return s
}

// run makes primal steps until no known column promises a gain.
func (m *cover) run() {
	for range 100 * m.n {
		j, ok := m.enters()
		if !ok || !m.enter(j) {
			return
		}
	}
}

// enters picks the column, or surplus, that lowers the cost most per unit: among those
// that were good when all were looked at last, else among all.
func (m *cover) enters() (int, bool) {
	at, low, found := 0, -1.0, false
	for c, v := range m.pi {
		if v < low {
			low, at, found = v, -1-c, true
		}
	}
	keep := m.good[:0]
	for _, j := range m.good {
		if r := m.cost[j] - dot(m.row(j), m.pi); r < -1 {
			keep = append(keep, j)
			if r < low {
				low, at, found = r, j, true
			}
		}
	}
	m.good = keep
	if found {
		return at, true
	}
	for j := range m.cost {
		if r := m.cost[j] - dot(m.row(j), m.pi); r < -1 {
			m.good = append(m.good, j)
			if r < low {
				low, at, found = r, j, true
			}
		}
	}
	return at, found
}

// direction sets u to what a unit of column j does to the basis.
func (m *cover) direction(j int) {
	for i := range m.n {
		row := m.inv[i*m.n : (i+1)*m.n]
		if j >= 0 {
			m.u[i] = dot(row, m.row(j))
		} else {
			m.u[i] = -row[-1-j]
		}
	}
}

// enter brings column j into the basis (j < 0: surplus of row -1-j).
func (m *cover) enter(j int) bool {
	m.direction(j)
	p, ratio := -1, math.Inf(1)
	for i, u := range m.u {
		if u > 1e-9 {
			if t := m.x[i] / u; t < ratio-1e-12 {
				ratio, p = t, i
			}
		}
	}
	if p < 0 {
		return false
	}
	m.exchange(p, j)
	for i, v := range m.x {
		m.x[i] = max(0, v)
	}
	return true
}

// exchange puts column j into the place of basic column p; u is its direction.
func (m *cover) exchange(p, j int) {
	n := m.n
	inv := 1 / m.u[p]
	row := m.inv[p*n : (p+1)*n]
	for c := range row {
		row[c] *= inv
	}
	m.x[p] *= inv
	for i, u := range m.u {
		if i == p || u == 0 {
			continue
		}
		r := m.inv[i*n : (i+1)*n]
		for c, v := range row {
			r[c] -= float64(u * v)
		}
		m.x[i] -= float64(u * m.x[p])
	}
	m.basis[p] = j
	m.steps++
	m.reprice()
}

// remain brings the program to another demand: the basis stays optimal for its prices,
// and what no longer has a place in it is driven out.
func (m *cover) remain(demand []int) {
	n := m.n
	for i := range n {
		v := 0.0
		for c, k := range demand {
			v += float64(m.inv[i*n+c] * float64(k))
		}
		m.x[i] = v
	}
	for range 10 * n {
		p, low := -1, -1e-7
		for i, v := range m.x {
			if v < low {
				p, low = i, v
			}
		}
		if p < 0 || !m.expel(p) {
			break
		}
	}
	for i, v := range m.x {
		m.x[i] = max(0, v)
	}
}

// expel is a dual step: basic column p leaves.
func (m *cover) expel(p int) bool {
	row := m.inv[p*m.n : (p+1)*m.n]
	enter, ratio, found := 0, math.Inf(1), false
	for j := range m.cost {
		if a := dot(row, m.row(j)); a < -1e-9 {
			if t := max(0, m.cost[j]-dot(m.row(j), m.pi)) / -a; t < ratio {
				ratio, enter, found = t, j, true
			}
		}
	}
	for c, v := range row { // surplus of row c: a column of -1, worth pi[c]
		if v > 1e-9 {
			if t := max(0, m.pi[c]) / v; t < ratio {
				ratio, enter, found = t, -1-c, true
			}
		}
	}
	if !found {
		return false
	}
	m.direction(enter)
	m.exchange(p, enter)
	return true
}

// value is the cost of the current solution.
func (m *cover) value() float64 {
	v := 0.0
	for i, j := range m.basis {
		if j >= 0 {
			v += float64(m.cost[j] * m.x[i])
		}
	}
	return v
}
