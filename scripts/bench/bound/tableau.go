package bound

// tableau is the simplex method in full, for programs that are small: maximise gain·y
// with rows·y <= limits, y >= 0 and limits >= 0.
type tableau struct {
	rows  int
	vars  int
	cells [][]float64 // a row per limit, the last one is the objective; the last cell is the limit
	basis []int       // by row: the variable, or vars+row for its slack
	free  []int       // by cell: what is at 0
}

func newTableau(rows [][]float64, limits, gain []float64) *tableau {
	t := &tableau{rows: len(rows), vars: len(gain)}
	for i, r := range rows {
		t.cells = append(t.cells, append(append(make([]float64, 0, len(r)+1), r...), limits[i]))
		t.basis = append(t.basis, len(gain)+i)
	}
	z := make([]float64, len(gain)+1)
	for j, g := range gain {
		z[j] = -g
		t.free = append(t.free, j)
	}
	t.cells = append(t.cells, z)
	return t
}

// run pivots to the optimum; with rounding against it, or without an optimum, it stops
// near to it.
func (t *tableau) run() {
	z := t.cells[t.rows]
	big := 0.0
	for _, v := range z {
		big = max(big, -v)
	}
	for range 50 * (t.rows + t.vars) {
		enter, low := -1, -1e-11*big
		for j := range t.vars {
			if z[j] < low {
				enter, low = j, z[j]
			}
		}
		if enter < 0 {
			return
		}
		leave, ratio := -1, 0.0
		for i := range t.rows {
			if a := t.cells[i][enter]; a > 1e-10 {
				if v := t.cells[i][t.vars] / a; leave < 0 || v < ratio {
					leave, ratio = i, v
				}
			}
		}
		if leave < 0 {
			return
		}
		t.pivot(leave, enter)
	}
}

func (t *tableau) pivot(leave, enter int) {
	by := t.cells[leave]
	at := by[enter]
	by[enter] = 1
	for j := range by {
		by[j] /= at
	}
	for i, row := range t.cells {
		if f := row[enter]; i != leave && f != 0 {
			row[enter] = 0
			for j, v := range by {
				row[j] -= f * v
			}
		}
	}
	t.basis[leave], t.free[enter] = t.free[enter], t.basis[leave]
}

// primal are the variables.
func (t *tableau) primal() []float64 {
	out := make([]float64, t.vars)
	for i, j := range t.basis {
		if j < t.vars {
			out[j] = t.cells[i][t.vars]
		}
	}
	return out
}

// dual are the prices of the limits.
func (t *tableau) dual() []float64 {
	out := make([]float64, t.rows)
	for j, k := range t.free {
		if k >= t.vars {
			out[k-t.vars] = t.cells[t.rows][j]
		}
	}
	return out
}

func (t *tableau) value() float64 { return t.cells[t.rows][t.vars] }
