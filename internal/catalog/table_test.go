package catalog

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestEmbedded: what the table promises.
func TestEmbedded(t *testing.T) {
	c, ok := Embedded("us-east-1")
	if !ok || c != Default() {
		t.Fatal("no table of us-east-1")
	}
	if other, ok := Embedded("eu-central-1"); ok || other != nil {
		t.Error("a table of eu-central-1 appeared")
	}
	if diff := cmp.Diff([]string{"us-east-1a", "us-east-1b", "us-east-1c"}, c.Zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	if c.Date != "2026-07-20" {
		t.Errorf("date %q", c.Date)
	}
	if want := "embedded table of us-east-1, on-demand list prices of 2026-07-20; every type is assumed in 3 zones, spot is estimated at 40 % of on-demand"; c.Source != want {
		t.Errorf("source %q, want %q", c.Source, want)
	}
	ids := map[string]string{"us-east-1a": "use1-az1", "us-east-1b": "use1-az2", "us-east-1c": "use1-az4"}
	unpriced := 0
	for i := range c.Types {
		typ := &c.Types[i]
		if i > 0 && c.Types[i-1].Name >= typ.Name {
			t.Errorf("%s comes after %s", typ.Name, c.Types[i-1].Name)
		}
		if !slices.IsSortedFunc(typ.Offerings, compareOfferings) || len(typ.Offerings) != 6 {
			t.Errorf("%s: %d offerings, or not in order", typ.Name, len(typ.Offerings))
		}
		onDemand := typ.Offerings[0].Price
		if onDemand == 0 {
			unpriced++
		}
		for _, o := range typ.Offerings {
			price := onDemand
			if o.CapacityType == Spot {
				price = onDemand * 40 / 100
			}
			want := Offering{Zone: o.Zone, ZoneID: ids[o.Zone], CapacityType: o.CapacityType, Price: price, Available: onDemand > 0, Estimated: o.CapacityType == Spot}
			if diff := cmp.Diff(want, o); diff != "" {
				t.Errorf("%s (-want +got):\n%s", typ.Name, diff)
			}
		}
	}
	if unpriced != 18 {
		t.Errorf("%d types without a price, want 18", unpriced)
	}
	for name, want := range map[string]int64{"m5.large": 96_000, "a1.medium": 25_500, "c5.large": 85_000, "dl2q.24xlarge": 0} {
		if got := typeNamed(t, c, name).Offerings[0].Price; got != want {
			t.Errorf("%s costs %d, want %d", name, got, want)
		}
	}
}

// TestTableRoundTrip: encoding what was decoded gives the same content.
func TestTableRoundTrip(t *testing.T) {
	packed, err := EncodeTable(Default())
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeTable(packed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), back, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("table (-want +got):\n%.2000s", diff)
	}
	again, err := EncodeTable(back)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, again) {
		t.Error("the same table packs to other bytes")
	}
}

func TestEncodeTableRefuses(t *testing.T) {
	offer := func(zone string, price int64) Offering {
		return Offering{Zone: zone, CapacityType: OnDemand, Price: price, Available: true}
	}
	for want, typ := range map[string]InstanceType{
		"pack a: a table has no extended resources given as such": {Extended: map[string]int64{"a/b": 1}},
		"pack a: on-demand prices differ between zones":           {Offerings: []Offering{offer("x", 1), offer("y", 2)}},
		"pack a: it is not offered in every zone":                 {Offerings: []Offering{offer("x", 1)}},
		"pack a: a figure is negative":                            {VCPU: -1},
	} {
		typ.Name = "a"
		_, err := EncodeTable(&Catalog{Zones: []string{"x", "y"}, Types: []InstanceType{typ}})
		if fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestDamagedTable: every cut and every changed byte of a small table is an error
// or a table; never a panic.
func TestDamagedTable(t *testing.T) {
	small := only(fixture(t), "c5.large", "m5.large")
	small.Types[0].GPUs = []Device{{Name: "t4", Manufacturer: "nvidia", Count: 1}}
	small.Types[0].Labels = map[string]string{"a": "b"}
	packed, err := EncodeTable(small)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeTable(packed[:len(packed)/2]); err == nil {
		t.Error("half a table is a table")
	}
	if _, err := decodeTable(nil); err == nil {
		t.Error("nothing is a table")
	}
	dear := only(fixture(t), "c5.large")
	dear.Types[0].Offerings = slices.Clone(dear.Types[0].Offerings)
	for i := range dear.Types[0].Offerings {
		dear.Types[0].Offerings[i].Price = 1 << 62
	}
	if packed, err := EncodeTable(dear); err != nil {
		t.Error(err)
	} else if _, err := decodeTable(packed); err == nil {
		t.Error("a price whose spot estimate overflows is in a table")
	}
	plain := unpack(t, packed)
	for i := range plain {
		if _, err := decodeTable(pack(t, plain[:i])); err == nil {
			t.Errorf("the first %d of %d bytes are a table", i, len(plain))
		}
		for _, b := range []byte{0x00, 0x7f, 0x80, 0xff} {
			damaged := slices.Clone(plain)
			damaged[i] = b
			if c, err := decodeTable(pack(t, damaged)); (c == nil) == (err == nil) {
				t.Errorf("byte %d = %#x: %v, %v", i, b, c, err)
			}
		}
	}
	if _, err := decodeTable(pack(t, append(plain, 0))); err == nil {
		t.Error("a table with a byte too many is a table")
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pack(t *testing.T, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWithSpot(t *testing.T) {
	c := only(Default(), "m5.large", "dl2q.24xlarge")
	got := c.WithSpot(func(instanceType, zone string, onDemand int64) int64 {
		if zone == "us-east-1b" {
			return 0
		}
		return onDemand/2 + int64(len(instanceType))
	})
	o := func(zone, id, capacity string, price int64) Offering {
		return Offering{Zone: zone, ZoneID: id, CapacityType: capacity, Price: price, Available: price > 0}
	}
	want := [][]Offering{{
		o("us-east-1a", "use1-az1", OnDemand, 96_000), o("us-east-1a", "use1-az1", Spot, 48_008),
		o("us-east-1b", "use1-az2", OnDemand, 96_000),
		o("us-east-1c", "use1-az4", OnDemand, 96_000), o("us-east-1c", "use1-az4", Spot, 48_008),
	}, {
		o("us-east-1a", "use1-az1", OnDemand, 0), o("us-east-1b", "use1-az2", OnDemand, 0), o("us-east-1c", "use1-az4", OnDemand, 0),
	}}
	for i := range want {
		if diff := cmp.Diff(want[i], got.Types[i].Offerings); diff != "" {
			t.Errorf("offerings (-want +got):\n%s", diff)
		}
	}
	if len(c.Types[0].Offerings) != 6 {
		t.Error("the catalogue itself was changed")
	}
	for _, typ := range c.WithSpot(nil).Types {
		if len(typ.Offerings) != 3 {
			t.Errorf("%s: %d offerings without spot, want 3", typ.Name, len(typ.Offerings))
		}
	}
}
