package catalog

import "slices"

// WithSpot returns a copy of the catalogue whose spot offerings are replaced: one
// in each zone where the type is available on-demand, at the price that f gives
// (micro-dollars per hour), facts and no estimates; f returns 0 where there is no
// spot, and f nil means none at all. Benchmarks and people with a price feed of
// their own use it; types are shared with c in everything else.
func (c *Catalog) WithSpot(f func(instanceType, zone string, onDemand int64) int64) *Catalog {
	out := *c
	out.Source += "; spot prices replaced"
	out.Types = slices.Clone(c.Types)
	for i := range out.Types {
		t := &out.Types[i]
		offerings := make([]Offering, 0, len(t.Offerings))
		for _, o := range t.Offerings {
			if o.CapacityType == Spot {
				continue
			}
			offerings = append(offerings, o)
			if f == nil || o.CapacityType != OnDemand || !o.Available {
				continue
			}
			spot := Offering{Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: Spot, Available: true}
			if spot.Price = f(t.Name, o.Zone, o.Price); spot.Price > 0 {
				offerings = append(offerings, spot)
			}
		}
		slices.SortStableFunc(offerings, compareOfferings)
		t.Offerings = offerings
	}
	return &out
}
