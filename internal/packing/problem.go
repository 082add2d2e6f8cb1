package packing

// Problem is one packing question. Slices are only read.
type Problem struct {
	// Dims names the resources in the order of every vector below. cpu, memory and
	// pods are always there; every other resource only if some class asks for it.
	Dims []string
	// LimitDims names the resources that some pool limits, in the order of
	// Type.Capacity and Pool.Remaining. "nodes" counts one per node.
	LimitDims []string
	Pools     []Pool
	Templates []Template
	Classes   []Class
	Nodes     []Node
	// Fixed are placements that are decided already: they take their room first.
	Fixed []Placed
	// Caps limit how many pods of some classes one node may carry.
	Caps []Cap
	// CostPerNode is added to each node's price when plans are compared.
	CostPerNode int64
	// OptionPriceCap is the most an option may cost, in percent of the chosen one.
	OptionPriceCap int64
	Seed           uint64
	// Work bounds the search, in abstract steps.
	Work int64
}

// Pool is what templates of one NodePool share.
type Pool struct {
	Name   string
	Weight int32
	// Remaining is what is left of each limit, NoLimit where there is none.
	Remaining []int64
}

// NoLimit marks a resource that a pool does not limit.
const NoLimit = int64(1) << 61

// Template is a kind of node that can be launched: a NodePool with one concrete
// set of custom labels. A pool has several when pods ask for different values of
// a label that the pool leaves open.
type Template struct {
	Name string // unique, orders templates
	Pool int
	// Types are the instance types the pool allows, sorted by name; Offers refer to
	// them. Offers are available ones only, sorted by (type, zone, capacity type).
	Types  []Type
	Offers []Offer
	// MinValues: the options of a launch must have at least Min different values.
	MinValues []MinValues
}

// Type is an instance type under a template.
type Type struct {
	Name   string
	Family string
	// Alloc is allocatable less daemonset pods, by Dims. A type with a negative
	// component must not be given.
	Alloc []int64
	// Capacity is what counts against pool limits, by LimitDims.
	Capacity []int64
	// Exotic types (metal, accelerators nobody asked for) are used only by classes
	// that have no other offer.
	Exotic bool
}

// Offer is a type in a zone as a capacity type.
type Offer struct {
	*Market
	Type  int   // index in Template.Types
	Price int64 // micro-dollars per hour, as it is compared
	// Penalty is the part of Price that nobody pays: an offer that has failed lately
	// counts as dearer than it is. Bounds and worst options leave it out.
	Penalty int64
}

// Paid is what an offer costs.
func (o *Offer) Paid() int64 { return o.Price - o.Penalty }

// Market is what offers of many types have in common.
type Market struct {
	Zone     string
	Capacity string // spot, on-demand, reserved
	// Rank orders offers before price: 0 reserved, 1 everything else.
	Rank int8
	// Count is how many instances the offer has; 0 = no limit known.
	Count int64
	// Reservation is the id of a reserved offer.
	Reservation string
}

// MinValues is a minValues requirement: Values[type] lists the value ids that the
// type brings for the key.
type MinValues struct {
	Key string
	Min int
	// Want is how many the options should have if they can; 0 counts as Min.
	Want   int
	Values [][]int32
}

// Class is a set of pods that are the same to every rule.
type Class struct {
	Count int
	Need  []int64 // by Dims; pods is 1
	// Offers holds, per template, the offers that the class allows (rules, not
	// resources); nil where the template refuses it.
	Offers []Bitset
	// Nodes are the existing nodes whose rules (not resources) it passes.
	Nodes Bitset
	// Conflicts are classes that may not share a node with this one (host ports),
	// symmetric. A class that conflicts with itself runs once per node.
	Conflicts []int32
	// Apart are classes that may not share a new node with this one; nodes that exist
	// may carry both (a preference). Symmetric, as Conflicts.
	Apart []int32
}

// Cap is the most pods of some classes that one node may carry (spread over nodes).
type Cap struct {
	Max     int
	Classes []int32 // ascending
	// Weight is what a pod of each class counts; nil: one each.
	Weight []int32
	// Used is what nodes that exist carry already, by node; nil: nothing.
	Used []int32
	// New caps hold on new nodes only (a preference).
	New bool
}

// Node is a node that exists or is in flight.
type Node struct {
	Name string
	Free []int64 // by Dims; negative components mean that nothing fits
}

// Result is the answer. Lists are in a fixed order: nodes and launches by index,
// classes ascending.
type Result struct {
	Placed   []Placed
	Launches []Launch
	Unplaced []Unplaced
	Bounds   []Bound
	// Price is the sum over launches of their chosen offers as they are compared,
	// CostPerNode left out.
	Price int64
	// Exhausted reports that the search stopped at the work budget.
	Exhausted bool
}

// Placed puts pods of a class on an existing node.
type Placed struct{ Node, Class, Count int }

// ClassCount is a number of pods of a class.
type ClassCount struct{ Class, Count int }

// Launch is a node to launch.
type Launch struct {
	Template int
	Contents []ClassCount
	Chosen   int   // offer index in the template
	Options  []int // offer indices, cheapest first, Chosen among them
	Worst    int64 // what the dearest option costs
	// Limited says why there are fewer options than wanted; "" otherwise. Dear reports
	// that rules and pods would leave enough of them, at higher prices.
	Limited string
	Dear    bool
	// Committed: the offers are had under a commitment, at its price. Solve does not set it.
	Committed bool
}

// Unplaced are pods that got no node.
type Unplaced struct {
	Class, Count int
	// Limit tells, per template that would host the class, which limit is in the
	// way; empty when no template allows it at all.
	Limits []LimitHit
}

// LimitHit is a pool limit that keeps a pod from a new node.
type LimitHit struct {
	Template int
	Dim      int   // index in LimitDims
	Needed   int64 // least that a node for one pod takes
	Left     int64 // what the plan leaves of the limit
}

// Bound is a certified lower bound for a part of the launches.
type Bound struct {
	Kind      BoundKind
	Templates []int
	Pods      int
	Total     int64 // micro-dollars per hour, rounded down
	// Linear is what the duals prove alone: Demand x Duals, rounded down.
	Linear int64
	// Credit is what offers that exist a counted number of times (reservations) may
	// save at these duals; Total and Linear are Demand x Duals less the credit.
	Credit int64
	// Demand and Duals by Dims, then the forced node count. A dual is in
	// micro-dollars per hour and raw unit (millicore, byte, ...).
	Demand []int64
	Duals  []float64
	// Steps are what every need is a multiple of, by Dims: capacities count rounded
	// down to them, since no node can hold an amount between two multiples.
	Steps []int64
	// Groups are the parts that BoundGroups prices apart; nil for other kinds.
	Groups []BoundGroup
	// Prices are the prices per pod that BoundContents stands on; nil otherwise.
	Prices []ClassPrice
}

// BoundGroup are the launched pods that the same rules apply to, with prices per
// resource of their own. On an offer that several groups may use, the highest of
// their prices counts, resource by resource.
type BoundGroup struct {
	Class  int // one of its classes
	Pods   int
	Demand []int64   // by Dims
	Duals  []float64 // by Dims
}

// BoundKind says how a bound is proved.
type BoundKind string

const (
	// BoundResources: no allowed offer gives resources worth more than it costs, at
	// the prices per resource in Duals.
	BoundResources BoundKind = "resources"
	// BoundShape: all pods are alike; no offer costs less per pod that fits it. The
	// price per pod is the dual of pods.
	BoundShape BoundKind = "shape"
	// BoundWholeNodes: every choice of whole nodes that costs less was searched, and
	// none has room for the demand.
	BoundWholeNodes BoundKind = "wholeNodes"
	// BoundOptimum: all pods are alike, and no set of whole nodes that holds them
	// costs less; the price per pod is as in BoundShape.
	BoundOptimum BoundKind = "optimum"
	// BoundGroups: as BoundResources, with prices apart for pods under different
	// rules (Groups): pods that may not use the cheapest offers are worth more.
	BoundGroups BoundKind = "groups"
	// BoundContents: at the prices per pod in Prices, no contents that an offer can
	// hold are worth more than the offer costs.
	BoundContents BoundKind = "contents"
)
