package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// packMagic opens a packed catalogue; the digit is the version of the format.
const packMagic = "kerf catalogue 2"

// Flags of an offer in a packed catalogue.
const (
	packSpot = 1 << iota
	packAvailable
	packEstimated
)

// Pack writes a catalogue for storing: all that is in it, in the manner of EncodeTable,
// with every offer and not compressed. Equal catalogues, equal bytes. Reserved offers are
// not of a catalogue but of a class; they are an error.
func Pack(c *Catalog) ([]byte, error) {
	e := &encoder{words: map[string]int64{}, devices: map[string]int64{}, labels: map[string]int64{}}
	columns, err := e.columns(c)
	if err != nil {
		return nil, err
	}
	var rest []byte
	for i := range c.Types {
		rest = appendNumber(rest, max(c.Types[i].Volumes, 0))
	}
	for i := range c.Types {
		rest = e.extended(rest, c.Types[i].Extended)
	}
	for i := range c.Types {
		if rest, err = appendOffers(rest, &c.Types[i], c.Zones); err != nil {
			return nil, err
		}
	}
	rest = appendNumber(rest, int64(len(c.Commitments)))
	for _, m := range c.Commitments {
		rest = appendNumber(rest, e.word(packedName(&m)))
		rest = appendNumber(rest, max(m.Price, 0))
		rest = appendNumber(rest, max(m.Remaining, 0))
	}
	b := e.head(appendText(nil, packMagic), c)
	for _, column := range columns {
		for _, v := range column {
			b = appendNumber(b, v)
		}
	}
	return append(b, rest...), nil
}

// packedName is a commitment's scope, and its id where it has one.
func packedName(m *Commitment) string {
	if m.ID == "" {
		return m.Scope
	}
	return m.Scope + "\n" + m.ID
}

func (e *encoder) extended(b []byte, m map[string]int64) []byte {
	b = appendNumber(b, int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = appendNumber(b, e.word(k))
		b = appendNumber(b, max(m[k], 0))
	}
	return b
}

// appendOffers writes the offers of a type. A price that is that of the offer before it
// with the same capacity type is 0, others are one more than they are.
func appendOffers(b []byte, t *InstanceType, zones []string) ([]byte, error) {
	b = appendNumber(b, int64(len(t.Offerings)))
	var last [2]int64
	for i := range t.Offerings {
		o := &t.Offerings[i]
		zone, ok := slices.BinarySearch(zones, o.Zone)
		switch {
		case !ok:
			return nil, fmt.Errorf("pack %s: its zone %q is none of the catalogue", t.Name, o.Zone)
		case o.CapacityType != Spot && o.CapacityType != OnDemand || o.Reservation != nil:
			return nil, fmt.Errorf("pack %s: an offer of capacity type %q has no place here", t.Name, o.CapacityType)
		case o.Price < 0:
			return nil, fmt.Errorf("pack %s: a price is negative", t.Name)
		}
		flags, kind := int64(0), 0
		if o.CapacityType == Spot {
			flags, kind = packSpot, 1
		}
		if o.Available {
			flags |= packAvailable
		}
		if o.Estimated {
			flags |= packEstimated
		}
		b = appendNumber(b, int64(zone))
		b = appendNumber(b, flags)
		if o.Price == last[kind] {
			b = appendNumber(b, 0)
		} else {
			b = appendNumber(b, o.Price+1)
		}
		last[kind] = o.Price
	}
	return b, nil
}

// maxOffers bounds the offers of one type: two for each zone are the most that make sense.
const maxOffers = 4 * maxTableZones

// Unpack reads what Pack wrote. Whatever the bytes are, it gives a catalogue or an error.
func Unpack(data []byte) (*Catalog, error) {
	r := &tableReader{rest: string(data)}
	if r.text() != packMagic {
		return nil, fmt.Errorf("unpack catalogue: %w", errTable)
	}
	c, zones, l := r.head()
	r.figures(c, l)
	for i := range c.Types {
		c.Types[i].Volumes = r.number()
	}
	for i := range c.Types {
		n := r.count(1 << 10)
		if n > 0 {
			c.Types[i].Extended = make(map[string]int64, min(n, 16))
		}
		for range n {
			k := at(r, l.words)
			c.Types[i].Extended[k] = r.number()
		}
	}
	for i := range c.Types {
		c.Types[i].Offerings = r.offers(zones)
	}
	n := r.count(1 << 10)
	for range n {
		scope, id, _ := strings.Cut(at(r, l.words), "\n")
		c.Commitments = append(c.Commitments, Commitment{Scope: scope, ID: id, Price: r.number(), Remaining: r.number()})
	}
	if r.bad || r.rest != "" {
		return nil, fmt.Errorf("unpack catalogue: %w", errTable)
	}
	return c, nil
}

func (r *tableReader) offers(zones []Offering) []Offering {
	n := r.count(maxOffers)
	if n == 0 {
		return nil
	}
	out := make([]Offering, n)
	var last [2]int64
	for i := range out {
		o := at(r, zones)
		flags, kind := r.number(), 0
		o.CapacityType = OnDemand
		if flags&packSpot != 0 {
			o.CapacityType, kind = Spot, 1
		}
		o.Available, o.Estimated = flags&packAvailable != 0, flags&packEstimated != 0
		if p := r.number(); p > 0 {
			last[kind] = p - 1
		}
		o.Price = last[kind]
		out[i] = o
	}
	return out
}
