package handler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestCatalogDeletion: a deleted class waits for its nodes, then what was made for it goes,
// then itself.
func TestCatalogDeletion(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.class("b", catSpec)
	w.run()
	w.kube.s.NodeClasses[0].Deleting = w.now
	w.kube.s.NodeClasses[0].Generation++
	ref := snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "a"}
	for i := range 7 {
		w.kube.s.NodeClaims = append(w.kube.s.NodeClaims, snapshot.NodeClaim{Name: fmt.Sprint("claim-", i), ClassRef: ref})
	}
	rep := w.run()
	const want = "waiting for NodeClaims to go: claim-0, claim-1, claim-2, claim-3, claim-4 and 2 more"
	got := slices.IndexFunc(rep.Classes, func(c handler.ClassReport) bool { return c.Name == "a" })
	if c := rep.Classes[got]; c.Ready != "Deleting" || c.Message != want || !slices.Contains(w.kube.events, "a: WaitingOnNodeClaimTermination: "+want) {
		t.Errorf("class %+v, events %q", c, w.kube.events)
	}
	if s, stale := w.filled(); len(stale) > 0 || !strings.Contains(fmt.Sprint(s.NodeClasses[0].Conditions), "being deleted") {
		t.Errorf("stale %v, %+v", stale, s.NodeClasses[0].Conditions)
	}
	if c := snapshot.FindCondition(w.kube.statuses["NodePool/pool-a"].Conditions, "NodeClassReady"); c.Reason != "NodeClassTerminating" {
		t.Errorf("pool %+v", c)
	}
	// A node without an object counts too.
	w.kube.s.NodeClaims = nil
	rec, err := w.memory().Adopt(background, lifecycle.Record{Claim: "claim-x", Phase: lifecycle.Launched, NodePool: "pool-a", Spec: lifecycle.Spec{ClassRef: ref}})
	if err != nil {
		t.Fatal(err)
	}
	if w.run(); len(w.kube.finalizers["uid-a"]) != 1 || !strings.Contains(w.kube.events[len(w.kube.events)-1], "claim-x") {
		t.Errorf("events %q", w.kube.events)
	}
	rec.Phase, rec.ClosedAt = lifecycle.Closed, w.now
	was := rec
	was.Phase = lifecycle.Launched
	if _, err := w.memory().Save(background, lifecycle.Change{Was: was, Next: rec}); err != nil {
		t.Fatal(err)
	}
	// What cannot be read might be a node of it.
	w.kube.s.Incomplete = []string{"nodeclaim y cannot be read"}
	if _, err := w.catalog().Handle(background, handler.CatalogRequest{}); err == nil || len(w.kube.finalizers["uid-a"]) != 1 {
		t.Errorf("incomplete: %v", err)
	}
	w.kube.s.Incomplete = nil
	w.run()
	if len(w.kube.finalizers["uid-a"]) != 0 || len(w.kube.s.NodeClasses) != 1 {
		t.Errorf("finalizers %v, classes %v", w.kube.finalizers, w.kube.s.NodeClasses)
	}
	if ops := fmt.Sprint(w.iam.Ops); strings.Count(ops, "DeleteInstanceProfile") != 1 {
		t.Errorf("IAM: %s", ops)
	}
	if got := w.facts().Classes; len(got) != 1 {
		t.Errorf("classes %v", got)
	}
}

// TestCatalogProfiles: a profile that a changed role left behind goes an hour after nothing
// needs it.
func TestCatalogProfiles(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	w.now = w.now.Add(2 * time.Hour)
	w.class("a", strings.Replace(catSpec, `"nodes"`, `"others"`, 1))
	for i, want := range []int{0, 0, 1, 0} {
		rep := w.run()
		if len(rep.Removed) != want {
			t.Errorf("run %d: removed %v, want %d", i, rep.Removed, want)
		}
		w.now = w.now.Add(31 * time.Minute)
	}
	if made := w.facts().Classes["a"].Resolved.Profile; !strings.HasPrefix(made, "prod_") {
		t.Errorf("profile %q", made)
	}
}
