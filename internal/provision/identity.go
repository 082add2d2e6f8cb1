package provision

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// identity is a hash over everything that decides a plan, after the rules were
// applied: pools and offers, free capacity, classes with what they may use and
// their pods, and verdicts. Two worlds that differ only in what no rule reads, or
// in the clock, have the same identity.
func identity(s *snapshot.Snapshot, c *catalog.Catalog, w *scheduling.World, p *packing.Problem) string {
	d := digest{h: sha256.New(), buf: make([]byte, 0, 8<<10)}
	d.str("kerf plan 1")
	d.str(s.Cluster)
	d.str(s.Region)
	d.str(c.Region)
	d.str(c.Date)
	for i := range c.Commitments {
		m := &c.Commitments[i]
		d.strs([]string{m.ID, m.Scope})
		d.num(m.Price, m.Remaining)
	}
	d.num(p.CostPerNode, p.OptionPriceCap, int64(p.Seed), p.Work)
	d.strs(s.Incomplete)
	d.strs(p.Dims)
	d.strs(p.LimitDims)
	for i := range p.Pools {
		d.str(p.Pools[i].Name)
		d.num(int64(p.Pools[i].Weight))
		d.num(p.Pools[i].Remaining...)
		d.str(string(w.Pools[i].Code))
		d.str(w.Pools[i].Detail)
	}
	for i := range p.Templates {
		d.template(&w.Templates[i], &p.Templates[i])
	}
	for i := range w.Nodes {
		d.str(w.Nodes[i].Name)
		d.str(w.Nodes[i].Closed)
		if l := w.Nodes[i].Launch; l != nil {
			o := l.Template.Offer(l.Offer)
			d.strs([]string{o.InstanceType, o.Zone, o.CapacityType, o.ReservationID})
			d.num(o.Price)
		}
	}
	for i := range p.Nodes {
		d.str(p.Nodes[i].Name)
		d.num(p.Nodes[i].Free...)
	}
	var lastOffers *packing.Bitset
	var lastNodes *uint64
	for i := range p.Classes {
		k := &p.Classes[i]
		d.num(int64(k.Count))
		d.num(k.Need...)
		// Classes of the same rules share their sets; those are written once.
		if len(k.Offers) > 0 && &k.Offers[0] != lastOffers {
			lastOffers = &k.Offers[0]
			for _, b := range k.Offers {
				d.bits(b)
			}
		}
		if len(k.Nodes) > 0 && &k.Nodes[0] != lastNodes {
			lastNodes = &k.Nodes[0]
			d.bits(k.Nodes)
		}
		d.ints(k.Conflicts)
		d.ints(k.Apart)
		for _, n := range w.Classes[i].Pods {
			d.str(s.Pods[n].Namespace)
			d.str(s.Pods[n].Name)
		}
	}
	d.num(int64(len(p.Caps)))
	for i := range p.Caps {
		c := &p.Caps[i]
		d.num(int64(c.Max), flag(c.New))
		d.ints(c.Classes)
		d.ints(c.Weight)
		d.ints(c.Used)
	}
	for _, n := range w.Nominated {
		d.str(s.Pods[n.Pod].Ref())
		d.str(n.Node)
	}
	for _, v := range w.Missing {
		d.str(v.Object)
		d.str(string(v.Code))
	}
	for _, v := range w.Skipped {
		d.str(v.Object)
		d.str(string(v.Code))
	}
	for _, v := range w.Refused {
		d.str(v.Object)
		d.str(string(v.Code))
	}
	d.memory(s)
	d.flush()
	sum := d.h.Sum(nil)
	return hex.EncodeToString(sum[:12])
}

// memory writes the shortages that are still to be heeded: offers that are left out are not
// in the problem, and the verdicts name them. Sizes and nominations are in the problem.
func (d *digest) memory(s *snapshot.Snapshot) {
	for i := range s.Shortages {
		if x := &s.Shortages[i]; x.Live(s.Now) {
			d.strs([]string{"shortage", x.Key(), x.Code})
			d.num(x.Until.Unix())
		}
	}
	for i := range s.Setbacks {
		if x := &s.Setbacks[i]; x.Share(s.Now) > 0 {
			d.strs([]string{"setback", x.Key()})
			d.num(x.Share(s.Now), int64(len(x.Interrupted)), int64(x.Failures), x.Failed.Unix())
		}
	}
}

// digest writes values to a hash in a form that cannot be mistaken: every string
// and list carries its length.
type digest struct {
	h   hash.Hash
	buf []byte
}

func (d *digest) flush() {
	d.h.Write(d.buf)
	d.buf = d.buf[:0]
}

func (d *digest) room() {
	if len(d.buf) > 4096 {
		d.flush()
	}
}

func (d *digest) str(s string) {
	d.room()
	d.buf = appendString(d.buf, s)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (d *digest) strs(list []string) {
	d.num(int64(len(list)))
	for _, s := range list {
		d.str(s)
	}
}

func (d *digest) num(list ...int64) {
	d.room()
	for _, v := range list {
		d.buf = binary.AppendVarint(d.buf, v)
	}
}

func (d *digest) ints(list []int32) {
	d.num(int64(len(list)))
	for _, v := range list {
		d.num(int64(v))
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (d *digest) bits(b packing.Bitset) {
	d.num(int64(len(b)))
	for len(b) > 0 {
		d.room()
		n := min(len(b), 256)
		for _, v := range b[:n] {
			d.buf = binary.LittleEndian.AppendUint64(d.buf, v)
		}
		b = b[n:]
	}
}

func (d *digest) template(w *scheduling.Template, t *packing.Template) {
	d.str(t.Name)
	d.num(int64(t.Pool))
	for _, k := range slices.Sorted(maps.Keys(w.Labels)) {
		d.str(k)
		d.str(w.Labels[k])
	}
	for i := range t.Types {
		ty := &t.Types[i]
		d.room()
		b := appendString(d.buf, ty.Name)
		for _, v := range ty.Alloc {
			b = binary.AppendVarint(b, v)
		}
		for _, v := range ty.Capacity {
			b = binary.AppendVarint(b, v)
		}
		d.buf = b
	}
	var last *packing.Market
	zone, capacity := "", ""
	for i := range t.Offers {
		o := &t.Offers[i]
		d.room()
		b := d.buf
		if o.Market != last {
			if last = o.Market; o.Zone != zone || o.Capacity != capacity {
				zone, capacity = o.Zone, o.Capacity
				b = appendString(appendString(b, zone), capacity)
			}
		}
		b = binary.AppendVarint(b, int64(o.Type))
		b = binary.AppendVarint(b, o.Price)
		b = binary.AppendVarint(b, int64(o.Rank))
		b = binary.AppendVarint(b, o.Count)
		if o.Reservation != "" {
			b = appendString(b, o.Reservation)
		}
		d.buf = b
	}
	for i := range t.MinValues {
		d.str(t.MinValues[i].Key)
		d.num(int64(t.MinValues[i].Min))
	}
}
