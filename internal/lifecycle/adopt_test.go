package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

func TestAdopt(t *testing.T) {
	r := launched()
	r.Instance.Price, r.Instance.CapacityType = 40_000, "spot"
	r.Capacity, r.Allocatable = snapshot.Resources{CPU: 2000}, snapshot.Resources{CPU: 1930}
	n := joined().Node
	n.Created = at(time.Minute)
	tests := []struct {
		name   string
		change func(c *snapshot.NodeClaim, n *snapshot.Node)
		node   bool
		phase  Phase
		joined string
	}{
		{"nothing yet", func(c *snapshot.NodeClaim, _ *snapshot.Node) { c.ProviderID = "" }, false, Intended, ""},
		{"an instance", func(*snapshot.NodeClaim, *snapshot.Node) {}, false, Launched, ""},
		{"a Node that has just joined", func(*snapshot.NodeClaim, *snapshot.Node) {}, true, Launched, ""},
		{"registered", func(_ *snapshot.NodeClaim, n *snapshot.Node) { n.Labels = map[string]string{LabelRegistered: "true"} }, true, Registered, "ip-10-0-0-1"},
		{"in use", func(_ *snapshot.NodeClaim, n *snapshot.Node) {
			n.Labels = map[string]string{LabelRegistered: "true", LabelInitialized: "true"}
		}, true, Initialized, "ip-10-0-0-1"},
		{"a strange provider id", func(c *snapshot.NodeClaim, _ *snapshot.Node) { c.ProviderID = "kwok://x" }, true, Intended, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, node := r.NodeClaim(), n
			tt.change(&c, &node)
			p := &node
			if !tt.node {
				p = nil
			}
			in := Instance{Price: 40_000}
			got := Adopt(c, p, in, at(time.Hour))
			if got.Phase != tt.phase || got.Node != tt.joined || !got.Adopted || got.NodePool != "web" || got.UID != "uid-1" {
				t.Errorf("%+v", got)
			}
			// Adopting what a record shows of itself changes nothing that people see.
			if tt.phase == Launched {
				got.Reason, got.Message = r.Reason, r.Message
				if diff := cmp.Diff(c, got.NodeClaim()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if diff := cmp.Diff(Usage{"cpu": 2000, "nodes": 1, Price: 40_000}, got.Reserved); diff != "" {
					t.Error(diff)
				}
			}
			// And what is observed next does not touch a good node.
			if tt.phase == Initialized {
				o := whole(Observation{Object: object(), Instance: running(), Nodes: []Node{{Node: node}}})
				got.Tagged = true
				expect(t, got.Advance(o, at(time.Hour)), Initialized, "")
			}
		})
	}
}

func TestNominate(t *testing.T) {
	a, b := Pod{Namespace: "x", Name: "a"}, Pod{Namespace: "x", Name: "b"}
	r := launched()
	r.Phase, r.InitializedAt = Initialized, t0
	r = r.Nominate([]Pod{a}, t0)
	r = r.Nominate([]Pod{a, b}, at(20*time.Second))
	if diff := cmp.Diff([]Pod{{"x", "a", "", t0, at(20 * time.Second)}, {"x", "b", "", at(20 * time.Second), at(20 * time.Second)}}, r.Nominated); diff != "" {
		t.Error(diff)
	}
	waits := func(p Pod) bool { return p.Name == "a" }
	if _, changed := r.Renominate(func(Pod) bool { return true }, at(30*time.Second)); changed {
		t.Error("renewed too early: a write for nothing")
	}
	r, changed := r.Renominate(waits, at(30*time.Second))
	if !changed || len(r.Nominated) != 1 {
		t.Errorf("%+v", r.Nominated)
	}
	// Renewed again and again, and not for ever.
	for now := 30 * time.Second; now < 10*time.Minute; now += 10 * time.Second {
		r, _ = r.Renominate(waits, at(now))
		if holds := len(Nominations([]Record{r}, at(now))) == 1; holds != (now < NominationMost) {
			t.Fatalf("after %s it holds: %v", now, holds)
		}
	}
}
