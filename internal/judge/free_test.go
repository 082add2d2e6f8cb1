package judge

import (
	"flag"
	"testing"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/workload"
)

// market is the embedded table of types, each on demand in the zones of package
// workload.
func market(t *testing.T) *catalog.Catalog {
	t.Helper()
	table, ok := catalog.Embedded(workload.Region)
	if !ok {
		t.Fatalf("there is no table of %s", workload.Region)
	}
	out := *table
	out.Types, out.Zones = nil, nil
	for _, z := range workload.Zones() {
		out.Zones = append(out.Zones, z.Zone)
	}
	for _, typ := range table.Types {
		var price int64
		for _, o := range typ.Offerings {
			if o.CapacityType == catalog.OnDemand && (price == 0 || o.Price < price) {
				price = o.Price
			}
		}
		if price == 0 {
			continue
		}
		typ.Offerings = nil
		for _, z := range workload.Zones() {
			typ.Offerings = append(typ.Offerings, catalog.Offering{Zone: z.Zone, ZoneID: z.ZoneID, CapacityType: catalog.OnDemand, Price: price, Available: true})
		}
		out.Types = append(out.Types, typ)
	}
	return &out
}

var freePods = flag.Int("pods", 300, "")

func TestFree(t *testing.T) {
	c := market(t)
	for _, kind := range []string{workload.MixedWeb, workload.MemCPU, workload.Diverse} {
		s := workload.Snapshot(workload.Named(kind, *freePods), false, 0)
		for _, how := range []Steering{Nominated, Cordoned} {
			for order := range uint64(3) {
				cl, err := FromSnapshot(s, c)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				o, err := cl.Settle(kerf, how, order)
				t.Log(kind, how, order, o, err, time.Since(start))
			}
		}
	}
}
