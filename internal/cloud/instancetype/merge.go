package instancetype

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/catalog"
)

// Merge is a catalogue of what a region has. Types and zones are EC2's; what it does not
// tell of a type, and prices, are those of the table, which is not changed. A type that
// the table does not know has no price: its offers are not available until pricing.Apply
// brings one. zoneIDs are by zone (the subnets tell them); "" where nothing does.
func Merge(table *catalog.Catalog, found []Found, zones map[string][]string, zoneIDs map[string]string) *catalog.Catalog {
	out := &catalog.Catalog{Region: table.Region, Date: table.Date, Source: table.Source, Commitments: table.Commitments}
	for _, f := range found {
		t := f.Type
		t.Offerings = nil
		var known *catalog.InstanceType
		if i, ok := slices.BinarySearchFunc(table.Types, t.Name, func(a catalog.InstanceType, name string) int { return cmp.Compare(a.Name, name) }); ok {
			known = &table.Types[i]
			t.NetworkMbps, t.Volumes, t.Extended, t.Labels = known.NetworkMbps, known.Volumes, known.Extended, known.Labels
			t.ENI.Branch = known.ENI.Branch
			t.NestedVirtualization = t.NestedVirtualization || known.NestedVirtualization
		}
		for _, zone := range zones[t.Name] {
			for _, ct := range []string{catalog.OnDemand, catalog.Spot} {
				if ct == catalog.OnDemand && !f.OnDemand || ct == catalog.Spot && !f.Spot {
					continue
				}
				o := catalog.Offering{Zone: zone, ZoneID: zoneIDs[zone], CapacityType: ct}
				if p := price(known, zone, ct); p != nil {
					o.Price, o.Available, o.Estimated = p.Price, true, p.Estimated
				}
				t.Offerings = append(t.Offerings, o)
			}
			out.Zones = append(out.Zones, zone)
		}
		out.Types = append(out.Types, t)
	}
	slices.SortFunc(out.Types, func(a, b catalog.InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(out.Zones)
	out.Zones = slices.Compact(out.Zones)
	return out
}

// price is the table's offer of a type in a zone; of any zone on-demand, whose price is one
// for the region. nil when there is none.
func price(t *catalog.InstanceType, zone, capacityType string) *catalog.Offering {
	if t == nil {
		return nil
	}
	var other *catalog.Offering
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.CapacityType != capacityType || o.Price <= 0 {
			continue
		}
		if o.Zone == zone {
			return o
		}
		if other == nil && (capacityType == catalog.OnDemand || o.Estimated) {
			other = o
		}
	}
	return other
}
