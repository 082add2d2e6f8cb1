package pricing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	sdk "github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/pricing"
)

var (
	ctx = context.Background()
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// products serves pages of a price list.
type products struct {
	shared, metal []string
	err           error
	asked         []map[string]string
}

func (p *products) GetProducts(_ context.Context, in *sdk.GetProductsInput, _ ...func(*sdk.Options)) (*sdk.GetProductsOutput, error) {
	filters := map[string]string{}
	for _, f := range in.Filters {
		filters[*f.Field] = *f.Value
	}
	p.asked = append(p.asked, filters)
	if filters["tenancy"] == "Dedicated" {
		return &sdk.GetProductsOutput{PriceList: p.metal}, p.err
	}
	if in.NextToken == nil {
		return &sdk.GetProductsOutput{PriceList: p.shared[:1], NextToken: aws.String("2")}, nil
	}
	return &sdk.GetProductsOutput{PriceList: p.shared[1:]}, nil
}

func product(name, currency, price string) string {
	return fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q}},"terms":{"OnDemand":{"x":{"priceDimensions":{"y":{"pricePerUnit":{%q:%q}}}}}}}`, name, currency, price)
}

func TestOnDemand(t *testing.T) {
	p := &products{shared: []string{product("m5.large", "USD", "0.0960000000"), product("free.large", "USD", "0.0000000000"), product("t4g.nano", "USD", "0.0042000001")}, metal: []string{product("m5.metal", "CNY", "4.608")}}
	got, err := pricing.OnDemand(ctx, p, "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int64{"m5.large": 96000, "t4g.nano": 4201, "m5.metal": 4608000}, got); d != "" {
		t.Errorf("prices (-want +got):\n%s", d)
	}
	if f := p.asked[0]; f["regionCode"] != "eu-west-1" || f["operatingSystem"] != "Linux" || f["capacitystatus"] != "Used" {
		t.Errorf("asked for %v", f)
	}
	p.err = errors.New("no answer")
	if got, err := pricing.OnDemand(ctx, p, "eu-west-1"); err == nil || got != nil {
		t.Errorf("half a list: %v, %v", got, err)
	}
	for region, want := range map[string]string{"eu-west-1": "eu-central-1", "ap-east-1": "ap-south-1", "cn-north-1": "cn-northwest-1", "sa-east-1": "us-east-1"} {
		if got := pricing.Endpoint(region); got != want {
			t.Errorf("price list of %s is in %s, want %s", region, got, want)
		}
	}
}

func TestMicro(t *testing.T) {
	for text, want := range map[string]int64{"0.096": 96000, "0": 0, "1": 1000000, "0.0000001": 1, "32.7726": 32772600, "0.1000000": 100000} {
		if got, err := pricing.Micro(text); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1/3", "1e3", "99999999999999999999"} {
		if got, err := pricing.Micro(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestSpot(t *testing.T) {
	e := ec2fake.New(func() time.Time { return now })
	e.PageSize = 1
	e.AddSubnet("subnet-1", "a", "1", 1)
	e.AddSubnet("subnet-2", "b", "2", 1)
	e.AddType(ec2fake.Type{Name: "m5.large", Spot: 40100}, ec2fake.Type{Name: "m5.metal"})
	got, err := pricing.Spot(ctx, e, now)
	if d := cmp.Diff(map[string]map[string]int64{"m5.large": {"a": 40100, "b": 40100}}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	e.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.N == 4 {
			return ec2fake.Fault{Before: errors.New("no answer")}
		}
		return ec2fake.Fault{}
	}
	if got, err := pricing.Spot(ctx, e, now); err == nil || got != nil {
		t.Errorf("half of it: %v, %v", got, err)
	}
}

func TestReservations(t *testing.T) {
	e := ec2fake.New(func() time.Time { return now })
	one := func(id, owner string, criteria types.InstanceMatchCriteria, state types.CapacityReservationState, tags ...types.Tag) types.CapacityReservation {
		return types.CapacityReservation{CapacityReservationId: aws.String(id), OwnerId: aws.String(owner), InstanceType: aws.String("m5.large"), AvailabilityZone: aws.String("a"),
			AvailableInstanceCount: aws.Int32(2), TotalInstanceCount: aws.Int32(5), InstanceMatchCriteria: criteria, State: state, Tags: tags}
	}
	blue := types.Tag{Key: aws.String("team"), Value: aws.String("blue")}
	e.Reservations = []types.CapacityReservation{
		one("cr-3", "1", "open", "active", blue), one("cr-1", "2", "targeted", "active"), one("cr-2", "1", "open", "expired", blue), one("cr-4", "1", "open", "active"),
	}
	e.Reservations[3].ReservationType = types.CapacityReservationTypeCapacityBlock
	e.Reservations[3].EndDate = aws.Time(now.Add(41 * time.Minute))
	for name, tt := range map[string]struct {
		terms []nodeclass.ReservationTerm
		want  string
	}{
		"none":               {nil, ""},
		"tags, active only":  {[]nodeclass.ReservationTerm{{Tags: map[string]string{"team": "blue"}}}, "cr-3"},
		"owner and criteria": {[]nodeclass.ReservationTerm{{OwnerID: "1", InstanceMatchCriteria: "open"}}, "cr-3 cr-4"},
		"ids, one gone":      {[]nodeclass.ReservationTerm{{ID: "cr-9"}, {ID: "cr-1"}, {ID: "cr-2"}}, "cr-1"},
	} {
		found, err := pricing.Reservations(ctx, e, tt.terms)
		var got []string
		for _, r := range found {
			got = append(got, r.ID)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, %v; want %s", name, got, err, tt.want)
		}
	}
	found, _ := pricing.Reservations(ctx, e, []nodeclass.ReservationTerm{{ID: "cr-4"}})
	r := found[0]
	if r.Type != "capacity-block" || !r.Usable(now) || r.Usable(now.Add(time.Minute)) || r.StateAt(now.Add(time.Minute)) != "expiring" || r.Remaining != 2 {
		t.Errorf("a block 41 minutes before its end: %+v", r)
	}
}

func table() *catalog.Catalog {
	return &catalog.Catalog{Region: "r", Zones: []string{"a", "b"}, Types: []catalog.InstanceType{{Name: "m5.large", Offerings: []catalog.Offering{
		{Zone: "a", ZoneID: "1", CapacityType: "on-demand", Price: 90, Available: true}, {Zone: "a", ZoneID: "1", CapacityType: "spot", Price: 30, Available: true, Estimated: true},
		{Zone: "b", ZoneID: "2", CapacityType: "on-demand", Price: 90, Available: true}}}}}
}

func TestApply(t *testing.T) {
	before := table()
	got := pricing.Apply(before, map[string]int64{"m5.large": 96, "m9.large": 1}, map[string]map[string]int64{"m5.large": {"b": 41, "z": 1}})
	want := []catalog.Offering{
		{Zone: "a", ZoneID: "1", CapacityType: "on-demand", Price: 96, Available: true},
		{Zone: "a", ZoneID: "1", CapacityType: "spot", Price: 30}, // no price: not launchable as spot
		{Zone: "b", ZoneID: "2", CapacityType: "on-demand", Price: 96, Available: true},
		{Zone: "b", ZoneID: "2", CapacityType: "spot", Price: 41, Available: true},
	}
	if d := cmp.Diff(want, got.Types[0].Offerings); d != "" {
		t.Errorf("offerings (-want +got):\n%s", d)
	}
	if d := cmp.Diff(table().Types, before.Types); d != "" {
		t.Errorf("the table that was given changed:\n%s", d)
	}
	if d := cmp.Diff(table().Types, pricing.Apply(before, nil, nil).Types); d != "" {
		t.Errorf("nothing could be read, and yet:\n%s", d)
	}
}

func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Bytes that do not compress make several parts.
		data := make([]byte, rapid.IntRange(0, 500_000).Draw(t, "size"))
		x := rapid.Uint64().Draw(t, "seed")
		for i := range data {
			x = x*6364136223846793005 + 1442695040888963407
			data[i] = byte(x >> 56)
		}
		parts, err := pricing.Pack(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if len(p.Data) > pricing.PartBytes {
				t.Fatalf("part of %d bytes", len(p.Data))
			}
		}
		back, err := pricing.Unpack(rapid.Permutation(parts).Draw(t, "order"))
		if err != nil || string(back) != string(data) {
			t.Fatalf("%d bytes came back as %d, %v", len(data), len(back), err)
		}
		if _, err := pricing.Unpack(parts[1:]); err == nil {
			t.Fatal("a missing part was not noticed")
		}
		other, err := pricing.Pack(append(data, 1))
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) > 1 && len(other) == len(parts) {
			if _, err := pricing.Unpack(append([]pricing.Part{other[0]}, parts[1:]...)); err == nil {
				t.Fatal("parts of two wholes were put together")
			}
		}
		parts[0].Data[len(parts[0].Data)/2] ^= 0xff
		if back, err := pricing.Unpack(parts); err == nil && string(back) != string(data) {
			t.Fatal("damage was not noticed")
		}
	})
}

func BenchmarkPackTable(b *testing.B) {
	data := []byte(strings.Repeat(`{"name":"m5.large","vcpu":2,"memoryMiB":8192},`, 20_000))
	for b.Loop() {
		if _, err := pricing.Pack(data); err != nil {
			b.Fatal(err)
		}
	}
}
