package catalog

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestPackRoundTrip(t *testing.T) {
	spot := Default().WithSpot(func(name, zone string, od int64) int64 {
		if len(name)%3 == 0 {
			return 0
		}
		return od/3 + int64(zone[len(zone)-1])
	})
	spot.Commitments = []Commitment{{Scope: "m5", Price: 40_000, Remaining: 7}, {Scope: "all", Price: 1, Remaining: 8, ID: "sp-1"}}
	spot.Types[0].Extended = map[string]int64{"x.io/a": 3, "x.io/b": 0}
	spot.Types[1].Volumes = 27
	for name, c := range map[string]*Catalog{"embedded": Default(), "with spot prices": spot, "fixture": fixtureWithoutReservations(t), "empty": {Region: "eu-west-1"}} {
		packed, err := Pack(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Unpack(packed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(c, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-before +after):\n%s", name, d)
		}
		again, err := Pack(got)
		if err != nil || !bytes.Equal(again, packed) {
			t.Errorf("%s: packed again it is other bytes (%v)", name, err)
		}
	}
}

func fixtureWithoutReservations(t *testing.T) *Catalog {
	c := *fixture(t)
	c.Types = append([]InstanceType(nil), c.Types...)
	for i := range c.Types {
		var kept []Offering
		for _, o := range c.Types[i].Offerings {
			if o.CapacityType != Reserved {
				kept = append(kept, o)
			}
		}
		c.Types[i].Offerings = kept
	}
	return &c
}

func TestPackRefuses(t *testing.T) {
	one := func(o Offering) *Catalog {
		return &Catalog{Zones: []string{"a"}, Types: []InstanceType{{Name: "x", Offerings: []Offering{o}}}}
	}
	for name, c := range map[string]*Catalog{
		"reserved":      one(Offering{Zone: "a", CapacityType: Reserved}),
		"unknown zone":  one(Offering{Zone: "b", CapacityType: Spot}),
		"no zone":       one(Offering{CapacityType: Spot}),
		"price below 0": one(Offering{Zone: "a", CapacityType: Spot, Price: -1}),
		"figure":        {Types: []InstanceType{{Name: "x", VCPU: -1}}},
	} {
		if _, err := Pack(c); err == nil {
			t.Errorf("%s: packed", name)
		}
	}
}

// TestUnpackDamaged: whatever is stored, there is a catalogue or an error, and what is cut
// short is an error.
func TestUnpackDamaged(t *testing.T) {
	small := Default().WithSpot(nil)
	small.Types = small.Types[:5]
	packed, err := Pack(small)
	if err != nil {
		t.Fatal(err)
	}
	for n := range packed {
		if _, err := Unpack(packed[:n]); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(packed))
		}
	}
	if _, err := Unpack(append(bytes.Clone(packed), 0)); err == nil {
		t.Error("a byte too many was taken")
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(packed)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		c, err := Unpack(b)
		if (c == nil) == (err == nil) {
			t.Fatalf("catalogue %v, error %v", c != nil, err)
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	packed, err := Pack(Default())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(packed)))
	for b.Loop() {
		if _, err := Unpack(packed); err != nil {
			b.Fatal(err)
		}
	}
}
