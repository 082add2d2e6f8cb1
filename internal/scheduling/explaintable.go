package scheduling

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"kerf.sh/kerf/internal/requirements"
)

// blame is one rule that keeps a pod away.
type blame struct {
	kind int
	key  string // label, or taint
	at   int    // taint index
}

// Kinds of blame, the order in which a message names them.
const (
	byTaint = iota
	byLabel
	byUnusable
	byPort
	byVolume
	byOffer
	byShort
)

// Bits of the blames that every table has.
const (
	unusable uint64 = 1 << iota
	noOffer
	portTaken
	shortOffer
)

// explainTable is a pool with every type and offer of the catalogue, allowed or
// not, and what of the pool's own requirements each of them fails.
type explainTable struct {
	t         *Template
	blames    []blame
	bit       map[string]uint64
	keys      []string // of the pool's requirements
	typeFail  []uint64 // by type
	offerFail []uint64 // by offer
	tainted   uint64
	rows      map[int][]nearest
	short     map[int][]int32 // by rules: offers that nothing but a shortage is in the way of
	alloc     []int64         // by type, what daemon pods leave, by Dims
}

// nearest is the offer of a type with the fewest failed rules.
type nearest struct {
	mask     uint64 // rules that fail
	poolOnly uint64 // of the pool alone: the pod says nothing about these labels
	alt      int32
	offer    int32
}

func (x *explainTable) add(b blame) uint64 {
	id := fmt.Sprint(b.kind, b.key, b.at)
	if v, ok := x.bit[id]; ok {
		return v
	}
	n := min(len(x.blames), 63) // the rest shares the last bit
	if n == len(x.blames) {
		x.blames = append(x.blames, b)
	}
	x.bit[id] = 1 << n
	return 1 << n
}

func (w *World) table(pool int) *explainTable {
	if x := w.explain[pool]; x != nil {
		return x
	}
	p := &w.Pools[pool]
	u := p.u
	types := make([]int32, len(u.types))
	for i := range types {
		types[i] = int32(i)
	}
	offers := make([]int32, len(u.offers))
	for i := range offers {
		offers[i] = int32(i)
	}
	base := map[string]string{}
	for k, v := range p.labels {
		base[k] = v
	}
	x := &explainTable{
		t: newTemplate(u, p.Spec.Taints, base, types, offers), bit: map[string]uint64{},
		typeFail: make([]uint64, len(types)), offerFail: make([]uint64, len(offers)), rows: map[int][]nearest{},
	}
	x.t.Pool = pool
	for _, o := range p.open {
		if !o.absent {
			base[o.key] = o.def
		}
	}
	x.t.daemons = w.groupDaemons(x.t)
	for _, o := range p.open {
		delete(base, o.key)
	}
	x.blames = []blame{{kind: byUnusable}, {kind: byOffer}, {kind: byPort}, {kind: byShort}}
	for i := range u.types {
		if u.types[i].Unusable != "" {
			x.typeFail[i] |= unusable
		}
	}
	for k := range u.offers {
		switch {
		case u.offers[k].why == "":
		case u.short[int32(k)] != nil:
			x.offerFail[k] |= shortOffer
		default:
			x.offerFail[k] |= noOffer
		}
	}
	for r := range p.reqs.All() {
		bit := x.add(blame{kind: byLabel, key: r.Key()})
		x.keys = append(x.keys, r.Key())
		x.mark(&r, bit, x.typeFail, x.offerFail)
	}
	for i := range u.types {
		rest := u.types[i].Allocatable.Sub(x.t.daemons.groups[x.t.daemons.of[i]].requests)
		x.alloc = w.vector(&rest, x.alloc)
		w.addSlots(x.alloc[len(x.alloc)-len(w.Dims):], x.t, i)
	}
	if w.explain == nil {
		w.explain = map[int]*explainTable{}
	}
	w.explain[pool] = x
	return x
}

// mark sets a bit on the types or offers that a requirement excludes.
func (x *explainTable) mark(r *requirements.Requirement, bit uint64, types, offers []uint64) {
	c := x.t.u.column(r.Key())
	ok := c.table(r, nil)
	list := types
	if offerKey(r.Key()) {
		list = offers
	}
	for i := range list {
		if !ok[c.ids[i]+1] {
			list[i] |= bit
		}
	}
}

// row finds, per type, the offer with the fewest failed rules for a rules-key.
func (w *World) row(pool, rules int) []nearest {
	x := w.table(pool)
	if row, ok := x.rows[rules]; ok {
		return row
	}
	p, r := &w.Pools[pool], &w.Rules[rules]
	row := make([]nearest, len(x.t.types))
	for i := range row {
		row[i].offer = -1
	}
	var short []int32
	var common uint64
	for i := range x.t.taints {
		if t := &x.t.taints[i]; t.Effect != preferNoSchedule && !Tolerates(r.Spec.Tolerations, t) {
			common |= x.add(blame{kind: byTaint, at: i})
			x.tainted |= common
		}
	}
	ported := make([]uint64, len(x.t.daemons.groups))
	for i := range ported {
		if firstPortConflict(r.Spec.HostPorts, x.t.daemons.groups[i].ports) != nil {
			ported[i] = portTaken
		}
	}
	alts := r.forNew()
	if len(alts) == 0 {
		alts = [][]requirements.Requirement{nil}
		common |= x.add(blame{kind: byLabel, key: ""})
	}
	for a, alt := range alts {
		base := common
		var spoken uint64 // pool keys that the pod speaks about
		types, offers := slices.Clone(x.typeFail), slices.Clone(x.offerFail)
		for i := range alt {
			q := &alt[i]
			bit := x.add(blame{kind: byLabel, key: q.Key()})
			spoken |= bit
			if v, ok := x.t.label(q.Key()); ok {
				if !q.Has(v) {
					base |= bit
				}
				continue
			}
			if k := slices.IndexFunc(p.open, func(o open) bool { return o.key == q.Key() }); k >= 0 {
				if p.open[k].req.Intersect(*q).Impossible() {
					base |= bit
				}
				continue
			}
			x.mark(q, bit, types, offers)
		}
		x.markVolumes(p, r, offers)
		var poolKeys uint64
		for _, k := range x.keys {
			poolKeys |= x.add(blame{kind: byLabel, key: k})
		}
		only := poolKeys &^ spoken
		for i := range row {
			tm := base | types[i] | ported[x.t.daemons.of[i]]
			for k := x.t.u.first[i]; k < x.t.u.first[i+1]; k++ {
				n := nearest{mask: tm | offers[k], alt: int32(a), offer: k}
				n.poolOnly = n.mask & only
				if n.mask == shortOffer {
					short = append(short, k)
				} else {
					n.mask &^= shortOffer // it passes, and what else is in the way does not
				}
				if row[i].offer < 0 || n.before(&row[i]) {
					row[i] = n
				}
			}
		}
	}
	if len(short) > 0 {
		if x.short == nil {
			x.short = map[int][]int32{}
		}
		slices.Sort(short)
		x.short[rules] = slices.Compact(short)
	}
	x.rows[rules] = row
	return row
}

func (n *nearest) before(o *nearest) bool {
	return cmp.Or(cmp.Compare(bits.OnesCount64(n.poolOnly), bits.OnesCount64(o.poolOnly)),
		cmp.Compare(bits.OnesCount64(n.mask), bits.OnesCount64(o.mask)),
		cmp.Compare(o.mask&(noOffer|shortOffer), n.mask&(noOffer|shortOffer))) < 0 // what is wanted but sold out is nearest
}
