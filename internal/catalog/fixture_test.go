package catalog

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

// fixture reads the small catalogue that decision cases are written for.
func fixture(t testing.TB) *Catalog {
	t.Helper()
	data, err := os.ReadFile("testdata/fixture.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// only returns a catalogue of some types of another.
func only(c *Catalog, names ...string) *Catalog {
	out := *c
	out.Types = nil
	for _, name := range names {
		for i := range c.Types {
			if c.Types[i].Name == name {
				out.Types = append(out.Types, c.Types[i])
			}
		}
	}
	return &out
}

// TestFixture: the figures were worked out by hand from the published formulae.
func TestFixture(t *testing.T) {
	type row struct{ CPU, MiB, Pods, OnDemand, Spot int64 }
	want := map[string]row{
		"c5.large":   {1930, 3114, 29, 85_000, 34_000},
		"c5.xlarge":  {3920, 6584, 58, 170_000, 68_000},
		"m5.large":   {1930, 6903, 29, 96_000, 38_000},
		"m5.xlarge":  {3920, 14162, 58, 192_000, 77_000},
		"m5.2xlarge": {7910, 29317, 58, 384_000, 154_000},
		"c5.4xlarge": {15890, 27381, 234, 680_000, 272_000},
		"m5.4xlarge": {15890, 57691, 234, 768_000, 307_000},
		"m5.8xlarge": {31850, 118312, 234, 1_536_000, 614_000},
		"c6g.medium": {940, 1392, 8, 34_000, 14_000},
	}
	c := fixture(t)
	if diff := cmp.Diff([]string{"z-a", "z-b", "z-c"}, c.Zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	resolved, err := c.Resolve(&snapshot.NodeClass{Name: "default", AMIAlias: "al2023@latest"}, snapshot.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]row{}
	for _, r := range resolved {
		if r.Unusable != "" {
			t.Errorf("%s: %s", r.Type.Name, r.Unusable)
		}
		g := row{CPU: r.Allocatable.CPU, MiB: r.Allocatable.Memory >> 20, Pods: r.Allocatable.Pods}
		if len(r.Type.Offerings) != 6 {
			t.Errorf("%s: %d offerings, want 6", r.Type.Name, len(r.Type.Offerings))
		}
		for _, o := range r.Type.Offerings {
			switch o.CapacityType {
			case OnDemand:
				g.OnDemand = o.Price
			case Spot:
				g.Spot = o.Price
			}
		}
		got[r.Type.Name] = g
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fixture (-want +got):\n%s", diff)
	}
}
