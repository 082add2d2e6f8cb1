package catalog

import (
	"fmt"

	"kerf.sh/kerf/internal/snapshot"
)

const (
	mib = int64(1) << 20
	// defaultPods is the pod count of a type without network figures and of
	// Windows (kubelet: maxPods default).
	defaultPods = 110
	// armReservedMiB is memory that an arm64 guest never sees (Karpenter: 64 MiB of
	// CMA off before the hypervisor's share).
	armReservedMiB = 64
)

// capacity is what a node of a type has under a class. Extended is shared
// between types and must not be changed.
func (m *classModel) capacity(t *InstanceType, shared *extendedSets) snapshot.Resources {
	return snapshot.Resources{
		CPU:       snapshot.Clamp(t.VCPU * 1000),
		Memory:    m.memoryMiB(t) * mib,
		Ephemeral: m.storage(t),
		Pods:      m.pods(t),
		Extended:  shared.of(t, m),
	}
}

// memoryMiB takes off the hypervisor's share, rounded up to whole MiB (Karpenter:
// VM_MEMORY_OVERHEAD_PERCENT).
func (m *classModel) memoryMiB(t *InstanceType) int64 {
	v := t.MemoryMiB
	if t.Arch == ARM64 {
		v = max(0, v-armReservedMiB)
	}
	return v - ceilShare(v, m.settings.VMMemoryOverhead, ppm)
}

func (m *classModel) storage(t *InstanceType) int64 {
	if m.raid0 && t.LocalNVMeGB > 0 {
		return t.LocalNVMeGB * 1_000_000_000
	}
	return m.volume
}

// pods is the number of pods the kubelet admits: maxPods, else what the network
// interfaces carry, then podsPerCore.
func (m *classModel) pods(t *InstanceType) int64 {
	n := m.maxPods
	if n == 0 {
		n = defaultPods
		if m.family.eniDensity && t.ENI.Interfaces > 0 {
			n = t.ENI.pods(m.settings.ReservedENIs + m.efaOnlyCard0)
		}
	}
	if m.podsPerCore > 0 {
		n = min(n, mulClamp(m.podsPerCore, t.VCPU))
	}
	return snapshot.Clamp(n)
}

// pods is the ENI formula: one address of each interface is its own, two pods use
// the host's network (amazon-vpc-cni: max pods). The default card only counts.
func (e ENI) pods(taken int64) int64 {
	usable := e.Interfaces - taken
	if usable <= 0 {
		return 0
	}
	return usable*(e.IPv4PerENI-1) + 2
}

// overhead is what pods can not have, resource by resource.
type overhead struct {
	kube, system, eviction snapshot.Resources
}

// overhead computes the reservations of a type whose capacity is known.
//
// kube-reserved memory follows the pods that the kubelet admits (11 MiB each, and
// 255): maxPods and reserved interfaces change both together, in every family.
// Karpenter keeps the ENI count without reserved interfaces for AL2, AL2023 and
// Custom.
func (m *classModel) overhead(t *InstanceType, capacity snapshot.Resources) overhead {
	o := overhead{
		kube:   kubeReserved(t, capacity.Pods),
		system: m.system.amount,
		eviction: snapshot.Resources{
			Memory:    m.evictMemory.of(capacity.Memory),
			Ephemeral: m.evictStorage.of(capacity.Ephemeral),
		},
	}
	for _, name := range reservedResources {
		if m.kube.has(name) {
			o.kube = o.kube.With(name, m.kube.amount.Get(name))
		}
	}
	return o
}

func kubeReserved(t *InstanceType, pods int64) snapshot.Resources {
	return snapshot.Resources{CPU: kubeReservedCPU(t.VCPU), Memory: mulClamp(mulClamp(11, pods)+255, mib), Ephemeral: 1 << 30}
}

// KubeReserved is what the kubelet of a node of the type keeps for itself where the class
// does not say (spec.kubelet.kubeReserved): the node has to be started with it, so that
// its allocatable is the one that was planned with.
func (r *Resolved) KubeReserved() snapshot.Resources { return kubeReserved(r.Type, r.MaxPods()) }

// reservedResources are the resources that reservations take from.
var reservedResources = [...]string{snapshot.CPU, snapshot.EphemeralStorage, snapshot.Memory}

// kubeReservedCPU is 6 % of the first core, 1 % of the second, 0.5 % of the third
// and fourth, 0.25 % of the rest, in millicores, each step cut to whole millicores.
func kubeReservedCPU(cores int64) int64 {
	m := int64(0)
	if cores >= 1 {
		m += 60
	}
	if cores >= 2 {
		m += 10
	}
	if cores >= 3 {
		m += 5 * min(cores-2, 2)
	}
	if cores >= 5 {
		m += (cores - 4) * 5 / 2
	}
	return m
}

// allocatable is capacity less overhead. When something is used up, the result is
// empty (so that nothing can ever fit) and the shortage says what and why.
func (m *classModel) allocatable(capacity snapshot.Resources, o overhead) (snapshot.Resources, *shortage) {
	left := capacity // nothing is reserved of what is in Extended, or of pods
	for _, part := range [...]*snapshot.Resources{&o.kube, &o.system, &o.eviction} {
		left.CPU = snapshot.Clamp(left.CPU - snapshot.Clamp(part.CPU))
		left.Memory = snapshot.Clamp(left.Memory - snapshot.Clamp(part.Memory))
		left.Ephemeral = snapshot.Clamp(left.Ephemeral - snapshot.Clamp(part.Ephemeral))
	}
	for _, name := range reservedResources {
		if left.Get(name) <= 0 {
			return snapshot.Resources{}, m.shortage(name, capacity, o)
		}
	}
	return left, nil
}

// shortage is a resource of which reservations leave nothing.
type shortage struct {
	resource  string
	have      int64 // capacity
	takes     int64 // reserved in total
	blame     Problem
	blamedSum int64
}

func (s *shortage) String() string {
	out := fmt.Sprintf("reservations take %s of %s %s", s.taken(), snapshot.FormatQuantity(s.resource, s.have), s.resource)
	if s.blame.Field != "" {
		out += fmt.Sprintf(" (%s: %q)", s.blame.Field, s.blame.Value)
	}
	return out
}

// taken writes what is reserved, which may be more than is counted.
func (s *shortage) taken() string {
	if snapshot.Saturated(s.takes) {
		return snapshot.FormatQuantity(s.resource, s.takes+1) + " or more"
	}
	return snapshot.FormatQuantity(s.resource, s.takes)
}

// shortage finds the field of the class that takes most of a resource.
func (m *classModel) shortage(name string, capacity snapshot.Resources, o overhead) *shortage {
	s := &shortage{resource: name, have: capacity.Get(name)}
	kube, system, evict := o.kube.Get(name), o.system.Get(name), o.eviction.Get(name)
	s.takes = snapshot.Clamp(snapshot.Clamp(kube+system) + evict)
	blame := func(field, value string, takes int64) {
		if takes > s.blamedSum {
			s.blame, s.blamedSum = Problem{Field: "spec.kubelet." + field, Value: value}, takes
		}
	}
	switch {
	case m.kube.has(name):
		blame("kubeReserved["+name+"]", m.kube.written[name], kube)
	case name == snapshot.Memory && m.maxPods > 0:
		blame("maxPods", fmt.Sprint(m.maxPods), kube)
	}
	if m.system.has(name) {
		blame("systemReserved["+name+"]", m.system.written[name], system)
	}
	switch {
	case name == snapshot.Memory && m.evictMemory.written != "":
		blame("evictionHard["+memoryAvailable+"]", m.evictMemory.written, evict)
	case name == snapshot.EphemeralStorage && m.evictStorage.written != "":
		blame("evictionHard["+nodefsAvailable+"]", m.evictStorage.written, evict)
	}
	return s
}

// mulClamp multiplies two numbers that are not negative, limited to
// snapshot.MaxQuantity.
func mulClamp(a, b int64) int64 {
	if a > 0 && b > snapshot.MaxQuantity/a {
		return snapshot.MaxQuantity
	}
	return a * b
}
