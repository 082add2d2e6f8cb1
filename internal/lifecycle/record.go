package lifecycle

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Phase is how far a node has come.
type Phase string

// The phases, in their order.
const (
	// Intended: the node is wanted and its limits are reserved; nothing was asked of EC2.
	Intended Phase = "Intended"
	// Launching: an attempt for it is under way, or its outcome is not known yet.
	Launching Phase = "Launching"
	// Launched: there is an instance; its Node has not been seen.
	Launched Phase = "Launched"
	// Registered: the Node is there and carries what it should.
	Registered Phase = "Registered"
	// Initialized: the Node may be counted on, and is judged by what it reports itself.
	Initialized Phase = "Initialized"
	// Draining: the node is to go, its pods are leaving.
	Draining Phase = "Draining"
	// Terminating: nothing is waited for any more but the end of the instance.
	Terminating Phase = "Terminating"
	// Closed: nothing of the node is left. Closed records are kept apart, for a while.
	Closed Phase = "Closed"
)

// phases gives the order; a record never goes back but from Launching to Intended.
var phases = []Phase{Intended, Launching, Launched, Registered, Initialized, Draining, Terminating, Closed}

// Before reports whether p comes before o. An unknown phase comes before all.
func (p Phase) Before(o Phase) bool { return p.order() < o.order() }

func (p Phase) order() int {
	for i, q := range phases {
		if p == q {
			return i
		}
	}
	return -1
}

// Live reports whether the node is wanted: it is there or coming, and not on its way out.
func (p Phase) Live() bool { return p.order() >= 0 && p.Before(Draining) }

// Record is what is remembered of one node. The name of its NodeClaim is its key.
type Record struct {
	Claim string `json:"claim"`
	// UID is that of the NodeClaim object, "" until it was created.
	UID string `json:"uid,omitempty"`
	// Version counts the writes; every write is conditional on the one before.
	Version int64 `json:"version"`
	Phase   Phase `json:"phase"`
	// Since is when the phase began, from Registered on.
	Since time.Time `json:"since,omitzero"`
	// Reason and Message say what the node waits for, or why it goes: the reason of the
	// NodeClaim's condition that is not True yet.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	NodePool string `json:"nodePool,omitempty"`
	Spec     Spec   `json:"spec"`
	// PlanID and Fence say which plan wanted the node, committed by which holder of the
	// planner's lease. Adopted: it was there before Kerf was.
	PlanID  string `json:"planId,omitempty"`
	Fence   int64  `json:"fence,omitempty"`
	Adopted bool   `json:"adopted,omitempty"`

	// Attempt is the attempt under way or, from Launched on, the one that brought the
	// instance. Tries counts the attempts.
	Attempt string `json:"attempt,omitempty"`
	Tries   int    `json:"tries,omitempty"`
	// Reserved is what the node takes from its pool's limits: the maximum over what it may
	// become until the instance is known, then what it is.
	Reserved Usage `json:"reserved,omitempty"`
	// Allocatable is what pods can have on it: the minimum over what it may become, then
	// that of its type, then what the Node reports.
	Allocatable snapshot.Resources `json:"allocatable"`
	Capacity    snapshot.Resources `json:"capacity"`
	// Shape is that of its class when it was launched (Shape): what the node turns out to
	// have is learned under it. "" = not known, then nothing is learned.
	Shape    string   `json:"shape,omitempty"`
	Instance Instance `json:"instance"`
	Node     string   `json:"node,omitempty"`
	NodeUID  string   `json:"nodeUid,omitempty"`

	// Nominated are the pods that the node was made for, until they are bound.
	Nominated []Pod `json:"nominated,omitempty"`

	Created       time.Time `json:"created,omitzero"`
	LaunchedAt    time.Time `json:"launchedAt,omitzero"`
	RegisteredAt  time.Time `json:"registeredAt,omitzero"`
	InitializedAt time.Time `json:"initializedAt,omitzero"`
	// DeletingSince is when the node was first to go; Deadline is when it goes whatever is
	// left on it (terminationGracePeriod, an interruption), zero = never by force.
	DeletingSince time.Time `json:"deletingSince,omitzero"`
	Deadline      time.Time `json:"deadline,omitzero"`
	// DrainedAt is when its last pod had left, DetachedAt when its last volume had.
	DrainedAt  time.Time `json:"drainedAt,omitzero"`
	DetachedAt time.Time `json:"detachedAt,omitzero"`
	// Blocked names what keeps its pods from leaving, "" = nothing does, or not for long.
	Blocked  string    `json:"blocked,omitempty"`
	ClosedAt time.Time `json:"closedAt,omitzero"`

	// Doomed is set when EC2 said that the instance will go.
	Doomed *Doom `json:"doomed,omitempty"`
	// Relief is what the plan after that has for its pods.
	Relief *Relief `json:"relief,omitempty"`
	// Failure is why the node never became useful; nil when it did, or may.
	Failure *Failure `json:"failure,omitempty"`

	// Step numbers the messages about this node: one with another number is late, or a
	// duplicate. NextAt is when the next step is due, zero = when something happens.
	Step   int64     `json:"step,omitempty"`
	NextAt time.Time `json:"nextAt,omitzero"`

	// ObjectGone and InstanceGone count the readings in a row that were complete and did
	// not show the NodeClaim, or the instance: absence is believed when it is repeated.
	ObjectGone   Absence `json:"objectGone"`
	InstanceGone Absence `json:"instanceGone"`
	// NodeGone counts them for the Node, once it has joined.
	NodeGone Absence `json:"nodeGone"`
	// Tagged: the instance has got the tags of a registered node.
	Tagged bool `json:"tagged,omitempty"`
	// Shown says what its NodeClaim was last made to say of it: a hash, "" = nothing yet.
	Shown string `json:"shown,omitempty"`
}

// Absence counts complete readings in a row that did not show something.
type Absence struct {
	Count int       `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Seen returns the absence after another complete reading.
func (a Absence) Seen(there bool, now time.Time) Absence {
	if there {
		return Absence{}
	}
	if a.Count == 0 {
		a.Since = now
	}
	a.Count++
	return a
}

// Spec is the immutable part of a NodeClaim.
type Spec struct {
	Labels        map[string]string              `json:"labels,omitempty"`
	Annotations   map[string]string              `json:"annotations,omitempty"`
	Requirements  []snapshot.SelectorRequirement `json:"requirements,omitempty"`
	Taints        []snapshot.Taint               `json:"taints,omitempty"`
	StartupTaints []snapshot.Taint               `json:"startupTaints,omitempty"`
	Requests      snapshot.Resources             `json:"requests"`
	ClassRef      snapshot.ClassRef              `json:"classRef"`
	ExpireAfter   string                         `json:"expireAfter,omitempty"`
	// TerminationGracePeriod is "" when unlimited.
	TerminationGracePeriod string `json:"terminationGracePeriod,omitempty"`
}

// Instance is what EC2 gave.
type Instance struct {
	ID            string         `json:"id,omitempty"` // "" = none yet
	Type          string         `json:"type,omitempty"`
	Zone          string         `json:"zone,omitempty"`
	CapacityType  string         `json:"capacityType,omitempty"`
	ReservationID string         `json:"reservationId,omitempty"`
	ImageID       string         `json:"imageId,omitempty"`
	Price         snapshot.Price `json:"price,omitempty"`
	LaunchedAt    time.Time      `json:"launchedAt,omitzero"`
}

// ProviderID is as the Node carries it: aws:///zone/id; "" without an instance.
func (i Instance) ProviderID() string {
	if i.ID == "" {
		return ""
	}
	return "aws:///" + i.Zone + "/" + i.ID
}

// Pod is a pod that a node was made for.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Since is when it was nominated, At when that was last renewed.
	Since time.Time `json:"since,omitzero"`
	At    time.Time `json:"at,omitzero"`
}

// Doom is the notice that an instance goes.
type Doom struct {
	// Reason is SpotInterrupted, ScheduledChange, InstanceStopped, InstanceTerminated, ...
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Deadline is when EC2 takes the instance; zero = not said.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Failure is why a node never became useful.
type Failure struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}
