package handler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/handler"
)

// TestCatalogPartialPrices: each part that cannot be read keeps what was known, with its
// age.
func TestCatalogPartialPrices(t *testing.T) {
	w := newCatWorld(t)
	w.list.err = ec2fake.Error("AccessDeniedException", "no")
	rep := w.run()
	if d := cmp.Diff([]string{"types", "spot"}, rep.Read); d != "" || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0], "list prices could not be read, those of the embedded table are used") {
		t.Errorf("read %s, warnings %q", d, rep.Warnings)
	}
	// m5.large is known to the table; nobody knows what z9.large costs.
	got := offers(w.facts().Catalog)
	if !slices.Contains(got, "z9.large us-east-1a on-demand 0 false") || !slices.Contains(got, "m5.large us-east-1a spot 40000 true") || !slices.Contains(got, "m5.large us-east-1a on-demand 96000 true") {
		t.Errorf("offers %v", got)
	}
	first := w.now
	w.list.err = nil
	w.throttle("DescribeSpotPriceHistory")
	w.now = w.now.Add(time.Hour)
	rep = w.run()
	if d := cmp.Diff(handler.PriceAges{Types: first, Spot: first}, rep.Prices); d != "" {
		t.Errorf("ages (-want +got):\n%s", d)
	}
	if !strings.Contains(strings.Join(rep.Left, ""), "list prices: AWS throttles") || !strings.Contains(rep.Warnings[0], "those of 2026-03-01T12:00:00Z are used") {
		t.Errorf("left %q, warnings %q", rep.Left, rep.Warnings)
	}
	w.throttle("")
	w.ec2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 100_000})
	w.now = w.now.Add(time.Minute)
	rep = w.run()
	got = offers(w.facts().Catalog)
	if !rep.Prices.Spot.Equal(w.now) || !slices.Contains(got, "z9.large us-east-1a on-demand 77000 true") || !slices.Contains(got, "m5.large us-east-1a on-demand 100000 true") || !slices.Contains(got, "m5.large us-east-1a spot 40000 false") {
		t.Errorf("ages %+v, offers %v", rep.Prices, got)
	}
	// Nothing works any more: nothing changes, and after a day it is said with every plan.
	w.throttle("all")
	w.list.err = errors.New("no way")
	w.now = w.now.Add(48 * time.Hour)
	w.run()
	f := w.facts()
	if d := cmp.Diff(got, offers(f.Catalog)); d != "" {
		t.Errorf("offers (-before +after):\n%s", d)
	}
	if len(f.Warnings) != 1 || f.Warnings[0].Code != "PriceOld" || !strings.Contains(f.Warnings[0].Detail, "spot prices could not be read since 2026-03-01T13:01:00Z") {
		t.Errorf("warnings %v", f.Warnings)
	}
}

// TestCatalogUnsold: what was not sold as spot when prices were last read is not sold when
// they cannot be read, though its types are read anew.
func TestCatalogUnsold(t *testing.T) {
	w := newCatWorld(t)
	w.run()
	w.ec2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96_000})
	w.now = w.now.Add(time.Hour)
	w.run()
	w.throttle("DescribeSpotPriceHistory")
	w.now = w.now.Add(6 * time.Hour)
	if rep := w.run(); !slices.Contains(rep.Read, "types") || slices.Contains(rep.Read, "spot") {
		t.Fatalf("read %v", rep.Read)
	}
	got := offers(w.facts().Catalog)
	if slices.Contains(got, "m5.large us-east-1a spot 40000 true") || !slices.Contains(got, "m7g.large us-east-1a spot 30000 true") {
		t.Errorf("offers %v", got)
	}
}

// TestCatalogEstimates: in a region without a table, prices of another one are estimates
// until there are facts, and those that have none stay so.
func TestCatalogEstimates(t *testing.T) {
	w := newCatWorld(t)
	w.list.hides = "m7g.large"
	estimated := func() map[string]bool {
		h := w.catalog()
		h.Region = "eu-west-9"
		if _, err := h.Handle(background, handler.CatalogRequest{}); err != nil {
			t.Fatal(err)
		}
		f, err := handler.LoadFacts(background, w.memory(), "eu-west-9", w.now, &handler.FactsCache{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, typ := range f.Catalog.Types {
			for _, o := range typ.Offerings {
				out[typ.Name+" "+o.CapacityType] = o.Estimated
			}
		}
		return out
	}
	want := map[string]bool{"m5.large on-demand": false, "m5.large spot": false, "m7g.large on-demand": true, "m7g.large spot": false, "z9.large on-demand": false}
	for range 3 {
		if d := cmp.Diff(want, estimated()); d != "" {
			t.Errorf("at %s estimated (-want +got):\n%s", w.now.Format(time.TimeOnly), d)
		}
		w.now = w.now.Add(7 * time.Hour)
	}
}
