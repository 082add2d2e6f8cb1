package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// world is the truth about one node: what observations are drawn from.
type world struct {
	now      time.Time
	object   *Object
	instance *InstanceSeen
	born     time.Time
	node     *Node
	pods     int
	never    bool   // the kubelet never joins
	cause    string // why the node may be ended; "" = it may not
	uids     int
	known    string // the UID that the record has
}

// observe reads the world, in part, late, and as EC2 shows it.
func (w *world) observe(t *rapid.T, faults bool) Observation {
	bad := func(what string) bool { return faults && rapid.IntRange(0, 3).Draw(t, what) == 0 }
	o := Observation{}
	if !bad("objects fail") {
		o.ObjectsComplete = true
		if w.object != nil {
			c := *w.object
			o.Object = &c
		}
	}
	if !bad("instances fail") {
		o.InstancesComplete = true
		young := w.now.Sub(w.born) < InstanceGrace
		if w.instance != nil && !(young && bad("not heard of")) {
			c := *w.instance
			o.Instance = &c
		}
	}
	if !bad("nodes fail") {
		o.NodesComplete = true
		if w.node != nil {
			n := *w.node
			n.Taints, n.Finalizers = slices.Clone(n.Taints), slices.Clone(n.Finalizers)
			o.Nodes = []Node{n}
		}
	}
	if !bad("pods fail") {
		o.PodsComplete, o.Pods = true, w.pods
	}
	return o
}

// do applies an effect to the world, and says what must not be done.
func (w *world) do(e Effect, r Record) error {
	switch e := e.(type) {
	case CreateObject:
		if w.object == nil {
			w.uids++
			w.object = &Object{UID: fmt.Sprintf("uid-%d", w.uids), Finalizers: []string{Finalizer}}
		}
	case DeleteObject:
		if w.cause == "" {
			return fmt.Errorf("the NodeClaim of a good node is deleted in phase %s", r.Phase)
		}
		if w.object != nil && w.object.Deleting.IsZero() {
			w.object.Deleting = w.now
		}
	case ReleaseObject:
		if w.instance != nil && w.instance.State != "terminated" {
			return fmt.Errorf("the NodeClaim is let go of while the instance is %s", w.instance.State)
		}
		w.object = nil
	case PatchNode:
		if w.node == nil {
			return nil
		}
		if e.SetTaints {
			w.node.Taints = slices.Clone(e.Taints)
		}
		if e.Finalizer && !slices.Contains(w.node.Finalizers, Finalizer) {
			w.node.Finalizers = append(w.node.Finalizers, Finalizer)
		}
		if w.node.Labels == nil {
			w.node.Labels = map[string]string{}
		}
		for k, v := range e.Labels {
			w.node.Labels[k] = v
		}
	case DeleteNode:
		if w.node != nil {
			if len(w.node.Finalizers) == 0 {
				w.node = nil
			} else {
				w.node.Deleting = w.now
			}
		}
	case ReleaseNode:
		if w.instance != nil && w.instance.State != "terminated" {
			return fmt.Errorf("the Node is let go of while the instance is %s", w.instance.State)
		}
		if w.node != nil {
			w.node.Finalizers = nil
			if !w.node.Deleting.IsZero() {
				w.node = nil
			}
		}
	case Terminate:
		if w.cause == "" {
			return fmt.Errorf("the instance of a good node is terminated in phase %s", r.Phase)
		}
		if w.pods > 0 && w.node != nil && (r.Deadline.IsZero() || w.now.Before(r.Deadline)) && w.instance.State == "running" && r.Failure == nil {
			return fmt.Errorf("terminated with %d pods", w.pods)
		}
		if w.instance != nil && w.instance.State != "terminated" {
			w.instance.State = "shutting-down"
		}
	}
	return nil
}

// pass lets time and chance act.
func (w *world) pass(t *rapid.T, quiet bool) {
	if quiet {
		w.now = w.now.Add(30 * time.Second)
	} else {
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second)
	}
	if w.instance != nil {
		switch w.instance.State {
		case "pending":
			w.instance.State = "running"
		case "running":
			if w.node == nil && !w.never && w.cause == "" {
				n := joined(Unregistered)
				w.node = &n
				w.node.Taints = append(w.node.Taints, snapshot.Taint{Key: "cni", Effect: "NoSchedule"})
			} else if w.node != nil {
				w.node.Taints = slices.DeleteFunc(w.node.Taints, func(x snapshot.Taint) bool { return x.Key == "cni" })
			}
		case "shutting-down":
			if quiet || rapid.Bool().Draw(t, "ends") {
				w.instance.State = "terminated"
			}
		}
		if w.never && w.now.Sub(w.born) >= RegisterTimeout && w.cause == "" {
			w.cause = "timeout"
		}
	}
	if w.cause != "" && w.pods > 0 && (quiet || rapid.IntRange(0, 3).Draw(t, "a pod leaves") == 0) {
		w.pods--
	}
	if quiet {
		return
	}
	switch rapid.IntRange(0, 24).Draw(t, "event") {
	case 0:
		if w.object != nil && w.object.Deleting.IsZero() {
			w.object.Deleting, w.cause = w.now, "a person deleted the NodeClaim"
		}
	case 1:
		if w.object != nil && w.object.UID == w.known && w.cause == "" { // stripped of its finalizer by hand
			w.object, w.cause = nil, "a person deleted the NodeClaim"
		}
	case 2:
		if w.node != nil && len(w.node.Finalizers) > 0 && w.cause == "" {
			w.node.Deleting, w.cause = w.now, "a person deleted the Node"
		}
	case 3:
		if w.instance != nil && w.instance.State == "running" {
			w.instance.State, w.cause = "terminated", "the instance ended"
		}
	case 4, 5, 6, 7:
		if w.cause == "" && w.node != nil && w.node.Labels[LabelRegistered] != "" {
			w.pods = rapid.IntRange(0, 3).Draw(t, "pods")
		}
	}
}

// lives lets a node live in a drawn world. see is what the state machine gets to see.
func lives(t *rapid.T, see func(Observation) Observation) (end Record, err error) {
	w := &world{now: t0, born: t0, never: rapid.IntRange(0, 3).Draw(t, "never joins") == 0}
	w.instance = &InstanceSeen{ID: "i-1", State: "pending"}
	r := launched()
	r.UID = ""
	if rapid.Bool().Draw(t, "object") {
		w.do(CreateObject{}, r)
	}
	turn := func(faults bool) error {
		s := r.Advance(see(w.observe(t, faults)), w.now)
		for i, e := range s.Effects {
			if faults && rapid.IntRange(0, 9).Draw(t, "effect fails") == 0 {
				return nil // the step is not saved
			}
			if err := w.do(e, s.Record); err != nil {
				return err
			}
			if faults && i == 0 && rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				return nil
			}
		}
		if s.Record.Phase.Before(r.Phase) {
			return fmt.Errorf("went back from %s to %s", r.Phase, s.Record.Phase)
		}
		if s.Record.Phase == Closed && r.Phase != Closed {
			if w.instance != nil && w.instance.State != "terminated" {
				return fmt.Errorf("closed while the instance is %s", w.instance.State)
			}
			if w.object != nil && w.object.UID == s.Record.UID || w.node != nil {
				return fmt.Errorf("closed and left object %v, node %v", w.object != nil, w.node != nil)
			}
		}
		if w.object != nil && s.Record.UID == "" && w.object.Deleting.IsZero() {
			s.Record.UID = w.object.UID // what creating it gave back
		}
		r = s.Record
		w.known = r.UID
		return nil
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		w.pass(t, false)
		if err := turn(true); err != nil {
			return r, err
		}
	}
	// With faults and events over, it settles: in use, or gone.
	for range 80 {
		w.pass(t, true)
		if err := turn(false); err != nil {
			return r, err
		}
	}
	if w.cause == "" && r.Phase != Initialized || w.cause != "" && r.Phase != Closed {
		return r, fmt.Errorf("ended as %s (%s: %s), cause %q, instance %+v, node %v, object %+v", r.Phase, r.Reason, r.Message, w.cause, w.instance, w.node != nil, w.object)
	}
	return r, nil
}

// TestLives: whatever is read in part, fails, is cut off or is done by people, a good node
// is left alone, a node that has to go goes whole and in order, and all settles.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if _, err := lives(t, func(o Observation) Observation { return o }); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLivesMutants: the property fails for a state machine that takes a reading for more
// than it is.
func TestLivesMutants(t *testing.T) {
	mutants := map[string]func(Observation) Observation{
		"a list of objects that failed is complete":   func(o Observation) Observation { o.ObjectsComplete = true; return o },
		"a list of instances that failed is complete": func(o Observation) Observation { o.InstancesComplete = true; o.Nodes = nil; return o },
		"a list of nodes that failed is complete":     func(o Observation) Observation { o.NodesComplete = true; return o },
		"pods are not looked at":                      func(o Observation) Observation { o.PodsComplete, o.Pods = true, 0; return o },
		"the instance is thought to have ended": func(o Observation) Observation {
			if o.Instance != nil && o.Instance.State == "shutting-down" {
				o.Instance.State = "terminated"
			}
			return o
		},
	}
	for name, see := range mutants {
		t.Run(name, func(t *testing.T) {
			for seed := range 2000 {
				var err error
				rapid.Custom(func(t *rapid.T) int { _, err = lives(t, see); return 0 }).Example(seed)
				if err != nil {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no seed caught it")
		})
	}
}

// TestLivesDoSomething keeps the property from passing because nothing happens.
func TestLivesDoSomething(t *testing.T) {
	ends := map[string]int{}
	for seed := range 300 {
		rapid.Custom(func(t *rapid.T) int {
			r, err := lives(t, func(o Observation) Observation { return o })
			if err != nil {
				ends[err.Error()]++
			}
			ends[string(r.Phase)+" "+r.Reason]++
			return 0
		}).Example(seed)
	}
	t.Log(ends)
	for _, want := range []string{"Initialized ", "Closed " + ReasonDeleted, "Closed " + ReasonRegisterTimeout, "Closed " + ReasonInstanceTerminated} {
		if ends[want] < 5 {
			t.Errorf("%d ended as %q", ends[want], want)
		}
	}
}
