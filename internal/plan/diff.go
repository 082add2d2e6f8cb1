package plan

import "kerf.sh/kerf/internal/snapshot"

// ChangeKind says what an overlay does to an object.
type ChangeKind string

// Kinds of changes.
const (
	Added     ChangeKind = "Added"
	Replaced  ChangeKind = "Replaced"
	Unchanged ChangeKind = "Unchanged" // replaced by one that says the same
	Removed   ChangeKind = "Removed"
	Going     ChangeKind = "Going"   // a node: it is there until its pods have left
	Staying   ChangeKind = "Staying" // a node that was going and is not any more
)

// Change is one object that an overlay (--what-if, --remove) changes.
type Change struct {
	Object string // nodepool/general, pod/shop/web-1
	Kind   ChangeKind
	// With are the objects that go with one that is removed, sorted.
	With []string
	Note string // what became of the pods of a workload; "" otherwise
}

// Diff is what differs between two plans. Of a plan with itself it is empty but for
// its sides.
type Diff struct {
	// Changes are what the second plan was made on and the first was not; whoever made
	// the two snapshots adds them.
	Changes       []Change
	Before, After Side
	Launches      []LaunchDiff
	Nodes         []NodeDiff
	Pods          []PodDiff
	// Warnings are those of the second plan that the first does not have.
	Warnings []Warning
	// Explained is what the first plan says of the object that was asked about.
	Explained *Explanation
}

// Side is one of the two plans in numbers.
type Side struct {
	ID       string
	Complete bool
	Summary  Summary
	// Going counts the nodes that are being deleted, Held those of them that pods keep
	// which may not be moved. GoingPrice is what the others cost.
	Going, Held int
	GoingPrice  snapshot.Price
}

// Settled is the price per hour once the launches are there and the nodes that can go
// are gone.
func (s *Side) Settled() snapshot.Price { return s.Summary.PriceAfter - s.GoingPrice }

// LaunchDiff is an offer of which the plans launch different numbers of nodes.
type LaunchDiff struct {
	NodePool      string
	Offer         Offer
	Before, After int
}

// Delta is what the launches cost more per hour.
func (l *LaunchDiff) Delta() snapshot.Price { return int64(l.After-l.Before) * l.Offer.Price }

// NodeDiff is a node that one plan has and the other has not, or that is going in one
// of them alone. Kind is Added, Removed, Going or Staying.
type NodeDiff struct {
	Kind ChangeKind
	Node NodeUse
	// Blockers are the pods that may not be moved off a node that is going, sorted.
	Blockers []string
	// Sign is 1 where the node is one more in the end, -1 where it is one fewer, else 0:
	// it is going and its pods keep it.
	Sign int
}

// Delta writes what the node makes of the price per hour.
func (n *NodeDiff) Delta() string {
	switch {
	case !n.Node.PriceKnown:
		return "price unknown"
	case n.Sign == 0:
		return Dollars(n.Node.Price) + " kept"
	}
	return Signed(int64(n.Sign) * n.Node.Price)
}

// FateState says where a plan has a pod.
type FateState string

// States of a pod in a plan.
const (
	Absent       FateState = "Absent" // it does not exist
	Running      FateState = "Running"
	NewNode      FateState = "NewNode"
	ExistingNode FateState = "ExistingNode" // planned onto one that is there or on its way
	CannotRun    FateState = "CannotRun"
	NotPlanned   FateState = "NotPlanned" // left alone, on purpose
)

// Fate is what a plan has for a pod.
type Fate struct {
	State FateState
	// Node is where it runs or goes; of a new node the name that the plan gives it,
	// which means nothing in another plan.
	Node     string
	NodePool string // of a new node
	Offer    Offer  // of a new node
	Code     Code   // of a verdict
	Detail   string
	// Telling is the code of the nearest pool where the verdict itself only sums up.
	Telling Code
	// From is the node that the pod has to leave.
	From string
}

// same reports whether two fates differ in nothing that matters: new nodes are told
// apart by what they are, not by their names, and a no by its reason, not its figures.
func (f *Fate) same(o *Fate) bool {
	if f.State != o.State {
		return false
	}
	switch f.State {
	case NewNode:
		return f.NodePool == o.NodePool && f.Offer == o.Offer
	case CannotRun, NotPlanned:
		return f.Telling == o.Telling
	}
	return f.Node == o.Node
}

// PodChange says what the difference means for a pod.
type PodChange string

// Changes of a pod, the gravest first.
const (
	BecomesUnschedulable PodChange = "BecomesUnschedulable" // it loses the place that it has or was to get
	Blocked              PodChange = "Blocked"              // it has to leave its node and may not
	BecomesSchedulable   PodChange = "BecomesSchedulable"
	Moves                PodChange = "Moves" // it runs, and has to go elsewhere
	Stays                PodChange = "Stays" // it had to go elsewhere, and may stay
	PlannedElsewhere     PodChange = "PlannedElsewhere"
	OtherReason          PodChange = "OtherReason"
	PodAdded             PodChange = "Added"
	PodRemoved           PodChange = "Removed"
)

// PodDiff is a pod that the plans treat differently.
type PodDiff struct {
	Pod           string // namespace/name
	Workload      string
	Requests      snapshot.Resources
	Change        PodChange
	Before, After Fate
}

// Empty reports whether the plans come to the same.
func (d *Diff) Empty() bool {
	return len(d.Launches)+len(d.Nodes)+len(d.Pods) == 0 && d.PriceDelta() == 0 && d.Before.Summary == d.After.Summary
}

// PriceDelta is what everything costs more per hour with the second plan, once it is
// carried out.
func (d *Diff) PriceDelta() snapshot.Price { return d.After.Settled() - d.Before.Settled() }

// Count is the number of pods with a change.
func (d *Diff) Count(c PodChange) int {
	n := 0
	for i := range d.Pods {
		if d.Pods[i].Change == c {
			n++
		}
	}
	return n
}
