package worldtest

import (
	"testing"

	"kerf.sh/kerf/internal/snapshot"
)

// Drawn worlds can be read without a remark, with and without each of their rules, and
// keep to the sizes that Draw promises. Equal seeds are equal worlds.
func TestDraw(t *testing.T) {
	seen := map[Rule]int{}
	for seed := range uint64(200) {
		w := Draw(seed)
		if again := Draw(seed).Text(); again != w.Text() {
			t.Fatalf("seed %d: two worlds:\n%s\n%s", seed, w.Text(), again)
		}
		check := func(what string, w *World) *snapshot.Snapshot {
			s, report, err := w.Snapshot()
			if err != nil {
				t.Fatalf("seed %d %s: %v\n%s", seed, what, err, w.Text())
			}
			for _, l := range report.Left {
				t.Errorf("seed %d %s: left out %s: %s: %s\n%s", seed, what, l.Object, l.Field, l.Message, w.Text())
			}
			return s
		}
		s := check("as drawn", w)
		pending := 0
		for i := range s.Pods {
			if s.Pods[i].NodeName == "" {
				pending++
			}
		}
		if pending < 1 || pending > mostPods || len(s.Nodes) > mostNodes || len(s.NodePools) > mostPools {
			t.Errorf("seed %d: %d pending pods, %d nodes, %d pools", seed, pending, len(s.Nodes), len(s.NodePools))
		}
		for _, r := range w.Rules() {
			seen[r]++
			if w.Without(r).Text() == w.Text() {
				t.Errorf("seed %d: without %s nothing changes", seed, r)
			}
			if seed%5 == 0 {
				check("without "+string(r), w.Without(r))
			}
		}
	}
	for _, r := range Scenes() {
		if seen[r] < 10 {
			t.Errorf("rule %s is in %d of 200 worlds", r, seen[r])
		}
	}
}
