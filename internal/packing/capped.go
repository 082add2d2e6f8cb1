package packing

import (
	"cmp"
	"math"
	"slices"
)

// This file packs classes of which rules limit how many may share a node. How many
// nodes there are is then decided as much by the rules as by room, so contents are
// generated for all pods as whole: a linear program over contents, rounded one node
// after another.

// Effort of that.
const (
	fillGain     = 1e-3  // what new contents must promise
	fillPasses   = 200   // over the bins
	fillSearch   = 200   // steps of one search for contents
	nearShare    = 0.985 // bins are left aside whose contents are worth less of their price
	farShare     = 0.04  // columns that cost so much more than their worth are dropped
	divePasses   = 2     // over the bins, after a node was taken
	wideDive     = 250   // pods up to which nodes beside the most used are tried
	mendRounds   = 2
	mendNodes    = 5
	cappedEnough = 1.003
)

// fillings is the program: rows are classes, columns are contents.
type fillings struct {
	cover
	s      *solver
	g      *group
	fill   *filler
	cols   []column
	seen   map[string]bool
	key    []byte
	left   []int
	active []int // bins that contents are looked for in

	out   []pattern // taken so far
	best  []pattern // the cheapest plan
	price int64     // of it
}

func (s *solver) newFillings(g *group, count []int, y []float64) *fillings {
	f := &fillings{
		cover: newCover(len(count)), s: s, g: g, fill: newFiller(g, y), seen: map[string]bool{},
		left: slices.Clone(count), price: math.MaxInt64,
	}
	for b := range g.bins {
		f.active = append(f.active, b)
	}
	return f
}

// add makes contents a column, on the cheapest bin that holds them.
func (f *fillings) add(a []int32) bool {
	f.key = f.key[:0]
	for _, v := range a {
		f.key = append(f.key, byte(v), byte(v>>8))
	}
	if f.seen[string(f.key)] {
		return false
	}
	b := f.g.cheapest(a)
	if b < 0 {
		return false
	}
	f.seen[string(f.key)] = true
	f.cols = append(f.cols, column{b, slices.Clone(a)})
	f.cover.add(a, float64(f.g.prices[b]))
	return true
}

// begin starts from the cheapest contents of each class alone.
func (f *fillings) begin(y []float64) bool {
	a := make([]int32, f.n)
	pi := make([]float64, f.n)
	for c := range f.n {
		best, k := math.Inf(1), 0
		for b := range f.g.bins {
			if !f.g.takes(b, c) {
				continue
			}
			n := min(max(1, f.left[c]), int(f.g.most[c]))
			for r, need := range f.g.req(c) {
				if need > 0 {
					n = min(n, int(f.g.cap(b)[r]/need))
				}
			}
			if p := float64(f.g.prices[b]) / float64(n); n > 0 && p < best {
				best, k = p, n
			}
		}
		if k == 0 {
			return false
		}
		clear(a)
		a[c] = int32(k)
		f.add(a)
		f.start(c, len(f.cols)-1, float64(k), float64(f.left[c]))
		pi[c] = value(f.g.d, f.g.req(c), y) + 1
	}
	f.reprice()
	f.fill.allow(f.left)
	for b := range f.g.bins {
		if f.fill.fill(b, pi, 0, 2) > 0 {
			f.add(f.fill.out)
		}
	}
	return true
}

// optimize runs the simplex and adds contents until none promises a gain, or so many
// passes were made. The quickest way to fill bins comes first; only where it finds
// nothing, slower ones do, and with search the slowest.
func (f *fillings) optimize(passes int, search bool) {
	f.fill.allow(f.left)
	quick := func(b int, goal float64) float64 { return f.fill.fill(b, f.pi, goal, 2) }
	hard := func(b int, goal float64) float64 { return f.fill.shake(b, f.pi, goal) }
	table := func(b int, goal float64) float64 { return f.fill.table(b, f.pi, goal) }
	deep := func(b int, goal float64) float64 { return f.fill.search(b, f.pi, goal, fillSearch) }
	for range passes {
		f.run()
		if f.spent() {
			return
		}
		if !f.generate(quick) && !f.generate(hard) && (!search || (!f.generate(table) && !f.generate(deep))) {
			return
		}
	}
	f.run()
}

// generate adds the contents that a way to fill finds for each active bin, if they
// promise a gain; it reports whether any did.
func (f *fillings) generate(fill func(b int, goal float64) float64) bool {
	added := false
	for _, b := range f.active {
		goal := float64(f.g.prices[b]) * (1 + fillGain)
		if fill(b, goal) > goal && f.add(f.fill.out) {
			added = true
		}
	}
	return added
}

// narrow keeps the bins active whose contents can be worth nearly their price.
func (f *fillings) narrow() {
	f.active = slices.DeleteFunc(f.active, func(b int) bool {
		f.fill.fill(b, f.pi, 0, 6)
		return f.fill.most < nearShare*float64(f.g.prices[b])
	})
}

// forget drops the columns that cost much more than what they cover is worth.
func (f *fillings) forget() {
	used := make([]bool, len(f.cols))
	for _, j := range f.basis {
		if j >= 0 {
			used[j] = true
		}
	}
	to := make([]int, len(f.cols))
	kept := 0
	for j := range f.cols {
		if !used[j] && f.cost[j]-dot(f.row(j), f.pi) > farShare*f.cost[j] {
			continue
		}
		to[j] = kept
		f.cols[kept], f.cost[kept] = f.cols[j], f.cost[j]
		copy(f.row(kept), f.row(j))
		kept++
	}
	f.cols, f.cost, f.rows = f.cols[:kept], f.cost[:kept], f.rows[:kept*f.n]
	f.good = f.good[:0]
	for i, j := range f.basis {
		if j >= 0 {
			f.basis[i] = to[j]
		}
	}
}

// point is a point of a dive to come back to.
type point struct {
	inv, x, pi []float64
	basis      []int
	left       []int
	taken      int
}

func (f *fillings) save() point {
	return point{slices.Clone(f.inv), slices.Clone(f.x), slices.Clone(f.pi), slices.Clone(f.basis), slices.Clone(f.left), len(f.out)}
}

func (f *fillings) restore(p point) {
	copy(f.inv, p.inv)
	copy(f.x, p.x)
	copy(f.pi, p.pi)
	copy(f.basis, p.basis)
	copy(f.left, p.left)
	f.out = f.out[:p.taken]
}

// onOne records the plan that puts all that is left on one node.
func (f *fillings) onOne(spent int64) {
	a := make([]int32, f.n)
	for c, n := range f.left {
		if n > int(f.g.most[c]) {
			return
		}
		a[c] = int32(n)
	}
	b := f.g.cheapest(a)
	if b < 0 || spent+f.g.prices[b] >= f.price || !f.g.permits(a) {
		return
	}
	f.price = spent + f.g.prices[b]
	f.best = append(slices.Clone(f.out), pattern{b, sparse(a)})
}

// dive takes whole copies of the contents that the program uses, or once those it uses
// most, and solves the program for the rest. other is how far down the list of the most
// used it may go altogether.
func (f *fillings) dive(other int) {
	for {
		spent := f.g.price(f.out)
		if sumOf(f.left) == 0 {
			if spent < f.price {
				f.price, f.best = spent, slices.Clone(f.out)
			}
			return
		}
		f.onOne(spent)
		if float64(spent)+f.value() >= float64(f.price)*(1-fillGain) {
			return
		}
		if !f.takeWhole() {
			order := f.mostUsed()
			if len(order) == 0 {
				return
			}
			if other > 0 && len(order) > 1 {
				p := f.save()
				for k := 1; k < len(order) && k <= other && !f.spent(); k++ {
					f.takeOnce(order[k])
					f.dive(other - k)
					f.restore(p)
				}
			}
			f.takeOnce(order[0])
			continue
		}
		f.remain(f.left)
		f.optimize(divePasses, false)
	}
}

// takeWhole takes the whole copies.
func (f *fillings) takeWhole() bool {
	before := len(f.out)
	for i, j := range f.basis {
		if j >= 0 {
			if n := int(math.Floor(f.x[i] + 1e-6)); n > 0 {
				f.out = f.g.take(f.out, f.left, f.cols[j], n, f.g)
			}
		}
	}
	return len(f.out) > before
}

func (f *fillings) takeOnce(j int) {
	f.out = f.g.take(f.out, f.left, f.cols[j], 1, f.g)
	f.remain(f.left)
	f.optimize(divePasses, false)
}

// mostUsed lists the columns in use, the most used first.
func (f *fillings) mostUsed() []int {
	type use struct {
		j int
		x float64
	}
	var us []use
	for i, j := range f.basis {
		if j >= 0 && f.x[i] > 0.02 {
			us = append(us, use{j, f.x[i]})
		}
	}
	slices.SortFunc(us, func(a, b use) int { return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(a.j, b.j)) })
	out := make([]int, len(us))
	for i := range us {
		out[i] = us[i].j
	}
	return out
}

// packCapped packs a group some of whose classes may not share nodes freely; nil where
// that is not for it.
func (s *solver) packCapped(g *group, count []int) ([]pattern, float64) {
	if !g.capped || len(g.classes) > someClasses || s.work <= 0 {
		return nil, 0
	}
	_, df := g.demandOf(count)
	y := duals(g.d, g.caps, g.prices, df)
	f := s.newFillings(g, count, y)
	defer func() { s.work -= f.work() }()
	if !f.begin(y) {
		return nil, 0
	}
	f.recall()
	f.optimize(fillPasses, false)
	f.narrow()
	f.optimize(fillPasses, s.hurry == 1)
	f.forget()
	lp := f.value()
	f.remember()
	f.record()
	root := f.save()
	f.dive(0)
	if s.hurry > 1 {
		return f.best, lp
	}
	if sumOf(count) <= wideDive && float64(f.price) > lp*cappedEnough {
		f.restore(root)
		f.dive(2)
	}
	return f.mend(f.best, root, lp), lp
}

// work is what was done, in the steps of the work budget.
func (f *fillings) work() int64 { return int64(f.steps * f.n * 20) }

// spent reports whether the work budget is used up.
func (f *fillings) spent() bool { return f.work() > f.s.work }

// remember keeps the price of a pod per class, for the proof of a bound.
func (f *fillings) remember() {
	if f.s.pis == nil {
		f.s.pis = map[int]float64{}
	}
	for c, v := range f.pi {
		f.s.pis[f.g.classes[c]] = v
	}
}

// known are contents that served well for a group, for the next one that needs the same
// under the same rules: the same pods in another zone.
type known struct {
	need     []int64
	most     []int32
	contents [][]int32
}

func (f *fillings) record() {
	k := known{need: f.g.need, most: f.g.most}
	for j := range f.cols {
		k.contents = append(k.contents, f.cols[j].a)
	}
	f.s.known = k
}

func (f *fillings) recall() {
	k := &f.s.known
	if !slices.Equal(k.need, f.g.need) || !slices.Equal(k.most, f.g.most) {
		return
	}
	for _, a := range k.contents {
		if f.g.permits(a) {
			f.add(a)
		}
	}
}

// mend packs the pods of a few nodes anew, those that cost the most for what their pods
// are worth in the program, while that makes them cheaper.
func (f *fillings) mend(ps []pattern, root point, lp float64) []pattern {
	g := f.g
	loss := func(p *pattern) float64 {
		v := float64(g.prices[p.bin])
		for _, cc := range p.cc {
			v -= float64(root.pi[cc.Class] * float64(cc.Count))
		}
		return v
	}
	root.taken = 0
	for from, round := 0, 0; round < mendRounds && from+mendNodes < len(ps); round++ {
		if float64(g.price(ps)) < lp*cappedEnough || f.spent() {
			break
		}
		slices.SortStableFunc(ps, func(a, b pattern) int { return cmp.Compare(loss(&b), loss(&a)) })
		set := ps[from : from+mendNodes]
		f.restore(root)
		clear(f.left)
		for _, p := range set {
			for _, cc := range p.cc {
				f.left[cc.Class] += cc.Count
			}
		}
		f.remain(f.left)
		f.optimize(divePasses, false)
		f.price, f.best = g.price(set), nil
		f.dive(1)
		if f.best == nil {
			from += mendNodes / 2
			continue
		}
		ps = append(slices.Delete(ps, from, from+mendNodes), f.best...)
		from = 0
	}
	return ps
}
