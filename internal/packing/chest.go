package packing

import (
	"cmp"
	"math"
	"slices"
)

// chest finds contents of a node that are worth the most: pods of some kinds whole,
// depth first, cut by what the rest could be worth if all pods could be cut; fluids
// fill what is left.
type chest struct {
	d      int
	items  []item
	fluids []item
	// corners, by the first item that is not decided: prices of cpu and memory at which
	// no later item and no fluid is worth more than what it needs. The least of them
	// for some room is exactly what those could be worth there in parts.
	corners [][]corner
	left    []int64 // by depth
	take    []int32
	kept    []int32
	best    float64
	open    float64 // the most that what was not searched could be worth
	steps   int
	settle  int // steps that are left to do better than what was found
}

// slots is the dimension of pods.
const slots = 2

// item is a kind of pods in a chest.
type item struct {
	at    int // of the caller
	need  []int64
	most  int // fluids: no limit
	worth float64
}

// corner is a pair of prices and the kinds that set it, -1 for none.
type corner struct {
	price [2]float64
	by    [2]int
}

func newChest(d int, items, fluids []item, typical []int64) *chest {
	size := func(it item) float64 {
		w := 1e-12
		for r := range min(2, d) {
			w += float64(it.need[r]) / float64(max(typical[r], 1))
		}
		return w
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(size(b), size(a)) })
	ch := &chest{d: d, items: items, fluids: fluids, left: make([]int64, (len(items)+1)*d), take: make([]int32, len(items)), kept: make([]int32, len(items))}
	all := slices.Concat(fluids, items)
	for i := range len(items) + 1 {
		// Items in reverse, so that those which are left come first.
		for k := range items {
			all[len(fluids)+k] = items[len(items)-1-k]
		}
		ch.corners = append(ch.corners, hull(all[:len(all)-i]))
	}
	return ch
}

// hull lists the corners of the prices per cpu and memory that no item beats.
func hull(items []item) []corner {
	if len(items) == 0 {
		return []corner{{by: [2]int{-1, -1}}}
	}
	var out []corner
	add := func(x, y float64, i, j int) {
		if !(x >= 0) || !(y >= 0) || math.IsInf(x, 1) || math.IsInf(y, 1) {
			return
		}
		up := 1.0 // lifts the corner until it holds to the last bit
		for k := range items {
			v := float64(x*float64(items[k].need[0])) + float64(y*float64(items[k].need[1]))
			if v < items[k].worth*(1-1e-6) {
				return
			}
			up = max(up, items[k].worth/v)
		}
		up *= 1 + 1e-12
		out = append(out, corner{[2]float64{x * up, y * up}, [2]int{i, j}})
	}
	var high [2]float64
	by := [2]int{-1, -1}
	for r := range high {
		for i := range items {
			if v := items[i].worth / float64(items[i].need[r]); v > high[r] {
				high[r], by[r] = v, i
			}
		}
	}
	add(high[0], 0, by[0], -1)
	add(0, high[1], -1, by[1])
	for i := range items {
		for j := range i {
			a, b := &items[i], &items[j]
			ax, ay, bx, by := float64(a.need[0]), float64(a.need[1]), float64(b.need[0]), float64(b.need[1])
			if det := float64(ax*by) - float64(bx*ay); det != 0 {
				add((float64(a.worth*by)-float64(b.worth*ay))/det, (float64(ax*b.worth)-float64(bx*a.worth))/det, i, j)
			}
		}
	}
	return out
}

// cut bounds what items from i on and fluids are worth in a room.
func (ch *chest) cut(i int, room []int64) float64 {
	least := math.Inf(1)
	cpu, mem := float64(room[0]), float64(room[1])
	for k := range ch.corners[i] {
		c := &ch.corners[i][k].price
		if v := float64(c[0]*cpu) + float64(c[1]*mem); v < least {
			least = v
		}
	}
	return least
}

// most searches a room for contents worth more than from, which kept then holds, and
// returns what they are worth, or from. open is what an unfinished search could have
// missed.
func (ch *chest) most(room []int64, from float64, steps, settle int) float64 {
	copy(ch.left, room)
	clear(ch.take)
	ch.best, ch.open, ch.steps, ch.settle = from, 0, steps, settle
	if ch.cut(0, room) > from*(1+1e-12) {
		ch.descend(0, 0)
	}
	return ch.best
}

func (ch *chest) descend(i int, worth float64) {
	left := ch.left[i*ch.d : (i+1)*ch.d]
	if v := worth + ch.cut(len(ch.items), left); v > ch.best {
		ch.best = v
		copy(ch.kept, ch.take)
		ch.steps = min(ch.steps, ch.settle)
	}
	if i == len(ch.items) {
		return
	}
	ch.steps--
	it := &ch.items[i]
	n := int64(it.most)
	for r, need := range it.need {
		if need > 0 {
			n = min(n, left[r]/need)
		}
	}
	next := ch.left[(i+1)*ch.d : (i+2)*ch.d]
	// What n of the item and the rest could be worth is concave in n: where it falls
	// from out of reach, it stays there.
	last := math.Inf(-1)
	for ; n >= 0; n-- {
		for r, need := range it.need {
			next[r] = left[r] - n*need
		}
		v := worth + float64(float64(n)*it.worth)
		up := v + ch.cut(i+1, next)
		if up <= ch.best*(1+1e-12) {
			if up <= last {
				break
			}
			last = up
			continue
		}
		if ch.steps < 0 {
			ch.open = max(ch.open, up)
			continue
		}
		last = up
		ch.take[i] = int32(n)
		ch.descend(i+1, v)
	}
	ch.take[i] = 0
}

// pour fills what the kept contents leave of a room with fluids: the amounts that are
// worth the most there, or less of them where slots for pods run out. It returns what
// all contents are worth, and how many slots they take.
func (ch *chest) pour(room []int64, amount []float64) (worth, taken float64) {
	var left [slots + 1]float64
	for r := range left {
		left[r] = float64(room[r])
	}
	whole := 0.0
	for i, n := range ch.kept {
		whole += float64(float64(n) * ch.items[i].worth)
		for r := range left {
			left[r] -= float64(float64(n) * float64(ch.items[i].need[r]))
		}
	}
	// Several pairs of fluids may set the same corner; the one that suits the room fills
	// it without a negative amount.
	var best [2]float64
	most, at := 0.0, corner{by: [2]int{-1, -1}}
	for _, c := range ch.corners[len(ch.items)] {
		x, ok := ch.mix(c.by, left)
		if v := ch.worthOf(c.by, x); ok && v > most {
			most, best, at = v, x, c
		}
	}
	pods := 0.0
	for k, i := range at.by {
		if i >= 0 {
			pods += float64(best[k] * float64(ch.fluids[i].need[slots]))
		}
	}
	part := 1.0
	if pods > left[slots] {
		part = left[slots] / pods
	}
	for k, i := range at.by {
		if i >= 0 {
			amount[ch.fluids[i].at] += float64(part * best[k])
		}
	}
	return whole + float64(part*most), float64(room[slots]) - left[slots] + float64(part*pods)
}

// mix solves for the amounts of one or two fluids that use a room up; false if that
// takes a negative amount or more than there is.
func (ch *chest) mix(by [2]int, room [slots + 1]float64) (x [2]float64, ok bool) {
	switch i, j := by[0], by[1]; {
	case i >= 0 && j >= 0:
		a, b := ch.fluids[i].need, ch.fluids[j].need
		ax, ay, bx, by := float64(a[0]), float64(a[1]), float64(b[0]), float64(b[1])
		det := float64(ax*by) - float64(bx*ay)
		x[0] = (float64(room[0]*by) - float64(bx*room[1])) / det
		x[1] = (float64(ax*room[1]) - float64(room[0]*ay)) / det
	case i >= 0:
		x[0] = room[0] / float64(ch.fluids[i].need[0])
		ok = x[0]*float64(ch.fluids[i].need[1]) <= room[1]*(1+1e-9)
		return x, ok && x[0] >= 0
	case j >= 0:
		x[1] = room[1] / float64(ch.fluids[j].need[1])
		ok = x[1]*float64(ch.fluids[j].need[0]) <= room[0]*(1+1e-9)
		return x, ok && x[1] >= 0
	}
	return x, x[0] >= 0 && x[1] >= 0
}

func (ch *chest) worthOf(by [2]int, x [2]float64) float64 {
	v := 0.0
	for k, i := range by {
		if i >= 0 {
			v += float64(x[k] * ch.fluids[i].worth)
		}
	}
	return v
}
