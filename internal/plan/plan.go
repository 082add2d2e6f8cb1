package plan

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Plan is the outcome of one pass. Every pending pod is in exactly one of
// Launches[].Pods, Placements and Verdicts. All lists are sorted.
type Plan struct {
	ID       string // content hash of the inputs; equal input, equal id
	Now      time.Time
	Cluster  string
	Region   string
	Complete bool
	// Incomplete says what was missing when Complete is false.
	Incomplete []string
	// Catalogue says which table of types and prices was used: region, date, source.
	Catalogue CatalogueInfo

	Summary    Summary
	Bounds     []Bound
	Launches   []Launch
	Placements []Placement
	Displaced  []Displaced
	Nodes      []NodeUse // existing and in-flight nodes, for the report
	// Pods tells the reports what the pods named above ask for and which workload
	// they belong to, sorted by Ref. Describe fills it; JSON leaves it out.
	Pods     []PodUse
	Verdicts []Verdict
	Warnings []Warning
	// Moves are nodes that should go, with --consolidate; Savings sums them up, nil without.
	Moves   []Move
	Savings *Savings
	// Moving counts the pods of nodes that are going that have to go elsewhere, and those
	// of them that get a place on a node that exists or is in flight. Describe fills it.
	Moving struct{ Pods, Placed int }
	// Memory is what the functions remember and the plan has heeded; nil = nothing.
	Memory *Memory
	// Explained is the one object that was asked about (--explain), nil otherwise.
	Explained *Explanation
	// Diff compares this plan, made on what would be, with the one on what is; nil when
	// nothing was overlaid.
	Diff *Diff
}

// CatalogueInfo identifies the table of instance types that a plan used.
type CatalogueInfo struct {
	Region string
	Date   string
	Source string
	Types  int
}

// Summary is the plan in numbers. Prices are micro-dollars per hour.
type Summary struct {
	PendingPods, Placed, Launches, Unschedulable int
	PriceBefore, PriceAfter                      snapshot.Price
	LaunchPrice, LaunchPriceWorst                snapshot.Price
	// Committed is the part of LaunchPrice that commitments cover: it is paid whether it is
	// used or not.
	Committed        snapshot.Price
	LaunchLowerBound snapshot.Price
	// BufferUnits is for how many units of CapacityBuffers the plan was to keep room,
	// BufferMissing how many of them got none. They are no pods and count as none above.
	BufferUnits, BufferMissing int
}

// Bound is a certified lower bound for the pods of some launches: with these
// prices per unit of resource (Duals) no allowed offer costs less than what it
// holds is worth, so no plan can cost less than Total.
type Bound struct {
	Pools []string       // pools of this market
	Pods  int            // pods it covers
	Total snapshot.Price // micro-dollars per hour
	// Kind says how Total is proved: resources (Demand x Duals is all of it), shape and
	// optimum (pods that are all alike), wholeNodes (every cheaper choice of nodes was
	// searched), groups (Parts: pods under different rules have prices of their own),
	// contents (Prices: no contents of an offer are worth more than it costs), forced
	// (nodes that static NodePools demand, each at the cheapest offer of its pool).
	Kind string
	// Credit is what capacity reservations may save at these duals, Total included.
	Credit snapshot.Price
	// Linear is what Demand x Duals proves alone, with capacities rounded down to Steps.
	Linear snapshot.Price
	// Steps are what every need is a multiple of, by resource, in the units of Demand.
	Steps  map[string]float64
	Parts  []BoundPart
	Prices []PodPrice
	// Demand and Duals by resource: cpu in cores, memory in GiB, ephemeral-storage
	// in GiB, everything else in units; "nodes" is the forced node count. Duals are
	// micro-dollars per hour and unit.
	Demand map[string]float64
	Duals  map[string]float64
}

// BoundPart is a group of pods under the same rules in a bound of kind groups.
type BoundPart struct {
	Pod    string // one of them
	Pods   int
	Demand map[string]float64
	Duals  map[string]float64
}

// PodPrice is what one pod of a kind is worth in a bound of kind contents.
type PodPrice struct {
	Pod   string  // one of the kind
	Price float64 // micro-dollars per hour
}

// Offer is a purchasable thing: instance type, zone, capacity type, price.
type Offer struct {
	InstanceType  string
	Zone          string
	CapacityType  string
	Price         snapshot.Price
	ReservationID string
	// Overlay names the NodeOverlay that Price is of, ListPrice is the catalogue's; ""
	// and 0 without one.
	Overlay   string
	ListPrice snapshot.Price
	// Commitment names the Savings Plan or reserved instance that Price is of, ListPrice is
	// what it would cost without; "" without one.
	Commitment string
}

// Launch is a node to be created.
type Launch struct {
	Name      string // pool-a-1
	NodePool  string
	NodeClass string
	Pods      []string // namespace/name, sorted
	Labels    map[string]string
	// Requests is what its pods ask for, daemonset pods included.
	Requests snapshot.Resources
	// Daemons is the share of Requests that daemonset pods take.
	Daemons snapshot.Resources
	// Allocatable is that of the chosen type.
	Allocatable snapshot.Resources
	Chosen      Offer
	Options     []Offer // sorted by price, type, zone, capacity type; Chosen included
	Worst       snapshot.Price
	// Static: the node is one that a static NodePool is short of; pods are not the cause.
	Static bool
	// Relaxed lists the preferences that were dropped for pods of this launch.
	Relaxed []string
	// Limited says why there are fewer options than wished for; "" otherwise.
	Limited string
	// Notes say which rules of its pods shaped the launch, for reports; Describe fills
	// them, JSON leaves them out.
	Notes []string
}

// Placement puts a pending pod on a node that exists or is in flight.
type Placement struct {
	Pod  string // namespace/name
	Node string
	// Nominated: the pod was given the node before, and keeps it.
	Nominated bool
}

// Displaced is a pod of a node that is going.
type Displaced struct {
	Pod, From, To string
}

// NodeUse is a node that exists or is in flight, as the report shows it.
type NodeUse struct {
	Name         string
	NodePool     string
	InstanceType string
	Zone         string
	CapacityType string
	Price        snapshot.Price
	PriceKnown   bool
	InFlight     bool
	Going        bool               // it is being deleted, or its NodeClaim is (Describe fills it)
	Pods         int                // before the plan
	Placed       int                // pods this plan adds
	Used         snapshot.Resources // before the plan
	Daemons      snapshot.Resources // the share of Used that daemonset pods take
	Added        snapshot.Resources
	Allocatable  snapshot.Resources
}

// PodUse is a pod as the reports show it.
type PodUse struct {
	Ref string // namespace/name
	// Workload is namespace/name of what owns the pod (the Deployment of a
	// ReplicaSet's pod), or the pod's own name with a trailing number left out
	// ("batch/run-*").
	Workload string
	Requests snapshot.Resources
	Buffer   bool   // a unit of a CapacityBuffer
	Node     string // where it runs; "" while it is pending
}

// Verdict is a "no", or a remark, about one object.
type Verdict struct {
	Object string // pod/ns/name, node/name, nodepool/name
	Code   Code
	Detail string
	Pools  []PoolVerdict // per NodePool, the nearest first
}

// PoolVerdict says why one NodePool cannot host a pod.
type PoolVerdict struct {
	NodePool string
	Code     Code
	Detail   string
}

// Warning is a remark that stops nothing.
type Warning struct {
	Object string
	Code   Code
	Detail string
}

// Explanation is the verdict tree of one object: nested lines, most telling first.
type Explanation struct {
	Object string
	Lines  []Line
}

// Line is one line of an explanation.
type Line struct {
	Text     string
	Children []Line
}
