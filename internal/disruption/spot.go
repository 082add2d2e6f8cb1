package disruption

import (
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
)

// spotTypes is from how many types a spot node that stands in for one spot node is chosen,
// and how many it is launched from: with fewer, EC2 would choose the cheapest, which is
// taken back first, and the node would be replaced again and again (Karpenter: same).
const spotTypes = 15

// spotRule is what holds for spot nodes that stand in for spot nodes.
type spotRule struct {
	// all nodes that go are spot; one of them goes alone.
	all, one bool
	// gate is SpotToSpotConsolidation.
	gate bool
}

func (x *search) spotRule(group []*node) spotRule {
	return spotRule{
		all: !slices.ContainsFunc(group, func(n *node) bool { return n.capType != catalog.Spot }), one: len(group) == 1, gate: x.s.Settings.SpotToSpot,
	}
}

// refuses reports whether an offer may not stand in: spot for spot where the gate is off,
// anything else where it is on (Karpenter: same).
func (r spotRule) refuses(f *packing.Offer) bool {
	return r.all && (f.Capacity == catalog.Spot) != r.gate
}

// wide reports whether options count however much dearer they are than the cheapest one:
// all of them cost less than what goes.
func (r spotRule) wide() bool { return r.all && r.gate && r.one }

// keep are the options that remain: for one spot node those of the cheapest types, if there
// are enough. Options come cheapest first, types in the order of their cheapest option.
func (r spotRule) keep(tm *packing.Template, options, types []int) (o, t []int) {
	if !r.wide() {
		return options, types
	}
	if len(types) < spotTypes {
		return nil, nil
	}
	if len(tm.MinValues) > 0 {
		return options, types // they may need more
	}
	types = types[:spotTypes]
	return slices.DeleteFunc(options, func(k int) bool { return !slices.Contains(types, tm.Offers[k].Type) }), types
}

// spotRemark says of a spot node that it is not replaced by a cheaper one of its kind.
func (x *search) spotRemark(n *node) string {
	switch {
	case n.capType != catalog.Spot:
		return ""
	case !x.s.Settings.SpotToSpot:
		return "; spot nodes are not replaced by spot nodes, for the gate SpotToSpotConsolidation is off"
	}
	return "; a spot node stands in for one only where 15 types are cheaper"
}

// variety reports whether types bring as many values as the pool's minValues ask for.
func (x *search) variety(tm *packing.Template, types []int) bool {
	if x.s.Settings.MinValuesBestEffort {
		return true
	}
	for i := range tm.MinValues {
		mv := &tm.MinValues[i]
		seen := map[int32]bool{}
		for _, t := range types {
			for _, v := range mv.Values[t] {
				seen[v] = true
			}
		}
		if len(seen) < mv.Min {
			return false
		}
	}
	return true
}
