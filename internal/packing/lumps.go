package packing

import (
	"cmp"
	"math"
	"slices"
)

// This file packs pods some of which are large for a node. What makes plans dear is how
// those share nodes, and with what: a linear program over contents chooses that, in
// which large pods stay whole, and small ones, which fill any gap of their shape, are
// cut at will and summed up by shape. It has few rows however many kinds there are.

// Which classes are large, and how long contents are searched for.
const (
	mostLarge  = 14
	largeShare = 1.0 / 100 // of a node
	mostFluids = 8
	lumpRounds = 60
	lumpSteps  = 1_000 // of one search for contents
	lumpGain   = 1e-3
	diveGain   = 2e-3
	lumpSettle = 100 // of them once something was found
)

// lumps is the program: rows are the pods of each large class, then the fluids.
type lumps struct {
	simplex
	g      *group
	large  []int   // classes
	fluids []fluid // small pods, by shape
	cols   []filling
	left   []int
	steps  int // of a search for contents
}

// fluid is the small pods of similar shape, in units of about one core.
type fluid struct {
	classes []int
	need    []int64
	amount  float64
}

// filling is a bin with large pods, by index in large, and amounts of the fluids.
type filling struct {
	bin   int
	whole []int32
	part  []float64
}

// fluidsOf sums up the small classes by memory per cpu.
func (g *group) fluidsOf(small []int, count []int) []fluid {
	shape := func(c int) float64 { return float64(g.req(c)[1]) / float64(max(g.req(c)[0], 1)) }
	slices.SortStableFunc(small, func(a, b int) int { return cmp.Compare(shape(a), shape(b)) })
	var out []fluid
	for wide := 1.12; ; wide *= 1.2 {
		out = out[:0]
		first := 0.0
		for _, c := range small {
			if len(out) == 0 || shape(c) > first*wide {
				out, first = append(out, fluid{}), shape(c)
			}
			f := &out[len(out)-1]
			f.classes = append(f.classes, c)
		}
		if len(out) <= mostFluids {
			break
		}
	}
	for i := range out {
		f := &out[i]
		sum := make([]float64, g.d)
		for _, c := range f.classes {
			for r, v := range g.req(c) {
				sum[r] += float64(float64(v) * float64(count[c]))
			}
		}
		f.amount = max(sum[0]/1000, 1e-3)
		f.need = make([]int64, g.d)
		for r := range f.need {
			f.need[r] = int64(math.Round(sum[r] / f.amount))
		}
	}
	return out
}

// newLumps prepares the program for what is left of the large classes and fluids.
func newLumps(g *group, large []int, left []int, fluids []fluid, known []filling) *lumps {
	l := &lumps{g: g, large: large, fluids: fluids, left: left, steps: lumpSteps}
	l.simplex = newSimplex(len(large) + len(fluids))
	dear := 10 * float64(slices.Max(g.prices))
	for i := range l.n {
		f := filling{-1, make([]int32, len(large)), make([]float64, len(fluids))}
		demand := 0.0
		if i < len(large) {
			f.whole[i], demand = 1, float64(left[large[i]])
		} else {
			f.part[i-len(large)], demand = 1, fluids[i-len(large)].amount
		}
		l.start(i, l.put(f, dear), 1, max(demand, 0))
	}
	for _, f := range known {
		l.put(f, float64(g.prices[f.bin]))
	}
	l.price()
	return l
}

// useful are the columns that are in use or nearly worth it.
func (l *lumps) useful() []filling {
	var out []filling
	for j := range l.cols {
		if l.cols[j].bin >= 0 && l.reduced(j) < 0.03*l.cost[j] {
			out = append(out, l.cols[j])
		}
	}
	return out
}

func (l *lumps) put(f filling, cost float64) int {
	row := make([]float64, 0, l.n)
	for _, v := range f.whole {
		row = append(row, float64(v))
	}
	l.cols = append(l.cols, f)
	return l.add(append(row, f.part...), cost)
}

// optimize generates contents until none is worth more than its bin by a part. At
// first pods are worth their resources at prices y.
func (l *lumps) optimize(y []float64, gain float64) {
	if len(l.cols) == l.n {
		for i, c := range l.large {
			l.pi[i] = value(l.g.d, l.g.req(c), y)
		}
		for i := range l.fluids {
			l.pi[len(l.large)+i] = value(l.g.d, l.fluids[i].need, y)
		}
		l.generate(-0.1)
		l.price()
	}
	for range lumpRounds {
		for range 20 * l.n {
			j, ok := l.best()
			if !ok || !l.enter(j) {
				break
			}
		}
		if !l.generate(gain) {
			return
		}
	}
}

// slotParts are prices of a slot for a pod that are tried where slots run out, as parts
// of what the least pod is worth.
var slotParts = [...]float64{0, 0.1, 0.3, 0.8}

// generate adds the best contents of each bin that are worth more than its price by a
// part.
func (l *lumps) generate(gain float64) bool {
	some := false
	var chests [len(slotParts)]*chest
	least := l.leastPod()
	for b := range l.g.bins {
		goal := float64(l.g.prices[b]) * (1 + gain)
		for k, part := range slotParts {
			slot := 0.0
			if k > 0 {
				slot = part * least
			}
			if chests[k] == nil {
				chests[k] = l.newChest(slot)
			}
			ch := chests[k]
			paid := float64(slot * float64(l.g.cap(b)[slots]))
			if ch.most(l.g.cap(b), max(0, goal-paid), l.steps, lumpSettle) <= goal-paid {
				break
			}
			f := filling{b, make([]int32, len(l.large)), make([]float64, len(l.fluids))}
			for i, n := range ch.kept {
				f.whole[ch.items[i].at] = n
			}
			worth, taken := ch.pour(l.g.cap(b), f.part)
			if worth+float64(slot*taken) > goal {
				l.put(f, float64(l.g.prices[b]))
				some = true
				break
			}
		}
	}
	return some
}

// leastPod is the least worth of a small pod.
func (l *lumps) leastPod() float64 {
	least := math.Inf(1)
	for i, f := range l.fluids {
		if w := l.pi[len(l.large)+i]; w > 0 {
			least = min(least, w/float64(max(f.need[slots], 1)))
		}
	}
	return least
}

func (l *lumps) newChest(slot float64) *chest {
	var items, fluids []item
	for i, c := range l.large {
		if w := l.pi[i] - slot; w > 0 && l.left[c] > 0 {
			items = append(items, item{at: i, need: l.g.req(c), most: l.left[c], worth: w})
		}
	}
	for i := range l.fluids {
		if w := l.pi[len(l.large)+i] - float64(slot*float64(l.fluids[i].need[slots])); w > 0 {
			fluids = append(fluids, item{at: i, need: l.fluids[i].need, worth: w})
		}
	}
	return newChest(l.g.d, items, fluids, l.g.cap(len(l.g.bins)/2))
}

// remember keeps the price of a pod per class, for the proof of a bound: what small
// pods are worth in the mix of fluids that gives the least for their shape.
func (l *lumps) remember(s *solver) {
	if s.pis == nil {
		s.pis = map[int]float64{}
	}
	for i, c := range l.large {
		s.pis[l.g.classes[c]] = max(l.pi[i], 0)
	}
	ch := l.newChest(0)
	for _, f := range l.fluids {
		for _, c := range f.classes {
			s.pis[l.g.classes[c]] = ch.cut(len(ch.items), l.g.req(c))
		}
	}
}

// largeOf lists the classes of a group that are large for the nodes it would use at
// prices y, largest first.
func (g *group) largeOf(count []int, y []float64) (large, small []int) {
	typical := make([]float64, g.d)
	n := 0
	for b := range g.bins {
		if worth(g.d, g.cap(b), y) > 0.97*float64(g.prices[b]) {
			for r, v := range g.cap(b) {
				typical[r] += float64(v)
			}
			n++
		}
	}
	size := make([]float64, len(count))
	for c := range count {
		if count[c] == 0 {
			continue
		}
		for r, v := range g.req(c) {
			if typical[r] > 0 {
				size[c] = max(size[c], float64(v)*float64(n)/typical[r])
			}
		}
		large = append(large, c)
	}
	slices.SortStableFunc(large, func(a, b int) int { return cmp.Compare(size[b], size[a]) })
	k := 0
	for k < len(large) && k < mostLarge && size[large[k]] > largeShare {
		k++
	}
	return large[:k:k], large[k:]
}
