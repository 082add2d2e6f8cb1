package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// TestInvalidClass (BC-18): every absurd value is refused by the field that holds
// it, with the value; nothing is planned on it.
func TestInvalidClass(t *testing.T) {
	type k = *snapshot.NodeClass
	type s = *snapshot.Settings
	reserved := func(key, value string) func(k, s) {
		return func(k k, _ s) { k.Kubelet.KubeReserved = map[string]string{key: value} }
	}
	system := func(key, value string) func(k, s) {
		return func(k k, _ s) { k.Kubelet.SystemReserved = map[string]string{key: value} }
	}
	evict := func(key, value string) func(k, s) {
		return func(k k, _ s) { k.Kubelet.EvictionHard = map[string]string{key: value} }
	}
	for _, test := range []struct {
		name   string
		change func(k, s)
		want   string // all of the error after the class
	}{
		{"BC-18: storage reserved beyond the volume", func(k k, _ s) {
			k.BlockDevices = []snapshot.BlockDevice{{RootVolume: true, Bytes: 30 << 30}}
			k.Kubelet.KubeReserved = map[string]string{"ephemeral-storage": "76Gi"}
		}, `spec.kubelet.kubeReserved[ephemeral-storage]: "76Gi" leaves nothing on any type: with everything else that is reserved it takes 79Gi, and c5.4xlarge has 30Gi of ephemeral-storage; reserve less`},
		{"BC-18: negative", reserved("cpu", "-1"), `spec.kubelet.kubeReserved[cpu]: "-1" is negative; a reservation is 0 or more`},
		{"BC-18: more memory than there is", system("memory", "10Ei"),
			`spec.kubelet.systemReserved[memory]: "10Ei" leaves nothing on any type: with everything else that is reserved it takes 2Ei or more, and m5.8xlarge has 121241Mi of memory; reserve less`},
		{"BC-18: maxPods 0", func(k k, _ s) { k.Kubelet.MaxPods = ptr(int64(0)) }, `spec.kubelet.maxPods: "0" leaves no room for pods; use 1 or more, or leave it out`},
		{"maxPods below 0", func(k k, _ s) { k.Kubelet.MaxPods = ptr(int64(-3)) }, `spec.kubelet.maxPods: "-3" leaves no room for pods; use 1 or more, or leave it out`},
		{"maxPods beyond memory", func(k k, _ s) { k.Kubelet.MaxPods = ptr(int64(1) << 62) },
			`spec.kubelet.maxPods: "4611686018427387904" leaves nothing on any type: with everything else that is reserved it takes 2Ei or more, and m5.8xlarge has 121241Mi of memory; reserve less`},
		{"podsPerCore below 0", func(k k, _ s) { k.Kubelet.PodsPerCore = ptr(int64(-1)) }, `spec.kubelet.podsPerCore: "-1" is negative; use 0 for no limit`},
		{"all of the CPU of every type", reserved("cpu", "32"), `spec.kubelet.kubeReserved[cpu]: "32" leaves nothing on any type: with everything else that is reserved it takes 32, and m5.8xlarge has 32 of cpu; reserve less`},
		{"no quantity", reserved("memory", "1GB"), `spec.kubelet.kubeReserved[memory]: "1GB" is not a quantity such as "500m", "1.5Gi" or "2e9"`},
		{"empty quantity", system("cpu", ""), `spec.kubelet.systemReserved[cpu]: "" is not a quantity such as "500m", "1.5Gi" or "2e9"`},
		{"no resource of the kubelet", system("disk", "1Gi"), `spec.kubelet.systemReserved[disk]: "1Gi" reserves a resource that the kubelet does not know; use one of cpu, ephemeral-storage, memory, pid`},
		{"eviction of everything", evict("memory.available", "99.999999%"),
			`spec.kubelet.evictionHard[memory.available]: "99.999999%" leaves nothing on any type: with everything else that is reserved it takes 130096823049, and m5.8xlarge has 121241Mi of memory; reserve less`},
		{"eviction below 0", evict("nodefs.available", "-1Gi"), `spec.kubelet.evictionHard[nodefs.available]: "-1Gi" is negative; use 0 or more`},
		{"eviction percentage", evict("nodefs.available", "110%"), `spec.kubelet.evictionHard[nodefs.available]: "110%" is not a percentage from "0%" to "100%" with at most 6 decimals`},
		{"eviction of no number", evict("memory.available", "some"), `spec.kubelet.evictionHard[memory.available]: "some" is not a quantity such as "500m", "1.5Gi" or "2e9" or a percentage such as "5%"`},
		{"eviction signal", evict("memory.avail", "1Gi"), `spec.kubelet.evictionHard[memory.avail]: "1Gi" is for a signal that the kubelet does not know; use one of containerfs.available, containerfs.inodesFree, imagefs.available, imagefs.inodesFree, memory.available, nodefs.available, nodefs.inodesFree, pid.available`},
		{"family", func(k k, _ s) { k.AMIFamily, k.AMIAlias = "Ubuntu", "" }, `spec.amiFamily: "Ubuntu" is not AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom`},
		{"alias", func(k k, _ s) { k.AMIAlias = "ubuntu@latest" }, `spec.amiSelectorTerms[0].alias: "ubuntu@latest" names no known family; use one of al2, al2023, bottlerocket, windows2019, windows2022, windows2025`},
		{"family and alias", func(k k, _ s) { k.AMIFamily = FamilyAL2 }, `spec.amiFamily: "AL2" does not go with alias "al2023@latest"; leave it out, or use AL2023 or Custom`},
		{"store policy", func(k k, _ s) { k.InstanceStorePolicy = "RAID5" }, `spec.instanceStorePolicy: "RAID5" is not RAID0; leave it out or use RAID0`},
		{"volume", func(k k, _ s) { k.BlockDevices = []snapshot.BlockDevice{{Bytes: -1}} }, `spec.blockDeviceMappings[0].ebs.volumeSize: "-1" is negative`},
		{"image", func(k k, _ s) {
			k.Images = []snapshot.Image{{ID: "ami-1", Requirements: []snapshot.SelectorRequirement{{Key: LabelArch, Operator: "Is", Values: []string{"amd64"}}}}}
		}, `status.amis[0].requirements: "ami-1" can not be understood: `},
		{"setting RESERVED_ENIS", func(_ k, s s) { s.ReservedENIs = -1 }, `setting RESERVED_ENIS: "-1" is negative; use 0 or more`},
		{"setting VM_MEMORY_OVERHEAD_PERCENT", func(_ k, s s) { s.VMMemoryOverhead = ppm }, `setting VM_MEMORY_OVERHEAD_PERCENT: "1000000 millionths" is not a share from 0 to below 1`},
		{"several at once", func(k k, _ s) {
			k.Kubelet.MaxPods = ptr(int64(0))
			k.Kubelet.SystemReserved = map[string]string{"memory": "-1", "cpu": "x"}
		}, `spec.kubelet.maxPods: "0" leaves no room for pods; use 1 or more, or leave it out; ` +
			`spec.kubelet.systemReserved[cpu]: "x" is not a quantity such as "500m", "1.5Gi" or "2e9"; ` +
			`spec.kubelet.systemReserved[memory]: "-1" is negative; a reservation is 0 or more`},
	} {
		t.Run(test.name, func(t *testing.T) {
			class := &snapshot.NodeClass{Name: "odd", AMIAlias: "al2023@latest"}
			settings := snapshot.DefaultSettings()
			test.change(class, &settings)
			resolved, err := fixture(t).Resolve(class, settings)
			if err == nil {
				t.Fatal("no error")
			}
			var classError *ClassError
			if !errors.As(err, &classError) || len(classError.Problems) == 0 || resolved != nil {
				t.Fatalf("%T with %d types, want a ClassError and none", err, len(resolved))
			}
			if got := strings.TrimPrefix(err.Error(), "nodeclass odd: "); got != test.want && !(strings.HasSuffix(test.want, ": ") && strings.HasPrefix(got, test.want)) {
				t.Errorf("error\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestSmallTypesAreUnusable: a reservation that large types can bear leaves them;
// small ones say why they are out, and hold nothing.
func TestSmallTypesAreUnusable(t *testing.T) {
	class := &snapshot.NodeClass{Name: "default", AMIAlias: "al2023@latest", Kubelet: snapshot.Kubelet{KubeReserved: map[string]string{"cpu": "4"}}}
	resolved, err := fixture(t).Resolve(class, snapshot.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range resolved {
		if r.Unusable == "" {
			continue
		}
		got[r.Type.Name] = r.Unusable
		if !r.Allocatable.IsZero() {
			t.Errorf("%s: allocatable %s, want nothing", r.Type.Name, r.Allocatable)
		}
		if (snapshot.Resources{Pods: 1}).Fits(r.Allocatable) {
			t.Errorf("%s: a pod without requests fits", r.Type.Name)
		}
	}
	want := map[string]string{}
	for name, cores := range map[string]string{"c5.large": "2", "m5.large": "2", "c5.xlarge": "4", "m5.xlarge": "4", "c6g.medium": "1"} {
		want[name] = `reservations take 4 of ` + cores + ` cpu (spec.kubelet.kubeReserved[cpu]: "4")`
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unusable (-want +got):\n%s", diff)
	}
	// The most that is reserved without asking: no field to blame, so no error.
	tiny := &Catalog{Types: []InstanceType{{Name: "t0.nano", Arch: AMD64, VCPU: 1, MemoryMiB: 256}}}
	resolved, err = tiny.Resolve(&snapshot.NodeClass{Name: "default"}, snapshot.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	if want := "reservations take 1565Mi of 236Mi memory"; resolved[0].Unusable != want || !resolved[0].Allocatable.IsZero() {
		t.Errorf("%q with %s, want %q and nothing", resolved[0].Unusable, resolved[0].Allocatable, want)
	}
	// Interfaces that are all reserved, or more than all.
	for _, reserved := range []int64{4, 5} {
		settings := snapshot.DefaultSettings()
		settings.ReservedENIs = reserved
		for _, r := range resolve(t, fixture(t), &snapshot.NodeClass{Name: "default"}, settings) {
			unusable := r.Type.ENI.Interfaces <= reserved
			if (r.Unusable != "") != unusable || unusable && !r.Allocatable.IsZero() {
				t.Errorf("%s with %d interfaces, %d reserved: %q, %s", r.Type.Name, r.Type.ENI.Interfaces, reserved, r.Unusable, r.Allocatable)
			}
		}
	}
}

// TestBlame: of several fields the one that takes most is named.
func TestBlame(t *testing.T) {
	for want, kubelet := range map[string]snapshot.Kubelet{
		"spec.kubelet.kubeReserved[memory]": {KubeReserved: map[string]string{"memory": "3Gi"}, SystemReserved: map[string]string{"memory": "2Gi"},
			EvictionHard: map[string]string{"memory.available": "1Gi"}},
		"spec.kubelet.systemReserved[memory]": {KubeReserved: map[string]string{"memory": "1Gi"}, SystemReserved: map[string]string{"memory": "3Gi"},
			EvictionHard: map[string]string{"memory.available": "1Gi"}},
		"spec.kubelet.evictionHard[memory.available]": {MaxPods: ptr(int64(10)), SystemReserved: map[string]string{"memory": "1Gi"},
			EvictionHard: map[string]string{"memory.available": "99%"}},
		"spec.kubelet.maxPods": {MaxPods: ptr(int64(300)), SystemReserved: map[string]string{"memory": "1Gi"}},
	} {
		_, err := only(fixture(t), "c5.large").Resolve(&snapshot.NodeClass{Name: "k", Kubelet: kubelet}, snapshot.DefaultSettings())
		var classError *ClassError
		if !errors.As(err, &classError) || len(classError.Problems) != 1 || classError.Problems[0].Field != want {
			t.Errorf("error %v, want one that names %s", err, want)
		}
	}
}

func resolve(t testing.TB, c *Catalog, class *snapshot.NodeClass, s snapshot.Settings) []Resolved {
	t.Helper()
	resolved, err := c.Resolve(class, s)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// TestResolveNeverInvents: whatever a class says, Resolve does not panic, and a
// usable type has between nothing and its capacity of everything.
func TestResolveNeverInvents(t *testing.T) {
	c := only(fixture(t), "c5.large", "c6g.medium", "m5.8xlarge")
	odd := rapid.SampledFrom([]string{"", "0", "-1", "1", "100m", "1Gi", "-1Gi", "10Ei", "9E", "1e400", "1e-400", "-9E", "0.1", "5%", "100%", "-5%", "x", "1n"})
	counts := rapid.SampledFrom([]int64{-1 << 63, -1, 0, 1, 8, 29, 110, 1 << 31, 1<<63 - 1})
	// Most fields of a class are sane, so that the odd one decides and many classes
	// have usable types; rarely says which are not.
	rarely := func(t *rapid.T, label string) bool { return rapid.IntRange(0, 5).Draw(t, label+" odd") == 5 }
	quantities := func(t *rapid.T, label, sane string, keys ...string) map[string]string {
		out := map[string]string{}
		for _, key := range keys {
			if rapid.Bool().Draw(t, label+key) {
				out[key] = sane
			}
			if rarely(t, label+key) {
				out[key] = odd.Draw(t, label+key)
			}
		}
		return out
	}
	count := func(t *rapid.T, label string, sane int64) int64 {
		if rarely(t, label) {
			return counts.Draw(t, label)
		}
		return sane
	}
	maybe := func(t *rapid.T, label string) *int64 {
		if rapid.Bool().Draw(t, label+" given") {
			return ptr(count(t, label, 20))
		}
		return nil
	}
	usable := 0
	rapid.Check(t, func(t *rapid.T) {
		class := &snapshot.NodeClass{
			Name:                "drawn",
			AMIFamily:           rapid.SampledFrom([]string{"", FamilyAL2, FamilyAL2023, FamilyBottlerocket, FamilyCustom, FamilyWindows2019}).Draw(t, "family"),
			InstanceStorePolicy: rapid.SampledFrom([]string{"", "RAID0"}).Draw(t, "policy"),
			Kubelet: snapshot.Kubelet{
				MaxPods: maybe(t, "maxPods"), PodsPerCore: maybe(t, "podsPerCore"),
				KubeReserved:   quantities(t, "kube ", "0.1", "cpu", "memory", "ephemeral-storage", "pid"),
				SystemReserved: quantities(t, "system ", "100m", "cpu", "memory", "ephemeral-storage"),
				EvictionHard:   quantities(t, "evict ", "7.5%", "memory.available", "nodefs.available"),
			},
			BlockDevices: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snapshot.BlockDevice {
				return snapshot.BlockDevice{DeviceName: "/dev/xvda", RootVolume: rapid.Bool().Draw(t, "root"),
					Bytes: rapid.SampledFrom([]int64{30 << 30, 40 << 30, 50 << 30, 0, 1, 1<<63 - 1, -1}).Draw(t, "bytes")}
			}), 0, 2).Draw(t, "devices"),
		}
		settings := snapshot.DefaultSettings()
		settings.ReservedENIs = count(t, "reserved ENIs", 1)
		settings.VMMemoryOverhead = rapid.SampledFrom([]int64{75_000, 0, 100_000, 75_000, 75_000, ppm - 1, ppm, -1}).Draw(t, "overhead")
		resolved, err := c.Resolve(class, settings)
		if (err == nil) != (len(resolved) == len(c.Types)) {
			t.Fatalf("%d types with error %v", len(resolved), err)
		}
		for _, r := range resolved {
			if r.Unusable != "" {
				continue
			}
			usable++
			for _, name := range []string{"cpu", "memory", "ephemeral-storage", "pods"} {
				if a, have := r.Allocatable.Get(name), r.Capacity.Get(name); a <= 0 || a > have {
					t.Fatalf("%s: %d of %d %s", r.Type.Name, a, have, name)
				}
			}
		}
	})
	t.Logf("%d usable types", usable)
	if usable == 0 {
		t.Error("no drawn class had a usable type: the property says nothing")
	}
}
