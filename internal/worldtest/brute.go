package worldtest

import (
	"math"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// maxBrute is the most pods that Cheapest takes: it looks at every set of them.
const maxBrute = 12

// Cheapest is the least price of launches with which every pending pod runs,
// micro-dollars per hour, found by trying every division of the pods into nodes;
// ok is false when no division exists. Pools are one market: weights and limits
// are not looked at.
//
// It panics with more than 12 pending pods.
func Cheapest(s *snapshot.Snapshot, c *catalog.Catalog) (price int64, ok bool) {
	pods := pendingPods(s)
	if len(pods) > maxBrute {
		panic("worldtest: too many pods for brute force")
	}
	all := 1<<len(pods) - 1
	launch := cheapestLaunches(nodePrices(s, c, pods), all)
	best := int64(math.MaxInt64)
	for mask, can := range placeable(s, c, pods) {
		if rest := launch[all&^mask]; can && rest < best {
			best = rest
		}
	}
	return best, best < math.MaxInt64
}

// Hostable returns the pending pods that could run somewhere if they were alone: on
// an existing node or on a new one.
func Hostable(s *snapshot.Snapshot, c *catalog.Catalog) map[string]bool {
	pods := pendingPods(s)
	out := map[string]bool{}
	for i, p := range pods {
		one := []*snapshot.Pod{p}
		if nodePrices(s, c, one)[1] < math.MaxInt64 || placeable(s, c, one)[1] {
			out[pods[i].Ref()] = true
		}
	}
	return out
}

func pendingPods(s *snapshot.Snapshot) []*snapshot.Pod {
	var out []*snapshot.Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName == "" && notPlanned(p) == "" {
			out = append(out, p)
		}
	}
	return out
}

// sums are the requests of every set of pods, and which sets clash over host ports.
func sums(pods []*snapshot.Pod) (need []snapshot.Resources, clash []bool) {
	need, clash = make([]snapshot.Resources, 1<<len(pods)), make([]bool, 1<<len(pods))
	for mask := 1; mask < len(need); mask++ {
		i := lowest(mask)
		rest := mask &^ (1 << i)
		need[mask] = plus(need[rest], pods[i].Spec.Requests)
		clash[mask] = clash[rest]
		for k := range pods {
			if rest>>k&1 == 1 && anyClash(pods[i].Spec.HostPorts, pods[k].Spec.HostPorts) != nil {
				clash[mask] = true
			}
		}
	}
	return need, clash
}

func lowest(mask int) int {
	i := 0
	for mask>>i&1 == 0 {
		i++
	}
	return i
}

// nodePrices is, for every set of pods, the price of the cheapest single new node
// that runs them together.
func nodePrices(s *snapshot.Snapshot, c *catalog.Catalog, pods []*snapshot.Pod) []int64 {
	need, clash := sums(pods)
	price := make([]int64, len(need))
	for i := range price {
		price[i] = math.MaxInt64
	}
	for _, v := range views(s, c) {
		for _, sup := range v.supplies {
			for _, labels := range labelings(sup, pods) {
				daemons, ports := daemonsOn(s, labels, sup.Pool.Taints)
				allowed := 0
				for i, p := range pods {
					if selects(&p.Spec, labels, "") && untolerated(sup.Pool.Taints, p.Spec.Tolerations) == nil &&
						anyClash(p.Spec.HostPorts, ports) == nil {
						allowed |= 1 << i
					}
				}
				for mask := 1; mask < len(need); mask++ {
					if mask&^allowed == 0 && !clash[mask] && sup.Price < price[mask] && fits(plus(daemons, need[mask]), sup.Alloc) {
						price[mask] = sup.Price
					}
				}
			}
		}
	}
	return price
}

// cheapestLaunches is, for every set of pods, the least price of new nodes for them.
func cheapestLaunches(node []int64, all int) []int64 {
	best := make([]int64, all+1)
	for mask := 1; mask <= all; mask++ {
		best[mask] = math.MaxInt64
		low := mask & -mask
		for sub := mask; sub > 0; sub = (sub - 1) & mask {
			if sub&low == 0 || node[sub] == math.MaxInt64 || best[mask&^sub] == math.MaxInt64 {
				continue
			}
			best[mask] = min(best[mask], node[sub]+best[mask&^sub])
		}
	}
	return best
}

// placeable tells, for every set of pods, whether the existing nodes can take it.
func placeable(s *snapshot.Snapshot, c *catalog.Catalog, pods []*snapshot.Pod) []bool {
	need, clash := sums(pods)
	can := make([]bool, len(need))
	can[0] = true
	for _, v := range nodeViews(s, c) {
		allowed := 0
		for i, p := range pods {
			if v.refuses(&p.Spec) == "" && anyClash(p.Spec.HostPorts, v.ports) == nil {
				allowed |= 1 << i
			}
		}
		next := make([]bool, len(can))
		for mask := range can {
			if !can[mask] {
				continue
			}
			rest := allowed &^ mask
			for sub := rest; ; sub = (sub - 1) & rest {
				if !clash[sub] && (sub == 0 || fits(need[sub], v.free)) {
					next[mask|sub] = true
				}
				if sub == 0 {
					break
				}
			}
		}
		can = next
	}
	return can
}
