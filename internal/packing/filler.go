package packing

import "math"

// filler fills one node so that the pods on it are worth the most at given prices per
// class, where rules limit how many of a class may be on it. Beside contents it gives a
// bound on what any contents are worth, which tells at once that most bins are not
// worth a search. It remembers per bin which weights of the resources served it well.
type filler struct {
	g     *group
	limit []int32 // most of each class that may go on the node

	// By bin, stride d: the weights of the resources, and how they change.
	lambda, step []float64
	order        [][]int32 // by bin: classes by worth for their weight, best first

	// For the bin at hand.
	weight, dens []float64 // by class: its weight, and its worth for it
	use          []float64 // by resource: what cut pods use
	most         float64   // bound on the worth of any contents
	scale        float64   // what a unit of weight is worth at the margin
	cur          []int32   // contents
	left         []int64   // room beside them
	spare        []int32   // what shared caps leave beside them
	out          []int32   // the best contents

	saved struct {
		cur, spare []int32
		left       []int64
	}
	kept  []float64 // weights to come back to
	share []float64 // by resource: weights for what is left
	list  []int32
	tab   table

	// Depth-first search.
	extra []float64 // by class: worth beyond its weight
	loss  []int32   // classes by what the wrong choice gives away
	goal  float64
	steps int
	hit   bool
	open  float64 // most that what was not searched could be worth
}

func newFiller(g *group, y []float64) *filler {
	n, d := len(g.classes), g.d
	f := &filler{
		g: g, limit: make([]int32, n), lambda: make([]float64, len(g.caps)), step: make([]float64, len(g.caps)),
		order: make([][]int32, len(g.bins)), weight: make([]float64, n), dens: make([]float64, n), extra: make([]float64, n),
		use: make([]float64, d), share: make([]float64, d), kept: make([]float64, d), left: make([]int64, d),
		cur: make([]int32, n), out: make([]int32, n), spare: make([]int32, len(g.shared)),
	}
	f.saved.cur, f.saved.spare, f.saved.left = make([]int32, n), make([]int32, len(g.shared)), make([]int64, d)
	for i := range f.step {
		f.step[i] = 0.3
	}
	for b := range g.bins {
		whole := value(d, g.cap(b), y)
		if whole <= 0 {
			whole = 1
		}
		for r, v := range g.cap(b) {
			if v > 0 { // a resource without a price may still be what a node runs out of
				f.lambda[b*d+r] = max(y[r], 0.02*whole/float64(v))
			}
		}
		for c := range n {
			if g.takes(b, c) && g.most[c] > 0 && covers(g.cap(b), g.req(c)) {
				f.order[b] = append(f.order[b], int32(c))
			}
		}
	}
	return f
}

// allow sets how many pods of each class there are to choose from.
func (f *filler) allow(count []int) {
	for c, n := range count {
		f.limit[c] = int32(min(n, int(f.g.most[c])))
	}
}

// weigh sorts the classes of bin b by worth for their weight and bounds what contents
// are worth: as if pods could be cut and only the weight counted.
func (f *filler) weigh(b int, pi []float64) {
	g, d := f.g, f.g.d
	lam := f.lambda[b*d : (b+1)*d]
	order := f.order[b]
	for i, c := range order {
		w := 0.0
		for r, v := range g.req(int(c)) {
			w += float64(lam[r] * float64(v))
		}
		f.weight[c] = w
		f.dens[c] = pi[c] / max(w, 1e-300) // what weighs nothing comes first
		for i > 0 && f.dens[order[i-1]] < f.dens[c] {
			order[i] = order[i-1]
			i--
		}
		order[i] = c
	}
	room := 0.0
	for r, v := range g.cap(b) {
		room += float64(lam[r] * float64(v))
	}
	f.most, f.scale = 0, 0
	clear(f.use)
	for _, c := range order {
		if pi[c] <= 0 {
			break
		}
		k := float64(f.limit[c])
		if w := k * f.weight[c]; w <= room {
			room -= w
			f.most += float64(k * pi[c])
		} else {
			k = room / f.weight[c]
			f.most += float64(k * pi[c])
			f.scale = f.dens[c]
		}
		for r, v := range g.req(int(c)) {
			f.use[r] += float64(k * float64(v))
		}
		if f.scale > 0 {
			break
		}
	}
}

// reweigh makes dearer what cut pods use too much of in bin b, and what they leave
// cheaper.
func (f *filler) reweigh(b int) {
	g, d := f.g, f.g.d
	lam := f.lambda[b*d : (b+1)*d]
	whole := 0.0
	for r, v := range g.cap(b) {
		whole += float64(lam[r] * float64(v))
	}
	for r, v := range g.cap(b) {
		if v <= 0 {
			continue
		}
		// A step that goes on in its direction grows, one that turns back shrinks.
		step := &f.step[b*d+r]
		up := f.use[r] > float64(v)
		if up == (*step > 0) {
			*step = min(0.6, max(-0.6, *step*1.4))
		} else {
			*step *= -0.5
		}
		if abs(*step) < leastStep {
			*step = math.Copysign(leastStep, *step)
		}
		lam[r] *= 1 + *step
		lam[r] = max(lam[r], 0.0005*whole/float64(v))
	}
}

// empty starts with the whole room of bin b.
func (f *filler) empty(b int) {
	copy(f.left, f.g.cap(b))
	for i := range f.g.shared {
		f.spare[i] = f.g.shared[i].max
	}
	clear(f.cur)
}

// room is how many more pods of class c fit beside what there is.
func (f *filler) room(c int32) int32 {
	g := f.g
	n := int64(f.limit[c] - f.cur[c])
	for r, need := range g.req(int(c)) {
		if need > 0 {
			n = min(n, f.left[r]/need)
		}
	}
	if n > 0 && g.clash != nil {
		for _, o := range g.clash[c] {
			if f.cur[o] > 0 {
				return 0
			}
		}
	}
	if g.shared != nil {
		for _, r := range g.sharedOf[c] {
			n = min(n, int64(f.spare[r.cap]/r.weight))
		}
	}
	return int32(n)
}

func (f *filler) put(c, n int32) {
	g := f.g
	f.cur[c] += n
	for r, need := range g.req(int(c)) {
		f.left[r] -= int64(n) * need
	}
	if g.shared != nil {
		for _, r := range g.sharedOf[c] {
			f.spare[r.cap] -= n * r.weight
		}
	}
}

// fill looks for contents of bin b worth more than goal, quickly: classes in the order
// of their worth for several weights of the resources. It returns the worth of the best,
// which out then holds; 0 where none can be worth that much.
func (f *filler) fill(b int, pi []float64, goal float64, rounds int) float64 {
	best := 0.0
	for range rounds {
		f.weigh(b, pi)
		if f.most <= goal {
			return best
		}
		f.empty(b)
		v := 0.0
		for _, c := range f.order[b] {
			if pi[c] <= 0 {
				break
			}
			if n := f.room(c); n > 0 {
				f.put(c, n)
				v += float64(float64(n) * pi[c])
			}
		}
		if v > best {
			best = v
			copy(f.out, f.cur)
		}
		f.reweigh(b)
	}
	return best
}

// settle finds weights for bin b under which the bound is low; false when it is no more
// than goal.
func (f *filler) settle(b int, pi []float64, goal float64) bool {
	d := f.g.d
	lam := f.lambda[b*d : (b+1)*d]
	low := math.Inf(1)
	for range settleRounds {
		f.weigh(b, pi)
		if f.most <= goal {
			return false
		}
		if f.most < low {
			low = f.most
			copy(f.kept, lam)
		}
		f.reweigh(b)
	}
	copy(lam, f.kept)
	f.weigh(b, pi)
	return true
}

// settleRounds is how often weights are tried for one search.
const settleRounds = 24

// search looks for contents of bin b worth more than goal, depth first: what each
// choice gives away against the bound of weigh cuts the rest. It returns their worth,
// which out then holds, or 0.
func (f *filler) search(b int, pi []float64, goal float64, steps int) float64 {
	if !f.settle(b, pi, goal) {
		return 0
	}
	f.loss = f.loss[:0]
	for _, c := range f.order[b] {
		if pi[c] <= 0 || f.limit[c] == 0 {
			continue
		}
		e := pi[c] - float64(f.scale*f.weight[c])
		f.extra[c] = e
		i := len(f.loss)
		f.loss = append(f.loss, c)
		for i > 0 && abs(f.extra[f.loss[i-1]]) < abs(e) {
			f.loss[i] = f.loss[i-1]
			i--
		}
		f.loss[i] = c
	}
	f.empty(b)
	f.goal, f.steps, f.hit = goal, steps, false
	f.descend(0, 0, f.most, pi)
	if !f.hit {
		return 0
	}
	return f.goal
}

// descend chooses how many there are of the i-th class; worth is what is chosen, most
// bounds what it can come to.
func (f *filler) descend(i int, worth, most float64, pi []float64) {
	if worth > f.goal {
		f.goal, f.hit = worth*(1+1e-9), true
		copy(f.out, f.cur)
	}
	if i == len(f.loss) || most <= f.goal {
		return
	}
	if f.steps <= 0 {
		f.open = max(f.open, most)
		return
	}
	f.steps--
	c := f.loss[i]
	room := f.room(c)
	e := f.extra[c]
	if e >= 0 {
		for n := room; n >= 0; n-- {
			gone := most - float64(e*float64(f.limit[c]-n))
			if gone <= f.goal {
				return
			}
			f.put(c, n)
			f.descend(i+1, worth+float64(float64(n)*pi[c]), gone, pi)
			f.put(c, -n)
		}
		return
	}
	for n := int32(0); n <= room; n++ {
		gone := most + float64(e*float64(n))
		if gone <= f.goal {
			return
		}
		f.put(c, n)
		f.descend(i+1, worth+float64(float64(n)*pi[c]), gone, pi)
		f.put(c, -n)
	}
}

// leastStep is the least relative change of a weight.
const leastStep = 0.001
