package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
)

// markVolumes sets the bits of demands on the offers that do not meet them.
func (x *explainTable) markVolumes(p *Pool, r *Rules, offers []uint64) {
	if len(r.Volumes) == 0 {
		return
	}
	types := make([]uint64, len(x.t.types))
	places := make([]uint64, len(offers))
	for _, d := range r.Volumes {
		bit := x.add(blame{kind: byVolume, at: d.id})
		meets := make([]bool, len(offers))
		for _, term := range d.Terms {
			clear(types)
			clear(places)
			ok := true
			for i := range term {
				q := &term[i]
				if v, has := x.t.label(q.Key()); has {
					ok = ok && q.Has(v)
				} else if k := slices.IndexFunc(p.open, func(o open) bool { return o.key == q.Key() }); k >= 0 {
					ok = ok && !p.open[k].req.Intersect(*q).Impossible()
				} else {
					x.mark(q, 1, types, places)
				}
			}
			if !ok {
				continue
			}
			for i := range types {
				for k := x.t.u.first[i]; k < x.t.u.first[i+1]; k++ {
					meets[k] = meets[k] || types[i]|places[k] == 0
				}
			}
		}
		for k := range offers {
			if !meets[k] {
				offers[k] |= bit
			}
		}
	}
}

// zones are the zones of a demand that is about zones alone; nil for another.
func (d *VolumeDemand) zones() []string {
	var out []string
	for _, t := range d.Terms {
		if t[0].AllowsAbsent() {
			continue
		}
		zone := false
		for i := range t {
			values, complement := t[i].Values()
			switch {
			case t[i].Key() == catalog.LabelZone && !complement:
				zone = true
				out = append(out, values...)
			case t[i].Key() != catalog.LabelRegion:
				return nil
			}
		}
		if !zone {
			return nil
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// describeVolume says where a volume is and where the pool launches, or what else the
// pod's volumes demand.
func (w *World) describeVolume(r *Rules, demand, pool int) string {
	d := w.volumes.demands[demand]
	offered := w.values(&w.Pools[pool], catalog.LabelZone)
	zones := d.zones()
	if zones != nil && !slices.ContainsFunc(zones, func(z string) bool { return slices.Contains(offered, z) }) {
		return d.place() + "; the NodePool offers zones " + list(offered)
	}
	var others []string
	for _, o := range r.Volumes {
		if o != d {
			others = append(others, o.place())
		}
	}
	if len(others) > 0 {
		if len(others) > 3 {
			others = append(others[:3], fmt.Sprintf("%d more", len(others)-3))
		}
		return d.place() + ", " + strings.Join(others, ", ") + ": no offer of the NodePool is right for all of them and for what else the pod asks for"
	}
	return d.who() + " demands " + d.String() + ", and no offer of the NodePool has that and what else the pod asks for"
}

// place says where the object of a demand is, in as few words as can be.
func (d *VolumeDemand) place() string {
	if zones := d.zones(); zones != nil {
		return d.who() + " is for zone " + strings.Join(zones, " or ")
	}
	return d.who() + " demands " + d.String()
}

// metBy reports whether a node meets the demand.
func (d *VolumeDemand) metBy(n *Node) bool {
	return slices.ContainsFunc(d.Terms, func(term []requirements.Requirement) bool {
		for i := range term {
			v, ok := n.Labels[term[i].Key()]
			if key := term[i].Key(); key == fieldName || !ok && key == catalog.LabelHostname {
				v, ok = n.Name, true
			}
			if !satisfied(&term[i], v, ok) {
				return false
			}
		}
		return true
	})
}

// volumesOfDriver writes a number of volumes for a sentence.
func volumesOfDriver(n int64, driver string) string {
	if driver == ebsDriver {
		return plan.Count(int(n), "volume")
	}
	return plan.Count(int(n), "volume") + " of " + driver
}

// describeSlots compares the volumes of a pod with what types attach.
func (w *World) describeSlots(x *explainTable, pool, class int, k *candidate, s *shortfall) string {
	driver := strings.TrimPrefix(s.resource, attachPrefix)
	need := volumesOfDriver(s.need, driver)
	most, mostType := w.most(x, pool, class, k, s.resource)
	if most >= s.need {
		return fmt.Sprintf("%s > %d attachable on %s, the nearest allowed type with the rest; %s attaches %d", need, s.have, x.t.u.types[k.typ].Type.Name, mostType, most)
	}
	return fmt.Sprintf("%s > %d attachable on any allowed type (%s)%s", need, max(most, s.have), mostType, w.keptOut(x, pool, class, k))
}

// slotsMiss says how many volumes too many a node would attach; "" for other resources,
// and where there is room.
func slotsMiss(dim string, need, have int64) string {
	if need <= have {
		return ""
	}
	if class, ok := strings.CutPrefix(dim, madePrefix); ok {
		return fmt.Sprintf("needs %s of storage class %s that nobody has, it has %d", plan.Count(int(need), "volume"), class, have)
	}
	if driver, ok := strings.CutPrefix(dim, attachPrefix); ok {
		return fmt.Sprintf("needs %s, and it can attach %d more", volumesOfDriver(need, driver), have)
	}
	return ""
}
