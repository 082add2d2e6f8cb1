package scheduling

import (
	"strconv"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Template is a kind of node that can be launched: a pool with a concrete value
// for every label that it leaves open.
type Template struct {
	Pool int // index in World.Pools
	Name string
	// Labels are those of every node of the template; type and offer add theirs.
	Labels map[string]string

	u         *universe
	taints    []snapshot.Taint
	types     []int32 // universe types
	offers    []int32 // universe offers
	offerType []int32 // position in types, by offer
	full      packing.Bitset
	daemons   daemonGroups
	dropped   []dropped
	kind      int                        // of attachments.sets: the shared volumes that its nodes can have
	onOffer   []requirements.Requirement // scratch of match
	mask      []bool
	room      []int64 // by type: what daemon pods leave, by World.Dims
}

// dropped is a type on which daemon pods leave no room.
type dropped struct {
	typ      int32
	resource string
	short    int64
}

// buildTemplates makes the templates of every pool that can launch.
func (w *World) buildTemplates() {
	for i := range w.Pools {
		p := &w.Pools[i]
		if p.Code != "" {
			continue
		}
		kinds := w.kinds()
		w.dropReserved(p)
		for k, labels := range w.variants(p) {
			t := newTemplate(p.u, p.Spec.Taints, labels, p.types, p.offers)
			t.Pool = i
			t.daemons = w.groupDaemons(t)
			w.dropFull(t)
			if k == 0 && !w.checkMinValues(p, t) {
				break
			}
			for t.kind = range kinds {
				t.Name = p.Spec.Name
				if n := k*kinds + t.kind; n > 0 {
					t.Name += "~" + strconv.Itoa(n)
				}
				w.Templates = append(w.Templates, *t)
			}
		}
	}
}

func newTemplate(u *universe, taints []snapshot.Taint, labels map[string]string, types, offers []int32) *Template {
	t := &Template{u: u, taints: taints, Labels: labels, types: types, offers: offers}
	t.index()
	return t
}

// index computes what follows from types and offers.
func (t *Template) index() {
	t.offerType = make([]int32, len(t.offers))
	k := int32(0)
	for o, of := range t.offers {
		for t.types[k] != t.u.offers[of].typ {
			k++
		}
		t.offerType[o] = k
	}
	t.full = packing.NewBitset(len(t.offers))
	for i := range t.full {
		t.full[i] = ^uint64(0)
	}
	if r := len(t.offers) & 63; r != 0 {
		t.full[len(t.full)-1] = 1<<r - 1
	}
	t.mask = make([]bool, len(t.types))
}

// dropFull takes out the types that have nothing left after daemon pods.
func (w *World) dropFull(t *Template) {
	keep := make([]bool, len(t.types))
	for i, ti := range t.types {
		g := &t.daemons.groups[t.daemons.of[i]]
		resource, short := lacking(&t.u.types[ti].Allocatable, &g.requests)
		keep[i] = resource == ""
		if !keep[i] {
			t.dropped = append(t.dropped, dropped{ti, resource, short})
		}
	}
	if len(t.dropped) == 0 {
		return
	}
	var types, of, offers []int32
	for i := range t.types {
		if keep[i] {
			types = append(types, t.types[i])
			of = append(of, t.daemons.of[i])
		}
	}
	for o := range t.offers {
		if keep[t.offerType[o]] {
			offers = append(offers, t.offers[o])
		}
	}
	t.types, t.offers, t.daemons.of = types, offers, of
	t.index()
}

// lacking names the first resource that goes below zero when daemon pods are on
// an empty node, and by how much.
func lacking(alloc, daemons *snapshot.Resources) (string, int64) {
	for _, k := range []string{snapshot.CPU, snapshot.Memory, snapshot.Pods, snapshot.EphemeralStorage} {
		if left := alloc.Get(k) - daemons.Get(k); left < 0 {
			return k, -left
		}
	}
	if len(daemons.Extended) == 0 {
		return "", 0
	}
	for _, k := range sortedKeys(daemons.Extended) {
		if left := alloc.Extended[k] - daemons.Extended[k]; left < 0 {
			return k, -left
		}
	}
	return "", 0
}

// toleratedBy reports whether tolerations cover the taints of the template's
// nodes. Startup taints go before a pod runs there and are no concern here. With
// preferences relaxed, PreferNoSchedule does not count.
func (t *Template) toleratedBy(tolerations []snapshot.Toleration, relaxed bool) bool {
	for i := range t.taints {
		if relaxed && t.taints[i].Effect == preferNoSchedule {
			continue
		}
		if !Tolerates(tolerations, &t.taints[i]) {
			return false
		}
	}
	return true
}

// match returns the offers that satisfy one of the alternatives of the rules; nil
// when none does. The result may be shared: do not write to it.
func (t *Template) match(r *Rules) packing.Bitset {
	var out packing.Bitset
	for _, alt := range r.forNew() {
		bits := t.matchAlt(alt)
		switch {
		case bits == nil:
		case out == nil:
			out = bits
		default:
			out = out.Clone()
			for i := range out {
				out[i] |= bits[i]
			}
		}
	}
	return t.matchVolumes(out, r.Volumes)
}

func (t *Template) matchAlt(alt []requirements.Requirement) packing.Bitset {
	t.onOffer = t.onOffer[:0]
	masked := false
	var buf [64]bool
	for i := range alt {
		r := &alt[i]
		key := r.Key()
		if v, ok := t.label(key); ok {
			if !r.Has(v) {
				return nil
			}
			continue
		}
		if !offerKey(key) && !t.u.typeKey(key) {
			if !r.AllowsAbsent() {
				return nil
			}
			continue
		}
		if offerKey(key) {
			t.onOffer = append(t.onOffer, *r)
			continue
		}
		c := t.u.column(key)
		ok := c.table(r, buf[:0])
		if !masked {
			masked = true
			for k := range t.mask {
				t.mask[k] = true
			}
		}
		for k, ti := range t.types {
			t.mask[k] = t.mask[k] && ok[c.ids[ti]+1]
		}
	}
	if !masked && len(t.onOffer) == 0 {
		if len(t.offers) == 0 {
			return nil
		}
		return t.full
	}
	out := packing.NewBitset(len(t.offers))
	any := false
	there := t.u.allowed(t.onOffer)
	for o, of := range t.offers {
		if masked && !t.mask[t.offerType[o]] || !there[t.u.offers[of].at] {
			continue
		}
		out.Set(o)
		any = true
	}
	if !any {
		return nil
	}
	return out
}

// label is a label that all nodes of the template have.
func (t *Template) label(key string) (string, bool) {
	if v, ok := t.Labels[key]; ok {
		return v, true
	}
	switch key {
	case labelRegistered, labelInitialized:
		return "true", true // in the end; DaemonSets select them
	}
	return "", false
}

const (
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
)

// NodeLabels are the labels of a node launched as an offer of the template.
func (t *Template) NodeLabels(o int) map[string]string {
	of := &t.u.offers[t.offers[o]]
	out := make(map[string]string, len(t.Labels)+32)
	t.u.types[of.typ].CopyLabels(out)
	for _, k := range []string{catalog.LabelZone, catalog.LabelZoneID, catalog.LabelCapacityType, catalog.LabelReservationID, catalog.LabelReservationType} {
		if v, ok := of.label(k); ok {
			out[k] = v
		}
	}
	for k, v := range t.Labels {
		out[k] = v
	}
	return out
}

// Offer is an offer of the template as plans show it.
func (t *Template) Offer(o int) plan.Offer {
	of := &t.u.offers[t.offers[o]]
	out := plan.Offer{InstanceType: t.u.types[of.typ].Type.Name, Zone: of.zone, CapacityType: of.capacity, Price: of.price}
	if of.capacity == catalog.Reserved {
		out.ReservationID = of.reservation
	}
	if of.overlay != "" {
		out.Overlay, out.ListPrice = of.overlay, of.listed
	}
	return out
}

// Type is the resolved type of an offer.
func (t *Template) Type(o int) *catalog.Resolved { return &t.u.types[t.u.offers[t.offers[o]].typ] }

// Daemons is what daemon pods take on a node of an offer.
func (t *Template) Daemons(o int) snapshot.Resources {
	return t.daemons.groups[t.daemons.of[t.offerType[o]]].requests
}
