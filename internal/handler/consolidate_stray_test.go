package handler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestConsolidateStray: a node that carries the taint of a command which nobody remembers takes
// pods again; one that a notice says goes keeps it, and so does one whose command is under way.
func TestConsolidateStray(t *testing.T) {
	w := newThriftWorld(t, 3)
	forgotten, doomed, stays := w.node(0), w.node(1), w.node(2)
	for i, name := range []string{forgotten, doomed, stays} {
		w.put(name, fmt.Sprint("full-", i), 1200, snapshot.DoNotDisrupt, "true")
	}
	for _, name := range []string{forgotten, doomed} {
		n := w.kube.nodes[name]
		n.node.Taints = append(n.node.Taints, snapshot.Disrupted)
	}
	for _, r := range w.records() {
		if r.Node != doomed {
			continue
		}
		next := r
		next.Doomed = &lifecycle.Doom{Reason: "SpotInterrupted", At: w.now}
		if _, err := w.memory.Save(background, lifecycle.Change{Was: r, Next: next}); err != nil {
			t.Fatal(err)
		}
	}
	rep := w.run()
	if got := w.tainted(); fmt.Sprint(got) != fmt.Sprint([]string{doomed}) {
		t.Errorf("tainted are %v, want %s alone", got, doomed)
	}
	if len(rep.Back) != 1 || !strings.Contains(rep.Back[0], forgotten) {
		t.Errorf("told: %q", rep.Back)
	}

	w, goes, _ := half(t)
	for range 2 {
		w.run()
		w.pass(20 * time.Second)
	}
	if got := w.tainted(); fmt.Sprint(got) != fmt.Sprint([]string{goes}) {
		t.Fatalf("a command is begun, tainted are %v", got)
	}
	if rep := w.run(); rep.Removed != 1 {
		t.Errorf("the command that is under way did not go on: %+v", rep)
	}
}
