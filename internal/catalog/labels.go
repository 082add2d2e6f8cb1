package catalog

import (
	"maps"
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

// labelScope is what labels of a type depend on beside the type.
type labelScope struct{ region, os, windowsBuild string }

// derivedLabels are the labels that follow from the figures of a type.
var derivedLabels = [...]string{
	LabelInstanceType, LabelArch, LabelOS, LabelWindowsBuild, LabelRegion,
	LabelCategory, LabelGeneration, LabelFamily, LabelSize, LabelFlex,
	LabelCPU, LabelMemory, LabelClockMHz, LabelEBSBandwidth, LabelNetworkBandwidth, LabelLocalNVMe,
	LabelCPUManufacturer, LabelEncryption, LabelHypervisor,
	LabelGPUName, LabelGPUManufacturer, LabelGPUCount, LabelGPUMemory,
	LabelAcceleratorName, LabelAcceleratorManufacturer, LabelAcceleratorCount,
}

// Label is the value of one label of a node of the type, and whether the node has it.
// Labels are single-valued; zone, zone id, capacity type and tenancy are left out, because
// offerings decide them.
//
// An attribute that is unknown has no label (Karpenter: DoesNotExist); labels that the
// catalogue gives as such win over derived ones.
func (r *Resolved) Label(key string) (string, bool) {
	if v, ok := r.Type.Labels[key]; ok {
		return v, true
	}
	return r.Type.derived(key, r.labelScope())
}

// Labels are all labels of a node of the type, in a map of its own.
func (r *Resolved) Labels() map[string]string {
	m := make(map[string]string, len(derivedLabels)+len(r.Type.Labels))
	r.CopyLabels(m)
	return m
}

// CopyLabels writes all labels of a node of the type into a map.
func (r *Resolved) CopyLabels(to map[string]string) {
	in := r.labelScope()
	for _, key := range derivedLabels {
		if v, ok := r.Type.derived(key, in); ok {
			to[key] = v
		}
	}
	maps.Copy(to, r.Type.Labels)
}

// labelScope is empty for a type that no catalogue has resolved.
func (r *Resolved) labelScope() *labelScope {
	if r.scope == nil {
		return &labelScope{}
	}
	return r.scope
}

// derived is a label that follows from the figures of the type.
func (t *InstanceType) derived(key string, in *labelScope) (string, bool) {
	switch key {
	case LabelInstanceType:
		return t.Name, true
	case LabelArch:
		return t.Arch, true
	case LabelOS:
		return in.os, true
	case LabelWindowsBuild:
		return known(in.windowsBuild)
	case LabelRegion:
		return known(in.region)
	case LabelFamily:
		return known(t.family())
	case LabelSize:
		return known(t.size())
	case LabelCategory:
		category, _ := splitFamily(t.family())
		return known(category)
	case LabelGeneration:
		_, generation := splitFamily(t.family())
		return known(generation)
	case LabelFlex:
		return strconv.FormatBool(strings.Contains(t.family(), "-flex")), true
	case LabelCPU:
		return positive(t.VCPU)
	case LabelMemory:
		return positive(t.MemoryMiB)
	case LabelClockMHz:
		return positive(t.ClockMHz)
	case LabelEBSBandwidth:
		return positive(t.EBSMbps)
	case LabelNetworkBandwidth:
		return positive(t.NetworkMbps)
	case LabelLocalNVMe:
		return positive(t.LocalNVMeGB)
	case LabelCPUManufacturer:
		return known(kebab(t.CPUManufacturer))
	case LabelEncryption:
		return known(t.Encryption)
	case LabelHypervisor: // metal: present and empty
		return t.Hypervisor, t.Hypervisor != "" || strings.HasPrefix(t.size(), "metal")
	}
	return t.deviceLabel(key)
}

// deviceLabel is a label about GPUs or accelerators. Several entries cannot be said in one
// value: then there is no label at all.
func (t *InstanceType) deviceLabel(key string) (string, bool) {
	if len(t.GPUs) == 1 {
		g := &t.GPUs[0]
		switch key {
		case LabelGPUName:
			return known(kebab(g.Name))
		case LabelGPUManufacturer:
			return known(kebab(g.Manufacturer))
		case LabelGPUCount:
			return strconv.FormatInt(g.Count, 10), true // 0 for shares of a GPU
		case LabelGPUMemory:
			return positive(g.MemoryMiB)
		}
	}
	if len(t.Accelerators) == 1 {
		a := &t.Accelerators[0]
		switch key {
		case LabelAcceleratorName:
			return known(kebab(a.Name))
		case LabelAcceleratorManufacturer:
			return known(kebab(a.Manufacturer))
		case LabelAcceleratorCount:
			return strconv.FormatInt(a.Count, 10), true
		}
	}
	return "", false
}

func known(v string) (string, bool) { return v, v != "" }

func positive(v int64) (string, bool) {
	if v <= 0 {
		return "", false
	}
	return strconv.FormatInt(v, 10), true
}

// family is what comes before the first dot of the name, size what comes after it.
func (t *InstanceType) family() string {
	family, _, _ := strings.Cut(t.Name, ".")
	return family
}

func (t *InstanceType) size() string {
	_, size, _ := strings.Cut(t.Name, ".")
	return size
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
