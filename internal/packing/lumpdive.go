package packing

import (
	"cmp"
	"slices"
)

// packLumps packs all of count: contents of large pods by the program, then small pods
// into the room beside them. The last few nodes of the program are a rest that is packed
// by search; where that is a good part of the plan, several sizes of it are tried, and
// several ways to get there.
func (s *solver) packLumps(g *group, count []int) (out []pattern, lp float64) {
	_, df := g.demandOf(count)
	y := duals(g.d, g.caps, g.prices, df)
	sub := g.promising(y, count, 0.09)
	large, small := sub.largeOf(count, y)
	l := &lumpPlan{s: s, g: sub, full: g, large: large, small: small, fluids: sub.fluidsOf(small, count), count: count, y: y}
	l.tries = mostTries
	turns := 1
	if sumOf(count) > smallPods {
		l.tries, turns = bulkTries, 0
	}
	l.run(&dive{left: slices.Clone(count), fluids: slices.Clone(l.fluids)}, turns)
	return l.best, l.value
}

// lumpPlan is a plan in the making.
type lumpPlan struct {
	s            *solver
	g, full      *group // promising bins, all bins
	large, small []int
	fluids       []fluid
	count        []int
	y            []float64

	value float64 // of the program
	best  []pattern
	price int64
	tries int // how many more plans may be finished
}

// dive is a plan as far as it is rounded.
type dive struct {
	left   []int
	fluids []fluid
	nodes  []filling
	known  []filling // columns that served before
}

// fewNodes is how many nodes of the program are little, the tries how many plans are
// finished, nearValue how much dearer than the program a plan may be to stop at.
const (
	fewNodes  = 4
	mostTries = 40
	bulkTries = 4
	nearValue = 1.002
)

func (d *dive) clone() *dive {
	return &dive{slices.Clone(d.left), slices.Clone(d.fluids), slices.Clone(d.nodes), d.known}
}

// take rounds a column up once.
func (d *dive) take(f filling, large []int) {
	whole := make([]int32, len(large))
	for i, c := range large {
		whole[i] = min(f.whole[i], int32(d.left[c]))
		d.left[c] -= int(whole[i])
	}
	for i, v := range f.part {
		d.fluids[i].amount = max(0, d.fluids[i].amount-v)
	}
	d.nodes = append(d.nodes, filling{f.bin, whole, f.part})
}

// run rounds the program: it takes whole copies of its columns, else one of the most
// used, and solves again for what is left, until nothing is. Where little is left, plans
// are finished, and if there are turns the second most used column is tried too.
func (l *lumpPlan) run(d *dive, turns int) {
	for {
		m := newLumps(l.g, l.large, d.left, d.fluids, d.known)
		gain := lumpGain
		if d.known != nil {
			m.steps /= 5
			gain = diveGain
		}
		m.optimize(l.y, gain)
		if d.known == nil {
			l.value = m.value()
			m.remember(l.s)
		}
		d.known = m.useful()
		nodes, taken := 0.0, false
		var use [2]struct { // the two most used
			col int
			x   float64
		}
		for i, j := range m.basis {
			if j < 0 || m.cols[j].bin < 0 {
				continue
			}
			nodes += m.x[i]
			for k := int(m.x[i] + 1e-6); k > 0; k-- {
				d.take(m.cols[j], l.large)
				taken = true
			}
			switch x := m.x[i]; {
			case x > use[0].x+1e-9:
				use[1], use[0].col, use[0].x = use[0], j, x
			case x > use[1].x+1e-9:
				use[1].col, use[1].x = j, x
			}
		}
		if taken {
			continue
		}
		if nodes <= fewNodes && len(d.nodes) > 0 {
			l.try(d.nodes)
		}
		if use[0].x == 0 || l.done() {
			return
		}
		if turns > 0 && nodes <= fewNodes+1 && use[1].x > 0.3*use[0].x {
			other := d.clone()
			other.take(m.cols[use[1].col], l.large)
			l.run(other, turns-1)
		}
		d.take(m.cols[use[0].col], l.large)
	}
}

// done reports whether the best plan is near the program's value or enough were tried.
func (l *lumpPlan) done() bool {
	return l.tries <= 0 || l.best != nil && float64(l.price) <= nearValue*l.value
}

// try finishes the plan that starts with nodes and keeps it if it is the cheapest.
func (l *lumpPlan) try(nodes []filling) {
	l.tries--
	left := slices.Clone(l.count)
	p := l.finish(nodes, left)
	rest, _ := l.s.packRest(l.full, left, nil, restCare(p, left))
	p = append(p, rest...)
	if price := l.full.price(p); l.best == nil || price < l.price {
		l.best, l.price = p, price
	}
}

// finish puts small pods beside the large ones of planned nodes. What found no place
// stays in left.
func (l *lumpPlan) finish(nodes []filling, left []int) []pattern {
	sp := newSpreader(l.g, l.y)
	sp.preset = l.g.deal(nodes, l.large, l.fluids, left)
	bins := make([]int, len(nodes))
	share := make([]int, len(left))
	for _, c := range l.small {
		share[c] = left[c]
	}
	for i := range bins {
		bins[i] = nodes[i].bin
	}
	l.s.spreadBest(sp, bins, share)
	for c, n := range share {
		left[c] -= n - sp.rest[c]
	}
	out := sp.patterns(nil)
	use := make([]int32, len(left))
	for i := range out { // some bin that did not promise much may hold it for less
		clear(use)
		for _, cc := range out[i].cc {
			use[cc.Class] = int32(cc.Count)
		}
		out[i].bin = l.full.cheapest(use)
	}
	return out
}

// plain reports whether contents are limited by cpu, memory and pod slots alone, the
// same for every bin.
func (g *group) plain() bool {
	if g.d < 3 || g.capped || g.clash != nil || g.shared != nil {
		return false
	}
	for b := range g.bins {
		if g.bins[b].allow != nil {
			return false
		}
	}
	for c := range g.classes {
		if n := g.req(c); n[0] == 0 || n[1] == 0 || slices.Max(append([]int64{0}, n[3:]...)) > 0 {
			return false
		}
	}
	return true
}

// deal puts pods on planned nodes: the large ones as planned, then small ones of every
// fluid, largest first, each where most of what is planned of the fluid is still
// missing. What is dealt is taken from left. It returns the contents by node.
func (g *group) deal(plan []filling, large []int, fluids []fluid, left []int) []int32 {
	n := len(left)
	held := make([]int32, len(plan)*n)
	room := make([]int64, len(plan)*g.d)
	put := func(i, c int, k int64) {
		held[i*n+c] += int32(k)
		left[c] -= int(k)
		for r, v := range g.req(c) {
			room[i*g.d+r] -= k * v
		}
	}
	for i, p := range plan {
		copy(room[i*g.d:], g.cap(p.bin))
		for k, v := range p.whole {
			put(i, large[k], int64(v))
		}
	}
	due := make([]float64, len(plan))
	for f := range fluids {
		fl := &fluids[f]
		for i := range plan {
			due[i] = plan[i].part[f]
		}
		slices.SortStableFunc(fl.classes, func(a, b int) int { return cmp.Compare(g.req(b)[0], g.req(a)[0]) })
		for _, c := range fl.classes {
			part := float64(g.req(c)[0]) / float64(max(fl.need[0], 1))
			for left[c] > 0 {
				i := top(due)
				if due[i] < part/2 {
					break
				}
				if !covers(room[i*g.d:(i+1)*g.d], g.req(c)) {
					due[i] = 0
					continue
				}
				put(i, c, 1)
				due[i] -= part
			}
		}
	}
	return held
}
