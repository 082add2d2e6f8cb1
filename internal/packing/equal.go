package packing

import (
	"math"
	"slices"
)

// equalPods is up to how many equal pods the cheapest nodes are found exactly; of more,
// most go on the bin that is cheapest per pod.
const equalPods = 3_000

// packEqual packs count pods of the only class of a group: a bin is then nothing but a
// number of pods at a price, and the cheapest way to n pods follows from the cheapest
// ways to fewer.
func (g *group) packEqual(count int) []pattern {
	type size struct{ pods, bin int }
	var sizes []size
	best := -1
	for b := range g.bins {
		if !g.takes(b, 0) {
			continue
		}
		k := min(count, int(g.most[0]))
		for r, need := range g.req(0) {
			if need > 0 {
				k = min(k, int(g.cap(b)[r]/need))
			}
		}
		if k <= 0 {
			continue
		}
		sizes = append(sizes, size{k, b})
		if at := &sizes[max(best, 0)]; best < 0 || g.prices[b]*int64(at.pods) < g.prices[at.bin]*int64(k) {
			best = len(sizes) - 1
		}
	}
	if best < 0 {
		return nil
	}
	var out []pattern
	put := func(s size, n int) {
		out = append(out, pattern{s.bin, []ClassCount{{0, min(n, s.pods)}}})
	}
	most := sizes[best]
	for ; count > max(equalPods, 2*most.pods); count -= most.pods {
		put(most, count)
	}
	// A bin that holds no more for no less money is never needed. Of equal prices, larger
	// nodes come first: fewer of them.
	slices.SortStableFunc(sizes, func(a, b size) int { return b.pods - a.pods })
	least := int64(math.MaxInt64)
	sizes = slices.DeleteFunc(sizes, func(s size) bool {
		if g.prices[s.bin] >= least {
			return true
		}
		least = g.prices[s.bin]
		return false
	})
	price, by := make([]int64, count+1), make([]int, count+1)
	for n := 1; n <= count; n++ {
		price[n] = math.MaxInt64
		for i, s := range sizes {
			if p := price[max(0, n-s.pods)] + g.prices[s.bin]; p < price[n] {
				price[n], by[n] = p, i
			}
		}
	}
	for n := count; n > 0; n -= sizes[by[n]].pods {
		put(sizes[by[n]], n)
	}
	return out
}
