package packing

// This file holds the linear program over resources: how much of which bin would
// cover a demand if nodes and pods could be cut at will. Its duals price the
// resources (what a core, a byte, a pod slot is worth here), guide the search and,
// made exactly feasible, certify the lower bound.
//
// Floats guide and certify; they never compare the price of two plans. Products
// are converted before they are added, so that no platform fuses them and the same
// problem gives the same bits everywhere.

// duals solves  max demand.y  subject to  cap_b.y <= price_b for every bin, y >= 0
// and returns y by dimension (micro-dollars per raw unit). The extra last dimension
// is the node itself: demand[d] is the forced node count and every bin provides 1.
// caps is flat with stride d.
func duals(d int, caps []int64, prices []int64, demand []float64) []float64 {
	n, m := len(prices), d+1
	y := make([]float64, m)
	if n == 0 {
		return y
	}
	scale := make([]float64, m)
	for r := range d {
		for b := range n {
			scale[r] = max(scale[r], float64(caps[b*d+r]))
		}
		if scale[r] == 0 {
			scale[r] = 1
		}
	}
	scale[d] = 1
	w := m + 1
	tab := make([]float64, n*w)
	for b := range n {
		row := tab[b*w : (b+1)*w]
		for r := range d {
			row[r] = float64(caps[b*d+r]) / scale[r]
		}
		row[d] = 1
		row[m] = float64(prices[b])
	}
	gain := make([]float64, m)
	for r := range m {
		gain[r] = demand[r] / scale[r]
	}
	for r, v := range maximize(tab, m, gain) {
		y[r] = v / scale[r]
	}
	certify(d, caps, prices, y)
	return y
}

// maximize solves  max gain.y  subject to  A y <= p, y >= 0  with p >= 0 by the
// simplex method. tab holds rows of m coefficients of A and p; it is overwritten.
// Should it stop early, what it returns need not be the best, only nearly feasible:
// callers certify.
func maximize(tab []float64, m int, gain []float64) []float64 {
	w := m + 1
	n := len(tab) / w
	z := make([]float64, w)
	big := 0.0
	for r := range m {
		z[r] = -gain[r]
		big = max(big, gain[r])
	}
	basis := make([]int, n)
	for b := range basis {
		basis[b] = m + b
	}
	non := make([]int, m)
	for r := range non {
		non[r] = r
	}
	for range 200 * m {
		q, low := -1, -1e-9*big
		for j := range m {
			if z[j] < low {
				low, q = z[j], j
			}
		}
		if q < 0 {
			break
		}
		p, ratio := -1, 0.0
		for b := range n {
			if a := tab[b*w+q]; a > 1e-12 {
				if t := tab[b*w+m] / a; p < 0 || t < ratio {
					ratio, p = t, b
				}
			}
		}
		if p < 0 {
			break // unbounded: some demanded resource is offered by no bin
		}
		pivot(tab, z, n, w, p, q)
		basis[p], non[q] = non[q], basis[p]
	}
	y := make([]float64, m)
	for b, v := range basis {
		if v < m {
			y[v] = max(0, tab[b*w+m])
		}
	}
	return y
}

func pivot(tab, z []float64, n, w, p, q int) {
	prow := tab[p*w : (p+1)*w]
	inv := 1 / prow[q]
	for j := range prow {
		if j != q {
			prow[j] *= inv
		}
	}
	prow[q] = inv
	elim := func(row []float64) {
		f := row[q]
		if f == 0 {
			return
		}
		for j := range row {
			if j != q {
				row[j] -= float64(f * prow[j])
			}
		}
		row[q] = -float64(f * inv)
	}
	for b := range n {
		if b != p {
			elim(tab[b*w : (b+1)*w])
		}
	}
	elim(z)
}

// certify scales y down until no bin is worth more than it costs; then demand.y is
// a valid bound whatever the pivoting did. One part in a billion more is given away
// against rounding in the products themselves.
func certify(d int, caps []int64, prices []int64, y []float64) {
	worst := 1.0
	for b := range prices {
		if v := worth(d, caps[b*d:(b+1)*d], y); v > float64(worst*float64(prices[b])) {
			if prices[b] <= 0 {
				clear(y)
				return
			}
			worst = v / float64(prices[b])
		}
	}
	worst *= 1 + 1e-9
	for r := range y {
		y[r] /= worst
	}
}

// worth is what a vector of resources on one node is worth at prices y.
func worth(d int, v []int64, y []float64) float64 {
	s := y[d]
	for r := range d {
		s += float64(y[r] * float64(v[r]))
	}
	return s
}

// value is what a pod that needs v is worth: like worth, but it brings no node.
func value(d int, v []int64, y []float64) float64 {
	s := 0.0
	for r := range d {
		s += float64(y[r] * float64(v[r]))
	}
	return s
}

// primal returns how many of each bin the linear program uses: the solution that
// goes with duals y. Only bins that are worth their price (tight ones) are used.
func primal(g *group, demand, y []float64) []float64 {
	x := make([]float64, len(g.bins))
	var tight []int
	for b := range g.bins {
		if worth(g.d, g.cap(b), y) > float64(g.prices[b])*(1-1e-6) {
			tight = append(tight, b)
		}
	}
	var rows []int
	for r := range g.d {
		if y[r] > 0 && demand[r] > 0 {
			rows = append(rows, r)
		}
	}
	if len(tight) == 0 || len(rows) == 0 {
		return x
	}
	// Subsets of as many tight bins as there are priced rows; the first that solves
	// with no negative amount.
	k := min(len(rows), len(tight))
	pick := make([]int, k)
	var try func(from, at int) bool
	try = func(from, at int) bool {
		if at == k {
			v, ok := solveSquare(g, rows[:k], tight, pick, demand)
			if ok {
				for i, p := range pick {
					x[tight[p]] = v[i]
				}
			}
			return ok
		}
		for i := from; i < len(tight); i++ {
			pick[at] = i
			if try(i+1, at+1) {
				return true
			}
		}
		return false
	}
	try(0, 0)
	return x
}

func solveSquare(g *group, rows, tight, pick []int, demand []float64) ([]float64, bool) {
	k := len(pick)
	m := make([][]float64, k)
	for i, r := range rows {
		m[i] = make([]float64, k+1)
		for j, p := range pick {
			m[i][j] = float64(g.cap(tight[p])[r]) / demand[r]
		}
		m[i][k] = 1
	}
	for c := range k {
		p := c
		for i := c + 1; i < k; i++ {
			if abs(m[i][c]) > abs(m[p][c]) {
				p = i
			}
		}
		if abs(m[p][c]) < 1e-12 {
			return nil, false
		}
		m[c], m[p] = m[p], m[c]
		for i := range k {
			if i != c {
				f := m[i][c] / m[c][c]
				for j := c; j <= k; j++ {
					m[i][j] -= float64(f * m[c][j])
				}
			}
		}
	}
	v := make([]float64, k)
	for i := range v {
		v[i] = m[i][k] / m[i][i]
		if !(v[i] >= -1e-9) || v[i] > 1e7 { // NaN, negative or beyond reason
			return nil, false
		}
		v[i] = max(0, v[i])
	}
	return v, true
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
