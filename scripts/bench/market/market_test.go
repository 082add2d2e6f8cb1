package market

import (
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/bound"
)

func newMarket(t *testing.T) *Market {
	t.Helper()
	m, err := New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryVariantIsAPartOfTheOpenSpotPool(t *testing.T) {
	m := newMarket(t)
	wide := m.View(Variant{Spot: true})
	for _, v := range Variants() {
		view := m.View(v)
		if len(view.Columns) < 100 || len(view.Columns) != len(view.Room) {
			t.Errorf("%s: %d columns, room of %d types", v, len(view.Columns), len(view.Room))
		}
		for o, p := range view.Prices {
			if wide.Prices[o] != p {
				t.Errorf("%s: %v costs %d, in the open pool with spot %d", v, o, p, wide.Prices[o])
			}
			if o.CapacityType == catalog.Spot && !v.Spot {
				t.Errorf("%s sells %v", v, o)
			}
		}
		per := 3 // zones
		if v.Spot {
			per = 6
		}
		if len(view.Prices) != per*len(view.Columns) {
			t.Errorf("%s: %d offers of %d types, want %d a type", v, len(view.Prices), len(view.Columns), per)
		}
		for _, c := range view.Columns {
			least := int64(0)
			for o, p := range view.Prices {
				if o.Type == c.Name && (least == 0 || p < least) {
					least = p
				}
			}
			if c.Price != least || c.Gives != view.Room[c.Name] || c.Gives[bound.Nodes] != 1 {
				t.Errorf("%s: column %+v; the cheapest offer costs %d, the room is %v", v, c, least, view.Room[c.Name])
			}
		}
	}
}

func TestThePoolsRequirements(t *testing.T) {
	m := newMarket(t)
	for _, c := range []struct {
		name string
		v    Variant
		want bool
	}{
		{"m7g.xlarge", Variant{}, true},
		{"c5.large", Variant{}, true},
		{"m2.xlarge", Variant{}, false}, // generation
		{"t3.medium", Variant{}, false}, // category
		{"c6g.8xlarge", Variant{CapVCPU: 32}, true},
		{"c6g.12xlarge", Variant{CapVCPU: 32}, false},
		{"c6g.12xlarge", Variant{}, true},
	} {
		if !slices.ContainsFunc(m.Types, func(r catalog.Resolved) bool { return r.Type.Name == c.name }) {
			t.Errorf("the table has no %s, so this case says nothing", c.name)
		}
		_, got := m.View(c.v).Room[c.name]
		if got != c.want {
			t.Errorf("%s: %s is on sale: %v, want %v", c.v, c.name, got, c.want)
		}
	}
}

func TestDaemonsetsAndPricesOfAKnownType(t *testing.T) {
	m := newMarket(t)
	view := m.View(Variant{Spot: true})
	for i := range m.Types {
		r := &m.Types[i]
		if r.Type.Name != "m7g.xlarge" {
			continue
		}
		want := bound.Vector{r.Allocatable.CPU - 150, r.Allocatable.Memory - 192<<20, r.Allocatable.Pods - 2, 1}
		if got := view.Room["m7g.xlarge"]; got != want {
			t.Errorf("m7g.xlarge has room for %v, want %v", got, want)
		}
	}
	od := view.Prices[Offer{"m7g.xlarge", "us-east-1b", catalog.OnDemand}]
	if od != 163_200 {
		t.Errorf("m7g.xlarge costs %d on demand, want 163200", od)
	}
	if got, want := view.Prices[Offer{"m7g.xlarge", "us-east-1b", catalog.Spot}], workload.SpotPrice("m7g.xlarge", "us-east-1b", od); got != want {
		t.Errorf("m7g.xlarge costs %d as spot, want %d", got, want)
	}
}

func TestAnEmptyTableIsRefused(t *testing.T) {
	_, err := New(&catalog.Catalog{Region: "nowhere-1"})
	if err == nil || !strings.Contains(err.Error(), "nowhere-1") {
		t.Errorf("error %v, want one that names the region", err)
	}
}
