package bound

import (
	"container/heap"
	"math"
	"slices"
)

// WholeNodes is a bound by search over numbers of whole nodes; pods may still be cut
// at will.
type WholeNodes struct {
	// Total is proven: no choice of whole nodes that gives the demand costs less, in
	// micro-dollars per hour.
	Total int64
	// Optimal: Total is the target, or some choice costs just that. Otherwise the
	// search stopped at its budget.
	Optimal bool
	Steps   int
}

// Whole searches choices of whole nodes, best bound first, until nothing below target
// is left, the cheapest choice is found, or budget steps are taken. target is a price
// that is known to suffice. Every state is bounded by the relaxation, in which a
// column counts for no more than what is still missing.
func Whole(columns []Column, demand Vector, target int64, budget int) WholeNodes {
	s := &search{target: target}
	for _, c := range columns {
		if slices.Min(c.Gives[:]) > 0 && c.Price > 0 {
			s.cols = append(s.cols, c)
		}
	}
	s.prune(demand)
	if len(s.cols) == 0 {
		return WholeNodes{Total: target, Optimal: true}
	}
	all := make([]int32, len(s.cols))
	for i := range all {
		all[i] = int32(i)
	}
	s.push(state{rest: demand, cols: all})
	for len(s.open) > 0 && s.steps < budget {
		st := heap.Pop(&s.open).(state)
		if st.rest == (Vector{}) {
			return WholeNodes{Total: st.spent, Optimal: true, Steps: s.steps}
		}
		s.steps++
		// Take one more of the column the relaxation buys most of, or do without it.
		j := st.branch
		take := state{spent: st.spent + s.cols[j].Price, cols: st.cols}
		for r := range Rows {
			take.rest[r] = max(0, st.rest[r]-s.cols[j].Gives[r])
		}
		s.push(take)
		s.push(state{spent: st.spent, rest: st.rest, cols: without(st.cols, j)})
	}
	if len(s.open) == 0 {
		return WholeNodes{Total: target, Optimal: true, Steps: s.steps}
	}
	return WholeNodes{Total: min(target, s.open[0].bound), Steps: s.steps}
}

// state is a set of choices: some nodes are taken, some columns are ruled out.
type state struct {
	spent  int64
	rest   Vector  // still missing
	cols   []int32 // that may still be taken
	bound  int64   // on the price of every choice in the set
	branch int32
}

type search struct {
	cols   []Column
	open   queue
	target int64
	steps  int
	buffer []Column
}

// prune drops columns that another one replaces at no more cost.
func (s *search) prune(demand Vector) {
	capped := func(c Column) Vector {
		for r := range c.Gives {
			c.Gives[r] = min(c.Gives[r], demand[r])
		}
		return c.Gives
	}
	// Cheapest first, then the larger: whoever replaces a column comes before it.
	slices.SortStableFunc(s.cols, func(a, b Column) int {
		if a.Price != b.Price {
			return int(a.Price - b.Price)
		}
		ga, gb := capped(a), capped(b)
		for r := range Rows {
			if ga[r] != gb[r] {
				return int(min(1, max(-1, gb[r]-ga[r])))
			}
		}
		return 0
	})
	var kept []Column
	for _, c := range s.cols {
		g := capped(c)
		if !slices.ContainsFunc(kept, func(k Column) bool {
			kg := capped(k)
			for r := range Rows {
				if kg[r] < g[r] {
					return false
				}
			}
			return true
		}) {
			kept = append(kept, c)
		}
	}
	s.cols = kept
}

// margin covers the rounding of floating point in a bound, some 10^-15 of it.
const margin = 1e-12

// push bounds a state and keeps it if it can be below the target.
func (s *search) push(st state) {
	if st.rest == (Vector{}) {
		st.bound = st.spent
		if st.bound < s.target {
			heap.Push(&s.open, st)
		}
		return
	}
	if len(st.cols) == 0 {
		return // what is missing cannot be had
	}
	s.buffer = s.buffer[:0]
	for _, j := range st.cols {
		c := s.cols[j]
		for r := range Rows {
			c.Gives[r] = min(c.Gives[r], st.rest[r])
		}
		s.buffer = append(s.buffer, c)
	}
	lp := newSimplex(s.buffer, st.rest)
	duals, err := lp.run()
	if err != nil {
		// No bound from this relaxation: the state stays with what it has spent.
		clear(duals[:])
	}
	low := st.spent + s.certified(lp, &duals)
	if low >= s.target {
		return
	}
	st.bound, st.branch = low, st.cols[lp.most()]
	// A column whose use alone would reach the target is never taken below here.
	keep := make([]int32, 0, len(st.cols))
	for i, j := range st.cols {
		loss := float64(s.cols[j].Price) - worth(lp.gives[i], duals)
		if float64(low)+loss*(1-margin)-1 < float64(s.target) {
			keep = append(keep, j)
		}
	}
	st.cols = keep
	if len(keep) == 0 {
		return // every node leads past the target
	}
	if !slices.Contains(keep, st.branch) {
		st.branch = keep[0]
	}
	heap.Push(&s.open, st)
}

// certified scales duals until they are feasible, with a margin for rounding, and
// returns what they prove, rounded down.
func (s *search) certified(lp *simplex, duals *[Rows]float64) int64 {
	steepest := 0.0
	for r := range duals {
		if !(duals[r] > 0) || math.IsInf(duals[r], 0) {
			duals[r] = 0
		}
	}
	for i := range lp.gives {
		steepest = max(steepest, worth(lp.gives[i], *duals)/float64(lp.cols[i].Price))
	}
	if steepest == 0 {
		return 0
	}
	for r := range duals {
		duals[r] *= (1 - margin) / steepest
	}
	return int64(math.Floor(worth(lp.demand, *duals) * (1 - margin)))
}

func worth(v, duals [Rows]float64) float64 {
	sum := 0.0
	for r := range Rows {
		sum += v[r] * duals[r]
	}
	return sum
}

// most is the column of which the relaxation buys most, the first one when it buys none.
func (s *simplex) most() int {
	b, _ := s.matrix()
	x, err := solve(b, s.demand)
	best, amount := 0, -1.0
	if err != nil {
		return best
	}
	for i, j := range s.basis {
		if j < len(s.cols) && x[i] > amount {
			best, amount = j, x[i]
		}
	}
	return best
}

func without(cols []int32, j int32) []int32 {
	out := make([]int32, 0, len(cols))
	for _, c := range cols {
		if c != j {
			out = append(out, c)
		}
	}
	return out
}

// queue is a heap of states, the lowest bound first; of equal ones that which is
// nearest to its end.
type queue []state

func (q queue) Len() int { return len(q) }
func (q queue) Less(a, b int) bool {
	if q[a].bound != q[b].bound {
		return q[a].bound < q[b].bound
	}
	return q[a].spent > q[b].spent
}
func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(x any)   { *q = append(*q, x.(state)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	st := (*q)[last]
	*q = (*q)[:last]
	return st
}
