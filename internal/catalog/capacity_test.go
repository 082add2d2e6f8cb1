package catalog

import (
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// resolveOne resolves one type under a class that change has made.
func resolveOne(t testing.TB, typ InstanceType, change func(k *snapshot.NodeClass, s *snapshot.Settings)) Resolved {
	t.Helper()
	class := &snapshot.NodeClass{Name: "default", AMIFamily: FamilyAL2023}
	settings := snapshot.DefaultSettings()
	if change != nil {
		change(class, &settings)
	}
	c := &Catalog{Region: "z", Types: []InstanceType{typ}}
	resolved, err := c.Resolve(class, settings)
	if err != nil {
		t.Fatal(err)
	}
	return resolved[0]
}

func typeNamed(t testing.TB, c *Catalog, name string) InstanceType {
	t.Helper()
	for i := range c.Types {
		if c.Types[i].Name == name {
			return c.Types[i]
		}
	}
	t.Fatalf("no type %s", name)
	return InstanceType{}
}

func ptr[T any](v T) *T { return &v }

// TestPodsAndReservedMemory: one rule, whatever decides the number of pods:
// kube-reserved memory is 11 MiB for each pod the kubelet admits, and 255 MiB.
// c5.large has 4096 MiB less 308 of overhead, 100 MiB go to eviction.
func TestPodsAndReservedMemory(t *testing.T) {
	type k = *snapshot.NodeClass
	type s = *snapshot.Settings
	c5large := typeNamed(t, fixture(t), "c5.large")
	bare := c5large
	bare.ENI = ENI{}
	for _, test := range []struct {
		name     string
		typ      InstanceType
		change   func(k, s)
		pods     int64
		reserved int64 // MiB by the kubelet
	}{
		{"default", c5large, nil, 29, 574},
		{"BC-11: a reserved interface", c5large, func(_ k, s s) { s.ReservedENIs = 1 }, 20, 475},
		{"BC-11: maxPods", c5large, func(k k, s s) { k.Kubelet.MaxPods = ptr(int64(50)); s.ReservedENIs = 1 }, 50, 805},
		{"S-10: maxPods 110", c5large, func(k k, _ s) { k.Kubelet.MaxPods = ptr(int64(110)) }, 110, 1465},
		{"maxPods on Bottlerocket", c5large, func(k k, _ s) { k.AMIFamily = FamilyBottlerocket; k.Kubelet.MaxPods = ptr(int64(50)) }, 50, 805},
		{"podsPerCore", c5large, func(k k, _ s) { k.Kubelet.PodsPerCore = ptr(int64(5)) }, 10, 365},
		{"podsPerCore above the rest", c5large, func(k k, _ s) { k.Kubelet.PodsPerCore = ptr(int64(100)) }, 29, 574},
		{"podsPerCore 0 is no limit", c5large, func(k k, _ s) { k.Kubelet.PodsPerCore = ptr(int64(0)) }, 29, 574},
		{"podsPerCore under maxPods", c5large, func(k k, _ s) { k.Kubelet.PodsPerCore = ptr(int64(5)); k.Kubelet.MaxPods = ptr(int64(50)) }, 10, 365},
		{"podsPerCore is not for Bottlerocket", c5large, func(k k, _ s) { k.AMIFamily = FamilyBottlerocket; k.Kubelet.PodsPerCore = ptr(int64(5)) }, 29, 574},
		{"Windows", c5large, func(k k, _ s) { k.AMIFamily = FamilyWindows2022 }, 110, 1465},
		{"Custom", c5large, func(k k, _ s) { k.AMIFamily = FamilyCustom }, 29, 574},
		{"no network figures", bare, nil, 110, 1465},
		{"an efa-only interface on card 0", func() InstanceType { t := c5large; t.ENI.EFAInterfaces = 1; return t }(), func(k k, _ s) {
			k.NetworkInterfaces = []snapshot.NetworkInterface{{Type: "interface"}, {Device: 1, Type: "efa-only"}}
		}, 20, 475},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := resolveOne(t, test.typ, test.change)
			if r.Unusable != "" {
				t.Fatal(r.Unusable)
			}
			if r.Allocatable.Pods != test.pods {
				t.Errorf("%d pods, want %d", r.Allocatable.Pods, test.pods)
			}
			want := int64(4096-308-100) - test.reserved
			if got := r.Allocatable.Memory >> 20; got != want {
				t.Errorf("allocatable %d MiB, want %d: the kubelet reserves %d", got, want, test.reserved)
			}
		})
	}
}

// S-10: 10,752 MiB and 58 pods of its own; maxPods 110 leaves 8380 MiB.
func TestReservedMemoryOfMaxPods(t *testing.T) {
	typ := InstanceType{Name: "c5n.xlarge", Arch: AMD64, VCPU: 4, MemoryMiB: 10752, ENI: ENI{Interfaces: 4, IPv4PerENI: 15}}
	if got := resolveOne(t, typ, nil).Allocatable.Memory >> 20; got != 8952 {
		t.Errorf("%d MiB with 58 pods, want 8952", got)
	}
	r := resolveOne(t, typ, func(k *snapshot.NodeClass, _ *snapshot.Settings) { k.Kubelet.MaxPods = ptr(int64(110)) })
	if got := r.Allocatable.Memory >> 20; got != 8380 {
		t.Errorf("%d MiB with 110 pods, want 8380", got)
	}
	if (snapshot.Resources{Memory: 8619 << 20}).Fits(r.Allocatable) {
		t.Error("a pod of 8619 MiB fits")
	}
}

func TestKubeReservedCPU(t *testing.T) {
	for cores, want := range map[int64]int64{0: 0, 1: 60, 2: 70, 3: 75, 4: 80, 5: 82, 6: 85, 8: 90, 16: 110, 64: 230, 96: 310, 448: 1190} {
		if got := kubeReservedCPU(cores); got != want {
			t.Errorf("%d cores: %dm reserved, want %dm", cores, got, want)
		}
	}
}

// TestReservations: what a class gives replaces or adds to the defaults.
func TestReservations(t *testing.T) {
	// 8 vCPU, 8192 - 615 = 7577 MiB, 8 pods of its own: 343 MiB reserved.
	typ := InstanceType{Name: "x1.large", Arch: AMD64, VCPU: 8, MemoryMiB: 8192, ENI: ENI{Interfaces: 2, IPv4PerENI: 4}}
	base := snapshot.Resources{CPU: 8000 - 90, Memory: (7577 - 343 - 100) << 20, Ephemeral: 17 << 30, Pods: 8}
	for _, test := range []struct {
		name   string
		change func(k *snapshot.Kubelet)
		want   snapshot.Resources
	}{
		{"defaults", func(*snapshot.Kubelet) {}, base},
		{"kubeReserved replaces key by key", func(k *snapshot.Kubelet) { k.KubeReserved = map[string]string{"cpu": "1", "pid": "100"} }, base.With("cpu", 7000)},
		{"kubeReserved memory", func(k *snapshot.Kubelet) { k.KubeReserved = map[string]string{"memory": "1Gi"} }, base.With("memory", (7577-1024-100)<<20)},
		{"kubeReserved 0", func(k *snapshot.Kubelet) {
			k.KubeReserved = map[string]string{"cpu": "0", "memory": "0", "ephemeral-storage": "0"}
		},
			snapshot.Resources{CPU: 8000, Memory: (7577 - 100) << 20, Ephemeral: 18 << 30, Pods: 8}},
		{"systemReserved adds", func(k *snapshot.Kubelet) {
			k.SystemReserved = map[string]string{"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "2Gi"}
		}, base.Sub(snapshot.Resources{CPU: 100, Memory: 100 << 20, Ephemeral: 2 << 30})},
		{"fractions are rounded up", func(k *snapshot.Kubelet) { k.SystemReserved = map[string]string{"cpu": "0.0001"} }, base.With("cpu", 8000-90-1)},
		{"evictionHard quantity", func(k *snapshot.Kubelet) {
			k.EvictionHard = map[string]string{"memory.available": "500Mi", "nodefs.available": "1Gi"}
		}, snapshot.Resources{CPU: base.CPU, Memory: (7577 - 343 - 500) << 20, Ephemeral: 18 << 30, Pods: 8}},
		{"evictionHard percent is of capacity, rounded up", func(k *snapshot.Kubelet) { k.EvictionHard = map[string]string{"memory.available": "5%"} },
			base.With("memory", (7577-343)<<20-397253018)}, // 7577 MiB x 0.05 = 397,253,017.6
		{"decimal percent", func(k *snapshot.Kubelet) { k.EvictionHard = map[string]string{"nodefs.available": "12.5%"} }, base.With("ephemeral-storage", 20<<30-(5<<30)/2-1<<30)},
		{"100 % is off", func(k *snapshot.Kubelet) {
			k.EvictionHard = map[string]string{"memory.available": "100%", "nodefs.available": "100%"}
		}, snapshot.Resources{CPU: base.CPU, Memory: (7577 - 343) << 20, Ephemeral: 19 << 30, Pods: 8}},
		{"0 % is nothing", func(k *snapshot.Kubelet) { k.EvictionHard = map[string]string{"memory.available": "0%"} }, base.With("memory", (7577-343)<<20)},
		{"other signals do not count", func(k *snapshot.Kubelet) {
			k.EvictionHard = map[string]string{"imagefs.available": "50%", "pid.available": "5%"}
		}, base},
		{"evictionSoft does not count", func(k *snapshot.Kubelet) { k.EvictionSoft = map[string]string{"memory.available": "50%"} }, base},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := resolveOne(t, typ, func(k *snapshot.NodeClass, _ *snapshot.Settings) { test.change(&k.Kubelet) })
			if diff := cmp.Diff(test.want, r.Allocatable); diff != "" || r.Unusable != "" {
				t.Errorf("%s (-want +got):\n%s", r.Unusable, diff)
			}
		})
	}
}

func TestStorage(t *testing.T) {
	const gi = int64(1) << 30
	disk := func(device string, size int64) snapshot.BlockDevice {
		return snapshot.BlockDevice{DeviceName: device, Bytes: size * gi}
	}
	root := func(device string, size int64) snapshot.BlockDevice {
		d := disk(device, size)
		d.RootVolume = true
		return d
	}
	type devices = []snapshot.BlockDevice
	for _, test := range []struct {
		name, family string
		devices      devices
		raid0        bool
		nvme         int64
		want         int64
	}{
		{"AL2", FamilyAL2, nil, false, 0, 20 * gi},
		{"AL2023", FamilyAL2023, nil, false, 0, 20 * gi},
		{"Bottlerocket", FamilyBottlerocket, nil, false, 0, 20 * gi},
		{"Windows", FamilyWindows2019, nil, false, 0, 50 * gi},
		{"Custom", FamilyCustom, nil, false, 0, 20 * gi},
		{"own device of AL2023", FamilyAL2023, devices{disk("/dev/xvdb", 50), disk("/dev/xvda", 30)}, false, 0, 30 * gi},
		{"own device of Bottlerocket", FamilyBottlerocket, devices{disk("/dev/xvda", 4), disk("/dev/xvdb", 50)}, false, 0, 50 * gi},
		{"own device of Windows", FamilyWindows2025, devices{disk("/dev/sda1", 80)}, false, 0, 80 * gi},
		{"another device", FamilyAL2023, devices{disk("/dev/xvdc", 50)}, false, 0, 20 * gi},
		{"the root volume first", FamilyAL2023, devices{disk("/dev/xvda", 30), root("/dev/xvdc", 70)}, false, 0, 70 * gi},
		{"a root volume without a size", FamilyAL2023, devices{disk("/dev/xvda", 30), root("/dev/xvdc", 0)}, false, 0, 30 * gi},
		{"Custom takes the last", FamilyCustom, devices{disk("/dev/xvda", 30), disk("/dev/xvdb", 60)}, false, 0, 60 * gi},
		{"Custom, the last without a size", FamilyCustom, devices{disk("/dev/xvda", 30), disk("/dev/xvdb", 0)}, false, 0, 20 * gi},
		{"Custom with a root volume", FamilyCustom, devices{root("/dev/xvda", 30), disk("/dev/xvdb", 60)}, false, 0, 30 * gi},
		{"RAID0 in decimal GB", FamilyAL2023, devices{disk("/dev/xvda", 30)}, true, 474, 474_000_000_000},
		{"RAID0 without instance store", FamilyAL2023, devices{disk("/dev/xvda", 30)}, true, 0, 30 * gi},
		{"instance store without RAID0", FamilyAL2023, nil, false, 474, 20 * gi},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := InstanceType{Name: "i4i.large", Arch: AMD64, VCPU: 2, MemoryMiB: 16384, LocalNVMeGB: test.nvme}
			r := resolveOne(t, typ, func(k *snapshot.NodeClass, _ *snapshot.Settings) {
				k.AMIFamily, k.BlockDevices = test.family, test.devices
				if test.raid0 {
					k.InstanceStorePolicy = "RAID0"
				}
			})
			if r.Capacity.Ephemeral != test.want {
				t.Errorf("capacity %d, want %d", r.Capacity.Ephemeral, test.want)
			}
			want := test.want - gi - (test.want+9)/10
			if r.Allocatable.Ephemeral != want {
				t.Errorf("allocatable %d, want %d", r.Allocatable.Ephemeral, want)
			}
		})
	}
}

// S-35: figures of one class must not leak into the next one of the same process.
func TestClassesDoNotShareFigures(t *testing.T) {
	c := fixture(t)
	settings := snapshot.DefaultSettings()
	class := func(gi int64) *snapshot.NodeClass {
		return &snapshot.NodeClass{Name: "same", AMIAlias: "al2023@latest", Kubelet: snapshot.Kubelet{MaxPods: ptr(int64(20))},
			BlockDevices: []snapshot.BlockDevice{{DeviceName: "/dev/xvda", RootVolume: true, Bytes: gi << 30}}}
	}
	want := func(gi int64) int64 { return gi<<30 - 1<<30 - (gi<<30+9)/10 }
	check := func(k *snapshot.NodeClass, s snapshot.Settings, storage, pods int64) {
		t.Helper()
		resolved, err := c.Resolve(k, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range resolved {
			if r.Allocatable.Ephemeral != storage || r.Allocatable.Pods != pods {
				t.Errorf("%s: storage %d, pods %d; want %d, %d", r.Type.Name, r.Allocatable.Ephemeral, r.Allocatable.Pods, storage, pods)
			}
		}
	}
	check(class(200), settings, want(200), 20)
	check(class(30), settings, want(30), 20)
	more := class(30)
	more.Kubelet.MaxPods = ptr(int64(25))
	check(more, settings, want(30), 25)
	windows := class(30)
	windows.AMIAlias, windows.BlockDevices = "windows2022@latest", nil
	check(windows, settings, want(50), 20)
	check(class(30), settings, want(30), 20)
}

func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, snapshot.MaxQuantity).Draw(t, "v")
		whole := rapid.Int64Range(1, 100*percentScale).Draw(t, "whole")
		share := rapid.Int64Range(0, whole).Draw(t, "share")
		want := new(big.Int).Mul(big.NewInt(v), big.NewInt(share))
		rest := new(big.Int)
		want.QuoRem(want, big.NewInt(whole), rest)
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		if got := ceilShare(v, share, whole); got != want.Int64() {
			t.Fatalf("%d x %d / %d = %d, want %s", v, share, whole, got, want)
		}
	})
	for text, want := range map[string]int64{"0%": 0, "7.5%": 7_500_000, "100%": 100_000_000, ".5%": 500_000, "5.%": 5_000_000, "0.000001%": 1,
		"": -1, "%": -1, "5": -1, "100.000001%": -1, "-1%": -1, "+1%": -1, "1e1%": -1, "1.2.3%": -1, "0.0000001%": -1, "99999999999999999999%": -1, "NaN%": -1, " 5%": -1, "5%%": -1} {
		got, err := percent(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d (-1 = no percentage)", text, got, want)
		}
	}
}
