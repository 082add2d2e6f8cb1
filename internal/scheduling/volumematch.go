package scheduling

import (
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/requirements"
)

// matchVolumes cuts offers down to those that meet every demand of the volumes: one
// demand after the other, so that several volumes with several terms each never have to
// be multiplied out. nil when nothing is left.
func (t *Template) matchVolumes(bits packing.Bitset, demands []*VolumeDemand) packing.Bitset {
	return meetDemands(bits, demands, t.matchAlt)
}

// matchVolumes is the same for nodes that exist.
func (t *nodeTable) matchVolumes(bits packing.Bitset, demands []*VolumeDemand) packing.Bitset {
	return meetDemands(bits, demands, t.matchTerm)
}

func meetDemands(bits packing.Bitset, demands []*VolumeDemand, match func([]requirements.Requirement) packing.Bitset) packing.Bitset {
	owned := false
	for _, d := range demands {
		if bits == nil {
			return nil
		}
		var meets packing.Bitset
		for _, term := range d.Terms {
			some := match(term)
			switch {
			case some == nil:
			case meets == nil:
				meets = some
			default:
				meets = meets.Clone()
				for i := range meets {
					meets[i] |= some[i]
				}
			}
		}
		if meets == nil {
			return nil
		}
		if !owned {
			bits, owned = bits.Clone(), true
		}
		for i := range bits {
			bits[i] &= meets[i]
		}
		if bits.Empty() {
			return nil
		}
	}
	return bits
}

// matchTerm are the nodes that meet every requirement, whatever their taints.
func (t *nodeTable) matchTerm(term []requirements.Requirement) packing.Bitset {
	conds := make([]condition, 0, len(term))
	for i := range term {
		c := t.column(term[i].Key())
		conds = append(conds, condition{c, c.table(&term[i], nil)})
	}
	out := packing.NewBitset(len(t.nodes))
	any := false
next:
	for i := range t.nodes {
		for _, c := range conds {
			if !c.ok[c.col.ids[i]+1] {
				continue next
			}
		}
		out.Set(i)
		any = true
	}
	if !any {
		return nil
	}
	return out
}
