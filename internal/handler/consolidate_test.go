package handler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// half is a world of two nodes, of which the first can go: its pod fits on the other.
func half(t *testing.T) (w *thriftWorld, goes, stays string) {
	w = newThriftWorld(t, 2)
	goes, stays = w.node(0), w.node(1)
	w.put(goes, "small", 200)
	w.put(stays, "large", 1200, snapshot.DoNotDisrupt, "true")
	return w, goes, stays
}

// TestConsolidateSteps: what a pass finds is written down; the next one that finds it again
// taints; after that the pods are looked at once more, and the NodeClaim is deleted.
func TestConsolidateSteps(t *testing.T) {
	w, goes, stays := half(t)
	rep := w.run()
	if rep.Outcome != "Proposed" || rep.Proposed != 1 || rep.Savings.Now != 192_000 || rep.Savings.After != 96_000 || rep.Nodes != 2 {
		t.Fatalf("first pass: %+v", rep)
	}
	w.expect("proposed", "Underutilized Proposed "+goes)
	w.untouched("proposed")
	w.pass(10 * time.Second)
	if rep := w.run(); rep.Begun != 0 {
		t.Fatalf("a second pass after 10 s: %+v", rep)
	}
	w.untouched("10 s later")
	w.pass(10 * time.Second)
	if rep := w.run(); rep.Begun != 1 || rep.Outcome != "Moving" {
		t.Fatalf("found again: %+v", rep)
	}
	w.expect("found again", "Underutilized Tainted "+goes)
	if got := w.tainted(); fmt.Sprint(got) != fmt.Sprint([]string{goes}) || len(w.deleting()) > 0 {
		t.Fatalf("tainted are %v, deleted %v", got, w.deleting())
	}
	if w.run(); len(w.deleting()) > 0 {
		t.Fatal("deleted before its pods were looked at again")
	}
	w.pass(6 * time.Second)
	if rep := w.run(); rep.Removed != 1 {
		t.Fatalf("after the taint: %+v", rep)
	}
	w.expect("deleted", "Underutilized Removing "+goes)
	moves, err := w.memory.MovesSince(background, w.now.Add(-time.Hour))
	if err != nil || len(moves) != 1 || moves[0].Workload != "shop/ReplicaSet/small" || moves[0].From != goes || moves[0].Saving != 96_000 {
		t.Errorf("moves: %+v, %v", moves, err)
	}
	w.pass(3 * time.Minute)
	w.run()
	w.expect("gone", "Underutilized Done "+goes)
	w.want("gone", "Initialized", 1)
	if w.node(0) != stays {
		t.Errorf("the node that is left is %s", w.node(0))
	}
	// The node that was to take its pods is left in peace, though it would be the next.
	w.kube.pods = nil
	if rep := w.run(); rep.Proposed != 0 {
		t.Errorf("after that: %+v, %s", rep, w.commands())
	}
	w.pass(11 * time.Minute)
	if rep := w.run(); rep.Proposed != 1 {
		t.Errorf("when it has rested: %+v", rep)
	}
}

// TestConsolidateNotFoundAgain: a proposal that the next pass does not find is dropped, and
// nothing was touched (BC-30: the pod came during validation).
func TestConsolidateNotFoundAgain(t *testing.T) {
	w, goes, _ := half(t)
	w.run()
	w.pass(8 * time.Second)
	w.put(goes, "job", 100, snapshot.DoNotDisrupt, "true")
	w.pass(12 * time.Second)
	rep := w.run()
	w.expect("a pod came that is not to be disrupted", "Underutilized RolledBack "+goes)
	w.untouched("dropped")
	if rep.Begun+rep.Removed > 0 {
		t.Errorf("%+v", rep)
	}
}

// TestConsolidateHeldAfterTaint (BC-30, the twin): the pod binds after the taint and before
// the first eviction: everything is taken back, and the node rests.
func TestConsolidateHeldAfterTaint(t *testing.T) {
	for value, held := range map[string]bool{"true": true, "45m": true, "soon": false, "-5m": false} {
		t.Run(value, func(t *testing.T) {
			w, goes, _ := half(t)
			w.run()
			w.pass(16 * time.Second)
			w.run()
			w.put(goes, "job", 100, snapshot.DoNotDisrupt, value)
			w.kube.pods[len(w.kube.pods)-1].Started = w.now
			w.pass(6 * time.Second)
			rep := w.run()
			if !held {
				w.expect("nonsense holds nothing", "Underutilized Removing "+goes)
				return
			}
			if len(rep.Back) != 1 || !strings.Contains(rep.Back[0], "shop/job") {
				t.Fatalf("%+v", rep)
			}
			w.untouched("taken back")
			w.want("taken back", "Initialized Initialized", 2)
			w.kube.pods = w.kube.pods[:2] // the job ends
			w.pass(time.Minute)
			if rep := w.run(); rep.Proposed != 0 {
				t.Fatalf("it does not rest: %+v", rep)
			}
			w.pass(5 * time.Minute)
			if rep := w.run(); rep.Proposed != 1 {
				t.Fatalf("it rests for ever: %+v", rep)
			}
		})
	}
}

// TestConsolidateBudgetsAgain: budgets of pods and of the pool are asked again after the taint.
func TestConsolidateBudgetsAgain(t *testing.T) {
	for name, close := range map[string]func(w *thriftWorld){
		"of the pool": func(w *thriftWorld) { w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "0"}} },
		"of its pods": func(w *thriftWorld) {
			w.budgets = []snapshot.PodDisruptionBudget{{Namespace: "shop", Name: "b", Selector: &snapshot.LabelSelector{}, HasStatus: true}}
		},
		"room": func(w *thriftWorld) { w.put(w.node(1), "late", 600) },
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := half(t)
			w.run()
			w.pass(16 * time.Second)
			w.run()
			close(w)
			w.pass(6 * time.Second)
			if rep := w.run(); len(rep.Back) != 1 {
				t.Fatalf("%+v; %s", rep, w.commands())
			}
			w.untouched("taken back")
		})
	}
}

// TestConsolidateAtOnce: a pass beside one that holds the lease does nothing (BC-40), and so
// does one on an incomplete reading.
func TestConsolidateAtOnce(t *testing.T) {
	w, _, _ := half(t)
	lease, err := w.memory.Acquire(background, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.start2("second")
	at := len(w.kube.calls)
	if rep := w.run(); rep.Outcome != "Busy" || len(w.kube.calls) > at {
		t.Fatalf("%+v, calls %v", rep, w.kube.calls[at:])
	}
	if _, err := w.memory.Release(background, lease, 0); err != nil {
		t.Log(err) // it is another's
	}
	w.pass(2 * time.Minute)
	w.incomplete = []string{"pods: 401"}
	if rep := w.run(); rep.Outcome != "Incomplete" || w.commands() != "" {
		t.Fatalf("%+v, %s", rep, w.commands())
	}
}

// TestConsolidateMassRemoval: many nodes of a pool for a reason that is new to it are held;
// three are few; a budget comes first.
func TestConsolidateMassRemoval(t *testing.T) {
	w := newThriftWorld(t, 5)
	w.h.MassShare = 50
	if rep := w.run(); rep.Held != 5 || rep.Proposed != 0 || rep.Moves[plan.MoveEmpty] != 5 {
		t.Fatalf("%+v", rep)
	}
	if rep := w.run(); len(rep.Mass) != 1 || !strings.HasPrefix(rep.Mass[0], "general/Empty: 5 of 5 nodes") || w.commands() != "" {
		t.Error(rep, w.commands())
	}
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "3"}}
	if rep := w.run(); rep.Held != 0 || rep.Proposed != 3 {
		t.Fatalf("within the budget: %+v", rep)
	}
}

// TestConsolidateMassConfirmed: a person lets it go, for that pool and reason, for an hour;
// and what a pool has just had is not new to it.
func TestConsolidateMassConfirmed(t *testing.T) {
	w := newThriftWorld(t, 5)
	w.h.MassShare = 50
	if err := w.h.Confirm(background, "general", ""); err == nil {
		t.Error("a confirmation of nothing")
	}
	for key, held := range map[string]int{"general/Drifted": 5, "other/Empty": 5} {
		pool, reason, _ := strings.Cut(key, "/")
		if err := w.h.Confirm(background, pool, plan.MoveReason(reason)); err != nil {
			t.Fatal(err)
		}
		if rep := w.run(); rep.Held != held {
			t.Fatalf("%s: %+v", key, rep)
		}
	}
	if err := w.h.Confirm(background, "general", plan.MoveEmpty); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(61 * time.Minute)
	if rep := w.run(); rep.Held != 5 {
		t.Fatalf("an hour later: %+v", rep)
	}
	if err := w.h.Confirm(background, "general", plan.MoveEmpty); err != nil {
		t.Fatal(err)
	}
	if rep := w.run(); rep.Proposed != 5 {
		t.Fatalf("confirmed: %+v", rep)
	}
	w.passes(12)
	if len(w.running()) > 0 {
		t.Fatalf("%d are left", len(w.running()))
	}
	w.kube.pods = nil
	w.launch(4)
	w.pass(2 * time.Minute)
	w.kube.pods = nil
	w.pass(10 * time.Minute)
	if rep := w.run(); rep.Held != 0 || rep.Moves[plan.MoveEmpty] != 4 {
		t.Errorf("the same once more: %+v %s", rep, w.commands())
	}
}

// TestConsolidateEmptyNoMore (S-24): a pod comes to an empty node between the proposal and
// the end of the wait after the taint: it stays, and takes pods again.
func TestConsolidateEmptyNoMore(t *testing.T) {
	w := newThriftWorld(t, 1)
	node := w.node(0)
	w.run()
	w.pass(16 * time.Second)
	w.run()
	w.expect("found again", "Empty Tainted "+node)
	w.put(node, "late", 100)
	w.pass(6 * time.Second)
	if rep := w.run(); len(rep.Back) != 1 || !strings.Contains(rep.Back[0], "not empty any more") {
		t.Fatalf("%+v", rep)
	}
	w.untouched("taken back")
	w.want("taken back", "Initialized", 1)
}

// TestConsolidateBudget: within budgets, one after the other; nodes that go count until they
// have gone.
func TestConsolidateBudget(t *testing.T) {
	w := newThriftWorld(t, 3)
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "1"}}
	for range 60 {
		w.run()
		if n := len(w.tainted()); n > 1 {
			t.Fatalf("%d nodes are on their way out at once", n)
		}
		w.pass(10 * time.Second)
	}
	if len(w.running()) > 0 {
		t.Errorf("%d nodes are left: %s", len(w.running()), w.commands())
	}
}

// TestConsolidateDrift: a drifted node is replaced before it goes: the replacement is
// launched once, waited for, and the node is drained then.
func TestConsolidateDrift(t *testing.T) {
	w := newThriftWorld(t, 1)
	old := w.node(0)
	w.put(old, "a", 1500)
	if rep := w.run(); rep.Proposed != 0 {
		t.Fatalf("nothing has changed: %+v", rep)
	}
	w.kube.pools[0].TemplateAnnotations = map[string]string{"rev": "2"}
	w.run()
	w.expect("the template has changed", "Drifted Proposed "+old)
	w.pass(16 * time.Second)
	w.run()
	w.pass(6 * time.Second)
	w.run()
	w.expect("looked at again", "Drifted Replacing "+old)
	if len(w.running()) != 2 || len(w.deleting()) > 0 {
		t.Fatalf("%d run, deleted are %v", len(w.running()), w.deleting())
	}
	w.run()
	if len(w.running()) != 2 || len(w.deleting()) > 0 {
		t.Fatalf("a second pass: %d run, deleted are %v", len(w.running()), w.deleting())
	}
	w.pass(2 * time.Minute) // it joins
	w.run()
	w.expect("it is there", "Drifted Removing "+old)
	w.pass(2 * time.Minute)
	w.run()
	w.expect("gone", "Drifted Done "+old)
	w.want("gone", "Initialized", 1)
	if w.node(0) == old || w.kube.nodes[w.node(0)].meta.Annotations["rev"] != "2" {
		t.Errorf("what is left is %s: %v", w.node(0), w.kube.nodes[w.node(0)].meta.Annotations)
	}
	w.put(w.node(0), "a", 1500)
	w.pass(15 * time.Minute)
	if rep := w.run(); rep.Proposed != 0 {
		t.Errorf("the new one has drifted too: %+v %s", rep, w.commands())
	}
}

// TestConsolidateReplacementNeverJoins: the old node stays, and takes pods again.
func TestConsolidateReplacementNeverJoins(t *testing.T) {
	w := newThriftWorld(t, 1)
	old := w.node(0)
	w.put(old, "a", 1500)
	w.kube.pools[0].TemplateAnnotations = map[string]string{"rev": "2"}
	w.run()
	w.pass(16 * time.Second)
	w.run()
	w.pass(6 * time.Second)
	w.never["*"] = true
	w.run()
	for range 25 {
		w.pass(time.Minute)
		w.run()
		if strings.Contains(w.commands(), "RolledBack") {
			break
		}
	}
	w.untouched("taken back")
	if !strings.Contains(w.commands(), "Drifted RolledBack "+old) {
		t.Errorf("commands: %s", w.commands())
	}
}

// TestConsolidateCrash: a pass that is cut off at any of its calls, or meets an error there,
// is gone on with: in the end one node has gone, exactly, and nothing is left behind.
func TestConsolidateCrash(t *testing.T) {
	for _, change := range []string{"fails", "was done", "the ledger fails", "the ledger loses an answer"} {
		for at := 1; ; at++ {
			w := newThriftWorld(t, 2)
			w.put(w.node(0), "small", 200)
			w.put(w.node(1), "large", 1200, snapshot.DoNotDisrupt, "true")
			n, hit, handling := 0, false, false
			w.kube.fail = func(verb, kind, name string) error {
				if verb == "list" || verb == "get" || verb == "emit" || verb == "status" {
					return nil
				}
				if n++; n == at {
					hit = true
					return fmt.Errorf("cut off at %s %s: %w", verb, kind, errTest)
				}
				return nil
			}
			if change == "was done" {
				fail := w.kube.fail
				w.kube.fail = nil
				w.kube.before = func(verb, kind, name string) {
					if fail(verb, kind, name) != nil {
						w.start2(fmt.Sprint("after-", at)) // the process is another one from here on
					}
				}
			}
			if strings.HasPrefix(change, "the ledger") {
				fail := w.kube.fail
				w.kube.fail = nil
				w.table.Fault = func(c ledger.Call) ledger.Fault {
					if !c.Write || !handling {
						return ledger.Fault{}
					}
					return ledger.Fault{Err: fail("write", "row", c.Keys[0].SK), Applied: strings.HasSuffix(change, "answer")}
				}
			}
			for range 40 {
				handling = true
				_, err := w.h.Handle(background)
				if handling = false; err != nil && !errors.Is(err, errTest) {
					t.Fatalf("%s at %d: %v", change, at, err)
				}
				w.pass(20 * time.Second)
				if c := w.commands(); strings.HasSuffix(c, "Done "+w.commandNode()) && len(w.running()) == 1 {
					break
				}
			}
			if len(w.running()) != 1 || len(w.tainted()) > 0 || w.phases() != "Initialized" {
				t.Fatalf("%s at %d: %d run, tainted %v, records %s, commands %s", change, at, len(w.running()), w.tainted(), w.phases(), w.commands())
			}
			if !hit {
				break
			}
		}
	}
}

// commandNode is the node of the only command.
func (w *thriftWorld) commandNode() string {
	list, err := w.memory.Commands(background)
	if err != nil || len(list) != 1 || len(list[0].Nodes) != 1 {
		return "?"
	}
	return list[0].Nodes[0]
}

// TestConsolidateExpired: an expired node goes in the pass that finds it, whatever budgets
// say, and drains as its pods let it.
func TestConsolidateExpired(t *testing.T) {
	w := newThriftWorld(t, 1)
	old := w.node(0)
	w.put(old, "a", 1500, snapshot.DoNotDisrupt, "true")
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "0"}}
	w.now = w.now.Add(719 * time.Hour)
	if w.run(); w.commands() != "" {
		t.Fatal(w.commands())
	}
	w.now = w.now.Add(2 * time.Hour)
	if rep := w.run(); rep.Removed != 1 || rep.Moves[plan.MoveExpired] != 1 {
		t.Fatalf("%+v", rep)
	}
	w.expect("expired", "Expired Removing "+old)
	w.pass(5 * time.Minute)
	if w.run(); len(w.running()) != 1 {
		t.Fatal("its pod was not to be disrupted")
	}
	w.kube.pods = nil
	w.pass(5 * time.Minute)
	w.run()
	w.expect("gone", "Expired Done "+old)
	if len(w.running()) != 0 {
		t.Error("it still runs")
	}
}

// TestConsolidateUnhealthy: an ill node goes at once and its pods are not waited for.
func TestConsolidateUnhealthy(t *testing.T) {
	w := newThriftWorld(t, 2)
	old := w.node(0)
	w.put(old, "a", 1500, snapshot.DoNotDisrupt, "true")
	w.put(w.node(1), "b", 1500)
	w.kube.nodes[old].node.Conditions = append(w.kube.nodes[old].node.Conditions, snapshot.Condition{Type: "KernelReady", Status: "False", Since: w.now.Add(-31 * time.Minute)})
	ill := w.kube.nodes[old].node.Conditions
	if w.run(); w.commands() != "" {
		t.Fatal("the gate is off: " + w.commands())
	}
	w.settings.NodeRepair = true
	if rep := w.run(); rep.Removed != 1 {
		t.Fatalf("%+v", rep)
	}
	w.expect("ill", "Unhealthy Removing "+old)
	for _, r := range w.records() {
		if (r.Node == old) != r.Deadline.Equal(w.now) {
			t.Errorf("record of %s ends at %s", r.Node, r.Deadline)
		}
	}
	w.kube.nodes[old].node.Conditions = ill
	w.pass(2 * time.Minute)
	w.run()
	w.expect("gone", "Unhealthy Done "+old)
	w.want("gone", "Initialized", 1)
}

// TestConsolidateMarks: nodes are launched with what they are launched from; where nothing
// says so a pass writes it, and what was written by another version.
func TestConsolidateMarks(t *testing.T) {
	w := newThriftWorld(t, 2)
	w.put(w.node(0), "a", 1500)
	w.put(w.node(1), "b", 1500)
	want := disruption.Stamp(&w.kube.pools[0], &w.class)
	if len(want) != 4 {
		t.Fatal(want)
	}
	for i := range 2 {
		for k, v := range want {
			if got := w.kube.nodes[w.node(i)].meta.Annotations[k]; got != v {
				t.Errorf("%s of a node that was launched is %q, want %q", k, got, v)
			}
		}
	}
	w.run() // it says what NodeClaims and Events are to say
	at := len(w.kube.calls)
	w.run()
	if c := writes(w.kube.calls[at:]); len(c) > 0 {
		t.Errorf("all is said, and it writes %v", c)
	}
	w.kube.nodes[w.node(0)].meta.Annotations = map[string]string{}
	w.kube.nodes[w.node(1)].meta.Annotations[disruption.AnnotationPoolHashVersion] = "v0"
	w.kube.nodes[w.node(1)].meta.Annotations[disruption.AnnotationPoolHash] = "old"
	if w.run(); w.commands() != "" {
		t.Fatal("what is not known is no drift: " + w.commands())
	}
	for i := range 2 {
		for k, v := range want {
			if got := w.kube.nodes[w.node(i)].meta.Annotations[k]; got != v {
				t.Errorf("%s is %q after a pass, want %q", k, got, v)
			}
		}
	}
}

// TestConsolidateReleased (BC-33): the reservation of a node is over; it becomes an
// on-demand node and is no drift.
func TestConsolidateReleased(t *testing.T) {
	w := newThriftWorld(t, 1)
	name := w.node(0)
	w.put(name, "a", 1500)
	r := w.record(0)
	next := r
	next.Instance.CapacityType, next.Instance.ReservationID = "reserved", "cr-0b2"
	if _, err := w.memory.Save(background, lifecycle.Change{Was: r, Next: next}); err != nil {
		t.Fatal(err)
	}
	labels := w.kube.nodes[name].meta.Labels
	labels["karpenter.sh/capacity-type"], labels["karpenter.k8s.aws/capacity-reservation-id"] = "reserved", "cr-0b2"
	w.run()
	labels = w.kube.nodes[name].meta.Labels
	if _, ok := labels["karpenter.k8s.aws/capacity-reservation-id"]; ok || labels["karpenter.sh/capacity-type"] != "on-demand" {
		t.Errorf("labels are %v", labels)
	}
	if in := w.record(0).Instance; in.CapacityType != "on-demand" || in.ReservationID != "" {
		t.Errorf("the record says %+v", in)
	}
	if w.commands() != "" {
		t.Errorf("it has drifted: %s", w.commands())
	}
}

// TestConsolidateElsewhere: an instance in a subnet, or of an image, that its class does not
// select any more has drifted; where EC2 does not answer nothing has.
func TestConsolidateElsewhere(t *testing.T) {
	for name, c := range map[string]struct{ subnet, image, kind string }{
		"subnet": {"subnet-b", "ami-1", "SubnetDrift: it is in subnet subnet-a, which EC2NodeClass default does not select"},
		"image":  {"subnet-a", "ami-2", "AMIDrift: it runs ami-1, and EC2NodeClass default gives ami-2 for m5.large"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newThriftWorld(t, 1)
			w.put(w.node(0), "a", 1500)
			w.h.DryRun = true
			if rep := w.run(); rep.Moves[plan.MoveDrifted] != 0 {
				t.Fatalf("nothing has changed: %+v", rep.Plan.Moves)
			}
			w.resolve(2, c.subnet, c.image)
			rep := w.run()
			if rep.Outcome != "DryRun" || len(rep.Plan.Moves) != 1 || rep.Plan.Moves[0].Detail != c.kind || w.commands() != "" {
				t.Fatalf("%+v, %+v", rep, rep.Plan.Moves)
			}
			w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
				if c.Op == "DescribeInstances" {
					return ec2fake.Fault{Before: ec2fake.Error("UnauthorizedOperation", "no")}
				}
				return ec2fake.Fault{}
			}
			if rep := w.run(); (rep.Moves[plan.MoveDrifted] == 0) != (name == "subnet") || len(rep.Warnings) == 0 {
				t.Errorf("without an answer: %+v", rep)
			}
		})
	}
}

// TestConsolidateStatic: a static pool sheds what is too many, at once, the empty node first;
// a drifted node of it is replaced one for one.
func TestConsolidateStatic(t *testing.T) {
	w := newThriftWorld(t, 3)
	w.settings.StaticCapacity = true
	two := int64(2)
	w.kube.pools[0].Replicas = &two
	w.put(w.node(0), "a", 500)
	w.put(w.node(2), "b", 500)
	empty := w.node(1)
	if rep := w.run(); rep.Removed != 1 {
		t.Fatalf("%+v", rep)
	}
	w.expect("too many", "ScaledDown Removing "+empty)
	w.pass(3 * time.Minute)
	w.run()
	w.want("shed", "Initialized Initialized", 2)
	w.kube.pools[0].TemplateAnnotations = map[string]string{"rev": "2"}
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "1"}}
	for range 60 {
		w.run()
		if n := len(w.running()); n < 2 || n > 3 {
			t.Fatalf("%d nodes run", n)
		}
		w.pass(20 * time.Second)
	}
	w.want("replaced", "Initialized Initialized", 2)
	for i := range 2 {
		if w.kube.nodes[w.node(i)].meta.Annotations["rev"] != "2" {
			t.Errorf("node %d is of the old template: %s", i, w.commands())
		}
	}
}
