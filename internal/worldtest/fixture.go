package worldtest

import (
	"time"

	"kerf.sh/kerf/internal/catalog"
)

// Clock is the instant of every fixture world.
var Clock = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// Zones of the fixture catalogue.
var Zones = []string{"z-a", "z-b", "z-c"}

// fixtureTypes are the instance types of the fixture: figures of real types, prices
// invented and round. eni is interfaces, addresses each.
var fixtureTypes = []struct {
	name, arch string
	vcpu, mib  int64
	eni        [2]int64
	od, spot   int64 // micro-dollars per hour
}{
	{"c5.4xlarge", "amd64", 16, 32768, [2]int64{8, 30}, 680_000, 272_000},
	{"c5.large", "amd64", 2, 4096, [2]int64{3, 10}, 85_000, 34_000},
	{"c5.xlarge", "amd64", 4, 8192, [2]int64{4, 15}, 170_000, 68_000},
	{"c6g.medium", "arm64", 1, 2048, [2]int64{2, 4}, 34_000, 14_000},
	{"m5.2xlarge", "amd64", 8, 32768, [2]int64{4, 15}, 384_000, 154_000},
	{"m5.4xlarge", "amd64", 16, 65536, [2]int64{8, 30}, 768_000, 307_000},
	{"m5.8xlarge", "amd64", 32, 131072, [2]int64{8, 30}, 1_536_000, 614_000},
	{"m5.large", "amd64", 2, 8192, [2]int64{3, 10}, 96_000, 38_000},
	{"m5.xlarge", "amd64", 4, 16384, [2]int64{4, 15}, 192_000, 77_000},
}

// FixtureAllocatable is what a node of each fixture type can give to pods (milli
// cores, MiB, pods), worked out by hand from the published formulae: 7.5 % of
// memory for the hypervisor rounded up to MiB (arm64: 64 MiB first), kube-reserved
// 11 MiB a pod plus 255, 100 MiB for eviction; CPU 6, 1, 0.5, 0.5 and then 0.25 %.
var FixtureAllocatable = map[string][3]int64{
	"c5.large":   {1930, 3114, 29},
	"c5.xlarge":  {3920, 6584, 58},
	"m5.large":   {1930, 6903, 29},
	"m5.xlarge":  {3920, 14162, 58},
	"m5.2xlarge": {7910, 29317, 58},
	"c5.4xlarge": {15890, 27381, 234},
	"m5.4xlarge": {15890, 57691, 234},
	"m5.8xlarge": {31850, 118312, 234},
	"c6g.medium": {940, 1392, 8},
}

// Fixture is the catalogue of small tests: nine types, each in three zones, spot
// and on-demand.
func Fixture() *catalog.Catalog {
	c := &catalog.Catalog{Region: "z", Date: "2026-03-04", Source: "fixture", Zones: Zones}
	for _, f := range fixtureTypes {
		c.Types = append(c.Types, catalog.InstanceType{
			Name: f.name, Arch: f.arch, VCPU: f.vcpu, MemoryMiB: f.mib,
			ENI:        catalog.ENI{Interfaces: f.eni[0], IPv4PerENI: f.eni[1]},
			Hypervisor: "nitro",
			Offerings:  Offerings(Zones, f.od, f.spot),
		})
	}
	return c
}

// Offerings are a spot and an on-demand offering per zone; a price of 0 leaves the
// capacity type out.
func Offerings(zones []string, od, spot int64) []catalog.Offering {
	var out []catalog.Offering
	for _, z := range zones {
		for _, o := range []struct {
			capacity string
			price    int64
		}{{"on-demand", od}, {"spot", spot}} {
			if o.price > 0 {
				out = append(out, catalog.Offering{
					Zone: z, ZoneID: ZoneID(z), CapacityType: o.capacity, Price: o.price, Available: true,
				})
			}
		}
	}
	return out
}

// ZoneID is the zone id of a fixture zone: "z-a" has "zid-a".
func ZoneID(zone string) string {
	if len(zone) > 2 && zone[:2] == "z-" {
		return "zid-" + zone[2:]
	}
	return zone + "-id"
}
