package catalog

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// EncodeTable packs a catalogue for embedding: column by column (what stands
// together is alike, so gzip is left with little), words and device lists once
// each, numbers as uvarints. Of the offerings it keeps the on-demand price, which
// must be the same in all zones of the catalogue; 0 = no price. Only the
// generator calls it.
func EncodeTable(c *Catalog) ([]byte, error) {
	e := &encoder{words: map[string]int64{}, devices: map[string]int64{}, labels: map[string]int64{}}
	columns, err := e.columns(c)
	if err != nil {
		return nil, err
	}
	var prices []int64
	for i := range c.Types {
		t := &c.Types[i]
		if len(t.Extended) > 0 {
			return nil, fmt.Errorf("pack %s: a table has no extended resources given as such", t.Name)
		}
		price, err := tablePrice(t, c.Zones)
		if err != nil {
			return nil, err
		}
		prices = append(prices, price)
	}
	b := e.head(appendText(nil, tableMagic), c)
	for _, column := range append(columns, prices) {
		for _, v := range column {
			b = appendNumber(b, v)
		}
	}

	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("pack table: %w", err)
	}
	if _, err := z.Write(b); err != nil {
		return nil, fmt.Errorf("pack table: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack table: %w", err)
	}
	return out.Bytes(), nil
}

// head appends what stands before the columns. These must be made: they fill the lists.
func (e *encoder) head(b []byte, c *Catalog) []byte {
	b = appendText(b, c.Region)
	b = appendText(b, c.Date)
	b = appendText(b, c.Source)
	b = appendNumber(b, int64(len(c.Zones)))
	for _, zone := range c.Zones {
		b = appendText(b, zone)
		b = appendText(b, zoneID(c, zone))
	}
	b = appendNumber(b, int64(len(e.wordList)))
	for _, w := range e.wordList {
		b = appendText(b, w)
	}
	b = appendNumber(b, int64(len(e.deviceList)))
	for _, d := range e.deviceList {
		b = append(b, d...)
	}
	b = appendNumber(b, int64(len(e.labelList)))
	for _, l := range e.labelList {
		b = append(b, l...)
	}
	names := make([]string, len(c.Types))
	for i := range c.Types {
		names[i] = c.Types[i].Name
	}
	b = appendNumber(b, int64(len(names)))
	return appendText(b, strings.Join(names, "\n"))
}

type encoder struct {
	words, devices, labels map[string]int64
	wordList               []string
	deviceList, labelList  []string
}

// columns are the figures in the order in which tableReader.figures reads them.
func (e *encoder) columns(c *Catalog) (columns [][]int64, err error) {
	for _, figure := range []func(t *InstanceType) int64{
		func(t *InstanceType) int64 { return e.word(t.Arch) },
		func(t *InstanceType) int64 { return t.VCPU },
		func(t *InstanceType) int64 { return t.MemoryMiB },
		func(t *InstanceType) int64 { return t.ENI.Interfaces },
		func(t *InstanceType) int64 { return t.ENI.IPv4PerENI },
		func(t *InstanceType) int64 { return t.ENI.Branch },
		func(t *InstanceType) int64 { return t.ENI.EFAInterfaces },
		func(t *InstanceType) int64 { return t.ENI.Cards },
		func(t *InstanceType) int64 { return e.deviceSet(t.GPUs) },
		func(t *InstanceType) int64 { return e.deviceSet(t.Accelerators) },
		func(t *InstanceType) int64 { return t.LocalNVMeGB },
		func(t *InstanceType) int64 { return t.NetworkMbps },
		func(t *InstanceType) int64 { return t.EBSMbps },
		func(t *InstanceType) int64 { return e.word(t.Hypervisor) },
		func(t *InstanceType) int64 { return e.word(t.CPUManufacturer) },
		func(t *InstanceType) int64 { return t.ClockMHz },
		func(t *InstanceType) int64 { return e.word(t.Encryption) },
		func(t *InstanceType) int64 {
			if t.NestedVirtualization {
				return 1
			}
			return 0
		},
		func(t *InstanceType) int64 { return e.labelSet(t.Labels) },
	} {
		column := make([]int64, len(c.Types))
		for i := range c.Types {
			if column[i] = figure(&c.Types[i]); column[i] < 0 {
				return nil, fmt.Errorf("pack %s: a figure is negative", c.Types[i].Name)
			}
		}
		columns = append(columns, column)
	}
	return columns, nil
}

func tablePrice(t *InstanceType, zones []string) (int64, error) {
	price, seen := int64(0), 0
	for _, o := range t.Offerings {
		if o.CapacityType != OnDemand {
			continue
		}
		if seen > 0 && o.Price != price {
			return 0, fmt.Errorf("pack %s: on-demand prices differ between zones", t.Name)
		}
		price = o.Price
		seen++
	}
	if price > 0 && seen != len(zones) {
		return 0, fmt.Errorf("pack %s: it is not offered in every zone", t.Name)
	}
	return price, nil
}

func zoneID(c *Catalog, zone string) string {
	for i := range c.Types {
		for _, o := range c.Types[i].Offerings {
			if o.Zone == zone {
				return o.ZoneID
			}
		}
	}
	return ""
}

func (e *encoder) word(s string) int64 { return index(e.words, &e.wordList, s) }

func (e *encoder) deviceSet(list []Device) int64 {
	b := appendNumber(nil, int64(len(list)))
	for _, d := range list {
		b = appendNumber(b, e.word(d.Name))
		b = appendNumber(b, e.word(d.Manufacturer))
		b = appendNumber(b, d.Count)
		b = appendNumber(b, d.MemoryMiB)
		b = appendNumber(b, d.Cores)
	}
	return index(e.devices, &e.deviceList, string(b))
}

func (e *encoder) labelSet(m map[string]string) int64 {
	b := appendNumber(nil, int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = appendNumber(b, e.word(k))
		b = appendNumber(b, e.word(m[k]))
	}
	return index(e.labels, &e.labelList, string(b))
}

// index returns the position of a value in a list of distinct values.
func index(seen map[string]int64, list *[]string, value string) int64 {
	i, ok := seen[value]
	if !ok {
		i = int64(len(*list))
		seen[value] = i
		*list = append(*list, value)
	}
	return i
}
