package handler_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// whole reports whether a pass read the whole cluster.
func (w *thriftWorld) whole() (bool, *handler.ConsolidationReport) {
	at := len(w.kube.calls)
	rep := w.run()
	return slices.Contains(w.kube.calls[at:], "list everything "), rep
}

// TestConsolidateNothing: after a pass that found no node the next ones only look whether
// there is one. Whatever a pass would have to do something about brings the next whole one.
func TestConsolidateNothing(t *testing.T) {
	w := newThriftWorld(t, 1)
	if whole, _ := w.whole(); !whole {
		t.Fatal("a pass with a node has not read the cluster")
	}
	w.kube.pods = nil
	w.deleteAs("NodeClaim", w.record(0).Claim)
	w.pass(4 * time.Minute)
	w.want("gone", "", 0)
	quiet := func(what string) {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		if whole, rep := w.whole(); whole || rep.Outcome != "Idle" {
			t.Errorf("%s: a whole pass is made for nothing: %+v", what, rep)
		}
	}
	loud := func(what string, outcome string) {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		if whole, rep := w.whole(); whole != (outcome != "Refused") || rep.Outcome != outcome {
			t.Errorf("%s: whole %t, %+v", what, whole, rep)
		}
	}
	loud("the last command is done", "Idle")
	quiet("nothing")
	quiet("nothing still")

	// A node that is not of a NodePool is nobody's business.
	w.kube.nodes["fargate"] = &lifeObject{meta: api.Meta{Name: "fargate", Version: api.Version{UID: "f"}, Created: w.now}}
	quiet("a foreign node")
	w.karpenters("general-abc", "i-0abc", ourClass)
	claim, node := w.kube.claims["general-abc"], w.kube.nodes["node-i-0abc"]
	delete(w.kube.nodes, "node-i-0abc")
	loud("a NodeClaim", "Idle")
	delete(w.kube.claims, "general-abc")
	loud("the NodeClaim was there a moment ago", "Idle")
	quiet("the NodeClaim is gone")
	w.kube.nodes["node-i-0abc"] = node
	loud("a Node of a NodePool", "Idle")
	delete(w.kube.nodes, "node-i-0abc")
	loud("the Node was there a moment ago", "Idle")
	quiet("the Node is gone")

	record, err := w.memory.Adopt(background, lifecycle.Record{Claim: "general-abc", NodePool: "general", Phase: lifecycle.Launched, UID: claim.meta.Version.UID, LaunchedAt: w.now})
	if err != nil {
		t.Fatal(err)
	}
	loud("a record", "Idle")
	next := record
	next.Phase, next.ClosedAt = lifecycle.Closed, w.now
	if _, err := w.memory.Save(background, lifecycle.Change{Was: record, Next: next}); err != nil {
		t.Fatal(err)
	}
	loud("the record was there a moment ago", "Idle")
	quiet("the record is closed")

	lease, err := w.memory.Acquire(background, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c := lifecycle.Command{ID: "empty-1", Reason: "Empty", Phase: lifecycle.Proposed, Nodes: []string{"n"}, Candidates: []string{"c"}, Created: w.now, Changed: w.now}
	if _, err := w.memory.SaveCommand(background, lease, c); err != nil {
		t.Fatal(err)
	}
	if _, err := w.memory.Release(background, lease, 0); err != nil {
		t.Fatal(err)
	}
	loud("a command", "Idle")
	quiet("the command is over")

	note, err := w.memory.Note(background, "orphans")
	if err != nil {
		t.Fatal(err)
	}
	if note.Data, err = json.Marshal(map[string]time.Time{"i-lost": w.now}); err != nil {
		t.Fatal(err)
	}
	if note, err = w.memory.SaveNote(background, note); err != nil {
		t.Fatal(err)
	}
	loud("an orphan", "Idle")
	note.Data = []byte("{}")
	if _, err := w.memory.SaveNote(background, note); err != nil {
		t.Fatal(err)
	}
	quiet("no orphan")

	w.kube.leases = []api.LeaseState{{Namespace: "kube-system", Name: handler.KarpenterLease, Holder: "karpenter-1", Renewed: w.now.Add(time.Minute)}}
	loud("Karpenter runs", "Refused")
	w.kube.leases = nil
	loud("Karpenter ran a moment ago", "Idle")
	quiet("Karpenter is gone")
	w.h.DryRun = true
	if whole, rep := w.whole(); !whole || rep.Plan == nil {
		t.Errorf("somebody asks what would be done: %+v", rep)
	}
}
