package worldtest

import (
	"math"
	"slices"

	"kerf.sh/kerf/internal/packing"
)

// CheapestPacking is the least price of new nodes for count[class] pods of each
// class, by trying every division of the pods; ok is false when some pod fits no
// offer or no node by the rules between pods. Existing nodes, weights, limits and minValues are not looked at. It panics
// with more than 12 pods.
func CheapestPacking(p *packing.Problem, count []int) (price int64, ok bool) {
	var pods []int // class of each pod
	for c, n := range count {
		for range n {
			pods = append(pods, c)
		}
	}
	if len(pods) > maxBrute {
		panic("worldtest: too many pods for brute force")
	}
	if len(pods) == 0 {
		return 0, true
	}
	d := len(p.Dims)
	sets := 1 << len(pods)
	need, clash := make([]int64, sets*d), make([]bool, sets)
	held := make([]int64, len(p.Classes))
	for mask := 1; mask < sets; mask++ {
		i := lowest(mask)
		rest := mask &^ (1 << i)
		clear(held)
		for k, c := range pods {
			held[c] += int64(mask >> k & 1)
		}
		clash[mask] = !mayShare(p, held)
		for r := range d {
			need[mask*d+r] = need[rest*d+r] + p.Classes[pods[i]].Need[r]
		}
	}
	node := make([]int64, sets)
	for mask := range node {
		node[mask] = math.MaxInt64
	}
	for t := range p.Templates {
		tm := &p.Templates[t]
		for o, offer := range tm.Offers {
			allowed := 0
			for i, c := range pods {
				if offers := p.Classes[c].Offers[t]; offers != nil && offers.Has(o) {
					allowed |= 1 << i
				}
			}
			alloc := tm.Types[offer.Type].Alloc
			for mask := allowed; mask > 0; mask = (mask - 1) & allowed {
				if offer.Price < node[mask] && !clash[mask] && within(need[mask*d:mask*d+d], alloc) {
					node[mask] = offer.Price
				}
			}
		}
	}
	best := cheapestLaunches(node, sets-1)[sets-1]
	return best, best < math.MaxInt64
}

// mayShare reports whether rules between pods let held[class] pods of each class share
// one new node: no conflict, none that are kept apart, no cap passed.
func mayShare(p *packing.Problem, held []int64) bool {
	for a, n := range held {
		if n == 0 {
			continue
		}
		for b, m := range held {
			if a == b {
				m--
			}
			if m > 0 && (slices.Contains(p.Classes[a].Conflicts, int32(b)) || slices.Contains(p.Classes[a].Apart, int32(b))) {
				return false
			}
		}
	}
	for _, c := range p.Caps {
		if sum, some := counts(c, held); some && sum > int64(c.Max) {
			return false
		}
	}
	return true
}

// counts is what pods count in a cap, and whether any of them does.
func counts(c packing.Cap, held []int64) (sum int64, some bool) {
	for i, k := range c.Classes {
		if held[k] == 0 {
			continue
		}
		some = true
		if c.Weight == nil {
			sum += held[k]
		} else {
			sum += held[k] * int64(c.Weight[i])
		}
	}
	return sum, some
}

// mostOnNode is how many of n pods of a class a new node may carry by rules between
// pods alone.
func mostOnNode(p *packing.Problem, class int, n int64) int64 {
	held := make([]int64, len(p.Classes))
	for held[class] < n {
		held[class]++
		if !mayShare(p, held) {
			return held[class] - 1
		}
	}
	return n
}

// forcedNodes is how many new nodes pods of some classes need for one rule alone: the
// most of a class, or a cap over several.
func forcedNodes(p *packing.Problem, classes []int, pods []int64) int64 {
	held := make([]int64, len(p.Classes))
	nodes := int64(1)
	up := func(a, b int64) int64 { return (a + b - 1) / b }
	for _, c := range classes {
		held[c] = pods[c]
		if most := mostOnNode(p, c, pods[c]); most > 0 {
			nodes = max(nodes, up(pods[c], most))
		}
	}
	for _, c := range p.Caps {
		if sum, some := counts(c, held); some && c.Max > 0 {
			nodes = max(nodes, up(sum, int64(c.Max)))
		}
	}
	return nodes
}

func within(need, have []int64) bool {
	for i := range need {
		if need[i] > have[i] {
			return false
		}
	}
	return true
}
