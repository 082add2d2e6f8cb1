package bound

import "math"

// cover is the program: minimise price·x with A x >= demand, x >= 0, solved by the
// revised simplex method; columns may be added between runs. Its prices per row need
// not be exact: whoever uses them proves what they are worth.
type cover struct {
	demand []float64
	cols   [][]float64
	price  []float64

	basis   []int // column; -1-i is the surplus of row i
	inverse [][]float64
	x       []float64
	duals   []float64
}

// newCover starts from columns that cover one unit of a row each, at a price that no
// solution pays in the end.
func newCover(demand []float64, dear float64) *cover {
	c := &cover{demand: demand}
	n := len(demand)
	for i := range n {
		a := make([]float64, n)
		a[i] = 1
		c.add(a, dear)
		c.basis = append(c.basis, i)
		row := make([]float64, n)
		row[i] = 1
		c.inverse = append(c.inverse, row)
		c.x = append(c.x, demand[i])
	}
	c.duals = make([]float64, n)
	c.reprice()
	return c
}

func (c *cover) add(a []float64, price float64) {
	c.cols, c.price = append(c.cols, a), append(c.price, price)
}

func (c *cover) reprice() {
	clear(c.duals)
	for i, j := range c.basis {
		if j >= 0 {
			for r, v := range c.inverse[i] {
				c.duals[r] += c.price[j] * v
			}
		}
	}
}

// run pivots until no column is worth more than its price, at most so often.
func (c *cover) run(pivots int) {
	for range pivots {
		enter, gain := 0, 1e-7
		found := false
		for j, a := range c.cols {
			g := -c.price[j]
			for r, v := range a {
				g += c.duals[r] * v
			}
			if g > gain*(1+c.price[j]) {
				enter, gain, found = j, g/(1+c.price[j]), true
			}
		}
		for r, v := range c.duals {
			if v < -1e-7 && !found {
				enter, found = -1-r, true
			}
		}
		if !found || !c.pivot(enter) {
			return
		}
	}
}

func (c *cover) pivot(enter int) bool {
	n := len(c.demand)
	step := make([]float64, n)
	leave, ratio := -1, math.Inf(1)
	for i, row := range c.inverse {
		if enter < 0 {
			step[i] = -row[-1-enter]
		} else {
			for r, v := range c.cols[enter] {
				step[i] += row[r] * v
			}
		}
		if step[i] > 1e-9 && c.x[i]/step[i] < ratio {
			leave, ratio = i, c.x[i]/step[i]
		}
	}
	if leave < 0 {
		return false
	}
	by := c.inverse[leave]
	for r := range by {
		by[r] /= step[leave]
	}
	for i, row := range c.inverse {
		if i != leave && step[i] != 0 {
			for r := range row {
				row[r] -= step[i] * by[r]
			}
			c.x[i] = max(0, c.x[i]-step[i]*ratio)
		}
	}
	c.x[leave], c.basis[leave] = ratio, enter
	c.reprice()
	return true
}

// value is what the solution costs.
func (c *cover) value() float64 {
	v := 0.0
	for i, j := range c.basis {
		if j >= 0 {
			v += c.price[j] * c.x[i]
		}
	}
	return v
}
