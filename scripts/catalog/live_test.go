package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	awspricing "github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/app/region"
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/handler"
)

// prices is a price list of one type.
type prices struct{}

func (prices) GetProducts(_ context.Context, in *awspricing.GetProductsInput, _ ...func(*awspricing.Options)) (*awspricing.GetProductsOutput, error) {
	for _, f := range in.Filters {
		if *f.Field == "tenancy" && *f.Value != "Shared" {
			return &awspricing.GetProductsOutput{}, nil
		}
	}
	return &awspricing.GetProductsOutput{PriceList: []string{
		`{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"x":{"priceDimensions":{"y":{"pricePerUnit":{"USD":"0.1070000000"}}}}}}}`}}, nil
}

// TestTableOfARegion: a table that is made of what AWS answers has the region's zones and
// prices, and what AWS does not tell from the table that is there; a type that nobody has a
// price for cannot be bought.
func TestTableOfARegion(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	e := ec2fake.New(func() time.Time { return now })
	e.AddSubnet("subnet-1", "eu-west-1b", "euw1-az2", 1)
	e.AddSubnet("subnet-2", "eu-west-1a", "euw1-az1", 1)
	e.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, Spot: 40_000}, ec2fake.Type{Name: "c5.large", Arch: "amd64", VCPU: 2, Spot: 30_000}, ec2fake.Type{Name: "z9.large", Arch: "arm64", VCPU: 2})
	m := &region.Market{EC2: e, Products: prices{}, Region: "eu-west-1", Now: func() time.Time { return now }}
	live, warnings := handler.Present(context.Background(), m, "eu-west-1", map[string]string{"eu-west-1a": "euw1-az1", "eu-west-1b": "euw1-az2"}, now)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	got := asTable(live, "2026-11-30")
	var lines []string
	for _, ty := range got.Types {
		for _, o := range ty.Offerings {
			lines = append(lines, fmt.Sprint(ty.Name, " ", o.Zone, " ", o.ZoneID, " ", o.CapacityType, " ", o.Price, " ", o.Available))
		}
	}
	want := []string{
		"c5.large eu-west-1a euw1-az1 on-demand 0 false", "c5.large eu-west-1b euw1-az2 on-demand 0 false",
		"m5.large eu-west-1a euw1-az1 on-demand 107000 true", "m5.large eu-west-1b euw1-az2 on-demand 107000 true",
		"z9.large eu-west-1a euw1-az1 on-demand 0 false", "z9.large eu-west-1b euw1-az2 on-demand 0 false",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("offers (-want +got):\n%s", d)
	}
	if got.Region != "eu-west-1" || got.Date != "2026-11-30" || got.Types[1].NetworkMbps == 0 {
		t.Errorf("%s of %s, m5.large: %+v", got.Region, got.Date, got.Types[1])
	}
	dir := t.TempDir()
	table, file := filepath.Join(dir, "t"), filepath.Join(dir, "c.json")
	if err := writeLive(live, "2026-11-30", table, file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	back, err := catalog.Parse(data)
	if err != nil || len(back.Types) != 3 || len(back.Zones) != 2 {
		t.Errorf("the catalogue file: %v, %v", back, err)
	}
	for _, args := range [][]string{{"-live"}, {"-live", "-facts", "x", "-table", table}} {
		if err := run(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
