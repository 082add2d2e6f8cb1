package lifecycle

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Labels, taints and the finalizer that mark how far a node is (Karpenter's).
const (
	LabelRegistered  = "karpenter.sh/registered"
	LabelInitialized = "karpenter.sh/initialized"
	LabelNoTaintSync = "karpenter.sh/do-not-sync-taints"
	LabelExclude     = "node.kubernetes.io/exclude-from-external-load-balancers"
	Finalizer        = "karpenter.sh/termination"
	AnnotationEnd    = "karpenter.sh/nodeclaim-termination-timestamp"
)

// The taints that Karpenter uses.
var (
	Unregistered = snapshot.Taint{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}
	Disrupted    = snapshot.Taint{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}
)

// How long absence takes to be believed, and how often is looked.
const (
	// InstanceGrace is the age below which EC2 may not have heard of an instance yet.
	InstanceGrace = 5 * time.Minute
	// GoneCount and GoneFor: an object or instance is gone when so many complete readings
	// in a row, over so long, did not show it.
	GoneCount = 2
	GoneFor   = 10 * time.Second
	// NodeGoneFor is the same for a Node: a kubelet that starts again brings its own back.
	NodeGoneFor = time.Minute
	// pollFast and pollSlow are the times between looks while a node joins, or ends, and
	// while it waits for its pods.
	pollFast = 5 * time.Second
	pollSlow = 30 * time.Second
	// DrainMin is how long a node drains at least: its taint has to be seen.
	DrainMin = 5 * time.Second
)

// Gone reports whether the absence is believed.
func (a Absence) Gone(now time.Time) bool {
	return a.Count >= GoneCount && now.Sub(a.Since) >= GoneFor
}

// Object is a NodeClaim object as it was read.
type Object struct {
	UID         string
	Deleting    time.Time // zero = it is not
	Annotations map[string]string
	Finalizers  []string
}

// InstanceSeen is an instance as EC2 shows it.
type InstanceSeen struct {
	ID    string
	State string // pending, running, shutting-down, terminated, stopping, stopped
	// ImageID is what it booted; "" = not said.
	ImageID string
}

// Observation is what was read about one record. A list that was not read, or not to its
// end, says nothing about what it does not show.
type Observation struct {
	Object          *Object
	ObjectsComplete bool
	// PoolGone: the list of NodePools is whole and does not show the record's. A node whose
	// NodeClaim could not be made yet goes with it, as NodeClaims do.
	PoolGone bool

	Instance          *InstanceSeen
	InstancesComplete bool

	// Nodes are those with the record's provider id.
	Nodes         []Node
	NodesComplete bool

	// Pods are the pods on the node that have to leave before it ends, Volumes the
	// attachments that are waited for; PodsComplete says that both are known.
	Pods, Volumes int
	PodsComplete  bool
}

// Node is a Node object with what registration needs besides what a plan does.
type Node struct {
	snapshot.Node
	Finalizers []string
}

// Effect is something to be done. The set is closed; doing one twice is doing it once.
type Effect interface{ effect() }

type (
	// CreateObject creates the NodeClaim of the record, with the finalizer. The UID that it
	// gets goes into the record; one that is there already is taken as it is.
	CreateObject struct{ Claim string }
	// DeleteObject deletes the NodeClaim; its finalizer keeps it until the end.
	DeleteObject struct{ Claim, UID string }
	// ReleaseObject takes the finalizer off the NodeClaim.
	ReleaseObject struct{ Claim, UID string }
	// PatchNode merges labels and annotations into a Node, replaces its taints unless they
	// are nil, and adds the finalizer and the NodeClaim as owner where asked for.
	PatchNode struct {
		Node, UID           string
		Labels, Annotations map[string]string
		Taints              []snapshot.Taint
		SetTaints           bool
		Finalizer           bool
		Owner               string // UID of the NodeClaim; "" = none
	}
	// DeleteNode deletes the Node; its finalizer keeps it until the end.
	DeleteNode struct{ Node, UID string }
	// ReleaseNode takes the finalizer off the Node.
	ReleaseNode struct{ Node, UID string }
	// Tag gives the instance the tags of a registered node, where they are not there yet.
	Tag struct{ Instance, Claim, Node string }
	// Terminate ends the instance.
	Terminate struct{ Instance string }
	// Learn remembers what the node has.
	Learn struct {
		InstanceType, ImageID string
		Capacity, Allocatable snapshot.Resources
	}
)

func (CreateObject) effect()  {}
func (DeleteObject) effect()  {}
func (ReleaseObject) effect() {}
func (PatchNode) effect()     {}
func (DeleteNode) effect()    {}
func (ReleaseNode) effect()   {}
func (Tag) effect()           {}
func (Terminate) effect()     {}
func (Learn) effect()         {}

// Remark is what a step has to say: for Events, reports and logs.
type Remark struct{ Reason, Message string }

// Step is the outcome of Advance. Effects are done in order, then the record is saved over
// the version that was read. If one cannot be done, nothing is saved: the same observation
// gives the same step again.
type Step struct {
	Record  Record
	Effects []Effect
	Remarks []Remark
	// Changed: the record has to be saved.
	Changed bool
}

// Advance is the state machine of a node, but for launching, which is that of its attempt,
// and for the eviction of pods. One call is one step; what follows from it comes with the
// next observation.
func (r Record) Advance(o Observation, now time.Time) Step {
	s := &step{Step: Step{Record: r}, was: r, o: o, now: now}
	s.absences()
	if r.Phase.Live() && s.Record.UID == "" && s.o.ObjectsComplete {
		// Tried whenever it is missing, and never waited for: an admission webhook may need
		// the very node.
		s.do(CreateObject{r.Claim})
	}
	switch {
	case r.Phase == Closed:
	case r.Phase.Live() && s.startRemoval():
	case r.Phase == Intended || r.Phase == Launching:
		s.launching()
	case r.Phase == Launched:
		s.register()
	case r.Phase == Registered:
		s.initialize()
	case r.Phase == Initialized:
		s.keep()
	case r.Phase == Draining:
		s.drain()
	case r.Phase == Terminating:
		s.terminate()
	}
	s.Changed = changed(s.was, s.Record)
	return s.Step
}

type step struct {
	Step
	was Record
	o   Observation
	now time.Time
}

func (s *step) do(e Effect)                   { s.Effects = append(s.Effects, e) }
func (s *step) remark(reason, message string) { s.Remarks = append(s.Remarks, Remark{reason, message}) }
func (s *step) wait(d time.Duration)          { s.Record.NextAt = s.now.Add(d) }
func (s *step) reason(reason, message string) { s.Record.Reason, s.Record.Message = reason, message }
func (s *step) enter(p Phase) {
	s.Record.Phase, s.Record.Since, s.Record.NextAt = p, s.now, s.now
	s.Record.Step++
}

// absences counts what complete readings do not show, and adopts the UID of an object
// that is there. An object whose UID is another is not the record's.
func (s *step) absences() {
	r := &s.Record
	if o := s.o.Object; o != nil && r.UID == "" {
		r.UID = o.UID
	}
	there := s.o.Object != nil && s.o.Object.UID == r.UID
	if r.UID != "" && (there || s.o.ObjectsComplete) {
		r.ObjectGone = r.ObjectGone.Seen(there, s.now)
	}
	if r.UID == "" {
		r.ObjectGone = r.ObjectGone.Seen(!s.o.PoolGone, s.now)
	}
	if r.Instance.ID == "" {
		return
	}
	if r.Node != "" && (len(s.o.Nodes) > 0 || s.o.NodesComplete) {
		r.NodeGone = r.NodeGone.Seen(len(s.o.Nodes) > 0, s.now)
	}
	there = s.o.Instance != nil && s.o.Instance.ID == r.Instance.ID
	if there && r.Instance.ImageID == "" {
		r.Instance.ImageID = s.o.Instance.ImageID // the outcome did not say
	}
	// While it is young, EC2 may not have heard of it: that says nothing, later either.
	if there || s.o.InstancesComplete && s.now.Sub(r.LaunchedAt) >= InstanceGrace {
		r.InstanceGone = r.InstanceGone.Seen(there, s.now)
	}
}

// launching waits for an attempt. An intent that gets none in time is cancelled; one whose
// attempt is under way is not touched before its outcome is known.
func (s *step) launching() {
	r := &s.Record
	late := s.now.Sub(r.Created) >= LaunchTimeout
	switch {
	case late && r.Phase == Intended && r.Attempt == "":
		r.Failure = &Failure{ReasonLaunchTimeout, "no instance after " + LaunchTimeout.String() + ": " + text(r.Message, "nothing was asked of EC2"), s.now}
		s.fail(ReasonLaunchTimeout)
	case late:
		s.remark(ReasonLaunchTimeout, "no instance after "+LaunchTimeout.String()+"; the outcome of attempt "+r.Attempt+" is not known yet")
		fallthrough
	default:
		s.wait(pollSlow)
	}
}

// fail gives a node up that never became useful.
func (s *step) fail(reason string) {
	s.Record.DeletingSince = s.now
	s.reason(reason, s.Record.Failure.Message)
	s.remark(reason, s.Record.Failure.Message)
	s.enter(Terminating)
}

// keep looks after a node that is in use: nothing is to be done.
func (s *step) keep() {
	if r := &s.Record; !r.Tagged && r.Node != "" && r.Instance.ID != "" {
		s.do(Tag{r.Instance.ID, r.Claim, r.Node})
		r.Tagged = true
	}
	s.Record.NextAt = time.Time{}
}

func text(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
