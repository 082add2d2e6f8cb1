package scheduling

import (
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// openType bounds a claim whose instance is not known: the least allocatable and
// the most capacity over the types it allows. Without a catalogue type it is what
// the claim was made for.
func (w *World) openType(c *snapshot.NodeClaim) (least, most snapshot.Resources) {
	reqs, err := requirements.Parse(c.Requirements)
	class := w.class(c.ClassRef.Name)
	if err != nil || class == nil {
		return c.Requests, c.Requests
	}
	u, err := w.universe(class)
	if err != nil {
		return c.Requests, c.Requests
	}
	if x := w.overlaid[c.Labels[catalog.LabelNodePool]].universe(); x != nil {
		u = x
	}
	for k, v := range c.Labels {
		if requirements.WellKnown(k) && k != catalog.LabelNodePool {
			reqs.Add(requirements.In(k, v))
		}
	}
	first := true
	for i := range u.types {
		t := &u.types[i]
		if t.Unusable != "" || !typeAllowed(u, int32(i), reqs) {
			continue
		}
		if first {
			least, most, first = t.Allocatable, t.Capacity, false
			continue
		}
		least, most = minimum(least, t.Allocatable), most.Max(t.Capacity)
	}
	if first {
		return c.Requests, c.Requests
	}
	return least, most
}

// typeAllowed reports whether requirements allow a type with some offer of its,
// available or not: the claim may have taken the last one.
func typeAllowed(u *universe, typ int32, reqs requirements.Set) bool {
	var onOffer []requirements.Requirement
	for r := range reqs.All() {
		switch {
		case offerKey(r.Key()):
			onOffer = append(onOffer, r)
		case u.typeKey(r.Key()):
			v, ok := u.types[typ].Label(r.Key())
			if !satisfied(&r, v, ok) {
				return false
			}
		case requirements.WellKnown(r.Key()) && r.Key() != catalog.LabelTenancy && r.Key() != catalog.LabelNodePool:
			if !r.AllowsAbsent() {
				return false
			}
		}
	}
next:
	for k := u.first[typ]; k < u.first[typ+1]; k++ {
		for i := range onOffer {
			v, ok := u.offers[k].label(onOffer[i].Key())
			if !satisfied(&onOffer[i], v, ok) {
				continue next
			}
		}
		return true
	}
	return false
}

// minimum is component-wise; a resource that one side lacks is 0.
func minimum(a, b snapshot.Resources) snapshot.Resources {
	out := snapshot.Resources{CPU: min(a.CPU, b.CPU), Memory: min(a.Memory, b.Memory), Ephemeral: min(a.Ephemeral, b.Ephemeral), Pods: min(a.Pods, b.Pods)}
	for k, v := range a.Extended {
		if m := min(v, b.Extended[k]); m != 0 {
			out = out.With(k, m)
		}
	}
	return out
}
