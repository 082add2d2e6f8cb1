package worldtest

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// maxSeated is the most pods that CheapestSeated takes.
const maxSeated = 7

// CheapestSeated is the least price of launches with which every pending pod runs under
// all rules about other pods: every division of the pods into nodes, every domain for
// each node, and an order that the scheduler accepts. ok is false when there is none.
// Pools are one market, and nodes that exist take no pods: they must be full.
//
// It panics with more than 7 pending pods.
func CheapestSeated(s *snapshot.Snapshot, c *catalog.Catalog) (price int64, ok bool) {
	j := newJudge(s, c, emptyPlan)
	pods := pendingPods(s)
	if len(pods) > maxSeated {
		panic("worldtest: too many pods for brute force")
	}
	var found []division
	byCapacity := slices.Contains(j.keysOf(pods), labelCapacity)
	seen := map[string]bool{}
	divide(pods, nil, func(groups [][]*snapshot.Pod) {
		if name := contents(groups); seen[name] {
			return
		} else {
			seen[name] = true
		}
		kinds := make([][]*Supply, len(groups))
		for i, g := range groups {
			if kinds[i] = j.kindsFor(g, byCapacity); kinds[i] == nil {
				return
			}
		}
		pick(kinds, nil, func(chosen []*Supply) {
			for i := range chosen { // equal nodes in one order only
				for k := range i {
					if contents(groups[k:k+1]) == contents(groups[i:i+1]) && chosen[k].before(chosen[i]) > 0 {
						return
					}
				}
			}
			d := division{groups: groups, nodes: slices.Clone(chosen)}
			for _, sup := range chosen {
				d.price += sup.Price
			}
			found = append(found, d)
		})
	})
	slices.SortStableFunc(found, func(a, b division) int { return cmp.Compare(a.price, b.price) })
	for _, d := range found {
		b := newBoard(s, j.nodes)
		b.reach = func(p *snapshot.Pod, c *snapshot.TopologySpread) []string { return j.reachable(p, c, false) }
		var want []seating
		for i, sup := range d.nodes {
			at := b.planned(strings.Repeat("x", i+1), sup.Labels, sup)
			b.sites = append(b.sites, at)
			for _, p := range d.groups[i] {
				want = append(want, seating{p, at})
			}
		}
		if b.apart(want) && b.seat(want) == nil {
			return d.price, true
		}
	}
	return math.MaxInt64, false
}

// apart reports whether no anti-affinity is hurt once all pods are placed: then no order
// helps, for one of the two comes last.
func (b *board) apart(want []seating) bool {
	for _, at := range b.sites {
		at.pods = slices.Clone(at.bound)
	}
	for _, s := range want {
		s.at.pods = append(s.at.pods, s.pod)
	}
	return !slices.ContainsFunc(want, func(s seating) bool { return b.antiRefuses(s.pod, s.at) != "" || b.guarded(s.pod, s.at) != "" })
}

// contents names what groups hold, pods of one kind being equal.
func contents(groups [][]*snapshot.Pod) string {
	var out []string
	for _, g := range groups {
		var names []string
		for _, p := range g {
			name, _, _ := strings.Cut(p.Name, "-")
			names = append(names, name)
		}
		slices.Sort(names)
		out = append(out, strings.Join(names, "+"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// division is one way to run the pods.
type division struct {
	groups [][]*snapshot.Pod
	nodes  []*Supply
	price  int64
}

// divide calls f with every division of pods into groups, each in a slice of its own.
func divide(pods []*snapshot.Pod, groups [][]*snapshot.Pod, f func([][]*snapshot.Pod)) {
	if len(pods) == 0 {
		out := make([][]*snapshot.Pod, len(groups))
		for i, g := range groups {
			out[i] = slices.Clone(g)
		}
		f(out)
		return
	}
	for i := range groups {
		groups[i] = append(groups[i], pods[0])
		divide(pods[1:], groups, f)
		groups[i] = groups[i][:len(groups[i])-1]
	}
	divide(pods[1:], append(groups, []*snapshot.Pod{pods[0]}), f)
}

// pick calls f with every choice of one of each.
func pick(of [][]*Supply, chosen []*Supply, f func([]*Supply)) {
	if len(chosen) == len(of) {
		f(chosen)
		return
	}
	for _, sup := range of[len(chosen)] {
		pick(of, append(chosen, sup), f)
	}
}

// kindsFor are the cheapest supplies that run the pods together, one in each zone, and
// as each capacity type where that matters.
func (j *judge) kindsFor(pods []*snapshot.Pod, byCapacity bool) []*Supply {
	best := map[string]*Supply{}
	for _, name := range sortedKeys(j.pools) {
		for _, sup := range j.pools[name].supplies {
			at := sup.Zone
			if byCapacity {
				at += " " + sup.Capacity
			}
			if old := best[at]; (old == nil || sup.Price < old.Price) && j.runs(sup, sup.Labels, pods) == "" {
				best[at] = sup
			}
		}
	}
	var out []*Supply
	for _, at := range sortedKeys(best) {
		out = append(out, best[at])
	}
	return out
}
