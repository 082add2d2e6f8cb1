// Package bound computes lower bounds on the price of any set of nodes that can
// hold given pods. It is written apart from the packer on purpose: a bound that the
// packer computes for itself proves little.
//
// The bound is the linear relaxation: nodes may be bought in fractions, and pods
// may be cut at will. Floating point finds it and exact arithmetic certifies it: the
// resource prices (duals) are scaled until no column is worth more than it costs,
// which makes the total a true bound whatever the search did.
package bound

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// Rows of every vector: millicores, bytes, pods, nodes. A column gives one node; a
// demand of nodes is how many there must be whatever the pods need.
const (
	CPU = iota
	Memory
	Pods
	Nodes
	Rows
)

// Vector is an amount of each resource.
type Vector [Rows]int64

// Column is something that can be bought: what it gives to pods and its price in
// micro-dollars per hour.
type Column struct {
	Name  string
	Gives Vector
	Price int64
}

// Certificate is a proven lower bound.
type Certificate struct {
	// Total is the bound in micro-dollars per hour, rounded down.
	Total int64
	// Duals are the exact resource prices behind it, in micro-dollars per hour and
	// unit. No column gives more worth than its price.
	Duals [Rows]*big.Rat
	// Primal is the price of the best fractional purchase that was found: the true
	// optimum of the relaxation lies between Total and Primal.
	Primal float64
	Pivots int
}

// ErrNothingFits means that no column gives something of every resource.
var ErrNothingFits = errors.New("no column gives some of every resource")

// scale brings rows to similar magnitudes: cores, GiB, tens of pods, nodes.
var scale = [Rows]float64{1000, 1 << 30, 10, 1}

const maxPivots = 10_000

// LP bounds the price of buying columns, in fractions, that together give at least
// demand. Columns that give nothing of some resource are left out: a pod needs all
// of them on one node.
func LP(columns []Column, demand Vector) (Certificate, error) {
	var cols []Column
	for _, c := range columns {
		if slices.Min(c.Gives[:]) <= 0 {
			continue
		}
		if c.Price <= 0 {
			return Certificate{}, fmt.Errorf("column %s costs %d micro-dollars; prices must be positive", c.Name, c.Price)
		}
		cols = append(cols, c)
	}
	if len(cols) == 0 {
		return Certificate{}, ErrNothingFits
	}
	s := newSimplex(cols, demand)
	duals, err := s.run()
	if err != nil {
		return Certificate{}, err
	}
	cert := certify(cols, demand, duals)
	cert.Primal, cert.Pivots = s.value(), s.pivots
	return cert, nil
}

// simplex is the revised primal simplex method on: minimise price·x with
// gives·x - surplus = demand. Column j < len(cols) is a purchase; len(cols)+r is the
// surplus of row r.
type simplex struct {
	cols   []Column
	gives  [][Rows]float64 // scaled
	demand [Rows]float64
	basis  [Rows]int
	pivots int
}

func newSimplex(cols []Column, demand Vector) *simplex {
	s := &simplex{cols: cols, gives: make([][Rows]float64, len(cols))}
	for r := range Rows {
		s.demand[r] = float64(demand[r]) / scale[r]
	}
	for j, c := range cols {
		for r := range Rows {
			s.gives[j][r] = float64(c.Gives[r]) / scale[r]
		}
	}
	// Buying enough of the first column alone is feasible: its scarcest row is
	// tight, the others have surplus.
	tight, most := 0, -1.0
	for r := range Rows {
		if s.demand[r] == 0 {
			continue
		}
		if n := s.demand[r] / s.gives[0][r]; n > most {
			tight, most = r, n
		}
	}
	for r := range Rows {
		s.basis[r] = len(cols) + r
	}
	s.basis[tight] = 0
	return s
}

func (s *simplex) column(j int) (a [Rows]float64, price float64) {
	if j < len(s.cols) {
		return s.gives[j], float64(s.cols[j].Price)
	}
	a[j-len(s.cols)] = -1
	return a, 0
}

// matrix returns the basis, column by column, and its prices.
func (s *simplex) matrix() (b [Rows][Rows]float64, price [Rows]float64) {
	for i, j := range s.basis {
		var a [Rows]float64
		a, price[i] = s.column(j)
		for r := range Rows {
			b[r][i] = a[r]
		}
	}
	return b, price
}

func (s *simplex) run() (duals [Rows]float64, err error) {
	for ; s.pivots < maxPivots; s.pivots++ {
		b, price := s.matrix()
		duals, err = solve(transpose(b), price)
		if err != nil {
			return duals, err
		}
		enter := s.entering(duals)
		if enter < 0 {
			return duals, nil
		}
		a, _ := s.column(enter)
		step, err := solve(b, a)
		if err != nil {
			return duals, err
		}
		x, err := solve(b, s.demand)
		if err != nil {
			return duals, err
		}
		leave, ratio := -1, math.Inf(1)
		for i := range Rows {
			if step[i] <= 1e-11 {
				continue
			}
			q := max(x[i], 0) / step[i]
			if q < ratio || q == ratio && s.basis[i] < s.basis[leave] {
				leave, ratio = i, q
			}
		}
		if leave < 0 {
			return duals, fmt.Errorf("the relaxation is unbounded along column %d", enter)
		}
		s.basis[leave] = enter
	}
	return duals, fmt.Errorf("no optimum after %d pivots", s.pivots)
}

// entering returns the column that is worth most more than it costs, -1 when there
// is none. After many pivots it takes the first such column, which cannot cycle.
func (s *simplex) entering(duals [Rows]float64) int {
	best, gain := -1, 0.0
	for j := range len(s.cols) + Rows {
		if s.inBasis(j) {
			continue
		}
		a, price := s.column(j)
		worth := 0.0
		for r := range Rows {
			worth += a[r] * duals[r]
		}
		g := worth - price
		if g <= 1e-9*(1+price) {
			continue
		}
		if s.pivots > maxPivots/2 {
			return j
		}
		if g > gain {
			best, gain = j, g
		}
	}
	return best
}

func (s *simplex) inBasis(j int) bool {
	for _, b := range s.basis {
		if b == j {
			return true
		}
	}
	return false
}

// value is the price of the current basic solution.
func (s *simplex) value() float64 {
	b, price := s.matrix()
	x, err := solve(b, s.demand)
	if err != nil {
		return math.NaN()
	}
	v := 0.0
	for i := range Rows {
		v += price[i] * x[i]
	}
	return v
}

func transpose(b [Rows][Rows]float64) (t [Rows][Rows]float64) {
	for i := range Rows {
		for j := range Rows {
			t[j][i] = b[i][j]
		}
	}
	return t
}

// solve returns x with b·x = v, by elimination with row exchanges.
func solve(b [Rows][Rows]float64, v [Rows]float64) (x [Rows]float64, err error) {
	for k := range Rows {
		p := k
		for i := k + 1; i < Rows; i++ {
			if math.Abs(b[i][k]) > math.Abs(b[p][k]) {
				p = i
			}
		}
		if b[p][k] == 0 {
			return x, errors.New("the basis is singular")
		}
		b[k], b[p], v[k], v[p] = b[p], b[k], v[p], v[k]
		for i := k + 1; i < Rows; i++ {
			f := b[i][k] / b[k][k]
			for j := k; j < Rows; j++ {
				b[i][j] -= f * b[k][j]
			}
			v[i] -= f * v[k]
		}
	}
	for i := Rows - 1; i >= 0; i-- {
		x[i] = v[i]
		for j := i + 1; j < Rows; j++ {
			x[i] -= b[i][j] * x[j]
		}
		x[i] /= b[i][i]
	}
	return x, nil
}
