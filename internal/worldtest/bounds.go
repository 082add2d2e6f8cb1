package worldtest

import (
	"fmt"
	"math"
	"slices"

	"kerf.sh/kerf/internal/packing"
)

// CheckBounds returns what is wrong with the bounds of a result: a claim that its
// own duals do not prove, duals that some allowed offer undercuts, pods that are not
// covered. Total itself is compared with brute force by the caller.
func CheckBounds(p *packing.Problem, r *packing.Result) []string {
	var bad []string
	launched := make([]int64, len(p.Classes))
	for _, l := range r.Launches {
		for _, cc := range l.Contents {
			launched[cc.Class] += int64(cc.Count)
		}
	}
	markets := marketsOf(p, launched)
	for i := range r.Bounds {
		b := &r.Bounds[i]
		k := slices.IndexFunc(markets, func(classes []int) bool { return covers(p, b, classes, launched) })
		if k < 0 {
			bad = append(bad, fmt.Sprintf("bound %d covers %d pods with a demand of %v: no market has that", i, b.Pods, b.Demand))
			continue
		}
		classes := markets[k]
		markets = slices.Delete(markets, k, k+1)
		if forced := forcedNodes(p, classes, launched); b.Demand[len(p.Dims)] > forced {
			bad = append(bad, fmt.Sprintf("bound %d: claims that rules force %d nodes, they force %d", i, b.Demand[len(p.Dims)], forced))
		}
		switch b.Kind {
		case packing.BoundGroups:
			bad = append(bad, groupProof(p, b, classes, launched)...)
			continue
		case packing.BoundContents:
			bad = append(bad, contentsProof(p, b, classes, launched)...)
			continue
		}
		bad = append(bad, proof(b, i)...)
		for t := range p.Templates {
			bad = append(bad, undercut(p, b, t, classes, launched)...)
		}
	}
	if len(markets) > 0 {
		bad = append(bad, fmt.Sprintf("no bound covers the classes %v", markets))
	}
	return bad
}

// marketsOf divides the launched classes into those that share offers, directly or
// through others.
func marketsOf(p *packing.Problem, launched []int64) [][]int {
	var out [][]int
	for c := range p.Classes {
		if launched[c] == 0 {
			continue
		}
		merged := []int{c}
		out = slices.DeleteFunc(out, func(classes []int) bool {
			if slices.ContainsFunc(classes, func(o int) bool { return shareOffer(p, c, o) }) {
				merged = append(merged, classes...)
				return true
			}
			return false
		})
		out = append(out, merged)
	}
	return out
}

func shareOffer(p *packing.Problem, a, b int) bool {
	for t := range p.Templates {
		if p.Classes[a].Offers[t].Intersects(p.Classes[b].Offers[t]) {
			return true
		}
	}
	return false
}

func covers(p *packing.Problem, b *packing.Bound, classes []int, launched []int64) bool {
	pods := int64(0)
	demand := make([]int64, len(p.Dims))
	for _, c := range classes {
		pods += launched[c]
		for k, v := range p.Classes[c].Need {
			demand[k] += v * launched[c]
		}
	}
	return int64(b.Pods) == pods && len(b.Demand) > len(p.Dims) && slices.Equal(demand, b.Demand[:len(p.Dims)])
}

// proof checks the sum that the duals and the demand make.
func proof(b *packing.Bound, i int) []string {
	var bad []string
	proved := 0.0
	for k, v := range b.Duals {
		if v < 0 {
			bad = append(bad, fmt.Sprintf("bound %d: dual %d is negative: %g", i, k, v))
		}
		proved += v * float64(b.Demand[k])
	}
	if float64(b.Linear) > proved*(1+1e-6) {
		bad = append(bad, fmt.Sprintf("bound %d: claims %d, its duals prove %g", i, b.Linear, proved))
	}
	searched := b.Kind == packing.BoundWholeNodes || b.Kind == packing.BoundOptimum || b.Kind == packing.BoundGroups || b.Kind == packing.BoundContents
	if !searched && b.Total > b.Linear {
		bad = append(bad, fmt.Sprintf("bound %d: total %d is above what is proved, %d", i, b.Total, b.Linear))
	}
	return bad
}

// undercut lists offers of a template that some class may use and that hold more, at
// the duals, than they cost.
func undercut(p *packing.Problem, b *packing.Bound, t int, classes []int, launched []int64) []string {
	var bad []string
	most := int64(0) // pods on one node, by rules between pods
	for _, c := range classes {
		most += mostOnNode(p, c, launched[c])
	}
	tm := &p.Templates[t]
	for o, offer := range tm.Offers {
		used := false
		holds := int64(0) // pods of one class, the most
		for _, c := range classes {
			if offers := p.Classes[c].Offers[t]; offers != nil && offers.Has(o) {
				used = true
				holds = max(holds, capacityFor(p.Classes[c].Need, tm.Types[offer.Type].Alloc))
			}
		}
		if !used {
			continue
		}
		worth := 0.0
		for k, v := range b.Duals {
			switch {
			case k == len(p.Dims):
				worth += v // the forced node count
			case perPod(b):
				if p.Dims[k] == "pods" {
					worth += v * float64(min(holds, most))
				}
			default:
				have := tm.Types[offer.Type].Alloc[k]
				if k < len(b.Steps) && b.Steps[k] > 0 {
					have -= have % b.Steps[k]
				}
				worth += v * float64(have)
			}
		}
		if worth > float64(offer.Paid())*(1+1e-6) {
			bad = append(bad, fmt.Sprintf("template %d offer %d (%s) costs %d, the duals say it holds %g", t, o, tm.Types[offer.Type].Name, offer.Paid(), worth))
		}
	}
	return bad
}

// perPod reports whether the dual of pods is a price per pod that fits, not per slot.
func perPod(b *packing.Bound) bool {
	return b.Kind == packing.BoundShape || b.Kind == packing.BoundOptimum
}

// groupProof checks a bound that prices pods under different rules apart: the groups
// are exactly the classes of the market by rules, what they are worth adds up, and no
// offer holds more than it costs at the highest price that its groups give each
// resource.
func groupProof(p *packing.Problem, b *packing.Bound, classes []int, launched []int64) []string {
	var bad []string
	proved := 0.0
	left := slices.Clone(classes)
	for g, group := range b.Groups {
		demand := make([]int64, len(p.Dims))
		pods := int64(0)
		left = slices.DeleteFunc(left, func(c int) bool {
			if !sameOffers(p, c, group.Class) {
				return false
			}
			pods += launched[c]
			for k, v := range p.Classes[c].Need {
				demand[k] += v * launched[c]
			}
			return true
		})
		if int64(group.Pods) != pods || !slices.Equal(demand, group.Demand) {
			bad = append(bad, fmt.Sprintf("group %d covers %d pods and %v, its classes have %d and %v", g, group.Pods, group.Demand, pods, demand))
		}
		for k, v := range group.Duals {
			if v < 0 {
				bad = append(bad, fmt.Sprintf("group %d: dual %d is negative: %g", g, k, v))
			}
			proved += v * float64(group.Demand[k])
		}
	}
	if len(left) > 0 {
		bad = append(bad, fmt.Sprintf("no group covers the classes %v", left))
	}
	if float64(b.Total) > proved*(1+1e-6) {
		bad = append(bad, fmt.Sprintf("groups: total %d, their duals prove %g", b.Total, proved))
	}
	for t := range p.Templates {
		tm := &p.Templates[t]
		for o, offer := range tm.Offers {
			worth := 0.0
			for k := range p.Dims {
				have := tm.Types[offer.Type].Alloc[k]
				if k < len(b.Steps) && b.Steps[k] > 0 {
					have -= have % b.Steps[k]
				}
				highest := 0.0
				for _, group := range b.Groups {
					if offers := p.Classes[group.Class].Offers[t]; offers != nil && offers.Has(o) {
						highest = max(highest, group.Duals[k])
					}
				}
				worth += highest * float64(have)
			}
			if worth > float64(offer.Paid())*(1+1e-6) {
				bad = append(bad, fmt.Sprintf("template %d offer %d (%s) costs %d, the groups' duals say it holds %g", t, o, tm.Types[offer.Type].Name, offer.Paid(), worth))
			}
		}
	}
	return bad
}

func sameOffers(p *packing.Problem, a, b int) bool {
	for t := range p.Templates {
		x, y := p.Classes[a].Offers[t], p.Classes[b].Offers[t]
		if (x == nil) != (y == nil) || !x.Subset(y) || !y.Subset(x) {
			return false
		}
	}
	return true
}

func capacityFor(need, alloc []int64) int64 {
	n := int64(math.MaxInt64)
	for k, v := range need {
		if v > 0 {
			n = min(n, alloc[k]/v)
		}
	}
	return n
}
