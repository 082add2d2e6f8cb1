package catalog

import (
	"maps"

	"kerf.sh/kerf/internal/snapshot"
)

// extendedCounts are the extended resources that figures of a type imply.
type extendedCounts struct {
	nvidia, amd, gaudi, neuron, neuronCore, efa, podENI, ipv4 int64
}

func (m *classModel) extended(t *InstanceType) extendedCounts {
	var c extendedCounts
	for _, list := range [...][]Device{t.GPUs, t.Accelerators} {
		for _, d := range list {
			switch kebab(d.Manufacturer) {
			case "nvidia":
				c.nvidia += d.Count
			case "amd":
				c.amd += d.Count
			case "habana":
				c.gaudi += d.Count
			case "aws":
				if c.neuron == 0 {
					c.neuronCore = mulClamp(d.Count, d.Cores)
				}
				c.neuron += d.Count
			}
		}
	}
	c.podENI = t.ENI.Branch
	c.efa = t.ENI.EFAInterfaces
	if m.family.os == Windows && t.ENI.IPv4PerENI > 1 {
		c.ipv4 = t.ENI.IPv4PerENI - 1
	}
	return c
}

// extendedSets builds the map of extended resources, once for all types that have
// the same. It lives for one Resolve, because counts depend on the class.
type extendedSets struct {
	sets map[extendedCounts]map[string]int64
	// Types of a family mostly have the same, one after the other.
	last    extendedCounts
	lastSet map[string]int64
}

func (s *extendedSets) of(t *InstanceType, m *classModel) map[string]int64 {
	c := m.extended(t)
	if len(t.Extended) > 0 {
		// What the catalogue gives as such wins, but the class decides on EFA.
		set := c.resources()
		maps.Copy(set, t.Extended)
		m.setEFA(set)
		return set
	}
	if len(m.nics) > 0 {
		c.efa = m.efaOnly
	}
	if c == s.last { // at first nothing, of nothing
		return s.lastSet
	}
	set, ok := s.sets[c]
	if !ok {
		if set = c.resources(); len(set) == 0 {
			set = nil
		}
		if s.sets == nil {
			s.sets = map[extendedCounts]map[string]int64{}
		}
		s.sets[c] = set
	}
	s.last, s.lastSet = c, set
	return set
}

// setEFA: with spec.networkInterfaces a node has the efa-only interfaces of the
// class and no other (Karpenter: vpc.amazonaws.com/efa).
func (m *classModel) setEFA(set map[string]int64) {
	if len(m.nics) == 0 {
		return
	}
	delete(set, EFA)
	if m.efaOnly > 0 {
		set[EFA] = m.efaOnly
	}
}

func (c extendedCounts) resources() map[string]int64 {
	set := map[string]int64{}
	add := func(name string, v int64) {
		if v > 0 {
			set[name] = snapshot.Clamp(v)
		}
	}
	add(NvidiaGPU, c.nvidia)
	add(AMDGPU, c.amd)
	add(HabanaGaudi, c.gaudi)
	add(Neuron, c.neuron)
	add(NeuronCore, c.neuronCore)
	add(EFA, c.efa)
	add(PodENI, c.podENI)
	add(PrivateIPv4Address, c.ipv4)
	return set
}
