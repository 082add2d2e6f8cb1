package handler_test

import (
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestDeletedIsSeen: a pass that reads the cluster has a node looked after whose NodeClaim
// somebody deleted, before housekeeping comes by; a dry run does not.
func TestDeletedIsSeen(t *testing.T) {
	w := newThriftWorld(t, 2)
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "0"}}
	w.rounds = false
	w.pass(2 * time.Minute) // what is in flight is done
	if rep := w.run(); rep.Begun+rep.Removed > 0 || len(w.queue) > 0 {
		t.Fatalf("nothing is deleted, and %d messages are sent: %+v", len(w.queue), rep)
	}
	claim := w.record(0).Claim
	w.deleteAs("NodeClaim", claim)
	w.h.DryRun = true
	w.run()
	w.pass(time.Minute)
	w.want("a dry run", "Initialized Initialized", 2)
	w.h.DryRun = false
	w.run()
	w.pass(30 * time.Second)
	if got := w.phases(); got == "Initialized Initialized" || len(w.running()) != 1 {
		t.Errorf("half a minute after a pass: records are %s, %d instances run", got, len(w.running()))
	}
}

// TestIntentWithObject: a pass lost its lease once it had made a NodeClaim, and its record
// does not know of that. The next pass cancels both, also in a cluster that has no Node: the
// NodeClaim is why the list of Nodes is not believed.
func TestIntentWithObject(t *testing.T) {
	w := newThriftWorld(t, 0)
	lease, err := w.memory.Acquire(background, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r := lifecycle.Record{Claim: "general-lost", NodePool: "general", Phase: lifecycle.Intended, PlanID: "plan-1", Created: w.now}
	if _, err := w.memory.Commit(background, lease, []lifecycle.Record{r}, nil); err != nil {
		t.Fatal(err)
	}
	c := r.NodeClaim()
	c.ClassRef = snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	if _, err := w.kube.CreateNodeClaim(background, api.NewNodeClaim{Claim: c, Creation: "general-lost/plan-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.memory.Release(background, lease, 0); err != nil {
		t.Fatal(err)
	}
	w.incomplete = []string{api.NoNodes + ", though there is 1 NodeClaim"}
	if rep := w.run(); rep.Outcome == "Incomplete" {
		t.Errorf("pass: %+v", rep)
	}
	if n := len(w.kube.claims); n != 0 || len(w.records()) != 0 {
		t.Errorf("%d NodeClaims and %d records are left", n, len(w.records()))
	}
	if closed := w.closed(); len(closed) != 1 || !strings.Contains(closed[0].Message, "ended before it asked") {
		t.Errorf("closed: %+v", closed)
	}
}
