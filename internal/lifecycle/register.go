package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// register waits for the Node of an instance and gives it what the NodeClaim says
// (Karpenter: exactly one Node with the provider id; labels, annotations, taints and
// startup taints merged, then the unregistered taint removed, in one write).
func (s *step) register() {
	r := &s.Record
	switch {
	case len(s.o.Nodes) > 1:
		s.several()
		s.overdue()
		return
	case len(s.o.Nodes) == 0:
		s.reason(ReasonNodeNotFound, s.notJoined())
		s.overdue()
		return
	}
	n := s.o.Nodes[0]
	s.do(s.sync(n))
	if !r.Tagged {
		s.do(Tag{r.Instance.ID, r.Claim, n.Name})
		r.Tagged = true
	}
	r.Node, r.NodeUID, r.RegisteredAt = n.Name, n.UID, s.now
	// What it waits for first is mostly known already, and then said once.
	s.reason(ReasonNodeNotReady, "the Node has joined")
	if reason, message := r.uninitialized(n); reason == ReasonNodeNotReady {
		s.reason(reason, message)
	}
	s.enter(Registered)
}

// several says that more than one Node has the provider id.
func (s *step) several() {
	names := make([]string, len(s.o.Nodes))
	for i, n := range s.o.Nodes {
		names[i] = n.Name
	}
	slices.Sort(names)
	s.reason(ReasonMultipleNodes, fmt.Sprintf("%d Nodes say they are %s: %s", len(names), s.Record.Instance.ID, strings.Join(names, ", ")))
}

// notJoined says what keeps a Node from appearing, as far as one can tell.
func (s *step) notJoined() string {
	id := s.Record.Instance.ID
	switch i := s.o.Instance; {
	case i == nil && s.o.InstancesComplete:
		return "EC2 does not show instance " + id + " yet"
	case i == nil:
		return "no Node of instance " + id + " has been seen"
	case i.State == "pending":
		return "instance " + id + " is starting"
	default:
		return "instance " + id + " runs and no Node has joined: look at its console output; common causes are a node role without access entry, no route to the API server, and user data that fails"
	}
}

// overdue gives a node up that did not register in time.
func (s *step) overdue() {
	r := &s.Record
	if age := s.now.Sub(r.LaunchedAt); age < RegisterTimeout {
		s.wait(pollFast)
		return
	}
	r.Failure = &Failure{ReasonRegisterTimeout, "not registered after " + RegisterTimeout.String() + ": " + r.Message, s.now}
	s.fail(ReasonRegisterTimeout)
}

// sync is the write that registers a Node.
func (s *step) sync(n Node) PatchNode {
	r := &s.Record
	p := PatchNode{
		Node: n.Name, UID: n.UID, Finalizer: true, Owner: r.UID,
		Labels: maps.Clone(r.Spec.Labels), Annotations: maps.Clone(r.Spec.Annotations), SetTaints: true,
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[LabelRegistered] = "true"
	found := false
	for _, t := range n.Taints {
		if same(t, Unregistered) {
			found = true
			continue
		}
		p.Taints = append(p.Taints, t)
	}
	if !found {
		s.remark("UnregisteredTaintMissing", "node "+n.Name+" joined without the taint karpenter.sh/unregistered:NoExecute, so pods may have come before its labels and taints did: add the taint to the user data")
	}
	// One that carries the label was registered already, and only the record does not know:
	// startup taints that went since must not come back.
	if n.Labels[LabelNoTaintSync] != "true" && n.Labels[LabelRegistered] != "true" {
		for _, t := range slices.Concat(r.Spec.Taints, r.Spec.StartupTaints) {
			if !slices.ContainsFunc(p.Taints, func(o snapshot.Taint) bool { return same(t, o) }) {
				p.Taints = append(p.Taints, t)
			}
		}
	}
	return p
}

// same reports whether two taints are one: by key and effect.
func same(a, b snapshot.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

// Ephemeral reports whether a taint goes by itself while a node starts (Karpenter's known
// ephemeral taints).
func Ephemeral(t snapshot.Taint) bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready":
		return t.Effect == "NoSchedule" || t.Effect == "NoExecute"
	case "node.kubernetes.io/unreachable":
		return t.Effect == "NoSchedule"
	case "node.cloudprovider.kubernetes.io/uninitialized":
		return t.Effect == "NoSchedule" && t.Value == "true"
	case Unregistered.Key:
		return t.Effect == Unregistered.Effect
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// initialize waits until a Node can be counted on (Karpenter: Ready, no startup taint, no
// ephemeral taint, every requested resource registered; without a timeout).
func (s *step) initialize() {
	r := &s.Record
	if len(s.o.Nodes) != 1 {
		if len(s.o.Nodes) > 1 {
			s.several()
		} else if s.o.NodesComplete {
			s.reason(ReasonNodeNotFound, "the Node is not there any more")
		}
		s.wait(pollFast)
		return
	}
	n := s.o.Nodes[0]
	if reason, message := r.uninitialized(n); reason != "" {
		s.reason(reason, message)
		s.wait(pollFast)
		return
	}
	s.do(PatchNode{Node: n.Name, UID: n.UID, Labels: map[string]string{LabelInitialized: "true"}})
	if r.Instance.Type != "" {
		s.do(Learn{r.Instance.Type, r.Instance.ImageID, n.Capacity, n.Allocatable})
	}
	for _, t := range n.Taints {
		if t.Effect != "PreferNoSchedule" && !slices.ContainsFunc(r.Spec.Taints, func(o snapshot.Taint) bool { return same(t, o) }) {
			s.remark("UndeclaredTaint", fmt.Sprintf("node %s carries the taint %s:%s, which NodePool %s does not know: if it goes by itself, declare it in startupTaints", n.Name, t.Key, t.Effect, r.NodePool))
		}
	}
	r.Allocatable, r.Capacity, r.InitializedAt = n.Allocatable, n.Capacity, s.now
	s.reason("", "")
	s.enter(Initialized)
	if r.Tagged {
		r.NextAt = time.Time{} // nothing is left to do until something happens
	}
}

// uninitialized says what a Node still lacks, "" when nothing.
func (r Record) uninitialized(n Node) (reason, message string) {
	if c := snapshot.FindCondition(n.Conditions, "Ready"); c == nil || c.Status != "True" {
		message = "the Node does not report itself Ready"
		if c != nil && c.Message != "" {
			message += ": " + c.Message
		}
		return ReasonNodeNotReady, message
	}
	for _, t := range n.Taints {
		if slices.ContainsFunc(r.Spec.StartupTaints, func(o snapshot.Taint) bool { return same(t, o) }) {
			return ReasonStartupTaints, "startup taint " + t.Key + ":" + t.Effect + " is still there"
		}
	}
	for _, t := range n.Taints {
		if Ephemeral(t) {
			return ReasonEphemeralTaints, "taint " + t.Key + ":" + t.Effect + " is still there"
		}
	}
	for _, name := range r.Spec.Requests.Names() {
		if n.Allocatable.Get(name) == 0 {
			return ReasonResourceMissing, "resource " + name + " is requested and the Node has none yet: is its device plugin running?"
		}
	}
	return "", ""
}
