package catalog

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kerf.sh/kerf/internal/snapshot"
)

// TestClassFilters: the class rules types out, with a reason.
func TestClassFilters(t *testing.T) {
	c := Default()
	class := func(change func(k *snapshot.NodeClass)) *snapshot.NodeClass {
		k := &snapshot.NodeClass{Name: "default", AMIAlias: "al2023@latest"}
		change(k)
		return k
	}
	nic := func(card, device int32, typ string) snapshot.NetworkInterface {
		return snapshot.NetworkInterface{NetworkCard: card, Device: device, Type: typ}
	}
	for _, test := range []struct {
		name  string
		class *snapshot.NodeClass
		want  map[string]string // type -> start of the reason, "" = usable
	}{
		{"AL2023", class(func(*snapshot.NodeClass) {}), map[string]string{
			"a1.large": "AL2023 does not run on a1", "m5.large": "", "m7g.large": "", "t2.micro": "", "m5.metal": "",
			"g5.xlarge": "", "g5g.xlarge": "", "inf2.xlarge": "", "trn1.2xlarge": "", "dl2q.24xlarge": ""}},
		{"AL2", class(func(k *snapshot.NodeClass) { k.AMIAlias = "al2@latest" }), map[string]string{
			"a1.large": "", "g5.xlarge": "", "inf2.xlarge": "",
			"g5g.xlarge": "no image of the class is for it (arm64, karpenter.k8s.aws/instance-gpu-name t4g)"}},
		{"a status without images, which its conditions explain", class(func(k *snapshot.NodeClass) { k.AMIAlias, k.HasStatus = "al2@latest", true }), map[string]string{
			"g5g.xlarge": "", "m5.large": ""}},
		{"Bottlerocket", class(func(k *snapshot.NodeClass) { k.AMIAlias = "bottlerocket@latest" }), map[string]string{
			"a1.large": "", "g5g.xlarge": "", "inf2.xlarge": "", "m7g.large": ""}},
		{"Windows", class(func(k *snapshot.NodeClass) { k.AMIAlias = "windows2022@latest" }), map[string]string{
			"m5.large": "", "m7g.large": "Windows runs on amd64 only", "a1.large": "Windows runs on amd64 only"}},
		{"connection tracking", class(func(k *snapshot.NodeClass) { k.ConnectionTracking = true }), map[string]string{
			"m5.large": "", "t2.micro": "spec.connectionTracking needs a Nitro type", "m5.metal": "spec.connectionTracking needs a Nitro type"}},
		{"nested virtualization", class(func(k *snapshot.NodeClass) { k.NestedVirtualization = true }), map[string]string{
			"m5.large": "the catalogue does not say that it supports nested virtualization (spec.cpuOptions)"}},
		{"two cards", class(func(k *snapshot.NodeClass) {
			k.NetworkInterfaces = []snapshot.NetworkInterface{nic(0, 0, "interface"), nic(1, 1, "interface")}
		}), map[string]string{
			"m5.large": "spec.networkInterfaces[1] is on network card 1; it has 1", "c6in.32xlarge": "", "p5.48xlarge": "", "p4d.24xlarge": ""}},
		{"many devices", class(func(k *snapshot.NodeClass) {
			k.NetworkInterfaces = []snapshot.NetworkInterface{nic(0, 0, "interface"), nic(0, 3, "interface")}
		}), map[string]string{
			"m5.large": "spec.networkInterfaces[1] is device 3 of a card; a card has 3", "m5.xlarge": ""}},
		{"EFA", class(func(k *snapshot.NodeClass) {
			k.NetworkInterfaces = []snapshot.NetworkInterface{nic(0, 0, "interface"), nic(0, 1, "efa-only"), nic(1, 1, "efa-only")}
		}), map[string]string{
			"m5.large":      "spec.networkInterfaces[2] is on network card 1; it has 1",
			"m6in.32xlarge": "", "hpc7a.96xlarge": "", "p4d.24xlarge": "",
			"u7in-16tb.224xlarge": ""}},
		{"EFA on a type without", class(func(k *snapshot.NodeClass) {
			k.NetworkInterfaces = []snapshot.NetworkInterface{nic(0, 0, "interface"), nic(0, 1, "efa-only")}
		}), map[string]string{"m5.large": "spec.networkInterfaces has 1 efa-only interfaces; it takes 0", "m5n.24xlarge": ""}},
		{"S-16: images of one architecture", class(func(k *snapshot.NodeClass) {
			k.HasStatus, k.Images = true, []snapshot.Image{imageFor("ami-x86", AMD64)}
		}), map[string]string{"m5.large": "", "m7g.large": "no image of the class is for it (arm64)", "c6g.medium": "no image of the class is for it (arm64)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := map[string]string{}
			for _, r := range resolve(t, c, test.class, snapshot.DefaultSettings()) {
				if _, ok := test.want[r.Type.Name]; ok {
					got[r.Type.Name] = r.Unusable
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unusable (-want +got):\n%s", diff)
			}
		})
	}
}

func imageFor(id, arch string) snapshot.Image {
	return snapshot.Image{ID: id, Requirements: []snapshot.SelectorRequirement{{Key: LabelArch, Operator: "In", Values: []string{arch}}}}
}

// S-16: each architecture boots its own image, and the newest that is for it.
func TestImageOfArchitecture(t *testing.T) {
	class := &snapshot.NodeClass{Name: "default", AMIFamily: FamilyAL2023, HasStatus: true, Images: []snapshot.Image{
		imageFor("ami-arm", ARM64), imageFor("ami-x86", AMD64), imageFor("ami-x86-old", AMD64)}}
	for _, r := range resolve(t, fixture(t), class, snapshot.DefaultSettings()) {
		want := "ami-x86"
		if r.Type.Arch == ARM64 {
			want = "ami-arm"
		}
		if r.Image != want || r.Unusable != "" {
			t.Errorf("%s boots %q, want %q (%s)", r.Type.Name, r.Image, want, r.Unusable)
		}
	}
}

// TestImageOfDevice: variants for devices are for types with devices, and only for
// them.
func TestImageOfDevice(t *testing.T) {
	image := func(id, gpu, accelerator string) snapshot.Image {
		i := imageFor(id, AMD64)
		for key, operator := range map[string]string{LabelGPUCount: gpu, LabelAcceleratorCount: accelerator} {
			if operator != "" {
				i.Requirements = append(i.Requirements, snapshot.SelectorRequirement{Key: key, Operator: operator})
			}
		}
		return i
	}
	class := &snapshot.NodeClass{Name: "default", AMIFamily: FamilyAL2023, HasStatus: true, Images: []snapshot.Image{
		image("ami-nvidia", "Exists", ""), image("ami-neuron", "", "Exists"), image("ami-standard", "DoesNotExist", "DoesNotExist")}}
	want := map[string]string{"m5.large": "ami-standard", "g5.xlarge": "ami-nvidia", "inf2.xlarge": "ami-neuron", "dl2q.24xlarge": "ami-neuron", "m7g.large": ""}
	got := map[string]string{}
	for _, r := range resolve(t, Default(), class, snapshot.DefaultSettings()) {
		if _, ok := want[r.Type.Name]; ok {
			got[r.Type.Name] = r.Image
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestExtendedResources(t *testing.T) {
	nics := func(k *snapshot.NodeClass) {
		k.NetworkInterfaces = []snapshot.NetworkInterface{{Type: "interface"}, {Device: 1, Type: "efa-only"}}
	}
	efaOnly := nics
	ordinary := func(k *snapshot.NodeClass) { k.NetworkInterfaces = []snapshot.NetworkInterface{{Type: "interface"}} }
	windows := func(k *snapshot.NodeClass) { k.AMIFamily = FamilyWindows2022 }
	gaudi := InstanceType{Name: "dl1.24xlarge", Arch: AMD64, VCPU: 96, MemoryMiB: 786432, GPUs: []Device{{Name: "Gaudi HL-205", Manufacturer: "Habana", Count: 8}}}
	mixed := InstanceType{Name: "x9.large", Arch: AMD64, VCPU: 4, MemoryMiB: 16384,
		Accelerators: []Device{{Name: "a", Manufacturer: "AWS", Count: 2, Cores: 3}, {Name: "b", Manufacturer: "AWS", Count: 5, Cores: 7}},
		Extended:     map[string]int64{"example.com/fpga": 1, Neuron: 9}}
	given := InstanceType{Name: "x9.large", Arch: AMD64, VCPU: 4, MemoryMiB: 16384, ENI: ENI{Interfaces: 4, IPv4PerENI: 15}, Extended: map[string]int64{EFA: 4}}
	for _, test := range []struct {
		name   string
		typ    InstanceType
		change func(*snapshot.NodeClass)
		want   map[string]int64
	}{
		{"nvidia", typeNamed(t, Default(), "p4d.24xlarge"), nil, map[string]int64{NvidiaGPU: 8, EFA: 4, PodENI: 62}},
		{"amd", typeNamed(t, Default(), "g4ad.16xlarge"), nil, map[string]int64{AMDGPU: 4, PodENI: 6}},
		{"a share of a GPU is none", typeNamed(t, Default(), "g6f.large"), nil, map[string]int64{PodENI: 10}},
		{"habana", gaudi, nil, map[string]int64{HabanaGaudi: 8}},
		{"neuron", typeNamed(t, Default(), "inf1.24xlarge"), nil, map[string]int64{Neuron: 16, NeuronCore: 64, EFA: 1, PodENI: 111}},
		{"cores are those of the first device; given ones win", mixed, nil, map[string]int64{"example.com/fpga": 1, Neuron: 9, NeuronCore: 6}},
		{"S-12: no trunk, no security-group interfaces", typeNamed(t, Default(), "t3.large"), nil, nil},
		{"efa-only interfaces of the class", typeNamed(t, Default(), "p4d.24xlarge"), efaOnly, map[string]int64{NvidiaGPU: 8, EFA: 1, PodENI: 62}},
		{"interfaces of the class without EFA", typeNamed(t, Default(), "p4d.24xlarge"), ordinary, map[string]int64{NvidiaGPU: 8, PodENI: 62}},
		{"interfaces of the class decide on EFA that was given as well", given, ordinary, nil},
		{"and how many", given, efaOnly, map[string]int64{EFA: 1}},
		{"Windows addresses", typeNamed(t, Default(), "m5.large"), windows, map[string]int64{PodENI: 9, PrivateIPv4Address: 9}},
		{"linux has none", typeNamed(t, Default(), "m5.large"), nil, map[string]int64{PodENI: 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := resolveOne(t, test.typ, func(k *snapshot.NodeClass, _ *snapshot.Settings) {
				if test.change != nil {
					test.change(k)
				}
			})
			if r.Unusable != "" {
				t.Fatal(r.Unusable)
			}
			if diff := cmp.Diff(test.want, r.Allocatable.Extended, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("allocatable (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(r.Capacity.Extended, r.Allocatable.Extended); diff != "" {
				t.Errorf("capacity and allocatable differ:\n%s", diff)
			}
		})
	}
	if mixed.Extended[NeuronCore] != 0 {
		t.Error("the type was changed")
	}
}

// BC-15: special types are for pods that ask for them.
func TestExotic(t *testing.T) {
	want := map[string]bool{"m5.large": false, "m5.metal": true, "c8g.metal-24xl": true, "g5.xlarge": true, "g6f.large": true, "g4ad.xlarge": true,
		"inf2.xlarge": true, "trn1.2xlarge": true, "dl2q.24xlarge": true, "p5.48xlarge": true, "u7in-16tb.224xlarge": false, "hpc7g.4xlarge": false}
	got := map[string]bool{}
	for _, r := range resolve(t, Default(), &snapshot.NodeClass{Name: "default"}, snapshot.DefaultSettings()) {
		if _, ok := want[r.Type.Name]; ok {
			got[r.Type.Name] = r.Exotic
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exotic (-want +got):\n%s", diff)
	}
	given := InstanceType{Name: "x.large", Arch: AMD64, VCPU: 4, MemoryMiB: 16384, Extended: map[string]int64{NvidiaGPU: 1}}
	if !resolveOne(t, given, nil).Exotic {
		t.Error("a type that is given a GPU as an extended resource is not exotic")
	}
}

func TestLabelsOfType(t *testing.T) {
	for _, test := range []struct {
		name   string
		typ    InstanceType
		family string
		want   map[string]string
	}{
		{"everything is absent that is unknown", InstanceType{Name: "m5.large", Arch: AMD64, VCPU: 2, MemoryMiB: 8192}, FamilyAL2023, map[string]string{
			LabelInstanceType: "m5.large", LabelArch: AMD64, LabelOS: Linux, LabelRegion: "z", LabelFamily: "m5", LabelSize: "large",
			LabelCategory: "m", LabelGeneration: "5", LabelFlex: "false", LabelCPU: "2", LabelMemory: "8192"}},
		{"given labels win", InstanceType{Name: "m5.large", Arch: AMD64, VCPU: 2, MemoryMiB: 8192,
			Labels: map[string]string{LabelGeneration: "55", "example.com/rack": "r1"}}, FamilyAL2023, map[string]string{
			LabelInstanceType: "m5.large", LabelArch: AMD64, LabelOS: Linux, LabelRegion: "z", LabelFamily: "m5", LabelSize: "large",
			LabelCategory: "m", LabelGeneration: "55", LabelFlex: "false", LabelCPU: "2", LabelMemory: "8192", "example.com/rack": "r1"}},
		{"Windows, two GPUs, a name of no scheme", InstanceType{Name: "odd", Arch: AMD64, VCPU: 2, MemoryMiB: 8192, CPUManufacturer: "Apple Inc", Hypervisor: "xen",
			GPUs: []Device{{Name: "a", Manufacturer: "nvidia", Count: 1}, {Name: "b", Manufacturer: "nvidia", Count: 1}}}, FamilyWindows2019, map[string]string{
			LabelInstanceType: "odd", LabelArch: AMD64, LabelOS: Windows, LabelWindowsBuild: "10.0.17763", LabelRegion: "z", LabelFamily: "odd",
			LabelFlex: "false", LabelCPU: "2", LabelMemory: "8192", LabelCPUManufacturer: "apple-inc", LabelHypervisor: "xen"}},
		{"a GPU in words", InstanceType{Name: "g4ad-flex.metal", Arch: AMD64, VCPU: 2, MemoryMiB: 8192, LocalNVMeGB: 150, NetworkMbps: 10, EBSMbps: 20, ClockMHz: 3000, Encryption: "true",
			GPUs: []Device{{Name: "Radeon Pro V520", Manufacturer: "AMD", Count: 2, MemoryMiB: 8192}}, Accelerators: []Device{{Name: "Inferentia", Manufacturer: "AWS", Count: 4}}}, FamilyWindows2025, map[string]string{
			LabelInstanceType: "g4ad-flex.metal", LabelArch: AMD64, LabelOS: Windows, LabelWindowsBuild: "10.0.26100", LabelRegion: "z", LabelFamily: "g4ad-flex", LabelSize: "metal",
			LabelCategory: "g", LabelGeneration: "4", LabelFlex: "true", LabelCPU: "2", LabelMemory: "8192", LabelHypervisor: "", LabelLocalNVMe: "150", LabelNetworkBandwidth: "10",
			LabelEBSBandwidth: "20", LabelClockMHz: "3000", LabelEncryption: "true", LabelGPUName: "radeon-pro-v520", LabelGPUManufacturer: "amd", LabelGPUCount: "2", LabelGPUMemory: "8192",
			LabelAcceleratorName: "inferentia", LabelAcceleratorManufacturer: "aws", LabelAcceleratorCount: "4"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := resolveOne(t, test.typ, func(k *snapshot.NodeClass, _ *snapshot.Settings) { k.AMIFamily = test.family })
			if diff := cmp.Diff(test.want, r.Labels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
	for family, want := range map[string][2]string{"c7gn": {"c", "7"}, "u-6tb1": {"u", "1"}, "u7in-16tb": {"u", "7"}, "mac2-m2pro": {"mac", "2"}, "p6-b200": {"p", "6"},
		"": {}, "m": {}, "7": {}, "u-6tb": {}, "u-tb1": {}, "u-1": {}, "M5": {}} {
		if category, generation := splitFamily(family); category != want[0] || generation != want[1] {
			t.Errorf("%s is %q, %q; want %q", family, category, generation, want)
		}
	}
}

// TestLabelsFollowTheClass: labels are those of the class's operating system and of the
// catalogue that was asked, whatever was asked before.
func TestLabelsFollowTheClass(t *testing.T) {
	c := fixture(t)
	linux := resolve(t, c, &snapshot.NodeClass{Name: "a"}, snapshot.DefaultSettings())
	windows := resolve(t, c, &snapshot.NodeClass{Name: "b", AMIFamily: FamilyWindows2022}, snapshot.DefaultSettings())
	again := resolve(t, c, &snapshot.NodeClass{Name: "c", AMIFamily: FamilyBottlerocket}, snapshot.DefaultSettings())
	for i := range linux {
		for _, of := range []struct {
			r  *Resolved
			os string
		}{{&linux[i], Linux}, {&windows[i], Windows}, {&again[i], Linux}} {
			if got, ok := of.r.Label(LabelOS); got != of.os || !ok || of.r.Labels()[LabelOS] != of.os {
				t.Errorf("%s: %q, want %q", of.r.Type.Name, got, of.os)
			}
		}
	}
	moved := *c
	moved.Types = slices.DeleteFunc(slices.Clone(c.Types), func(t InstanceType) bool { return strings.HasPrefix(t.Name, "c5") })
	moved.Region = "elsewhere"
	for _, r := range resolve(t, &moved, &snapshot.NodeClass{Name: "a"}, snapshot.DefaultSettings()) {
		if l := r.Labels(); l[LabelInstanceType] != r.Type.Name || l[LabelRegion] != "elsewhere" {
			t.Errorf("%s has the labels %v", r.Type.Name, l)
		}
	}
}

// TestLabelAlone: one label is what all of them say.
func TestLabelAlone(t *testing.T) {
	c := fixture(t)
	c.Types[0].Labels = map[string]string{LabelGeneration: "55", "example.com/rack": "r1", LabelHypervisor: ""}
	for _, family := range []string{FamilyAL2023, FamilyWindows2025} {
		for _, r := range resolve(t, c, &snapshot.NodeClass{Name: "a", AMIFamily: family}, snapshot.DefaultSettings()) {
			all := r.Labels()
			for _, key := range append(slices.Collect(maps.Keys(all)), append(derivedLabels[:], "example.com/rack", LabelZone, "")...) {
				v, ok := r.Label(key)
				if want, has := all[key]; v != want || ok != has {
					t.Errorf("%s: label %q is %q (%v), among all it is %q (%v)", r.Type.Name, key, v, ok, want, has)
				}
			}
		}
	}
}
