package bound

import (
	"math"
	"slices"
)

// knapsack finds how much pods are worth at most in a room: of some kinds whole pods, of
// others also parts of pods. It counts in integers and rounds up, so what it says holds
// to the last digit. Worths are in grains (see Contents), rooms and needs in units.
type knapsack struct {
	whole []packed // largest first
	parts []packed
	// corners[i] are prices per unit of CPU and of memory at which neither a whole kind
	// from i on nor a cut one is worth more than what it needs: each bounds what those
	// kinds are worth in a room, and the least of them is what they would be worth if
	// all could be cut.
	corners [][]corner
	steps   int
	settle  int // of them, once something was found

	best int64 // most found, or what it started from
	open int64 // most that what was not searched could be worth
	take []int64
	kept []int64
}

// packed is a kind of pods as the search sees it.
type packed struct {
	index int // of the caller
	need  room
	count int64
	worth int64
}

// room is an amount of CPU, memory and pods.
type room [3]int64

// corner is a price per unit of CPU and of memory, and the kinds that set it (-1: none).
type corner struct {
	price [2]int64
	by    [2]int
}

// newKnapsack prepares a search; whole kinds are decided in the order given.
func newKnapsack(whole, parts []packed) *knapsack {
	worthless := func(p packed) bool { return p.worth <= 0 || p.count <= 0 }
	k := &knapsack{
		whole: slices.DeleteFunc(slices.Clone(whole), worthless),
		parts: slices.DeleteFunc(slices.Clone(parts), worthless),
	}
	k.take, k.kept = make([]int64, len(k.whole)), make([]int64, len(k.whole))
	for i := range len(k.whole) + 1 {
		k.corners = append(k.corners, corners(slices.Concat(k.parts, k.whole[i:])))
	}
	return k
}

// corners lists the vertices of the set of prices that no kind beats, rounded up until
// each holds exactly.
func corners(kinds []packed) []corner {
	if len(kinds) == 0 {
		return []corner{{by: [2]int{-1, -1}}}
	}
	var out []corner
	add := func(x, y float64, i, j int) {
		if !(x >= 0) || !(y >= 0) || x > 1<<60 || y > 1<<60 {
			return
		}
		at := [2]int64{int64(math.Ceil(x)), int64(math.Ceil(y))}
		for _, p := range kinds {
			short := p.worth - at[0]*p.need[0] - at[1]*p.need[1]
			if short <= 0 {
				continue
			}
			if float64(short) > 1e-6*float64(p.worth) {
				return // not a vertex
			}
			r := 0
			if at[1]*p.need[1] > at[0]*p.need[0] {
				r = 1
			}
			at[r] += (short + p.need[r] - 1) / p.need[r]
		}
		out = append(out, corner{at, [2]int{i, j}})
	}
	high, by := [2]float64{}, [2]int{-1, -1}
	for i, p := range kinds {
		for r := range 2 {
			if v := float64(p.worth) / float64(p.need[r]); v > high[r] {
				high[r], by[r] = v, i
			}
		}
	}
	add(high[0], 0, by[0], -1)
	add(0, high[1], -1, by[1])
	for i, a := range kinds {
		for j, b := range kinds[:i] {
			ax, ay, az := float64(a.need[0]), float64(a.need[1]), float64(a.worth)
			bx, by, bz := float64(b.need[0]), float64(b.need[1]), float64(b.worth)
			if det := ax*by - bx*ay; det != 0 {
				add((az*by-bz*ay)/det, (ax*bz-bx*az)/det, i, j)
			}
		}
	}
	return out
}

// cut bounds what kinds from i on are worth in a room.
func (k *knapsack) cut(i int, left room) int64 {
	least := int64(math.MaxInt64)
	for c := range k.corners[i] {
		p := &k.corners[i][c].price
		least = min(least, p[0]*left[0]+p[1]*left[1])
	}
	return least
}

// most returns a bound on what the room can hold, no less than from. found reports
// contents worth more than from: kept then holds the whole pods of them.
func (k *knapsack) most(cap room, from int64, steps, settle int) (worth int64, found bool) {
	k.best, k.open, k.steps, k.settle = from, from, steps, settle
	clear(k.take)
	if slices.Min(cap[:]) >= 0 && k.cut(0, cap) > from {
		k.descend(0, 0, cap)
	}
	return max(k.best, k.open), k.best > from
}

func (k *knapsack) descend(i int, worth int64, left room) {
	if v := worth + k.cut(len(k.whole), left); v > k.best {
		k.best = v
		copy(k.kept, k.take)
		k.steps = min(k.steps, k.settle)
	}
	if i == len(k.whole) {
		return
	}
	k.steps--
	p := &k.whole[i]
	n := p.count
	for r, need := range p.need {
		n = min(n, left[r]/need)
	}
	for ; n >= 0; n-- {
		rest := left
		for r, need := range p.need {
			rest[r] -= n * need
		}
		v := worth + n*p.worth
		up := v + k.cut(i+1, rest)
		switch {
		case up <= k.best:
		case k.steps < 0:
			k.open = max(k.open, up)
		default:
			k.take[i] = n
			k.descend(i+1, v, rest)
		}
	}
	k.take[i] = 0
}

// amounts are the contents that most found last in a room, by index of the caller.
func (k *knapsack) amounts(cap room, out []float64) {
	left := [2]float64{float64(cap[0]), float64(cap[1])}
	for i, n := range k.kept {
		out[k.whole[i].index] = float64(n)
		for r := range left {
			left[r] -= float64(n * k.whole[i].need[r])
		}
	}
	// Of the pairs of cut kinds that fill what is left, the one that is worth most.
	var best [2]float64
	pair, most := [2]int{-1, -1}, 0.0
	for _, c := range k.corners[len(k.whole)] {
		x, v := k.mix(c.by, left)
		if v > most {
			best, pair, most = x, c.by, v
		}
	}
	for s, i := range pair {
		if i >= 0 {
			out[k.parts[i].index] += best[s]
		}
	}
}

// mix fills a room with one or two cut kinds and says what that is worth; 0 where it
// takes a negative amount or more than there is.
func (k *knapsack) mix(by [2]int, left [2]float64) (x [2]float64, worth float64) {
	if by[0] >= 0 && by[1] >= 0 {
		a, b := k.parts[by[0]], k.parts[by[1]]
		ax, ay, bx, by := float64(a.need[0]), float64(a.need[1]), float64(b.need[0]), float64(b.need[1])
		det := ax*by - bx*ay
		x[0], x[1] = (left[0]*by-bx*left[1])/det, (ax*left[1]-left[0]*ay)/det
		if x[0] < 0 || x[1] < 0 {
			return x, 0
		}
		return x, x[0]*float64(a.worth) + x[1]*float64(b.worth)
	}
	for s, i := range by {
		if i >= 0 {
			p := k.parts[i]
			x[s] = left[s] / float64(p.need[s])
			if other := 1 - s; x[s]*float64(p.need[other]) <= left[other]*(1+1e-9) {
				return x, x[s] * float64(p.worth)
			}
		}
	}
	return x, 0
}
