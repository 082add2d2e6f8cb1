package bound

import (
	"cmp"
	"math"
	"slices"
)

// Ruled is a number of pods that need the same, of which rules let one node carry Most
// at most (spread over hosts, anti-affinity to their own kind).
type Ruled struct {
	Need Vector
	// Count may be a fraction: what a part of the nodes gets of them on average.
	Count float64
	Most  int
}

// Filled is a bound by whole filled nodes (a configuration program).
type Filled struct {
	// PerPod are prices per pod, by kind. They are proven: no column can hold pods that
	// rules let share a node and that are worth more than it costs.
	PerPod []float64
	// Value is the price of the best fractional mix of filled nodes that was found: the
	// optimum of the program lies between it and what PerPod makes of the counts.
	Value  float64
	Rounds int
}

// Total is what pods in given numbers cost at least.
func (f Filled) Total(kinds []Ruled) int64 {
	sum := 0.0
	for i, k := range kinds {
		sum += f.PerPod[i] * k.Count
	}
	return int64(math.Floor(sum * (1 - margin)))
}

// Effort of the program over filled nodes: how many steps a search in one bin may take, and,
// where it finds nothing, how wide the one layer by layer is; first for anything better,
// at last for the proof that there is nothing.
var filledEffort = [...]struct{ steps, width int }{{4_000, 0}, {4_000, 20_000}, {20_000, 100_000}}

const (
	filledRounds = 400
	filledProofs = 8
	filledSlack  = 1e-4 // fillings worth this much more than they cost are no news
	leastSlack   = 1e-7 // the same, at last
)

// Fill solves the program over nodes filled with whole pods, no more of a kind on one
// than rules allow. Unlike LP and Contents it cuts no pod. ok is false when some kind
// fits no column.
func Fill(columns []Column, kinds []Ruled) (out Filled, ok bool) {
	p := newProgram(columns, kinds)
	for i := range kinds {
		if !p.alone(i) {
			return Filled{}, false
		}
	}
	p.grid = newGrid(p)
	best, last := 0.0, 0
	for stage := 0; stage < len(filledEffort) && out.Rounds < filledRounds; out.Rounds++ {
		value, prices := p.solve()
		slack := filledSlack
		if stage == len(filledEffort)-1 {
			slack = leastSlack
		}
		steepest, more := p.price(prices, slack, filledEffort[stage].steps, filledEffort[stage].width)
		if proved := value / steepest; proved > best {
			best = proved
			for i := range prices {
				prices[i] *= (1 - margin) / steepest
			}
			out.PerPod = prices
		}
		out.Value = value
		if stage == len(filledEffort)-1 {
			last++
		}
		if !more || last == filledProofs {
			stage++
		}
	}
	return out, true
}

// program is the dual: prices per pod such that no known filling is worth more than its
// node, worth the most for the counts.
type program struct {
	bins     []Column // that no other one replaces, cheapest first
	kinds    []Ruled
	fillings [][]float64
	costs    []float64
	known    map[string]bool
	grid     *grid // nil where the amounts are too many
}

func newProgram(columns []Column, kinds []Ruled) *program {
	p := &program{kinds: kinds, known: map[string]bool{}}
	var needs []Vector
	for _, k := range kinds {
		needs = append(needs, k.Need)
	}
	bins := Tighten(columns, needs)
	slices.SortStableFunc(bins, func(a, b Column) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), slices.Compare(b.Gives[:], a.Gives[:]))
	})
	for _, b := range bins {
		if !slices.ContainsFunc(p.bins, func(k Column) bool { return holds(k.Gives, b.Gives) }) {
			p.bins = append(p.bins, b)
		}
	}
	return p
}

func holds(room, need Vector) bool {
	for r := range Nodes {
		if need[r] > room[r] {
			return false
		}
	}
	return true
}

// most is how many pods of a kind a bin can carry of that kind alone.
func (p *program) most(bin, kind int) int64 {
	k := &p.kinds[kind]
	n := min(int64(k.Most), int64(math.Ceil(k.Count)))
	for r := range Nodes {
		if k.Need[r] > 0 {
			n = min(n, p.bins[bin].Gives[r]/k.Need[r])
		}
	}
	return n
}

// alone adds the cheapest filling per pod with one kind only.
func (p *program) alone(kind int) bool {
	best, take := math.Inf(1), int64(0)
	at := 0
	for b := range p.bins {
		if n := p.most(b, kind); n > 0 && float64(p.bins[b].Price)/float64(n) < best {
			best, take, at = float64(p.bins[b].Price)/float64(n), n, b
		}
	}
	if take == 0 {
		return false
	}
	a := make([]int64, len(p.kinds))
	a[kind] = take
	p.add(at, a)
	return true
}

func (p *program) add(bin int, take []int64) bool {
	row := make([]float64, len(take))
	key := make([]byte, 0, 2*len(take)+2)
	key = append(key, byte(bin), byte(bin>>8))
	for i, n := range take {
		row[i] = float64(n)
		key = append(key, byte(n), byte(n>>8))
	}
	if p.known[string(key)] {
		return false
	}
	p.known[string(key)] = true
	p.fillings, p.costs = append(p.fillings, row), append(p.costs, float64(p.bins[bin].Price))
	return true
}

// solve returns the value of the program over the known fillings and its prices.
func (p *program) solve() (float64, []float64) {
	gain := make([]float64, len(p.kinds))
	for i, k := range p.kinds {
		gain[i] = k.Count
	}
	t := newTableau(p.fillings, p.costs, gain)
	t.run()
	prices := t.primal()
	for i := range prices {
		prices[i] = max(0, prices[i])
	}
	return t.value(), prices
}

// price looks for fillings that are worth more than their bin and adds them. steepest
// is how much more any filling could be worth, as a multiple of its bin's price.
func (p *program) price(prices []float64, slack float64, steps, width int) (steepest float64, more bool) {
	steepest = 1
	if p.grid != nil && width > 0 {
		p.grid.fill(prices)
	}
	for b := range p.bins {
		cost := float64(p.bins[b].Price)
		if p.grid != nil && width > 0 {
			worth, take, pods := p.grid.holds(b)
			if worth <= cost*(1+slack) || pods <= p.bins[b].Gives[Pods] {
				steepest = max(steepest, worth/cost)
				if worth > cost*(1+slack) && p.add(b, take) {
					more = true
				}
				continue
			}
		}
		f := newFilling(p, b, prices)
		up := f.search(cost*(1+slack), steps)
		if !f.found && up > cost*(1+slack) && width > 0 {
			up = min(up, f.layers(cost*(1+slack), width))
		}
		steepest = max(steepest, up/cost)
		if f.found && p.add(b, f.best) {
			more = true
		}
	}
	return steepest, more
}
