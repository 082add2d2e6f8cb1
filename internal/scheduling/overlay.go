package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// overlay is a NodeOverlay that is to be applied.
type overlay struct {
	spec  *snapshot.NodeOverlay
	reqs  requirements.Set
	price func(listed int64) int64 // nil: it sets no price
}

// overlaid is what overlays change for one pool.
type overlaid struct {
	u *universe // of the pool's class, as listed
	// price is the overlay that sets the price of an offer; last the lightest that
	// wanted to. The same per type and resource for capacity.
	price map[int32]*overlay
	last  map[int32]*overlay
	extra map[int32]map[string]capacityOverlay
	made  *universe
}

type capacityOverlay struct {
	value int64
	last  *overlay
}

// readOverlays decides what NodeOverlays change, pool by pool (Karpenter: NodeOverlay,
// alpha). They are taken by weight, the heaviest first, then by name, the last first;
// the first that sets the price of an offer, or a resource of a type, counts. Of two of
// the same weight that want to, the second is in conflict and is left aside altogether.
func (w *World) readOverlays() {
	s := w.Snapshot
	if len(s.Overlays) == 0 {
		return
	}
	if !s.Settings.NodeOverlay {
		for i := range s.Overlays {
			w.warn("nodeoverlay/"+s.Overlays[i].Name, plan.FeatureOff, gateOff("it", "NodeOverlay"))
		}
		return
	}
	w.overlaid = map[string]*overlaid{}
	for i := range w.Pools {
		n := w.Pools[i].Spec
		if class := w.class(n.ClassRef.Name); n.ClassRef.Group == classGroup && class != nil {
			if u, err := w.universe(class); err == nil {
				w.overlaid[n.Name] = &overlaid{u: u, price: map[int32]*overlay{}, last: map[int32]*overlay{}, extra: map[int32]map[string]capacityOverlay{}}
			}
		}
	}
	for _, o := range w.orderedOverlays() {
		conflict := ""
		for i := range w.Pools {
			if x := w.overlaid[w.Pools[i].Spec.Name]; x != nil && conflict == "" {
				conflict = x.apply(o, w.Pools[i].Spec, false)
			}
		}
		if conflict != "" {
			w.warn("nodeoverlay/"+o.spec.Name, plan.OverlayConflict, conflict)
			continue
		}
		for i := range w.Pools {
			if x := w.overlaid[w.Pools[i].Spec.Name]; x != nil {
				x.apply(o, w.Pools[i].Spec, true)
			}
		}
	}
}

// orderedOverlays are the valid overlays in the order in which they count.
func (w *World) orderedOverlays() []*overlay {
	s := w.Snapshot
	var out []*overlay
	for i := range s.Overlays {
		o := &overlay{spec: &s.Overlays[i]}
		if err := o.read(); err != nil {
			w.warn("nodeoverlay/"+o.spec.Name, plan.OverlayInvalid, err.Error()+": it is not applied")
			continue
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *overlay) int {
		return cmp.Or(cmp.Compare(b.spec.Weight, a.spec.Weight), strings.Compare(b.spec.Name, a.spec.Name))
	})
	return out
}

// read parses what an overlay says, and refuses what Karpenter finds invalid at run
// time.
func (o *overlay) read() error {
	for i := range o.spec.Requirements {
		key := requirements.Normalize(o.spec.Requirements[i].Key)
		err := requirements.Restricted(key)
		switch {
		case key == catalog.LabelNodePool:
			err = nil
		case key == catalog.LabelTenancy, key == catalog.LabelReservationID, key == catalog.LabelReservationType,
			key == catalog.LabelReservationInterruptible, strings.HasPrefix(key, "karpenter.k8s.aws/placement-group-"):
			err = fmt.Errorf("label %s is not one that an overlay can select by", key)
		}
		if err != nil {
			return fmt.Errorf("spec.requirements[%d]: %w", i, err)
		}
	}
	var err error
	if o.reqs, err = requirements.Parse(o.spec.Requirements); err != nil {
		return fmt.Errorf("spec.requirements: %w", err)
	}
	for _, name := range sortedKeys(o.spec.Capacity) {
		switch name {
		case snapshot.CPU, snapshot.Memory, snapshot.EphemeralStorage, snapshot.Pods,
			catalog.PodENI, catalog.Neuron, catalog.NeuronCore, catalog.HabanaGaudi, catalog.EFA, catalog.PrivateIPv4Address:
			return fmt.Errorf("spec.capacity[%s]: the instance type gives it", name)
		}
	}
	o.price, err = priceOf(o.spec)
	return err
}

// apply finds what an overlay selects in a pool. Asked to set, it writes it down;
// otherwise it only says with whom it is in conflict.
func (x *overlaid) apply(o *overlay, pool *snapshot.NodePool, set bool) string {
	var byType, byOffer []condition
	for r := range o.reqs.All() {
		key := r.Key()
		v, given := pool.TemplateLabels[key]
		if key == catalog.LabelNodePool {
			v, given = pool.Name, true
		}
		switch {
		case given:
			if !r.Has(v) {
				return ""
			}
		case offerKey(key):
			c := x.u.column(key)
			byOffer = append(byOffer, condition{c, c.table(&r, nil)})
		case x.u.typeKey(key):
			c := x.u.column(key)
			byType = append(byType, condition{c, c.table(&r, nil)})
		case !r.AllowsAbsent():
			return ""
		}
	}
	for t := range x.u.types {
		if !passes(byType, t) {
			continue
		}
		any := false
		for k := x.u.first[t]; k < x.u.first[t+1]; k++ {
			if !passes(byOffer, int(k)) {
				continue
			}
			any = true
			if o.price == nil {
				continue
			}
			first := x.price[k]
			switch {
			case set && first == nil:
				x.price[k], x.last[k] = o, o
			case set:
				x.last[k] = o
			case first != nil && x.last[k].spec.Weight == o.spec.Weight:
				f := &x.u.offers[k]
				return fmt.Sprintf("NodeOverlay %s has weight %d too and sets the price of %s %s in zone %s (NodePool %s): this one is not applied; give the two different weights",
					x.last[k].spec.Name, o.spec.Weight, x.u.types[t].Type.Name, f.capacity, f.zone, pool.Name)
			}
		}
		if !any {
			continue
		}
		for _, name := range sortedKeys(o.spec.Capacity) {
			have, found := x.extra[int32(t)][name]
			switch {
			case set && !found:
				if x.extra[int32(t)] == nil {
					x.extra[int32(t)] = map[string]capacityOverlay{}
				}
				x.extra[int32(t)][name] = capacityOverlay{o.spec.Capacity[name], o}
			case set:
				have.last = o
				x.extra[int32(t)][name] = have
			case found && have.last.spec.Weight == o.spec.Weight:
				return fmt.Sprintf("NodeOverlay %s has weight %d too and sets %s of %s (NodePool %s): this one is not applied; give the two different weights",
					have.last.spec.Name, o.spec.Weight, name, x.u.types[t].Type.Name, pool.Name)
			}
		}
	}
	return ""
}

func passes(conds []condition, i int) bool {
	for _, c := range conds {
		if !c.ok[c.col.ids[i]+1] {
			return false
		}
	}
	return true
}

// universe is the class's universe with what overlays change; nil when that is nothing.
func (x *overlaid) universe() *universe {
	if x == nil || len(x.price)+len(x.extra) == 0 {
		return nil
	}
	if x.made != nil {
		return x.made
	}
	out := *x.u
	out.offers = slices.Clone(x.u.offers)
	type priced struct {
		at int32
		by *overlay
	}
	markets := map[priced]*market{}
	for k, o := range x.price {
		f := &out.offers[k]
		at := priced{f.at, o}
		if markets[at] == nil {
			p := *f.market
			p.overlay = o.spec.Name
			markets[at] = &p
		}
		f.market = markets[at]
		f.listed, f.price = f.price, o.price(f.price)
	}
	out.types = slices.Clone(x.u.types)
	for t, extra := range x.extra {
		r := &out.types[t]
		for _, name := range slices.Sorted(maps.Keys(extra)) {
			r.Capacity = r.Capacity.With(name, extra[name].value)
			r.Allocatable = r.Allocatable.With(name, extra[name].value)
		}
	}
	x.made = &out
	return x.made
}

// priceOf reads the price that an overlay gives to an offer, in micro-dollars per hour;
// nil when it gives none. Halves are rounded up, and nothing costs less than nothing.
func priceOf(o *snapshot.NodeOverlay) (func(int64) int64, error) {
	const field = "spec.priceAdjustment"
	switch text := o.PriceAdjustment; {
	case o.Price != "":
		v, ok := micro(o.Price)
		if !ok {
			return nil, fmt.Errorf("spec.price: %q is no number", o.Price)
		}
		fixed := rounded(v)
		return func(int64) int64 { return fixed }, nil
	case text == "":
		return nil, nil
	case strings.HasSuffix(text, "%"):
		share, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "%"))
		if !ok {
			return nil, fmt.Errorf("%s: %q is no percentage", field, text)
		}
		factor := share.Add(share.Mul(share, big.NewRat(1, 100)), big.NewRat(1, 1))
		return func(listed int64) int64 { return rounded(new(big.Rat).Mul(factor, new(big.Rat).SetInt64(listed))) }, nil
	default:
		v, ok := micro(text)
		if !ok {
			return nil, fmt.Errorf("%s: %q is no number", field, text)
		}
		return func(listed int64) int64 { return rounded(new(big.Rat).Add(v, new(big.Rat).SetInt64(listed))) }, nil
	}
}

// micro reads dollars exactly, as millionths.
func micro(text string) (*big.Rat, bool) {
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, false
	}
	return v.Mul(v, big.NewRat(1_000_000, 1)), true
}

func rounded(v *big.Rat) int64 {
	if v.Sign() <= 0 {
		return 0
	}
	twice := new(big.Int).Add(new(big.Int).Mul(v.Num(), big.NewInt(2)), v.Denom())
	n := twice.Quo(twice, new(big.Int).Mul(v.Denom(), big.NewInt(2)))
	if !n.IsInt64() {
		return snapshot.MaxQuantity
	}
	return snapshot.Clamp(n.Int64())
}

// Price is what a node of a pool costs as a type in a zone, overlays included, with the
// overlay that says so; ok is false when the catalogue has no such offer.
func (w *World) Price(pool, typ, zone, capacity string) (price int64, by string, ok bool) {
	i, found := slices.BinarySearchFunc(w.Catalog.Types, typ, func(t catalog.InstanceType, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return 0, "", false
	}
	if x := w.overlaid[pool]; x != nil {
		for k := x.u.first[i]; k < x.u.first[i+1]; k++ {
			if f := &x.u.offers[k]; f.zone == zone && f.capacity == capacity && x.price[k] != nil {
				return x.price[k].price(f.price), x.price[k].spec.Name, true
			}
		}
	}
	for _, o := range w.Catalog.Types[i].Offerings {
		if o.Zone == zone && o.CapacityType == capacity {
			return o.Price, "", true
		}
	}
	return 0, "", false
}
