package handler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// told are notices as they came, "" in front of those of one call.
type told struct {
	calls   int
	notices []lifecycle.Notice
	err     error
}

func (n *told) Notify(_ context.Context, list []lifecycle.Notice) error {
	n.calls++
	n.notices = append(n.notices, list...)
	return n.err
}

func (n *told) String() string {
	var out []string
	for _, x := range n.notices {
		out = append(out, fmt.Sprintf("%s %s", x.Reason, x.Phase))
	}
	return strings.Join(out, ", ")
}

// condition is what the NodeClaim of a node says, "" for nothing.
func (w *thriftWorld) condition(node, typ string) string {
	for _, r := range w.records() {
		if r.Node != node {
			continue
		}
		claim := w.kube.snapshotClaim(w.kube.claims[r.Claim])
		if c := snapshot.FindCondition(claim.Conditions, typ); c != nil {
			return c.Status + " " + c.Reason
		}
	}
	return ""
}

// TestConsolidateNotices: who is to be told hears of every decision once: what begins, what
// goes, what is over. That nobody can be told stops nothing.
func TestConsolidateNotices(t *testing.T) {
	for _, broken := range []error{nil, errors.New("no such bus")} {
		w, goes, _ := half(t)
		n := &told{err: broken}
		w.h.Notices = n
		if w.run(); n.calls != 0 {
			t.Fatalf("a proposal is no decision: %s", n)
		}
		w.pass(20 * time.Second)
		rep := w.run()
		if got := n.String(); got != "Underutilized Tainted" || (len(rep.Warnings) > 0) != (broken != nil) {
			t.Fatalf("%s, %v", got, rep.Warnings)
		}
		w.passes(20)
		if got := n.String(); got != "Underutilized Tainted, Underutilized Removing, Underutilized Done" {
			t.Fatal(got)
		}
		x := n.notices[1]
		if x.Cluster != "prod" || fmt.Sprint(x.Nodes) != fmt.Sprint([]string{goes}) || fmt.Sprint(x.Pools) != "[general]" || x.Saving != 96_000 || x.Detail == "" || x.Price == 0 {
			t.Errorf("%+v", x)
		}
	}
}

// TestConsolidateNoticeOfRollBack: what is taken back says why.
func TestConsolidateNoticeOfRollBack(t *testing.T) {
	w, goes, _ := half(t)
	n := &told{}
	w.h.Notices = n
	w.run()
	w.pass(20 * time.Second)
	w.run()
	if got := w.condition(goes, "DisruptionReason"); got != "True Underutilized" {
		t.Errorf("while it goes its NodeClaim says %q", got)
	}
	w.put(goes, "late", 100, snapshot.DoNotDisrupt, "true")
	w.pass(10 * time.Second)
	w.run()
	if got := n.String(); got != "Underutilized Tainted, Underutilized RolledBack" || !strings.Contains(n.notices[1].Why, "late") {
		t.Fatalf("%s: %+v", got, n.notices)
	}
	if got := w.condition(goes, "DisruptionReason"); got != "" {
		t.Errorf("taken back, and its NodeClaim says %q", got)
	}
}

// TestConsolidateHeldIsTold: moves that wait for a person are told of once an hour.
func TestConsolidateHeldIsTold(t *testing.T) {
	w := newThriftWorld(t, 5)
	n := &told{}
	w.h.Notices, w.h.MassShare = n, 50
	for range 4 {
		w.run()
		w.pass(20 * time.Second)
	}
	if len(n.notices) != 5 || n.notices[0].Phase != lifecycle.Held || !strings.HasPrefix(n.notices[0].Why, "MassRemoval") {
		t.Fatalf("%+v", n.notices)
	}
}

// TestConsolidateConditions: NodeClaims say whether they may be consolidated and whether
// they have drifted, as long as it is so.
func TestConsolidateConditions(t *testing.T) {
	w := newThriftWorld(t, 1)
	node := w.node(0)
	w.put(node, "a", 1500)
	w.kube.pools[0].Disruption.ConsolidateAfter = "10h"
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "0"}}
	w.run()
	if got := w.condition(node, "Consolidatable"); got != "" {
		t.Errorf("pods came an hour ago, and it says %q", got)
	}
	w.kube.pools[0].Disruption.ConsolidateAfter = "30s"
	w.run()
	if got := w.condition(node, "Consolidatable"); got != "True Consolidatable" {
		t.Errorf("%q", got)
	}
	w.put(node, "b", 100)
	w.kube.pods[1].Started = w.now
	w.run()
	if got := w.condition(node, "Consolidatable"); got != "" {
		t.Errorf("a pod has just come, and it says %q", got)
	}
	w.kube.pools[0].Disruption.ConsolidateAfter = "Never"
	w.pass(time.Hour)
	w.run()
	if got := w.condition(node, "Consolidatable") + w.condition(node, "Drifted"); got != "" {
		t.Errorf("consolidateAfter is Never, and it says %q", got)
	}
	w.kube.pools[0].TemplateAnnotations = map[string]string{"rev": "2"}
	w.run()
	if got := w.condition(node, "Drifted"); got != "True NodePoolDrifted" {
		t.Errorf("it has drifted, and says %q", got)
	}
	w.kube.pools[0].TemplateAnnotations = nil
	w.run()
	if got := w.condition(node, "Drifted"); got != "" {
		t.Errorf("it is what is asked for again, and says %q", got)
	}
}

// TestConsolidatePodEvents: a pod that was seen leaving counts when it has gone, too: the
// NodeClaim says when that was, and consolidateAfter is waited for from then on.
func TestConsolidatePodEvents(t *testing.T) {
	w := newThriftWorld(t, 1)
	w.put(w.node(0), "a", 1500)
	w.kube.pools[0].Disruption.ConsolidateAfter = "5m"
	w.run()
	w.pass(10 * time.Minute)
	left := w.now
	w.kube.pods[0].Deleting = left.Add(30 * time.Second) // a grace of 30 s
	w.run()
	w.kube.pods = nil
	w.pass(4 * time.Minute)
	if rep := w.run(); rep.Proposed != 0 {
		t.Fatalf("a pod left 4 minutes ago, and %s is proposed", w.commands())
	}
	w.pass(2 * time.Minute)
	if rep := w.run(); rep.Proposed != 1 {
		t.Fatalf("a pod left 6 minutes ago: %+v", rep)
	}
}

// TestConsolidateEvents: nodes say why they stay, and why they go, each once.
func TestConsolidateEvents(t *testing.T) {
	events := func(w *thriftWorld, reason string) (out []string) {
		for _, e := range w.kube.events {
			if e.Reason == reason {
				out = append(out, e.Object.Kind+" "+e.Note)
			}
		}
		return out
	}
	w := newThriftWorld(t, 1)
	w.put(w.node(0), "a", 1500, snapshot.DoNotDisrupt, "true")
	for range 3 {
		w.run()
	}
	if got := events(w, "DisruptionBlocked"); len(got) != 1 || got[0] != `Node PodDoNotDisrupt: pod shop/a carries karpenter.sh/do-not-disrupt: "true"` {
		t.Errorf("a node that may not go says %q", got)
	}
	w.kube.pods[0].Annotations = nil
	for range 3 {
		w.run()
	}
	if got := events(w, "Unconsolidatable"); len(got) != 1 || !strings.Contains(got[0], "the best alternative costs") {
		t.Errorf("a node that is what it should be says %q", got)
	}
	w, goes, _ := half(t)
	w.passes(20)
	got := events(w, "DisruptionTerminating")
	if len(got) != 2 || !strings.HasPrefix(got[0], "Node Disrupting: Underutilized: ") || !strings.HasPrefix(got[1], "NodeClaim Disrupting: ") {
		t.Errorf("%s goes and says %q", goes, got)
	}
}
