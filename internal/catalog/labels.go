package catalog

import (
	"strconv"
	"strings"
)

// Labels that describe where and what a node is (Karpenter: well-known labels).
const (
	LabelInstanceType = "node.kubernetes.io/instance-type"
	LabelArch         = "kubernetes.io/arch"
	LabelOS           = "kubernetes.io/os"
	LabelWindowsBuild = "node.kubernetes.io/windows-build"
	LabelRegion       = "topology.kubernetes.io/region"
	LabelZone         = "topology.kubernetes.io/zone"
	LabelZoneID       = "topology.k8s.aws/zone-id"
	LabelHostname     = "kubernetes.io/hostname"
	LabelCapacityType = "karpenter.sh/capacity-type"
	LabelNodePool     = "karpenter.sh/nodepool"
	LabelNodeClass    = "karpenter.k8s.aws/ec2nodeclass"
)

// Labels that are derived from an instance type (Karpenter: karpenter.k8s.aws/instance-*).
const (
	LabelCategory                = "karpenter.k8s.aws/instance-category"
	LabelGeneration              = "karpenter.k8s.aws/instance-generation"
	LabelFamily                  = "karpenter.k8s.aws/instance-family"
	LabelSize                    = "karpenter.k8s.aws/instance-size"
	LabelFlex                    = "karpenter.k8s.aws/instance-capability-flex"
	LabelCPU                     = "karpenter.k8s.aws/instance-cpu"
	LabelCPUManufacturer         = "karpenter.k8s.aws/instance-cpu-manufacturer"
	LabelClockMHz                = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
	LabelMemory                  = "karpenter.k8s.aws/instance-memory"
	LabelHypervisor              = "karpenter.k8s.aws/instance-hypervisor"
	LabelEncryption              = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
	LabelEBSBandwidth            = "karpenter.k8s.aws/instance-ebs-bandwidth"
	LabelNetworkBandwidth        = "karpenter.k8s.aws/instance-network-bandwidth"
	LabelLocalNVMe               = "karpenter.k8s.aws/instance-local-nvme"
	LabelGPUName                 = "karpenter.k8s.aws/instance-gpu-name"
	LabelGPUManufacturer         = "karpenter.k8s.aws/instance-gpu-manufacturer"
	LabelGPUCount                = "karpenter.k8s.aws/instance-gpu-count"
	LabelGPUMemory               = "karpenter.k8s.aws/instance-gpu-memory"
	LabelAcceleratorName         = "karpenter.k8s.aws/instance-accelerator-name"
	LabelAcceleratorManufacturer = "karpenter.k8s.aws/instance-accelerator-manufacturer"
	LabelAcceleratorCount        = "karpenter.k8s.aws/instance-accelerator-count"
)

// Labels that depend on the offering or the launch, never on the type alone.
const (
	LabelTenancy                  = "karpenter.k8s.aws/instance-tenancy" // every type offers default and dedicated
	LabelReservationID            = "karpenter.k8s.aws/capacity-reservation-id"
	LabelReservationType          = "karpenter.k8s.aws/capacity-reservation-type"
	LabelReservationInterruptible = "karpenter.k8s.aws/capacity-reservation-interruptible"
	LabelPlacementGroupID         = "karpenter.k8s.aws/placement-group-id"
	LabelPlacementGroupPartition  = "karpenter.k8s.aws/placement-group-partition"
)

// Values of LabelCapacityType.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
	Reserved = "reserved"
)

// Values of LabelArch and LabelOS.
const (
	AMD64   = "amd64"
	ARM64   = "arm64"
	Linux   = "linux"
	Windows = "windows"
)

// Extended resources that a node of a type can offer.
const (
	NvidiaGPU          = "nvidia.com/gpu"
	AMDGPU             = "amd.com/gpu"
	HabanaGaudi        = "habana.ai/gaudi"
	Neuron             = "aws.amazon.com/neuron"
	NeuronCore         = "aws.amazon.com/neuroncore"
	EFA                = "vpc.amazonaws.com/efa"
	PodENI             = "vpc.amazonaws.com/pod-eni"
	PrivateIPv4Address = "vpc.amazonaws.com/PrivateIPv4Address"
)

// labels returns the single-valued labels of a linux or windows node of a type.
// An attribute that is unknown has no label (Karpenter: DoesNotExist); labels
// that the catalogue gives as such win over derived ones.
func (t *InstanceType) labels(region, os, windowsBuild string) map[string]string {
	m := make(map[string]string, 26+len(t.Labels))
	set := func(key, value string) {
		if value != "" {
			m[key] = value
		}
	}
	number := func(key string, v int64) {
		if v > 0 {
			m[key] = strconv.FormatInt(v, 10)
		}
	}
	m[LabelInstanceType] = t.Name
	m[LabelArch] = t.Arch
	m[LabelOS] = os
	set(LabelWindowsBuild, windowsBuild)
	set(LabelRegion, region)

	family, size, _ := strings.Cut(t.Name, ".")
	category, generation := splitFamily(family)
	set(LabelFamily, family)
	set(LabelSize, size)
	set(LabelCategory, category)
	set(LabelGeneration, generation)
	m[LabelFlex] = strconv.FormatBool(strings.Contains(family, "-flex"))

	number(LabelCPU, t.VCPU)
	number(LabelMemory, t.MemoryMiB)
	number(LabelClockMHz, t.ClockMHz)
	number(LabelEBSBandwidth, t.EBSMbps)
	number(LabelNetworkBandwidth, t.NetworkMbps)
	number(LabelLocalNVMe, t.LocalNVMeGB)
	set(LabelCPUManufacturer, kebab(t.CPUManufacturer))
	set(LabelEncryption, t.Encryption)
	if t.Hypervisor != "" || strings.HasPrefix(size, "metal") {
		m[LabelHypervisor] = t.Hypervisor // metal: present and empty
	}
	// Several entries cannot be said in one value: no label at all.
	if len(t.GPUs) == 1 {
		g := t.GPUs[0]
		set(LabelGPUName, kebab(g.Name))
		set(LabelGPUManufacturer, kebab(g.Manufacturer))
		m[LabelGPUCount] = strconv.FormatInt(g.Count, 10) // 0 for shares of a GPU
		number(LabelGPUMemory, g.MemoryMiB)
	}
	if len(t.Accelerators) == 1 {
		a := t.Accelerators[0]
		set(LabelAcceleratorName, kebab(a.Name))
		set(LabelAcceleratorManufacturer, kebab(a.Manufacturer))
		m[LabelAcceleratorCount] = strconv.FormatInt(a.Count, 10)
	}
	for k, v := range t.Labels {
		m[k] = v
	}
	return m
}

// splitFamily splits "c7gn" into ("c", "7") and "u-6tb1" into ("u", "1").
// Both are empty when the family has another form (Karpenter: instance scheme).
func splitFamily(family string) (category, generation string) {
	i := 0
	for i < len(family) && family[i] >= 'a' && family[i] <= 'z' {
		i++
	}
	category, rest := family[:i], family[i:]
	if after, ok := strings.CutPrefix(rest, "-"); ok {
		n := digits(after)
		tail, ok := strings.CutPrefix(after[n:], "tb")
		if n == 0 || !ok {
			return "", ""
		}
		rest = tail
	}
	n := digits(rest)
	if category == "" || n == 0 {
		return "", ""
	}
	return category, rest[:n]
}

// digits counts the leading decimal digits.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// kebab is Karpenter's form of names in label values: "Radeon Pro V520" -> "radeon-pro-v520".
func kebab(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), " ", "-")
}
