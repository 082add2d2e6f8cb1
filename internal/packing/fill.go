package packing

import "math"

// knapsack fills one node so that the pods on it are worth the most at given
// prices per class. It is a heuristic: density-ordered fills under several weights
// of the resources, each polished by taking a little out and filling again.
type knapsack struct {
	g     *group
	bin   int   // being filled
	plain bool  // fills are not polished
	limit []int // most of each class that may go on the node

	lambda  []float64
	density []float64
	order   []int32
	left    []int64
	cur     []int32
	try     []int32
	out     []int32
	saved   []int64
	spare   []int32 // what shared caps leave
	kept    []int32

	found float64
	hit   bool
	steps int
}

func newKnapsack(g *group) *knapsack {
	n, d := len(g.classes), g.d
	return &knapsack{
		g: g, limit: make([]int, n), lambda: make([]float64, d), density: make([]float64, n),
		order: make([]int32, n), left: make([]int64, d), saved: make([]int64, d),
		cur: make([]int32, n), try: make([]int32, n), out: make([]int32, n),
	}
}

// allow sets how many pods of each class may be used, its most on one node at most.
func (k *knapsack) allow(count []int) {
	for c := range count {
		k.limit[c] = min(count[c], int(k.g.most[c]))
	}
}

// sortByDensity orders classes by worth per weighted resource, best first.
func (k *knapsack) sortByDensity(pi []float64) {
	d := k.g.d
	m := 0
	for c := range pi {
		if k.limit[c] == 0 || pi[c] <= 0 || !k.g.takes(k.bin, c) {
			continue
		}
		w := 1e-12
		for r := range d {
			w += float64(k.lambda[r] * float64(k.g.need[c*d+r]))
		}
		k.density[c] = pi[c] / w
		i := m
		for i > 0 && k.density[k.order[i-1]] < k.density[c] {
			k.order[i] = k.order[i-1]
			i--
		}
		k.order[i] = int32(c)
		m++
	}
	k.order = k.order[:m]
}

// room is how many more pods of class c fit.
func (k *knapsack) room(c int32, have int32) int {
	d := k.g.d
	n := k.limit[c] - int(have)
	for r := range d {
		if need := k.g.need[int(c)*d+r]; need > 0 {
			n = min(n, int(k.left[r]/need))
		}
	}
	if k.g.shared != nil {
		for _, r := range k.g.sharedOf[c] {
			n = min(n, int(k.spare[r.cap]/r.weight))
		}
	}
	return n
}

func (k *knapsack) add(a []int32, c int32, n int) {
	d := k.g.d
	a[c] += int32(n)
	for r := range d {
		k.left[r] -= int64(n) * k.g.need[int(c)*d+r]
	}
	if k.g.shared != nil {
		for _, r := range k.g.sharedOf[c] {
			k.spare[r.cap] -= int32(n) * r.weight
		}
	}
}

// empty starts with the whole room of bin b.
func (k *knapsack) empty(b int) {
	copy(k.left, k.g.cap(b))
	k.spare = k.spare[:0]
	for i := range k.g.shared {
		k.spare = append(k.spare, k.g.shared[i].max)
	}
}

func (k *knapsack) clashes(a []int32, c int32) bool {
	if k.g.clash == nil {
		return false
	}
	for _, o := range k.g.clash[c] {
		if a[o] > 0 {
			return true
		}
	}
	return false
}

// greedy adds classes in density order, skipping one class (-1: none).
func (k *knapsack) greedy(a []int32, pi []float64, skip int32) float64 {
	v := 0.0
	for _, c := range k.order {
		if c == skip || k.clashes(a, c) {
			continue
		}
		if n := k.room(c, a[c]); n > 0 {
			k.add(a, c, n)
			v += float64(float64(n) * pi[c])
		}
	}
	return v
}

// best fills bin b and returns the worth of what it holds; the contents are in
// k.out until the next call. start weighs the resources at first.
func (k *knapsack) best(b int, pi, start []float64, rounds int) float64 {
	g, d := k.g, k.g.d
	k.bin = b
	cap := g.cap(b)
	for r := range d {
		k.lambda[r] = start[r]
	}
	bestV := 0.0
	for range rounds {
		k.order = k.order[:len(pi)]
		k.sortByDensity(pi)
		k.empty(b)
		clear(k.cur)
		v := k.greedy(k.cur, pi, -1)
		v = k.polish(v, pi)
		if v > bestV {
			bestV = v
			copy(k.out, k.cur)
		}
		// Weigh what ran out more, what is left over less.
		moved := false
		for r := range d {
			if k.lambda[r] == 0 {
				continue
			}
			free := float64(k.left[r]) / float64(max(cap[r], 1))
			f := 1.0
			switch {
			case free > 0.02:
				f = max(0.4, 1-2*free)
			case free < 0.004:
				f = 1.15
			}
			if math.Abs(f-1) > 0.01 {
				moved = true
			}
			k.lambda[r] *= f
		}
		if !moved {
			break
		}
	}
	return bestV
}

// polish takes one or two pods of a class out and fills again, while that helps.
func (k *knapsack) polish(v float64, pi []float64) float64 {
	if k.plain || len(k.order) > 64 {
		return v
	}
	for improved := true; improved; {
		improved = false
		for _, c := range k.order {
			for n := int32(1); n <= 2; n++ {
				if k.cur[c] < n {
					break
				}
				copy(k.try, k.cur)
				copy(k.saved, k.left)
				k.kept = append(k.kept[:0], k.spare...)
				k.add(k.try, c, -int(n))
				w := v - float64(float64(n)*pi[c])
				w += k.greedy(k.try, pi, c)
				if w > v*(1+1e-9) {
					v = w
					copy(k.cur, k.try)
					improved = true
				} else {
					copy(k.left, k.saved)
					copy(k.spare, k.kept)
				}
			}
		}
	}
	return v
}

// deepen searches for contents of bin b worth more than floor, depth first over the
// classes in density order, most pods first. The weights left by best, raised until
// no class is worth more than its weight, bound what the remaining room can bring.
func (k *knapsack) deepen(b int, pi []float64, floor float64, steps int) float64 {
	g, d := k.g, k.g.d
	k.bin = b
	if len(k.order) == 0 {
		return 0
	}
	up := 0.0
	for _, c := range k.order {
		w := 1e-12
		for r := range d {
			w += float64(k.lambda[r] * float64(g.need[int(c)*d+r]))
		}
		up = max(up, pi[c]/w)
	}
	ub := 0.0
	for r := range d {
		k.lambda[r] *= up
		ub += float64(k.lambda[r] * float64(g.cap(b)[r]))
	}
	if ub <= floor {
		return 0
	}
	k.sortByDensity(pi)
	clear(k.try)
	k.empty(b)
	k.found, k.steps = floor, steps
	k.hit = false
	k.descend(0, 0, ub, pi)
	if !k.hit {
		return 0
	}
	return k.found
}

func (k *knapsack) descend(i int, v, ub float64, pi []float64) {
	k.steps--
	if v > k.found {
		k.found, k.hit = v*(1+1e-9), true
		copy(k.out, k.try)
	}
	if i == len(k.order) || k.steps <= 0 || v+ub <= k.found {
		return
	}
	d := k.g.d
	c := k.order[i]
	n := 0
	if !k.clashes(k.try, c) {
		n = k.room(c, 0)
	}
	w := 0.0
	for r := range d {
		w += float64(k.lambda[r] * float64(k.g.need[int(c)*d+r]))
	}
	k.add(k.try, c, n)
	for {
		k.descend(i+1, v+float64(float64(n)*pi[c]), ub-float64(float64(n)*w), pi)
		if n == 0 || k.steps <= 0 {
			break
		}
		n--
		k.add(k.try, c, -1)
		// Fewer of this class only pays if the classes behind it could make up for it.
		if v+float64(float64(n)*pi[c])+ub-float64(float64(n)*w) <= k.found {
			break
		}
	}
	if n > 0 {
		k.add(k.try, c, -n)
	}
}
