package bound

import (
	"cmp"
	"math"
	"slices"
)

// This file searches for the pods that are worth the most in one bin kind by kind: from
// all amounts of what is used that some choice of the kinds so far comes to, those of the
// next. Choices that use the same are one, of which the dearest counts. So it gets through
// where the search in depth sees the same amounts again and again.

// used is an amount of processors and memory, in steps that all needs are a multiple of,
// and the dearest choice that comes to it.
type used struct {
	cpu, mem int32
	from     int32 // in the layer before
	n        int32 // pods of the layer's kind
	worth    float64
}

// layers returns a bound on what the bin can hold: goal when nothing is worth more, else
// what was found or could be. No layer has more than width amounts; those are left out
// that promise the least. That a node takes so many pods at most is not looked at but
// for what is found.
func (f *filling) layers(goal float64, width int) float64 {
	f.goal, f.open, f.found = goal, 0, false
	unit := f.steps2()
	room := [2]int64{f.room[CPU] / unit[0], f.room[Memory] / unit[1]}
	if room[0] > math.MaxInt32 || room[1] > math.MaxInt32 {
		return f.search(goal, width)
	}
	kinds := f.kinds
	// What the kinds from i on are worth beyond their resources, at the most.
	beyond := make([]float64, len(kinds)+1)
	for i := len(kinds) - 1; i >= 0; i-- {
		beyond[i] = beyond[i+1] + max(0, kinds[i].extra)*float64(kinds[i].most)
	}
	perPod := f.unit[Pods] * float64(f.room[Pods])
	promise := func(u used, next int) float64 {
		left := perPod + f.unit[CPU]*float64(f.room[CPU]-int64(u.cpu)*unit[0]) + f.unit[Memory]*float64(f.room[Memory]-int64(u.mem)*unit[1])
		return u.worth + left + beyond[next]
	}
	all := [][]used{{{}}}
	for i, k := range kinds {
		need := [2]int64{k.need[CPU] / unit[0], k.need[Memory] / unit[1]}
		var next, more []used
		for n := int64(0); n <= k.most; n++ {
			more = more[:0]
			for at, u := range all[i] {
				c, m := int64(u.cpu)+n*need[0], int64(u.mem)+n*need[1]
				if c > room[0] || m > room[1] {
					continue
				}
				v := used{int32(c), int32(m), int32(at), int32(n), u.worth + float64(n)*k.price}
				if promise(v, i+1)*(1+margin) > f.goal {
					more = append(more, v)
				}
			}
			next = merged(next, more)
		}
		if len(next) > width {
			slices.SortFunc(next, func(a, b used) int { return cmp.Compare(promise(b, i+1), promise(a, i+1)) })
			f.open = max(f.open, promise(next[width], i+1))
			next = next[:width]
			slices.SortFunc(next, used.compare)
		}
		all = append(all, next)
	}
	f.trace(all)
	return max(f.goal, f.open)
}

// steps2 are the steps of processors and memory.
func (f *filling) steps2() (unit [2]int64) {
	for _, k := range f.kinds {
		unit[0], unit[1] = gcd(unit[0], k.need[CPU]), gcd(unit[1], k.need[Memory])
	}
	return [2]int64{max(1, unit[0]), max(1, unit[1])}
}

// compare orders by amount.
func (u used) compare(v used) int {
	return cmp.Or(cmp.Compare(u.cpu, v.cpu), cmp.Compare(u.mem, v.mem))
}

// merged joins two lists that are in order; of those that come to the same amount the
// dearest stays.
func merged(a, b []used) []used {
	if len(a) == 0 {
		return slices.Clone(b)
	}
	out := make([]used, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch u, v := a[0], b[0]; {
		case u.cpu < v.cpu || u.cpu == v.cpu && u.mem < v.mem:
			out, a = append(out, u), a[1:]
		case u.cpu > v.cpu || u.mem > v.mem:
			out, b = append(out, v), b[1:]
		default:
			if v.worth > u.worth {
				u = v
			}
			out, a, b = append(out, u), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// trace finds the dearest choice of the last layer that is within the pods of a node, and
// what the dearest of all is worth.
func (f *filling) trace(all [][]used) {
	last := all[len(all)-1]
	slices.SortFunc(last, func(a, b used) int { return cmp.Compare(b.worth, a.worth) })
	if len(last) > 0 {
		f.open = max(f.open, last[0].worth)
	}
	for _, u := range last {
		if u.worth <= f.goal {
			return
		}
		take := make([]int64, len(f.best))
		pods := int64(0)
		worth := u.worth
		for i := len(all) - 1; i > 0; i-- {
			take[f.kinds[i-1].index] = int64(u.n)
			pods += int64(u.n) * f.kinds[i-1].need[Pods]
			u = all[i-1][u.from]
		}
		if pods <= f.room[Pods] {
			f.goal, f.found, f.best = worth, true, take
			return
		}
	}
}
