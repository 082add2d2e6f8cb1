package handler_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestNow: work of no step is done at once, beside the chain.
func TestNow(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	w.pass(10 * time.Second)
	now := lifecycle.Work{Kind: lifecycle.WorkRegister}
	if err := w.life.Handle(background, now); err != nil || len(w.queue) != 0 {
		t.Fatalf("nothing is in flight: %v, %d messages", err, len(w.queue))
	}
	w.launch(1)
	w.queue = nil // lost
	w.now = w.now.Add(5 * time.Minute)
	before := len(w.reports)
	for range 3 {
		if err := w.life.Handle(background, now); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.reports) != before+3 || w.reports[before].InFlight != 1 || len(w.queue) != 1 {
		t.Errorf("reports %+v, %d messages; want one chain", w.reports[before:], len(w.queue))
	}
}

// TestNodeStep: a message about one node does one step of it, if it is not late.
func TestNodeStep(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	w.launch(1)
	w.pass(3 * time.Minute)
	r := w.record(0)
	w.deleteAs("Node", r.Node)
	for _, step := range []int64{r.Step - 1, r.Step + 1} {
		if err := w.life.Handle(background, lifecycle.Work{Kind: lifecycle.WorkNode, Claim: r.Claim, Step: step}); err != nil || w.record(0).Phase != lifecycle.Initialized {
			t.Fatalf("step %d of a record at %d: %v, %s", step, r.Step, err, w.record(0).Phase)
		}
	}
	if err := w.life.Handle(background, lifecycle.Work{Kind: lifecycle.WorkNode, Claim: r.Claim, Step: r.Step}); err != nil || w.record(0).Phase != lifecycle.Draining {
		t.Fatalf("%v, %s", err, w.record(0).Phase)
	}
	w.kube.pods = nil
	w.pass(3 * time.Minute) // the chain goes on with it
	w.want("in the end", "", 0)
	if err := w.life.Handle(background, lifecycle.Work{Kind: lifecycle.WorkNode, Claim: r.Claim, Step: r.Step}); err != nil {
		t.Errorf("about a node that is gone: %v", err)
	}
	if err := w.life.Handle(background, lifecycle.Work{Kind: lifecycle.WorkCommand, Command: "c"}); !errors.Is(err, lifecycle.ErrDrop) {
		t.Errorf("a command: %v", err)
	}
}

// TestVolumes: the instance is not ended while volumes of pods that left are attached.
func TestVolumes(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(1)
	w.pass(3 * time.Minute)
	r := w.record(0)
	w.kube.pods = []snapshot.Pod{{Namespace: "logs", Name: "agent", UID: "d", NodeName: r.Node, Owner: &snapshot.Owner{Kind: "DaemonSet"},
		Spec: snapshot.PodSpec{Tolerations: []snapshot.Toleration{{Operator: "Exists"}}, Volumes: []snapshot.Volume{{Name: "v", Claim: "agent"}}}}}
	w.kube.rest.Claims = []snapshot.PersistentVolumeClaim{{Namespace: "logs", Name: "agent", Spec: snapshot.ClaimSpec{VolumeName: "pv-2"}}}
	w.kube.rest.Attachments = []snapshot.VolumeAttachment{
		{Name: "a", Node: r.Node, Volume: "pv-1"}, {Name: "b", Node: r.Node, Volume: "pv-2"}, {Name: "c", Node: r.Node}, {Name: "d", Node: "other", Volume: "pv-3"},
	}
	w.deleteAs("NodeClaim", r.Claim)
	w.pass(3 * time.Minute)
	w.want("attached", "Draining", 1)
	if got := w.record(0).Reason; got != "AwaitingVolumeDetachment" {
		t.Errorf("it waits for %q", got)
	}
	w.kube.rest.Attachments = w.kube.rest.Attachments[1:]
	w.pass(3 * time.Minute)
	w.want("detached", "", 0)
}

// TestHold: where somebody holds deletions, nothing happens to what was deleted.
func TestHold(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(3)
	w.pass(3 * time.Minute)
	w.kube.pods = nil
	free := ""
	w.life.Hold = func(_ context.Context, deleted, all []lifecycle.Record) (map[string]bool, error) {
		held := map[string]bool{}
		for _, r := range deleted {
			held[r.Claim] = r.Claim != free
		}
		return held, nil
	}
	for _, r := range w.records() {
		w.deleteAs("NodeClaim", r.Claim)
	}
	w.pass(5 * time.Minute)
	w.want("held", "Initialized Initialized Initialized", 3)
	free = w.record(1).Claim
	w.pass(5 * time.Minute)
	w.want("one is let go", "Initialized Initialized", 2)
}

// TestOneFails: what one node's step lacks, or somebody else's quicker write, is that node's
// alone.
func TestOneFails(t *testing.T) {
	for _, how := range []string{"its Node cannot be changed", "its record was changed"} {
		t.Run(how, func(t *testing.T) {
			w := newLifeWorld(t)
			w.rounds = false
			w.launch(3)
			bad := w.record(1)
			at := 0
			w.kube.fail = func(verb, _, name string) error {
				if how == "its Node cannot be changed" && verb == "patch" && name == "node-"+bad.Instance.ID {
					at++
					return errTest
				}
				return nil
			}
			w.kube.before = func(verb, kind, name string) {
				if how == "its record was changed" && verb == "patch" && name == "node-"+bad.Instance.ID {
					at++
					r, _, err := w.memory.Record(background, bad.Claim)
					if err == nil {
						next := r
						next.Tries++
						_, err = w.memory.Save(background, lifecycle.Change{Was: r, Next: next})
					}
					if err != nil {
						t.Error(err)
					}
				}
			}
			w.pass(90 * time.Second)
			if got := w.phases(); got != twoInUse+" Launched" || at == 0 {
				t.Fatalf("records are %q after %d troubles", got, at)
			}
			w.kube.fail, w.kube.before = nil, nil
			w.pass(2 * time.Minute)
			w.want("in the end", twoInUse+" Initialized", 3)
		})
	}
}
