package handler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// TestConsolidateBacksOff: a replacement that EC2 has no capacity for leaves the node where
// it is; the next try waits twice as long, an hour at most, and one that works goes on.
func TestConsolidateBacksOff(t *testing.T) {
	w := newThriftWorld(t, 1)
	old := w.node(0)
	w.put(old, "a", 1500)
	w.kube.pools[0].TemplateAnnotations = map[string]string{"rev": "2"}
	w.ec2.Short = []ec2fake.Offer{{Type: "*", Zone: "*", CapacityType: "*"}}
	var tries []time.Time
	failed := 0
	for end := w.now.Add(4 * time.Hour); w.now.Before(end); w.pass(20 * time.Second) {
		w.run()
		list, err := w.memory.Commands(background)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].Failed > failed {
			failed = list[0].Failed
			tries = append(tries, w.now)
			if list[0].Phase != lifecycle.RolledBack || len(w.tainted()) > 0 {
				t.Fatalf("after %d failures: %s, tainted %v", failed, w.commands(), w.tainted())
			}
		}
	}
	var waits []string
	for i := 1; i < len(tries); i++ {
		waits = append(waits, fmt.Sprint(tries[i].Sub(tries[i-1]).Round(5*time.Minute)))
	}
	if got := strings.Join(waits, " "); !strings.HasPrefix(got, "5m0s 10m0s 20m0s 40m0s 1h0m0s 1h0m0s") {
		t.Fatalf("between tries it waited %s", got)
	}
	w.ec2.Short = nil
	for end := w.now.Add(90 * time.Minute); w.now.Before(end) && !strings.Contains(w.commands(), "Drifted Done "+old); w.pass(20 * time.Second) {
		w.run()
	}
	w.expect("capacity again", "Drifted Done "+old)
	w.want("capacity again", "Initialized", 1)
}

// TestConsolidateGoesOn: a pass that runs out of work writes down where, and the next one
// begins there; a dry run does not.
func TestConsolidateGoesOn(t *testing.T) {
	w := newThriftWorld(t, 4)
	for i := range 4 {
		w.put(w.node(i), fmt.Sprint("a", i), 1500)
	}
	at := func() (next string) {
		t.Helper()
		n, err := w.memory.Note(background, "consolidation")
		if err != nil {
			t.Fatal(err)
		}
		if n.Data != nil {
			if err := json.Unmarshal(n.Data, &next); err != nil {
				t.Fatal(err)
			}
		}
		return next
	}
	if w.run(); at() != "" {
		t.Fatalf("enough work, and the next pass begins at %s", at())
	}
	w.h.Work, w.h.DryRun = 1, true
	if rep := w.run(); rep.Savings.Left == 0 || at() != "" {
		t.Fatalf("a dry run: %+v, %q", rep.Savings, at())
	}
	w.h.DryRun = false
	var seen []string
	for range 6 {
		rep := w.run()
		if rep.Savings.Left == 0 {
			t.Fatalf("all in one pass: %+v", rep)
		}
		seen = append(seen, at())
	}
	var want []string
	for i := range 6 {
		want = append(want, w.node(i%4))
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("passes go on at\n%v, want\n%v", seen, want)
	}
	w.h.Work = 0
	if w.run(); at() != "" {
		t.Errorf("there is enough work again, and the next pass begins at %s", at())
	}
}

// TestConsolidateOrphans: instances that housekeeping has found nobody to own are in the
// plan; housekeeping ends them, consolidation does not.
func TestConsolidateOrphans(t *testing.T) {
	w := newThriftWorld(t, 1)
	w.put(w.node(0), "a", 1500)
	w.h.DryRun = true
	if rep := w.run(); len(rep.Plan.Moves) != 0 {
		t.Fatalf("%+v", rep.Plan.Moves)
	}
	data, err := json.Marshal(map[string]time.Time{"i-0123456789abcdef0": w.now.Add(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.memory.SaveNote(background, lifecycle.Note{Name: "orphans", Data: data, Until: w.now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	rep := w.run()
	if rep.Moves[plan.MoveOrphaned] != 1 || len(rep.Plan.Moves) != 1 || rep.Plan.Moves[0].Remove[0] != "i-0123456789abcdef0" {
		t.Fatalf("%+v", rep.Plan.Moves)
	}
	w.h.DryRun = false
	if w.run(); w.commands() != "" || len(w.deleting()) > 0 {
		t.Errorf("consolidation acts on it: %s", w.commands())
	}
	w.pass(2 * time.Hour)
	if rep := w.run(); rep.Moves[plan.MoveOrphaned] != 0 {
		t.Error("a reading of two hours ago still counts")
	}
}

// TestConsolidateBackToSpot: a node that fell back to on-demand goes back to spot when there
// is some again: it is asked for less and less often while there is none, one node at a time
// as the budget says, and no pod is moved in vain.
func TestConsolidateBackToSpot(t *testing.T) {
	w := newThriftWorld(t, 2)
	for i := range 2 {
		w.put(w.node(i), fmt.Sprint("a", i), 1500)
	}
	before := w.running()
	w.kube.pools[0].Requirements = slices.DeleteFunc(w.kube.pools[0].Requirements, func(r snapshot.SelectorRequirement) bool { return r.Key == "karpenter.sh/capacity-type" })
	w.kube.pools[0].Requirements = append(w.kube.pools[0].Requirements, snapshot.SelectorRequirement{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"spot", "on-demand"}})
	w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "1"}}
	w.ec2.Short = []ec2fake.Offer{{Type: "*", Zone: "*", CapacityType: "spot"}}
	asked := func() int {
		return len(w.ec2.Calls("CreateFleet"))
	}
	var each []int
	for range 4 {
		at := asked()
		for end := w.now.Add(time.Hour); w.now.Before(end); w.pass(time.Minute) {
			if w.run(); len(w.tainted()) > 1 {
				t.Fatalf("two nodes are on their way out: %s", w.commands())
			}
		}
		each = append(each, asked()-at)
	}
	if each[0] == 0 || each[3] >= each[0] || fmt.Sprint(w.running()) != fmt.Sprint(before) {
		t.Fatalf("spot was asked for %v times in each hour; commands %s", each, w.commands())
	}
	w.ec2.Short = nil
	spot := map[string]bool{} // nodes; the pods of this world do not move, so they are empty and go
	for end := w.now.Add(4 * time.Hour); w.now.Before(end) && len(spot) < 2; w.pass(time.Minute) {
		if w.run(); len(w.tainted()) > 1 {
			t.Fatalf("two nodes are on their way out: %s", w.commands())
		}
		for _, r := range w.records() {
			if r.Instance.CapacityType == "spot" && r.Phase == lifecycle.Initialized {
				spot[r.Node] = true
			}
		}
	}
	w.passes(20)
	if c := w.commands(); len(spot) != 2 || strings.Count(c, "Underutilized Done") != 2 {
		t.Errorf("after hours of plenty %d nodes have become spot: %s", len(spot), c)
	}
}
