package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

var t0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

// launched is a record whose instance was created at noon.
func launched() Record {
	return Record{
		Claim: "web-1", UID: "uid-1", Version: 3, Phase: Launched, NodePool: "web", Created: t0, LaunchedAt: t0, Attempt: "at-1",
		Instance: Instance{ID: "i-1", Type: "m7g.large", Zone: "a", ImageID: "ami-1"},
		Spec: Spec{
			Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"a": "b"},
			Taints:        []snapshot.Taint{{Key: "web", Effect: "NoSchedule"}},
			StartupTaints: []snapshot.Taint{{Key: "cni", Effect: "NoSchedule"}},
			Requests:      snapshot.Resources{CPU: 1000, Extended: map[string]int64{"nvidia.com/gpu": 1}},
		},
	}
}

func object() *Object { return &Object{UID: "uid-1", Finalizers: []string{Finalizer}} }

func running() *InstanceSeen { return &InstanceSeen{ID: "i-1", State: "running"} }

// joined is a Node as a kubelet makes it.
func joined(taints ...snapshot.Taint) Node {
	return Node{Node: snapshot.Node{
		Name: "ip-10-0-0-1", UID: "node-1", ProviderID: "aws:///a/i-1", Taints: taints,
		Conditions:  []snapshot.Condition{{Type: "Ready", Status: "True"}},
		Allocatable: snapshot.Resources{CPU: 1930, Extended: map[string]int64{"nvidia.com/gpu": 1}},
		Capacity:    snapshot.Resources{CPU: 2000},
	}}
}

func whole(o Observation) Observation {
	o.ObjectsComplete, o.InstancesComplete, o.NodesComplete, o.PodsComplete = true, true, true, true
	return o
}

// kinds are the names of effects, in order.
func kinds(effects []Effect) []string {
	var out []string
	for _, e := range effects {
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", e), "lifecycle."))
	}
	return out
}

func expect(t *testing.T, s Step, phase Phase, reason string, effects ...string) {
	t.Helper()
	if s.Record.Phase != phase || s.Record.Reason != reason {
		t.Errorf("%s, %q (%s), want %s, %q", s.Record.Phase, s.Record.Reason, s.Record.Message, phase, reason)
	}
	if diff := cmp.Diff(effects, kinds(s.Effects)); diff != "" {
		t.Errorf("effects (-want +got)\n%s", diff)
	}
}

// TestLife follows a node from its instance to its end.
func TestLife(t *testing.T) {
	r := launched()
	s := r.Advance(whole(Observation{Object: object(), Instance: &InstanceSeen{ID: "i-1", State: "pending"}}), at(10*time.Second))
	expect(t, s, Launched, ReasonNodeNotFound)
	if !strings.Contains(s.Record.Message, "is starting") {
		t.Error(s.Record.Message)
	}
	n := joined(Unregistered, snapshot.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"})
	s = s.Record.Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}), at(40*time.Second))
	expect(t, s, Registered, ReasonNodeNotReady, "PatchNode", "Tag")
	want := PatchNode{
		Node: "ip-10-0-0-1", UID: "node-1", Finalizer: true, Owner: "uid-1", SetTaints: true,
		Labels: map[string]string{"team": "shop", LabelRegistered: "true"}, Annotations: map[string]string{"a": "b"},
		Taints: []snapshot.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}, {Key: "web", Effect: "NoSchedule"}, {Key: "cni", Effect: "NoSchedule"}},
	}
	if diff := cmp.Diff(Effect(want), s.Effects[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(s.Remarks) != 0 || s.Record.Node != "ip-10-0-0-1" || !s.Record.RegisteredAt.Equal(at(40*time.Second)) {
		t.Errorf("%+v %+v", s.Remarks, s.Record)
	}

	for _, tt := range []struct {
		reason string
		change func(*Node)
	}{
		{ReasonNodeNotReady, func(n *Node) { n.Conditions = nil }},
		{ReasonNodeNotReady, func(n *Node) { n.Conditions[0].Status = "False" }},
		{ReasonStartupTaints, func(n *Node) {
			n.Taints = append(n.Taints, snapshot.Taint{Key: "cni", Effect: "NoSchedule", Value: "x"})
		}},
		{ReasonEphemeralTaints, func(n *Node) {
			n.Taints = append(n.Taints, snapshot.Taint{Key: "readiness.k8s.io/net", Effect: "NoSchedule"})
		}},
		{ReasonEphemeralTaints, func(n *Node) { n.Taints = append(n.Taints, Unregistered) }},
		{ReasonResourceMissing, func(n *Node) { n.Allocatable.Extended = nil }},
	} {
		n := joined(snapshot.Taint{Key: "web", Effect: "NoSchedule"})
		tt.change(&n)
		expect(t, s.Record.Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}), at(time.Hour)), Registered, tt.reason)
	}
	n = joined(snapshot.Taint{Key: "web", Effect: "NoSchedule"}, snapshot.Taint{Key: "cni.example/agent-not-ready", Effect: "NoSchedule"})
	s = s.Record.Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}), at(time.Minute))
	expect(t, s, Initialized, "", "PatchNode", "Learn")
	// BC-26: a taint that nobody declared gets a hint.
	if len(s.Remarks) != 1 || s.Remarks[0].Reason != "UndeclaredTaint" || !strings.Contains(s.Remarks[0].Message, "cni.example/agent-not-ready") {
		t.Errorf("remarks %+v", s.Remarks)
	}
	if s.Record.Allocatable.CPU != 1930 {
		t.Errorf("%+v", s.Record.Allocatable)
	}
	for _, c := range s.Record.Conditions() {
		if c.Status != "True" {
			t.Errorf("condition %+v", c)
		}
	}
	expect(t, s.Record.Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}), at(time.Hour)), Initialized, "")

	// A person deletes the NodeClaim; the node has a pod for a while.
	o := object()
	o.Deleting = at(2 * time.Hour)
	s = s.Record.Advance(whole(Observation{Object: o, Instance: running(), Nodes: []Node{n}, Pods: 1}), at(2*time.Hour+time.Second))
	expect(t, s, Draining, ReasonDeleted, "PatchNode")
	if p := s.Effects[0].(PatchNode); !slices.Contains(p.Taints, Disrupted) || p.Labels[LabelExclude] == "" || len(p.Taints) != 3 {
		t.Errorf("%+v", p)
	}
	n.Taints, n.Labels = append(n.Taints, Disrupted), map[string]string{LabelExclude: "karpenter"}
	n.Finalizers = []string{Finalizer}
	expect(t, s.Record.Advance(whole(Observation{Object: o, Instance: running(), Nodes: []Node{n}, Pods: 1}), at(3*time.Hour)), Draining, ReasonDeleted)
	expect(t, s.Record.Advance(Observation{Object: o, Instance: running(), Nodes: []Node{n}}, at(3*time.Hour)), Draining, ReasonDeleted)
	expect(t, s.Record.Advance(whole(Observation{Object: o, Instance: running(), Nodes: []Node{n}, Volumes: 1}), at(3*time.Hour)), Draining, "AwaitingVolumeDetachment")
	expect(t, s.Record.Advance(whole(Observation{Object: o, Instance: running(), Nodes: []Node{n}}), at(2*time.Hour+4*time.Second)), Draining, ReasonDeleted)
	s = s.Record.Advance(whole(Observation{Object: o, Instance: running(), Nodes: []Node{n}}), at(3*time.Hour))
	expect(t, s, Terminating, ReasonDeleted, "Terminate")
	s = s.Record.Advance(whole(Observation{Object: o, Instance: running(), Nodes: []Node{n}}), at(3*time.Hour))
	expect(t, s, Terminating, ReasonDeleted, "Terminate")
	shutting := &InstanceSeen{ID: "i-1", State: "shutting-down"}
	s = s.Record.Advance(whole(Observation{Object: o, Instance: shutting, Nodes: []Node{n}}), at(3*time.Hour+5*time.Second))
	expect(t, s, Terminating, ReasonDeleted)
	ended := &InstanceSeen{ID: "i-1", State: "terminated"}
	s = s.Record.Advance(whole(Observation{Object: o, Instance: ended, Nodes: []Node{n}}), at(3*time.Hour+10*time.Second))
	expect(t, s, Terminating, ReasonDeleted, "DeleteNode", "ReleaseNode", "ReleaseObject")
	expect(t, s.Record.Advance(Observation{Instance: ended}, at(3*time.Hour+20*time.Second)), Terminating, ReasonDeleted)
	s = s.Record.Advance(whole(Observation{Instance: ended}), at(3*time.Hour+20*time.Second))
	expect(t, s, Closed, ReasonDeleted)
}

func TestRegistration(t *testing.T) {
	two := joined()
	two.Name = "another"
	s := launched().Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{joined(), two}}), at(time.Minute))
	expect(t, s, Launched, ReasonMultipleNodes)
	if c := s.Record.Conditions()[1]; c.Status != "False" || !strings.Contains(c.Message, "another, ip-10-0-0-1") {
		t.Errorf("%+v", c)
	}
	// Without the unregistered taint it goes on, and says so.
	s = launched().Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{joined()}}), at(time.Minute))
	if s.Record.Phase != Registered || len(s.Remarks) != 1 || s.Remarks[0].Reason != "UnregisteredTaintMissing" {
		t.Errorf("%+v", s)
	}
	// kubelet registered its own taints: they are not merged.
	n := joined(Unregistered)
	n.Labels = map[string]string{LabelNoTaintSync: "true"}
	s = launched().Advance(whole(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}), at(time.Minute))
	if p := s.Effects[0].(PatchNode); len(p.Taints) != 0 || !p.SetTaints {
		t.Errorf("%+v", p)
	}
	// The NodeClaim could not be created yet (a webhook is down): it is, later.
	r := launched()
	r.UID = ""
	s = r.Advance(whole(Observation{Instance: running(), Nodes: []Node{joined(Unregistered)}}), at(time.Minute))
	expect(t, s, Registered, ReasonNodeNotReady, "CreateObject", "PatchNode", "Tag")
	expect(t, r.Advance(Observation{Instance: running()}, at(time.Minute)), Launched, ReasonNodeNotFound)
}

// TestTimeouts: each stage has its own, with its own verdict.
func TestTimeouts(t *testing.T) {
	late := at(15 * time.Minute)
	tests := []struct {
		name string
		o    Observation
		says string
	}{
		{"runs and never joins", Observation{Object: object(), Instance: running()}, "access entry"},
		{"never starts", Observation{Object: object(), Instance: &InstanceSeen{ID: "i-1", State: "pending"}}, "is starting"},
		{"unknown", Observation{Object: object(), Instance: nil, InstancesComplete: false}, "no Node of instance"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := launched().Advance(tt.o, late.Add(-time.Second))
			expect(t, s, Launched, ReasonNodeNotFound)
			s = launched().Advance(tt.o, late)
			expect(t, s, Terminating, ReasonRegisterTimeout)
			if s.Record.Failure == nil || !strings.Contains(s.Record.Failure.Message, tt.says) {
				t.Errorf("failure %+v", s.Record.Failure)
			}
		})
	}
	r := launched()
	r.Phase, r.Instance, r.LaunchedAt, r.Attempt = Intended, Instance{}, time.Time{}, ""
	r.Message = "InsufficientInstanceCapacity for m7g.large in a (spot)"
	expect(t, r.Advance(whole(Observation{Object: object()}), at(5*time.Minute-1)), Intended, "")
	s := r.Advance(whole(Observation{Object: object()}), at(5*time.Minute))
	expect(t, s, Terminating, ReasonLaunchTimeout)
	if !strings.Contains(s.Record.Failure.Message, "InsufficientInstanceCapacity") {
		t.Error(s.Record.Failure.Message)
	}
	r.Phase, r.Attempt = Launching, "at-1"
	s = r.Advance(whole(Observation{Object: object()}), at(time.Hour))
	if s.Record.Phase != Launching || len(s.Remarks) != 1 {
		t.Errorf("an attempt under way was forgotten: %+v", s)
	}
}

// TestNotHeardOf is BC-27: EC2 does not show an instance it has just created.
func TestNotHeardOf(t *testing.T) {
	r := launched()
	for _, d := range []time.Duration{3, 13, 60, 120, 290} {
		s := r.Advance(whole(Observation{Object: object()}), at(d*time.Second))
		expect(t, s, Launched, ReasonNodeNotFound)
		r = s.Record
	}
	s := r.Advance(whole(Observation{Object: object(), Instance: &InstanceSeen{ID: "i-1", State: "pending"}}), at(295*time.Second))
	expect(t, s, Launched, ReasonNodeNotFound)
	if s.Record.InstanceGone.Count != 0 {
		t.Error("it is there again, and still counts as missing")
	}
	// After the grace one answer is not enough, nor one that is incomplete.
	s = s.Record.Advance(Observation{Object: object()}, at(301*time.Second))
	s = s.Record.Advance(whole(Observation{Object: object()}), at(302*time.Second))
	expect(t, s, Launched, ReasonNodeNotFound)
	s = s.Record.Advance(whole(Observation{Object: object()}), at(303*time.Second))
	expect(t, s, Launched, ReasonNodeNotFound)
	ready := s.Record.Advance(whole(Observation{Object: object(), Nodes: []Node{joined(Unregistered)}}), at(320*time.Second))
	expect(t, ready, Registered, ReasonNodeNotReady, "PatchNode", "Tag")
	s = s.Record.Advance(whole(Observation{Object: object()}), at(320*time.Second))
	expect(t, s, Terminating, ReasonInstanceGone)
}

// TestDeletedByAPerson: absence is believed when two complete lists show it.
func TestDeletedByAPerson(t *testing.T) {
	r := launched()
	r.Phase, r.Node, r.RegisteredAt, r.InitializedAt, r.Tagged = Initialized, "n", t0, t0, true
	n := joined()
	o := Observation{Instance: running(), Nodes: []Node{n}, NodesComplete: true, InstancesComplete: true}
	for i := range 5 {
		s := r.Advance(o, at(time.Duration(i)*time.Minute)) // the list of objects failed
		expect(t, s, Initialized, "")
		r = s.Record
	}
	o.ObjectsComplete = true
	s := r.Advance(o, at(time.Hour))
	expect(t, s, Initialized, "")
	there := o
	there.Object = object()
	s = s.Record.Advance(there, at(time.Hour+time.Minute))
	s = s.Record.Advance(o, at(time.Hour+2*time.Minute))
	expect(t, s, Initialized, "")
	s = s.Record.Advance(o, at(time.Hour+3*time.Minute))
	expect(t, s, Draining, ReasonDeleted, "PatchNode")
	// Another object of the name, with another UID, is not ours.
	r.ObjectGone = Absence{}
	o.Object = &Object{UID: "uid-2", Deleting: t0}
	expect(t, r.Advance(o, at(time.Hour)), Initialized, "")
	// The Node is deleted.
	n.Deleting = at(time.Minute)
	s = r.Advance(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}, at(time.Hour))
	expect(t, s, Draining, ReasonDeleted, "PatchNode")
	s = s.Record.Advance(Observation{Object: object(), Instance: running(), Nodes: []Node{n}}, at(time.Hour))
	expect(t, s, Draining, ReasonDeleted, "PatchNode", "DeleteObject")
}

// TestDeadlines: the earliest deadline holds, and ends what does not drain.
func TestDeadlines(t *testing.T) {
	r := launched()
	r.Phase, r.Node, r.RegisteredAt, r.InitializedAt, r.Tagged = Initialized, "n", t0, t0, true
	r.Spec.TerminationGracePeriod = "1h"
	o := object()
	o.Deleting = at(time.Hour)
	stuck := whole(Observation{Object: o, Instance: running(), Nodes: []Node{joined()}, Pods: 1})
	s := r.Advance(stuck, at(time.Hour+time.Second))
	if s.Record.Phase != Draining || !s.Record.Deadline.Equal(at(2*time.Hour)) {
		t.Errorf("%s, deadline %s", s.Record.Phase, s.Record.Deadline)
	}
	drained := s.Record
	s = drained.Advance(stuck, at(2*time.Hour-1))
	if s.Record.Phase != Draining {
		t.Error("ended before its deadline")
	}
	s = drained.Advance(stuck, at(2*time.Hour))
	expect(t, s, Terminating, "TerminationGracePeriodElapsed", "PatchNode", "Terminate")
	o.Annotations = map[string]string{AnnotationEnd: at(90 * time.Minute).Format(time.RFC3339)}
	if s := drained.Advance(stuck, at(80*time.Minute)); !s.Record.Deadline.Equal(at(90 * time.Minute)) {
		t.Errorf("deadline %s", s.Record.Deadline)
	}
	drained.Doomed = &Doom{Deadline: at(81 * time.Minute)}
	if s := drained.Advance(stuck, at(80*time.Minute)); !s.Record.Deadline.Equal(at(81 * time.Minute)) {
		t.Errorf("deadline %s", s.Record.Deadline)
	}
}

// TestDeletedWhileLaunching: the record outlives the question what its attempt brought.
func TestDeletedWhileLaunching(t *testing.T) {
	r := launched()
	r.Phase, r.Instance, r.LaunchedAt = Launching, Instance{}, time.Time{}
	o := object()
	o.Deleting = at(10 * time.Second)
	s := r.Advance(whole(Observation{Object: o}), at(20*time.Second))
	expect(t, s, Terminating, ReasonDeleted)
	s = s.Record.Advance(whole(Observation{Object: o}), at(time.Hour))
	expect(t, s, Terminating, ReasonDeleted)
	a := Attempt{ID: "at-1", Claims: []string{"web-1"}, Created: t0}
	next, orphan := s.Record.Settle(a, Instance{ID: "i-9"}, Known{}, at(time.Hour))
	if next == nil || orphan || next.Phase != Terminating || next.Instance.ID != "i-9" {
		t.Fatalf("%+v %v", next, orphan)
	}
	expect(t, next.Advance(whole(Observation{Object: o}), at(time.Hour)), Terminating, ReasonDeleted, "Terminate")
	// And if it brought nothing, there is nothing to wait for.
	next, _ = s.Record.Settle(a, Instance{}, Known{}, at(time.Hour))
	expect(t, next.Advance(whole(Observation{Object: o}), at(time.Hour)), Terminating, ReasonDeleted, "ReleaseObject")
	expect(t, next.Advance(whole(Observation{}), at(time.Hour)), Closed, ReasonDeleted)
}
