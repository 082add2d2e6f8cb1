package worldtest

import (
	"math"

	"kerf.sh/kerf/internal/packing"
)

// CheapestPacking is the least price of new nodes for count[class] pods of each
// class, by trying every division of the pods; ok is false when some pod fits no
// offer. Existing nodes, weights, limits and minValues are not looked at. It panics
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
	for mask := 1; mask < sets; mask++ {
		i := lowest(mask)
		rest := mask &^ (1 << i)
		clash[mask] = clash[rest]
		for k, c := range pods {
			if rest>>k&1 == 1 && conflict(p, pods[i], c) {
				clash[mask] = true
			}
		}
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

func conflict(p *packing.Problem, a, b int) bool {
	for _, c := range p.Classes[a].Conflicts {
		if int(c) == b {
			return true
		}
	}
	return false
}

func within(need, have []int64) bool {
	for i := range need {
		if need[i] > have[i] {
			return false
		}
	}
	return true
}
