package catalog

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Resolved is a type as nodes of a class have it.
type Resolved struct {
	Type     *InstanceType
	Capacity snapshot.Resources
	// Allocatable is what pods and DaemonSets can use. It is empty, so that nothing
	// fits, when reservations leave nothing.
	Allocatable snapshot.Resources
	// Image is the AMI that a node of it boots; "" when none is resolved.
	Image string
	// Exotic types (bare metal, GPUs, accelerators) are for pods that ask for them.
	Exotic bool
	// Unusable says why no node of the type can exist under the class; "" = usable.
	Unusable string
	// Computed is what Capacity and Allocatable were before a node of the type turned out to
	// have something else (Learn); nil = they are what is computed.
	Computed *Size
	// Supposed is from how many other types the figures are concluded, 0 = from nodes of this
	// one or computed.
	Supposed int

	scope *labelScope // of Label
}

// Resolve computes capacity, allocatable and labels of every type under a class.
// The result has the order of c.Types; types that the class rules out are present
// and say why. The error is a *ClassError (plan code NodeClassInvalid): the class
// has impossible values, or its reservations leave nothing on any type.
//
// Nothing is remembered from one call to the next: figures depend on the whole class and
// the settings, and labels are made up when they are asked for.
func (c *Catalog) Resolve(class *snapshot.NodeClass, s snapshot.Settings) ([]Resolved, error) {
	m, err := newClassModel(class, s)
	if err != nil {
		return nil, err
	}
	out := make([]Resolved, len(c.Types))
	scope := &labelScope{region: c.Region, os: m.family.os, windowsBuild: m.family.windowsBuild}
	var shared extendedSets
	var worst *shortage // of the largest type that reservations use up
	var worstType string
	usable := 0
	for i := range c.Types {
		t := &c.Types[i]
		r := &out[i]
		r.Type, r.scope = t, scope
		r.Capacity = m.capacity(t, &shared)
		r.Exotic = exotic(t)
		var short *shortage
		r.Allocatable, short = m.allocatable(r.Capacity, m.overhead(t, r.Capacity))
		if r.Unusable = m.excludes(t); r.Unusable == "" {
			r.Image, r.Unusable = m.image(r)
		}
		switch {
		case r.Unusable != "":
		case short != nil:
			r.Unusable = short.String()
			if worst == nil || short.have > worst.have {
				worst, worstType = short, t.Name
			}
		case r.Capacity.Pods <= 0:
			r.Unusable = fmt.Sprintf("has room for no pod: %d interfaces, %d of them not for pods (RESERVED_ENIS %d, efa-only %d)",
				t.ENI.Interfaces, s.ReservedENIs+m.efaOnlyCard0, s.ReservedENIs, m.efaOnlyCard0)
			r.Allocatable = snapshot.Resources{}
		default:
			usable++
		}
	}
	if usable == 0 && worst != nil && worst.blame.Field != "" {
		p := worst.blame
		p.Detail = fmt.Sprintf("leaves nothing on any type: with everything else that is reserved it takes %s, and %s has %s of %s; reserve less",
			worst.taken(), worstType, snapshot.FormatQuantity(worst.resource, worst.have), worst.resource)
		return nil, &ClassError{Class: class.Name, Problems: []Problem{p}}
	}
	return out, nil
}

// excludes says why a class rules a type out; "" when it does not (Karpenter:
// instance type compatibility).
func (m *classModel) excludes(t *InstanceType) string {
	family, _, _ := strings.Cut(t.Name, ".")
	switch {
	case m.family.os == Windows && t.Arch != AMD64:
		return "Windows runs on amd64 only"
	case m.family.name == FamilyAL2023 && family == "a1":
		return "AL2023 does not run on a1"
	case m.connTracking && t.Hypervisor != "nitro":
		return "spec.connectionTracking needs a Nitro type"
	case m.nestedVirtualize && !t.NestedVirtualization:
		return "the catalogue does not say that it supports nested virtualization (spec.cpuOptions)"
	}
	return m.excludesNICs(t)
}

// excludesNICs compares spec.networkInterfaces with the cards of a type.
func (m *classModel) excludesNICs(t *InstanceType) string {
	cards := max(t.ENI.Cards, 1)
	for i, n := range m.nics {
		switch {
		case int64(n.NetworkCard) >= cards:
			return fmt.Sprintf("spec.networkInterfaces[%d] is on network card %d; it has %d", i, n.NetworkCard, cards)
		case t.ENI.Interfaces > 0 && int64(n.Device) >= t.ENI.Interfaces: // cards of a type are alike
			return fmt.Sprintf("spec.networkInterfaces[%d] is device %d of a card; a card has %d", i, n.Device, t.ENI.Interfaces)
		}
	}
	if efa := max(t.ENI.EFAInterfaces, t.Extended[EFA]); m.efaOnly > efa {
		return fmt.Sprintf("spec.networkInterfaces has %d efa-only interfaces; it takes %d", m.efaOnly, efa)
	}
	return ""
}

// exotic types are expensive or slow to start and should only serve pods that ask
// for what they have (Karpenter: metal and accelerator types come last).
func exotic(t *InstanceType) bool {
	_, size, _ := strings.Cut(t.Name, ".")
	if strings.HasPrefix(size, "metal") || len(t.GPUs) > 0 || len(t.Accelerators) > 0 {
		return true
	}
	return slices.ContainsFunc([]string{NvidiaGPU, AMDGPU, HabanaGaudi, Neuron, NeuronCore}, func(name string) bool {
		return t.Extended[name] > 0
	})
}
