package catalog

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
)

// tables are written by scripts/catalog, one for a region; encode.go says how.
//
//go:embed *.table
var tables embed.FS

// defaultTable is the region whose table is always there.
const defaultTable = "us-east-1"

// decoded are the decoded tables by region. A table is the same for every caller and depends
// on nothing, so it can be kept while the process lives.
var decoded sync.Map

func embedded(region string) *Catalog {
	if c, ok := decoded.Load(region); ok {
		return c.(*Catalog)
	}
	data, err := tables.ReadFile(region + ".table")
	if err != nil {
		return nil // there is none
	}
	c, err := decodeTable(data)
	if err == nil && c.Region != region {
		err = fmt.Errorf("it is of region %q", c.Region)
	}
	if err != nil {
		panic("embedded catalogue " + region + ": " + err.Error()) // a broken build
	}
	kept, _ := decoded.LoadOrStore(region, c)
	return kept.(*Catalog)
}

// Default returns the embedded table of us-east-1. It is shared and must not be
// changed.
func Default() *Catalog { return embedded(defaultTable) }

// Embedded returns the embedded table of a region; false when there is none. Then
// the caller can use Default and must say so: types and figures are mostly the
// same elsewhere, prices and zones are not.
func Embedded(region string) (*Catalog, bool) {
	c := embedded(region)
	return c, c != nil
}

// tableMagic opens a table; the digit is the version of the format.
const tableMagic = "kerf catalogue 1"

// spotEstimate is the share of the on-demand price, in percent, that the embedded
// table assumes for spot. Spot prices change by the hour and are no facts of a
// table; a plan without credentials still needs a figure to weigh spot against
// on-demand with.
const spotEstimate = 40

var errTable = errors.New("table is cut short or not in this format")

// maxTableTypes bounds what a damaged count can make us allocate.
const maxTableTypes = 1 << 16

const maxTableZones = 256

// decodeTable reads what EncodeTable wrote.
func decodeTable(packed []byte) (*Catalog, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack table: %w", err)
	}
	var buf bytes.Buffer
	buf.Grow(len(packed) * 4)
	if _, err := io.Copy(&buf, z); err != nil {
		return nil, fmt.Errorf("unpack table: %w", err)
	}
	// One string for the whole table: names and labels are slices of it.
	r := &tableReader{rest: buf.String()}
	if r.text() != tableMagic {
		return nil, errTable
	}
	c, zones, lists := r.head()
	r.figures(c, lists)
	slab := make([]Offering, 0, 2*len(c.Types)*len(zones))
	for i := range c.Types {
		price := r.number()
		start := len(slab)
		for _, o := range zones {
			o.CapacityType, o.Price, o.Available = OnDemand, price, price > 0
			slab = append(slab, o)
			o.CapacityType, o.Price, o.Estimated = Spot, price*spotEstimate/100, true
			slab = append(slab, o)
		}
		c.Types[i].Offerings = slab[start:len(slab):len(slab)]
	}
	if r.bad || r.rest != "" {
		return nil, errTable
	}
	return c, nil
}

// lists are what types refer to by number.
type lists struct {
	words   []string
	devices [][]Device
	labels  []map[string]string
}

// head reads what stands before the types: of the catalogue, its zones as offerings
// without a capacity type, and the lists.
func (r *tableReader) head() (*Catalog, []Offering, *lists) {
	c := &Catalog{Region: r.text(), Date: r.text(), Source: r.text()}
	zones := make([]Offering, r.count(maxTableZones))
	for i := range zones {
		zones[i] = Offering{Zone: r.text(), ZoneID: r.text()}
		c.Zones = append(c.Zones, zones[i].Zone)
	}
	l := &lists{words: make([]string, r.count(1<<12))}
	for i := range l.words {
		l.words[i] = r.text()
	}
	word := func() string { return at(r, l.words) }
	l.devices = make([][]Device, r.count(1<<12))
	for i := range l.devices {
		if n := r.count(64); n > 0 {
			l.devices[i] = make([]Device, n)
		}
		for j := range l.devices[i] {
			l.devices[i][j] = Device{Name: word(), Manufacturer: word(), Count: r.number(), MemoryMiB: r.number(), Cores: r.number()}
		}
	}
	l.labels = make([]map[string]string, r.count(1<<12))
	for i := range l.labels {
		n := r.count(64)
		if n > 0 {
			l.labels[i] = make(map[string]string, n)
		}
		for range n {
			k := word()
			l.labels[i][k] = word()
		}
	}
	return c, zones, l
}

// figures reads the types but for their offers.
func (r *tableReader) figures(c *Catalog, l *lists) {
	c.Types = make([]InstanceType, r.count(maxTableTypes))
	names := r.text()
	for i := range c.Types {
		c.Types[i].Name, names, _ = strings.Cut(names, "\n")
	}
	column := func(set func(t *InstanceType)) {
		for i := range c.Types {
			set(&c.Types[i])
		}
	}
	word := func() string { return at(r, l.words) }
	column(func(t *InstanceType) { t.Arch = word() })
	column(func(t *InstanceType) { t.VCPU = r.number() })
	column(func(t *InstanceType) { t.MemoryMiB = r.number() })
	column(func(t *InstanceType) { t.ENI.Interfaces = r.number() })
	column(func(t *InstanceType) { t.ENI.IPv4PerENI = r.number() })
	column(func(t *InstanceType) { t.ENI.Branch = r.number() })
	column(func(t *InstanceType) { t.ENI.EFAInterfaces = r.number() })
	column(func(t *InstanceType) { t.ENI.Cards = r.number() })
	column(func(t *InstanceType) { t.GPUs = at(r, l.devices) })
	column(func(t *InstanceType) { t.Accelerators = at(r, l.devices) })
	column(func(t *InstanceType) { t.LocalNVMeGB = r.number() })
	column(func(t *InstanceType) { t.NetworkMbps = r.number() })
	column(func(t *InstanceType) { t.EBSMbps = r.number() })
	column(func(t *InstanceType) { t.Hypervisor = word() })
	column(func(t *InstanceType) { t.CPUManufacturer = word() })
	column(func(t *InstanceType) { t.ClockMHz = r.number() })
	column(func(t *InstanceType) { t.Encryption = word() })
	column(func(t *InstanceType) { t.NestedVirtualization = r.number() == 1 })
	column(func(t *InstanceType) { t.Labels = at(r, l.labels) })
}

// tableReader reads numbers and texts; after the first damage it reads zeroes.
type tableReader struct {
	rest string
	bad  bool
}

func (r *tableReader) number() int64 {
	var v uint64
	for shift := 0; shift < 64 && shift/7 < len(r.rest); shift += 7 {
		b := r.rest[shift/7]
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			r.rest = r.rest[shift/7+1:]
			if v > math.MaxInt64/100 { // room for the spot estimate
				break
			}
			return int64(v)
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

// count reads a number that must not exceed limit.
func (r *tableReader) count(limit int64) int {
	v := r.number()
	if v > limit {
		r.bad, r.rest = true, ""
		return 0
	}
	return int(v)
}

func (r *tableReader) text() string {
	n := r.number()
	if n > int64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// at reads an index and returns that element.
func at[T any](r *tableReader, list []T) T {
	i := r.number()
	if i >= int64(len(list)) {
		r.bad, r.rest = true, ""
		var zero T
		return zero
	}
	return list[i]
}

func appendNumber(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)) }

func appendText(b []byte, s string) []byte { return append(appendNumber(b, int64(len(s))), s...) }
