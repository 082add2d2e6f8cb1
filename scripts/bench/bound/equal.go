package bound

import (
	"fmt"
	"math"
	"slices"
)

// Equal is the least price of whole nodes that hold n pods which all need the same
// (need of nodes is not looked at). It is no relaxation but the optimum: a node is
// then nothing but a number of pods, and the cheapest way to n is found pod by pod.
func Equal(columns []Column, need Vector, n int) (int64, error) {
	if n < 1 {
		return 0, fmt.Errorf("%d pods; at least 1 is needed", n)
	}
	for _, r := range []int{CPU, Memory, Pods} {
		if need[r] < 1 {
			return 0, fmt.Errorf("a pod needs %v; every resource must be positive", need)
		}
	}
	// size is a node for so many pods at its least price.
	type size struct{ pods, price int64 }
	var sizes []size
	for _, c := range columns {
		k := int64(n)
		for _, r := range []int{CPU, Memory, Pods} {
			k = min(k, c.Gives[r]/need[r])
		}
		if k > 0 {
			sizes = append(sizes, size{k, c.Price})
		}
	}
	if len(sizes) == 0 {
		return 0, ErrNothingFits
	}
	// Largest first; a smaller node that is not cheaper is never needed.
	slices.SortFunc(sizes, func(a, b size) int {
		if a.pods != b.pods {
			return int(b.pods - a.pods)
		}
		return int(a.price - b.price)
	})
	least := int64(math.MaxInt64)
	sizes = slices.DeleteFunc(sizes, func(s size) bool {
		if s.price >= least {
			return true
		}
		least = s.price
		return false
	})
	price := make([]int64, n+1)
	for i := 1; i <= n; i++ {
		price[i] = math.MaxInt64
		for _, s := range sizes {
			price[i] = min(price[i], price[max(0, int64(i)-s.pods)]+s.price)
		}
	}
	return price[n], nil
}
