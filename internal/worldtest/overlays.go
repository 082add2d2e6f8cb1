package worldtest

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// offerID is an offering under one NodePool.
type offerID struct{ pool, typ, zone, capacity, reservation string }

// changes is what overlays change: prices of offers, and resources of types (pool/type).
type changes struct {
	price map[offerID]int64
	extra map[[2]string]map[string]int64
}

// overlays applies NodeOverlays one by one to everything that pools could list.
func overlays(s *snapshot.Snapshot, c *catalog.Catalog) changes {
	out := changes{map[offerID]int64{}, map[[2]string]map[string]int64{}}
	if !s.Settings.NodeOverlay {
		return out
	}
	list := slices.Clone(s.Overlays)
	slices.SortFunc(list, func(a, b snapshot.NodeOverlay) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	lastPrice, lastExtra := map[offerID]int32{}, map[[3]string]int32{}
	for _, o := range list {
		prices, extras := map[offerID]int64{}, map[[2]string]bool{}
		conflict := false
		for i := range s.NodePools {
			p := &s.NodePools[i]
			class := classOf(s, p)
			if class == nil {
				continue
			}
			types, err := c.Resolve(class, s.Settings)
			if err != nil {
				continue
			}
			for _, r := range types {
				ofType := r.Labels()
				for _, f := range r.Type.Offerings {
					labels := maps.Clone(ofType)
					labels[labelZone], labels[labelCapacity], labels[labelZoneID] = f.Zone, f.CapacityType, f.ZoneID
					maps.Copy(labels, p.TemplateLabels)
					labels[labelPool] = p.Name
					if slices.ContainsFunc(o.Requirements, func(q snapshot.SelectorRequirement) bool { return !matches(q, labels) }) {
						continue
					}
					id := offerID{p.Name, r.Type.Name, f.Zone, f.CapacityType, ""}
					if f.Reservation != nil {
						id.reservation = f.Reservation.ID
					}
					if o.Price != "" || o.PriceAdjustment != "" {
						w, set := lastPrice[id]
						conflict = conflict || set && w == o.Weight
						prices[id] = overlaidPrice(&o, f.Price)
					}
					extras[[2]string{p.Name, r.Type.Name}] = true
				}
			}
		}
		for at := range extras {
			for name := range o.Capacity {
				w, set := lastExtra[[3]string{at[0], at[1], name}]
				conflict = conflict || set && w == o.Weight
			}
		}
		if conflict {
			continue
		}
		for id, price := range prices {
			if _, set := out.price[id]; !set {
				out.price[id] = price
			}
			lastPrice[id] = o.Weight
		}
		for at := range extras {
			for name, v := range o.Capacity {
				if out.extra[at] == nil {
					out.extra[at] = map[string]int64{}
				}
				if _, set := out.extra[at][name]; !set {
					out.extra[at][name] = v
				}
				lastExtra[[3]string{at[0], at[1], name}] = o.Weight
			}
		}
	}
	return out
}

// overlaidPrice is the price of an offer under one overlay, half micro-dollars up.
func overlaidPrice(o *snapshot.NodeOverlay, listed int64) int64 {
	number := func(text string) *big.Rat {
		v, ok := new(big.Rat).SetString(text)
		if !ok {
			panic("price " + text)
		}
		return v
	}
	v := new(big.Rat).SetInt64(listed)
	million := big.NewRat(1_000_000, 1)
	switch text, percent := strings.CutSuffix(o.PriceAdjustment, "%"); {
	case o.Price != "":
		v = number(o.Price)
		v.Mul(v, million)
	case percent:
		share := number(text)
		v.Add(v, share.Mul(share, v).Quo(share, big.NewRat(100, 1)))
	default:
		d := number(text)
		v.Add(v, d.Mul(d, million))
	}
	if v.Sign() < 0 {
		return 0
	}
	v.Add(v, big.NewRat(1, 2))
	return new(big.Int).Div(v.Num(), v.Denom()).Int64()
}
