// Package catalog knows instance types: what they hold, what a node of them can
// give to pods, which labels it carries and what its offers cost.
//
// It owns the capacity and allocatable maths, the labels per type, the embedded
// table of types and prices with its date, and the catalogue file format. It does
// not choose.
//
//	figures of a type + NodeClass + settings
//	    capacity     vCPU; memory less the hypervisor's share; pods by interfaces,
//	                 maxPods or podsPerCore; volume or instance store; devices
//	  - kubeReserved cpu in steps; memory 11 MiB x pods + 255; storage 1 GiB
//	  - systemReserved
//	  - evictionHard memory 100 MiB; storage 10 %
//	  = allocatable
//
// The embedded table holds facts of us-east-1 and two assumptions, which its
// Source names: every type is offered in every zone, and spot costs 40 % of
// on-demand (Offering.Estimated). Without them nobody could plan spot without
// credentials; with live prices or a catalogue file neither is used. A type
// without a known price is there with nothing available.
//
// A catalogue file is JSON: region, date, source, instanceTypes, commitments. Of a
// type, name, arch, vcpu, memoryMiB and offerings are required; without eni it has
// 110 pods. eni.networkCards, accelerators[].cores, nestedVirtualization,
// ebsVolumes and offerings[].zoneID are there for who has the figures; estimated marks a price
// that is no fact. Prices are dollars, kept as whole micro-dollars.
//
// A commitment (Savings Plan, reserved instance) covers on-demand instances of a type, of a
// family ("m5") or of "all". Its effectivePricePerHour is that of an instance where the scope
// is a type, else that of each vCPU; remainingPerHour is what nobody uses of it yet.
// Commitments of one id share what remains: a Savings Plan has a price for each type.
package catalog
