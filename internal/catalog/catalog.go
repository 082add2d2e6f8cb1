package catalog

import (
	"math"
	"math/bits"
	"strings"
	"time"
)

// Catalog is a table of instance types and offers for one region. It is not
// changed once it has been resolved: who wants another one makes another one.
type Catalog struct {
	Region string
	Date   string         // of the figures, YYYY-MM-DD
	Source string         // one line that a person understands
	Types  []InstanceType // sorted by name
	// Zones are all zones that offers name, sorted.
	Zones []string
	// Commitments are Savings Plans and reserved instances.
	Commitments []Commitment
}

// InstanceType is a type as EC2 describes it; nothing here depends on a NodeClass.
type InstanceType struct {
	Name            string
	Arch            string // amd64, arm64
	VCPU            int64
	MemoryMiB       int64
	ENI             ENI // zero: unknown, 110 pods
	GPUs            []Device
	Accelerators    []Device // inference and Neuron devices
	LocalNVMeGB     int64
	NetworkMbps     int64
	EBSMbps         int64
	Hypervisor      string
	CPUManufacturer string
	ClockMHz        int64
	// Encryption is "true" or "false": encryption in transit; "" = unknown.
	Encryption string
	// NestedVirtualization: the type advertises it (class cpuOptions).
	NestedVirtualization bool
	// Volumes is how many EBS volumes pods can have attached on a node; 0: by the
	// table of EC2 (EBSVolumes).
	Volumes   int64
	Extended  map[string]int64  // extended resources given as such
	Labels    map[string]string // labels given as such; they win over derived ones
	Offerings []Offering        // sorted by (zone, capacity type)
}

// ENI are the network limits of a type.
type ENI struct {
	Interfaces    int64 // of the default network card
	IPv4PerENI    int64
	Branch        int64 // trunk branch interfaces (pod-eni); 0 = not trunking compatible
	EFAInterfaces int64
	// Cards is the number of network cards; 0 counts as 1.
	Cards int64
}

// Device is a GPU or accelerator entry.
type Device struct {
	Name         string
	Manufacturer string
	Count        int64
	MemoryMiB    int64
	Cores        int64 // Neuron cores per device
}

// Offering is a type in a zone as a capacity type.
type Offering struct {
	Zone         string
	ZoneID       string
	CapacityType string // Spot, OnDemand, Reserved
	Price        int64  // micro-dollars per hour
	Available    bool
	// Estimated: the price is not a fact but a guess, so that spot can be planned
	// without credentials.
	Estimated   bool
	Reservation *Reservation
}

// Reservation is the capacity reservation behind a reserved offering.
type Reservation struct {
	ID        string
	Type      string // default, capacity-block
	Remaining int64
	Expires   time.Time
}

// Commitment is a Savings Plan or reserved instance with unused hours: on-demand instances
// that it covers cost less than they do by the list.
type Commitment struct {
	// Scope is what it covers: a type, all types of a family, or "all".
	Scope string
	// Price is what an hour costs under it, in micro-dollars: of an instance where the scope
	// is a type, else of each vCPU of one.
	Price int64
	// Remaining is what is unused of it, in micro-dollars per hour.
	Remaining int64
	// ID names it for people. Commitments of one id have Remaining together: a Savings Plan
	// has a price for each type. "" = it stands alone.
	ID string
}

// Rate is what an hour of a type costs under the commitment; false when it does not cover
// the type.
func (m *Commitment) Rate(t *InstanceType) (int64, bool) {
	family, _, _ := strings.Cut(t.Name, ".")
	switch m.Scope {
	case t.Name:
		return m.Price, true
	case family, "all":
		if hi, lo := bits.Mul64(uint64(m.Price), uint64(t.VCPU)); hi == 0 && lo < math.MaxInt64 {
			return int64(lo), true
		}
	}
	return 0, false
}
