package scheduling

import (
	"cmp"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// setBack finds the offers that went wrong lately, and how much dearer they count.
func (u *universe) setBack(s *snapshot.Snapshot) {
	for i := range s.Setbacks {
		x := &s.Setbacks[i]
		share := x.Share(s.Now)
		if share == 0 {
			continue
		}
		from, to := int32(0), int32(len(u.offers))
		if x.InstanceType != "" {
			t, ok := typeNamed(u.types, x.InstanceType)
			if !ok {
				continue
			}
			from, to = u.first[t], u.first[t+1]
		}
		for k := from; k < to; k++ {
			o := &u.offers[k]
			if !x.Hits(u.types[o.typ].Type.Name, o.zone, o.capacity, o.reservation) {
				continue
			}
			if u.setback == nil {
				u.setback = map[int32]int64{}
			}
			u.setback[k] = min(u.setback[k]+share, snapshot.Whole)
		}
	}
}

// penalty is how much dearer an offer counts than it is, in micro-dollars per hour.
func (u *universe) penalty(k int32) int64 {
	return snapshot.Of(u.offers[k].price, u.setback[k])
}

// compared is an offer's price as it is compared.
func (u *universe) compared(k int32) int64 {
	if len(u.setback) == 0 {
		return u.offers[k].price
	}
	return u.offers[k].price + u.penalty(k)
}

// setbacks are those of offers that a pool allows, those that count most first.
func (w *World) setbacks() []plan.Setback {
	s := w.Snapshot
	if len(s.Setbacks) == 0 {
		return nil
	}
	offers := make([]map[offerName]bool, len(s.Setbacks))
	for i := range w.Pools {
		p := &w.Pools[i]
		for _, list := range [][]int32{p.offers, p.short} {
			for _, k := range list {
				if p.u.setback[k] == 0 {
					continue
				}
				f := &p.u.offers[k]
				name := offerName{p.u.types[f.typ].Type.Name, f.zone, f.capacity, f.reservation}
				for j := range s.Setbacks {
					if s.Setbacks[j].Hits(name.typ, name.zone, name.capacity, name.reservation) {
						if offers[j] == nil {
							offers[j] = map[offerName]bool{}
						}
						offers[j][name] = true
					}
				}
			}
		}
	}
	var out []plan.Setback
	for j := range s.Setbacks {
		x := &s.Setbacks[j]
		share := x.Share(s.Now)
		if len(offers[j]) == 0 || share == 0 {
			continue
		}
		b := plan.Setback{
			InstanceType: x.InstanceType, Zone: x.Zone, CapacityType: x.CapacityType, ReservationID: x.ReservationID,
			Interrupted: len(x.Interrupted), Failures: x.Failures, Last: x.Failed, Share: share, Offers: len(offers[j]),
		}
		if n := len(x.Interrupted); n > 0 && x.Interrupted[n-1].After(b.Last) {
			b.Last = x.Interrupted[n-1]
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b plan.Setback) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.String(), b.String()))
	})
	return out
}

// PassedOver is an offer that costs less than the one chosen, and counts as dearer because
// it went wrong lately.
type PassedOver struct {
	plan.Offer
	Share int64 // in millionths of the price
}

// PassedOver are the offers of a pool that a class may use, that hold what is asked for,
// and that would have been cheaper than an offer but for what is remembered of them: the
// cheapest first. p is the problem that was solved.
func (w *World) PassedOver(p *packing.Problem, pool string, class int, asks snapshot.Resources, chosen plan.Offer) []PassedOver {
	var out []PassedOver
	for t := range w.Templates {
		tm := &w.Templates[t]
		if len(tm.u.setback) == 0 || tm.kind > 0 || w.Pools[tm.Pool].Spec.Name != pool || t >= len(p.Classes[class].Offers) {
			continue
		}
		for o := range p.Templates[t].Offers {
			f := &p.Templates[t].Offers[o]
			if f.Penalty == 0 || f.Paid() >= chosen.Price || !p.Classes[class].Offers[t].Has(o) || !asks.Fits(tm.Type(o).Allocatable) {
				continue
			}
			out = append(out, PassedOver{tm.Offer(o), tm.u.setback[tm.offers[o]]})
		}
	}
	slices.SortStableFunc(out, func(a, b PassedOver) int { return cmp.Compare(a.Price, b.Price) })
	return out
}

// Setback is how much dearer an offer counts than it is, in millionths of its price.
func (t *Template) Setback(o int) int64 { return t.u.setback[t.offers[o]] }

// Setback is how much dearer an offer of a pool counts than it is, in millionths of its
// price; 0 where nothing is held against it.
func (w *World) Setback(pool string, f plan.Offer) int64 {
	for i := range w.Templates {
		tm := &w.Templates[i]
		if len(tm.u.setback) == 0 || w.Pools[tm.Pool].Spec.Name != pool {
			continue
		}
		for _, k := range tm.offers {
			if o := &tm.u.offers[k]; tm.u.types[o.typ].Type.Name == f.InstanceType && o.zone == f.Zone && o.capacity == f.CapacityType && o.reservation == f.ReservationID {
				return tm.u.setback[k]
			}
		}
	}
	return 0
}
