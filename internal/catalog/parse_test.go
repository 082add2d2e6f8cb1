package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kerf.sh/kerf/internal/snapshot"
)

func TestParse(t *testing.T) {
	got, err := Parse([]byte(`{ "region": "us-east-1", "date": "2026-11-01", "instanceTypes": [
	  { "name": "m7g.xlarge", "arch": "arm64", "vcpu": 4, "memoryMiB": 16384,
	    "eni": {"interfaces": 4, "ipv4PerInterface": 15, "networkCards": 1},
	    "gpus": [{"name":"t4","manufacturer":"nvidia","count":1,"memoryMiB":16384}],
	    "accelerators": [{"name":"inferentia","manufacturer":"aws","count":2,"cores":4}],
	    "localNvmeGB": 75, "networkMbps": 1876, "ebsMbps": 10000, "hypervisor": "nitro", "cpuManufacturer": "aws", "nestedVirtualization": true, "ebsVolumes": 12,
	    "labels": { "extra": "label", "karpenter.k8s.aws/instance-hypervisor": "" }, "extended": { "vpc.amazonaws.com/pod-eni": 18 },
	    "offerings": [
	      {"zone":"us-east-1b","capacityType":"spot","pricePerHour":0.0653,"available":false},
	      {"zone":"us-east-1a","capacityType":"reserved","reservation": {"id":"cr-1","type":"capacity-block","remaining":2,"expires":"2026-12-01T00:00:00Z"}},
	      {"zone":"us-east-1a","capacityType":"reserved","pricePerHour":0,"reservation": {"id":"cr-0","remaining":1}},
	      {"zone":"us-east-1d","zoneID":"use1-az6","capacityType":"on-demand","available":false},
	      {"zone":"us-east-1a","capacityType":"on-demand","pricePerHour":61.6320005} ] },
	  { "name": "a.large", "arch": "amd64", "vcpu": 1, "memoryMiB": 1, "offerings": [] } ],
	  "commitments": [ {"scope":"m7g","effectivePricePerHour":0.1,"remainingPerHour":4.0} ] }`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Catalog{
		Region: "us-east-1", Date: "2026-11-01", Source: "catalogue file, prices of 2026-11-01",
		Zones: []string{"us-east-1a", "us-east-1b", "us-east-1d"},
		Types: []InstanceType{
			{Name: "a.large", Arch: "amd64", VCPU: 1, MemoryMiB: 1},
			{Name: "m7g.xlarge", Arch: "arm64", VCPU: 4, MemoryMiB: 16384,
				ENI:          ENI{Interfaces: 4, IPv4PerENI: 15, Cards: 1},
				GPUs:         []Device{{Name: "t4", Manufacturer: "nvidia", Count: 1, MemoryMiB: 16384}},
				Accelerators: []Device{{Name: "inferentia", Manufacturer: "aws", Count: 2, Cores: 4}},
				LocalNVMeGB:  75, NetworkMbps: 1876, EBSMbps: 10000, Hypervisor: "nitro", CPUManufacturer: "aws", NestedVirtualization: true, Volumes: 12,
				Labels:   map[string]string{"extra": "label", LabelHypervisor: ""},
				Extended: map[string]int64{PodENI: 18},
				Offerings: []Offering{
					{Zone: "us-east-1a", ZoneID: "use1-az1", CapacityType: OnDemand, Price: 61_632_001, Available: true},
					{Zone: "us-east-1a", ZoneID: "use1-az1", CapacityType: Reserved, Price: 6, Available: true, Reservation: &Reservation{ID: "cr-0", Type: "default", Remaining: 1}},
					{Zone: "us-east-1a", ZoneID: "use1-az1", CapacityType: Reserved, Price: 6, Available: true,
						Reservation: &Reservation{ID: "cr-1", Type: "capacity-block", Remaining: 2, Expires: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}},
					{Zone: "us-east-1b", ZoneID: "use1-az2", CapacityType: Spot, Price: 65_300},
					{Zone: "us-east-1d", ZoneID: "use1-az6", CapacityType: OnDemand},
				}},
		},
		Commitments: []Commitment{{Scope: "m7g", Price: 100_000, Remaining: 4_000_000}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
}

// TestParseRefuses: every mistake names where it is and what to do.
func TestParseRefuses(t *testing.T) {
	const head, tail = `{"instanceTypes":[{"name":"m5.large","arch":"amd64","vcpu":2,"memoryMiB":8192,"offerings":[`, `]}]}`
	offer := func(s string) string { return head + s + tail }
	typ := func(s string) string { return `{"instanceTypes":[{` + s + `}]}` }
	extra := func(s string) string {
		return typ(`"name":"m5.large","arch":"amd64","vcpu":2,"memoryMiB":8192,"offerings":[],` + s)
	}
	commit := func(s string) string { return `{"instanceTypes":[],"commitments":[` + s + `]}` }
	const at = `instanceTypes[0] ("m5.large"): `
	for _, test := range []struct{ input, want string }{
		{``, `the JSON is empty or cut short`},
		{`{"instanceTypes":[`, `the JSON is empty or cut short`},
		{`[]`, `a JSON array stands where an object belongs`},
		{`null`, `instanceTypes: is required; give a list of instance types`},
		{`{}`, `instanceTypes: is required; give a list of instance types`},
		{`{"instanceTypes":{}}`, `instanceTypes: a JSON object stands where a list belongs`},
		{`{"instanceTypes":[]} {}`, `something follows the JSON value at byte 22; remove it`},
		{`{"instanceTypes":[],"types":[]}`, `unknown field "types"; remove it or correct its name`},
		{`{"instanceTypes":[} `, `byte 19: invalid character '}' looking for beginning of value`},
		{`{"instanceTypes":[],"date":"1 November"}`, `date: "1 November" is not a date like 2026-11-01`},
		{`{"instanceTypes":[],"region":5}`, `region: a JSON number stands where a string belongs`},
		{`{"instanceTypes":[5]}`, `instanceTypes[0]: a JSON number stands where an object belongs`},
		{`{"instanceTypes":[null]}`, `instanceTypes[0]: name: is required`},
		{typ(`"arch":"amd64"`), `instanceTypes[0]: name: is required`},
		{typ(`"name":"m5 large"`), `instanceTypes[0] ("m5 large"): name: "m5 large" can not be a label value: use up to 63 letters, digits, '-', '_' and '.', a letter or digit at both ends`},
		{typ(`"name":"m5.large"`), at + `arch: is required: amd64 or arm64`},
		{typ(`"name":"m5.large","arch":"x86_64"`), at + `arch: "x86_64" is not amd64 or arm64`},
		{typ(`"name":"m5.large","arch":"amd64"`), at + `vcpu: is required`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":2`), at + `memoryMiB: is required`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":2,"memoryMiB":8192`), at + `offerings: is required; [] is a type that can not be bought`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":0,"memoryMiB":8192,"offerings":[]`), at + `vcpu: 0 is not between 1 and 1048576`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":-2,"memoryMiB":8192,"offerings":[]`), at + `vcpu: -2 is not between 1 and 1048576`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":2.5,"memoryMiB":8192,"offerings":[]`), at + `vcpu: a JSON number 2.5 stands where a whole number belongs`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":99999999999999999999,"memoryMiB":8192,"offerings":[]`), at + `vcpu: a JSON number 99999999999999999999 stands where a whole number belongs`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":NaN,"memoryMiB":8192,"offerings":[]`), `byte 60: invalid character 'N' looking for beginning of value`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":2,"memoryMiB":9223372036854775807,"offerings":[]`), at + `memoryMiB: 9223372036854775807 is not between 1 and 1099511627776`},
		{typ(`"name":"m5.large","arch":"amd64","vcpu":2,"memoryMiB":8192,"memoryMb":5,"offerings":[]`), at + `unknown field "memoryMb"; remove it or correct its name`},
		{`{"instanceTypes":[` + strings.TrimSuffix(strings.TrimPrefix(extra(`"ebsMbps":1`), `{"instanceTypes":[`), `]}`) + `,` + strings.TrimPrefix(extra(`"ebsMbps":1`), `{"instanceTypes":[`),
			`instanceTypes[1]: name: "m5.large" is also the name of instanceTypes[0]; keep one`},
		{extra(`"eni":{"interfaces":0,"ipv4PerInterface":10}`), at + `eni.interfaces: 0 is not between 1 and 65536; leave eni out for 110 pods`},
		{extra(`"eni":{"interfaces":3,"ipv4PerInterface":-1}`), at + `eni.ipv4PerInterface: -1 is not between 1 and 65536; leave eni out for 110 pods`},
		{extra(`"eni":{"interfaces":3,"ipv4":10}`), at + `unknown field "ipv4"; remove it or correct its name`},
		{extra(`"eni":{"interfaces":"3"}`), at + `eni.interfaces: a JSON string stands where a whole number belongs`},
		{extra(`"eni":{"interfaces":3,"ipv4PerInterface":10,"networkCards":-1}`), at + `eni.networkCards: -1 is not between 0 and 1099511627776`},
		{extra(`"localNvmeGB":-1`), at + `localNvmeGB: -1 is not between 0 and 1099511627776`},
		{extra(`"gpus":[{"name":"t4","manufacturer":"nvidia","count":-1}]`), at + `gpus[0].count: -1 is not between 0 and 1099511627776`},
		{extra(`"gpus":[{"count":1}]`), at + `gpus[0]: name and manufacturer are required`},
		{extra(`"accelerators":[{"name":"x","manufacturer":"y","count":1,"cores":-4}]`), at + `accelerators[0].cores: -4 is not between 0 and 1099511627776`},
		{extra(`"extended":{"nvidia.com/gpu":-1}`), at + `extended[nvidia.com/gpu]: -1 is not between 0 and 1099511627776`},
		{extra(`"extended":{"cpu":1}`), at + `extended[cpu]: is no extended resource; their names have a domain, such as nvidia.com/gpu`},
		{extra(`"labels":{"topology.kubernetes.io/zone":"a"}`), at + `labels[topology.kubernetes.io/zone]: is not a label of a type; zones and capacity types belong in offerings`},
		{extra(`"labels":{"kubernetes.io/arch":"arm64"}`), at + `labels[kubernetes.io/arch]: "arm64" differs from arch "amd64"`},
		{extra(`"labels":{"node.kubernetes.io/instance-type":"m5"}`), at + `labels[node.kubernetes.io/instance-type]: "m5" differs from name "m5.large"`},
		{extra(`"labels":{"a":"b c"}`), at + `labels[a]: "b c" can not be a label value`},
		{extra(`"labels":{"":"b"}`), at + `labels: a label has no name`},
		{extra(`"labels":{"a":5}`), at + `labels: a JSON number stands where a string belongs`},
		{offer(`{}`), at + `offerings[0]: zone: is required`},
		{offer(`{"zone":"a b"}`), at + `offerings[0]: zone: "a b" can not be a label value`},
		{offer(`{"zone":"a"}`), at + `offerings[0]: capacityType: is required: spot, on-demand or reserved`},
		{offer(`{"zone":"a","capacityType":"xspot"}`), at + `offerings[0]: capacityType: "xspot" is not spot, on-demand or reserved`},
		{offer(`{"zone":"a","capacityType":"spot"}`), at + `offerings[0]: pricePerHour: is required of what is available; without a price say "available": false`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":0}`), at + `offerings[0]: pricePerHour: 0 is not above 0 (a millionth of a dollar is the least)`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":0.0000004}`), at + `offerings[0]: pricePerHour: 0.0000004 is not above 0 (a millionth of a dollar is the least)`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":-0.1}`), at + `offerings[0]: pricePerHour: -0.1 is negative`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":-1e-300}`), at + `offerings[0]: pricePerHour: -1e-300 is negative`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":1e300}`), at + `offerings[0]: pricePerHour: 1e300 is more than 1000000 dollars, or no number`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":1e999}`), at + `offerings[0]: pricePerHour: 1e999 is more than 1000000 dollars, or no number`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":true}`), at + `offerings[0]: pricePerHour: a JSON bool stands where a number belongs`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":"cheap"}`), at + `offerings[0]: pricePerHour: a JSON string "cheap" stands where a number belongs`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":1,"prise":1}`), at + `offerings[0]: unknown field "prise"; remove it or correct its name`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":1},{"zone":"a","capacityType":"spot","pricePerHour":2}`), at + `offerings: spot in zone a is there twice; keep one`},
		{offer(`{"zone":"a","capacityType":"reserved","pricePerHour":1}`), at + `offerings[0]: reservation: goes with capacityType reserved and with no other; it is "reserved"`},
		{offer(`{"zone":"a","capacityType":"spot","pricePerHour":1,"reservation":{"id":"cr-1"}}`), at + `offerings[0]: reservation: goes with capacityType reserved and with no other; it is "spot"`},
		{offer(`{"zone":"a","capacityType":"reserved","reservation":{"remaining":1}}`), at + `offerings[0]: reservation.id: "" is not the id of a reservation; give one such as cr-0123456789abcdef0`},
		{offer(`{"zone":"a","capacityType":"reserved","reservation":{"id":"cr-1","type":"open"}}`), at + `offerings[0]: reservation.type: "open" is not default or capacity-block`},
		{offer(`{"zone":"a","capacityType":"reserved","reservation":{"id":"cr-1","remaining":-1}}`), at + `offerings[0]: reservation.remaining: -1 is not between 0 and 1099511627776`},
		{commit(`{}`), `commitments[0]: scope: is required: a family such as "m5", a type, or "all"`},
		{commit(`{"scope":"all"}`), `commitments[0]: effectivePricePerHour: is required`},
		{commit(`{"scope":"all","effectivePricePerHour":0.1}`), `commitments[0]: remainingPerHour: is required`},
		{commit(`{"scope":"all","effectivePricePerHour":0.1,"remainingPerHour":-1}`), `commitments[0]: remainingPerHour: -1 is negative`},
		{commit(`{"scope":"all","effectivePricePerHour":0.1,"remainingPerHour":"much"}`), `commitments[0]: remainingPerHour: a JSON string "much" stands where a number belongs`},
		{commit(`{"scope":"a","effectivePricePerHour":0.1,"remainingPerHour":1,"id":"sp"},{"scope":"b","effectivePricePerHour":0.1,"remainingPerHour":2,"id":"sp"}`), `commitments[1]: remainingPerHour: that of id "sp" is another one in commitments[0]; entries of one id share what remains, so give the same`},
		{commit(`{"scope":"all","price":0.1}`), `commitments[0]: unknown field "price"; remove it or correct its name`},
	} {
		c, err := Parse([]byte(test.input))
		switch {
		case err == nil:
			t.Errorf("%s\nis accepted: %d types", test.input, len(c.Types))
		case err.Error() != "read catalogue: "+test.want:
			t.Errorf("%s\n%s, want\nread catalogue: %s", test.input, err, test.want)
		}
	}
}

func TestMicroDollars(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "0.1": 100_000, "0.085": 85_000, "360.98695": 360_986_950, "0.0000005": 1, "0.00000049999": 0,
		"0.0000125": 13, "0.0000135": 14, "1e-6": 1, "1E2": 100_000_000, "1000000": 1_000_000_000_000, "0.3": 300_000, "1.0000005": 1_000_001,
		"8.1234565": 8_123_457, "1e-400": 0, "0.1e1": 1_000_000} {
		if got, err := microDollars(json.Number(text)); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
}

// TestFormat: what is written is read back, for every type of the embedded table
// and with the same figures under a class.
func TestFormat(t *testing.T) {
	for name, c := range map[string]*Catalog{"embedded": Default(), "fixture": fixture(t)} {
		data, err := c.Format()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := back.Format()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(data), string(again)); diff != "" {
			t.Errorf("%s changes when it is read and written:\n%.2000s", name, diff)
		}
		if diff := cmp.Diff(c.Zones, back.Zones); diff != "" {
			t.Errorf("%s: zones:\n%s", name, diff)
		}
		class := &snapshot.NodeClass{Name: "default", AMIAlias: "al2023@latest"}
		before, after := resolve(t, c, class, snapshot.DefaultSettings()), resolve(t, back, class, snapshot.DefaultSettings())
		if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(Resolved{}, "Type", "scope")); diff != "" {
			t.Errorf("%s: resolved figures (-before +after):\n%.2000s", name, diff)
		}
		for i := range before {
			if diff := cmp.Diff(before[i].Type.Offerings, after[i].Type.Offerings, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: offerings:\n%s", before[i].Type.Name, diff)
			}
			if diff := cmp.Diff(before[i].Labels(), after[i].Labels()); diff != "" {
				t.Errorf("%s: labels:\n%s", before[i].Type.Name, diff)
			}
		}
	}
}

// FuzzParse: no input makes Parse panic or accept what Resolve and Format cannot
// handle.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/fixture.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"instanceTypes":[{"name":"a","arch":"arm64","vcpu":1,"memoryMiB":1,"offerings":[{"zone":"z","capacityType":"reserved","reservation":{"id":"c"}}]}]}`))
	f.Add([]byte(`{"instanceTypes":[{"name":"a.b","arch":"amd64","vcpu":1048576,"memoryMiB":1099511627776,"localNvmeGB":1099511627776,"eni":{"interfaces":65536,"ipv4PerInterface":65536},"gpus":[{"name":"a","manufacturer":"nvidia","count":1099511627776}],"extended":{"a/b":1099511627776},"offerings":[]}],"commitments":[{"scope":"all","effectivePricePerHour":1e6,"remainingPerHour":0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "read catalogue: ") {
				t.Errorf("error %q does not say what was tried", err)
			}
			return
		}
		for i := range c.Types {
			if i > 0 && c.Types[i-1].Name >= c.Types[i].Name {
				t.Errorf("types are not sorted or not distinct: %s, %s", c.Types[i-1].Name, c.Types[i].Name)
			}
			for _, o := range c.Types[i].Offerings {
				if o.Price < 0 || o.Price > maxPrice || o.Available && o.Price == 0 {
					t.Errorf("%s: price %d", c.Types[i].Name, o.Price)
				}
			}
		}
		for _, family := range []string{FamilyAL2023, FamilyBottlerocket, FamilyWindows2022} {
			resolved, err := c.Resolve(&snapshot.NodeClass{Name: "k", AMIFamily: family, InstanceStorePolicy: "RAID0"}, snapshot.DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range resolved {
				a := r.Allocatable
				if r.Unusable == "" && (a.CPU <= 0 || a.Memory <= 0 || a.Pods <= 0 || a.Ephemeral <= 0) {
					t.Errorf("%s: usable with %s", r.Type.Name, a)
				}
			}
		}
		out, err := c.Format()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(out); err != nil {
			t.Errorf("what was written is refused: %v\n%s", err, out)
		}
	})
}

func ExampleParse() {
	_, err := Parse([]byte(`{"instanceTypes": [{"name": "m5.large", "arch": "amd64", "vcpus": 2}]}`))
	fmt.Println(err)
	// Output: read catalogue: instanceTypes[0] ("m5.large"): unknown field "vcpus"; remove it or correct its name
}
