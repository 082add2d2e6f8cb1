package app_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// onWorlds calls a check with n drawn worlds. In every third one no pod may be moved.
func onWorlds(t *testing.T, n uint64, check func(t *testing.T, w *worldtest.World, s *snapshot.Snapshot)) {
	t.Helper()
	for seed := range n {
		w := worldtest.Draw(seed)
		s, _, err := w.Snapshot()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s.Settings.Work = 1 << 16 // any plan will do, the quicker the better
		for i := range s.Pods {
			if seed%3 == 0 {
				s.Pods[i].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
			}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { check(t, w, s) })
	}
}

// planner plans, and remembers: a snapshot is compared with several others.
type planner struct {
	catalog *catalog.Catalog
	plans   map[*snapshot.Snapshot]*plan.Plan
}

func newPlanner(w *worldtest.World) *planner {
	return &planner{w.Catalog, map[*snapshot.Snapshot]*plan.Plan{}}
}

func (p *planner) solve(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan {
	if p.plans[s] == nil {
		p.plans[s] = provision.Plan(s, c, provision.Options{Explain: explain})
	}
	out := *p.plans[s]
	out.Nodes, out.Pods, out.Warnings = slices.Clone(out.Nodes), nil, slices.Clone(out.Warnings)
	return &out
}

// compared is the plan on one snapshot beside that on another, as the command and the
// function make it.
func (p *planner) compared(t *testing.T, before, after *snapshot.Snapshot) *plan.Plan {
	t.Helper()
	out, err := handler.Make(&handler.Reading{Snapshot: after, Before: &handler.Reading{Snapshot: before}}, p.catalog, "", p.solve)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func removed(s *snapshot.Snapshot, r snapshot.Ref) *snapshot.Snapshot {
	out := s.Fork()
	out.Remove([]snapshot.Ref{r}, s.Now)
	return out
}

// victims are objects whose removal is worth a plan: the first of some kinds.
func victims(s *snapshot.Snapshot) []snapshot.Ref {
	var out []snapshot.Ref
	for _, r := range s.Objects() {
		if len(out) > 0 && out[len(out)-1].Kind == r.Kind {
			continue
		}
		switch r.Kind {
		case "Node", "NodePool", "Pod", "PodDisruptionBudget":
			out = append(out, r)
		}
	}
	return out
}

func TestPlanBesideItselfIsTheSame(t *testing.T) {
	onWorlds(t, 20, func(t *testing.T, w *worldtest.World, s *snapshot.Snapshot) {
		if d := newPlanner(w).compared(t, s, s.Fork()).Diff; !d.Empty() || d.Before != d.After || len(d.Warnings) > 0 {
			t.Errorf("%+v", d)
		}
	})
}

// TestComparisonsAddUp: what a comparison lists accounts for the whole difference,
// and the other way round it says the opposite.
func TestComparisonsAddUp(t *testing.T) {
	kinds := map[plan.PodChange]int{}
	onWorlds(t, 24, func(t *testing.T, w *worldtest.World, s *snapshot.Snapshot) {
		p := newPlanner(w)
		for _, r := range victims(s) {
			other := removed(s, r)
			d, back := p.compared(t, s, other).Diff, p.compared(t, other, s).Diff
			for _, p := range d.Pods {
				kinds[p.Change]++
			}
			for _, f := range unaccounted(d) {
				t.Errorf("remove %s: %s", r, f)
			}
			if d.PriceDelta() != -back.PriceDelta() || len(d.Pods) != len(back.Pods) || len(d.Launches) != len(back.Launches) || len(d.Nodes) != len(back.Nodes) {
				t.Errorf("remove %s: the way back is another: %+v\n%+v", r, d, back)
			}
			for i := range d.Pods {
				if a, b := &d.Pods[i], &back.Pods[i]; a.Pod != b.Pod || a.Before != b.After || a.After != b.Before {
					t.Errorf("remove %s: pod %s, and the way back: %+v\n%+v", r, a.Pod, a, b)
				}
			}
		}
	})
	for _, c := range []plan.PodChange{plan.BecomesUnschedulable, plan.BecomesSchedulable, plan.Moves, plan.PlannedElsewhere, plan.OtherReason, plan.PodRemoved, plan.Blocked} {
		if kinds[c] == 0 {
			t.Errorf("no pod with %s in any world: the property says nothing of it", c)
		}
	}
}

// unaccounted are the ways in which the lists of a comparison contradict its sums.
func unaccounted(d *plan.Diff) (out []string) {
	launches, nodes, price := 0, int64(0), int64(0)
	for _, l := range d.Launches {
		launches += l.After - l.Before
		price += l.Delta()
	}
	for _, n := range d.Nodes {
		nodes += int64(n.Sign) * n.Node.Price
	}
	b, a := &d.Before.Summary, &d.After.Summary
	if got := a.Launches - b.Launches; got != launches {
		out = append(out, fmt.Sprintf("%d launches more, the list says %d", got, launches))
	}
	if got := a.LaunchPrice - b.LaunchPrice; got != price {
		out = append(out, fmt.Sprintf("launches cost %d more, the list says %d", got, price))
	}
	if got := d.PriceDelta(); got != price+nodes {
		out = append(out, fmt.Sprintf("everything costs %d more, the lists say %d", got, price+nodes))
	}
	cannot := 0
	for _, p := range d.Pods {
		if p.After.State == plan.CannotRun {
			cannot++
		}
		if p.Before.State == plan.CannotRun {
			cannot--
		}
	}
	if got := a.Unschedulable - b.Unschedulable; got != cannot {
		out = append(out, fmt.Sprintf("%d more pods cannot run, the list says %d", got, cannot))
	}
	return out
}

// TestRemovingWhatNothingUsesChangesNothing.
func TestRemovingWhatNothingUsesChangesNothing(t *testing.T) {
	onWorlds(t, 20, func(t *testing.T, w *worldtest.World, s *snapshot.Snapshot) {
		with := s.Fork()
		with.NodeClasses = append(with.NodeClasses, snapshot.NodeClass{Name: "zz-unused"})
		with.Namespaces = append(with.Namespaces, snapshot.Namespace{Name: "zz-unused"})
		with.LimitRanges = append(with.LimitRanges, snapshot.LimitRange{Namespace: "zz-unused", Name: "unused"})
		with.RuntimeClasses = append(with.RuntimeClasses, snapshot.RuntimeClass{Name: "zz-unused"})
		with.Priorities = append(with.Priorities, snapshot.PriorityClass{Name: "zz-unused", Value: 1})
		with.StorageClasses = append(with.StorageClasses, snapshot.StorageClass{Name: "zz-unused"})
		with.Volumes = append(with.Volumes, snapshot.PersistentVolume{Name: "zz-unused"})
		with.Claims = append(with.Claims, snapshot.PersistentVolumeClaim{Namespace: "zz-unused", Name: "unused"})
		with.Budgets = append(with.Budgets, snapshot.PodDisruptionBudget{Namespace: "zz-unused", Name: "unused", MaxUnavailable: "0", Selector: &snapshot.LabelSelector{}})
		with.CSINodes = append(with.CSINodes, snapshot.CSINode{Name: "zz-unused"})
		with.Attachments = append(with.Attachments, snapshot.VolumeAttachment{Name: "zz-unused", Node: "zz-unused"})
		unused := slices.DeleteFunc(with.Objects(), func(r snapshot.Ref) bool { return r.Name != "unused" && r.Name != "zz-unused" })
		if len(unused) != 11 {
			t.Fatalf("%d objects are unused", len(unused))
		}
		without := with.Fork()
		for _, r := range unused {
			without.Remove([]snapshot.Ref{r}, s.Now)
		}
		p := newPlanner(w).compared(t, with, without)
		if !p.Diff.Empty() || p.Diff.Before.ID != p.Diff.After.ID {
			t.Errorf("%+v", p.Diff)
		}
	})
}

// TestComparisonsAreTheSameEveryTime, and write in every form.
func TestComparisonsAreTheSameEveryTime(t *testing.T) {
	onWorlds(t, 8, func(t *testing.T, w *worldtest.World, s *snapshot.Snapshot) {
		for _, r := range victims(s) {
			a, b := newPlanner(w).compared(t, s, removed(s, r)), newPlanner(w).compared(t, s, removed(s, r))
			for _, format := range []string{"json", "text", "html"} {
				out := handler.Rendering{Format: format, Diff: true}
				x, err := out.Write(a)
				if err != nil {
					t.Fatal(err)
				}
				if y, err := out.Write(b); err != nil || string(x) != string(y) {
					t.Errorf("remove %s: two answers as %s differ (%v)", r, format, err)
				}
			}
		}
	})
}

// TestSavedSnapshotIsThatOfTheChangedCluster: what --save-snapshot writes of a what-if
// gives the plan of the what-if, without a comparison.
func TestSavedSnapshotIsThatOfTheChangedCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot.json")
	base := []string{"-o", "json", "--catalog", "testdata/files/catalog.json"}
	status, want, stderr := run(append([]string{"-f", "testdata/files/world.yaml", "--now", "2026-03-04T12:00:00Z", "--what-if", "testdata/files/what-if.yaml",
		"--remove", "pod/ns/web-1", "--save-snapshot", file}, base...), "")
	if status != 0 {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	status, got, stderr := run(append([]string{"-f", file}, base...), "")
	if status != 0 {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	if diff := cmp.Diff(without(t, want, "diff"), without(t, got)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(got, "ns/web-3") || strings.Contains(got, "ns/web-1") {
		t.Errorf("the saved cluster is not the changed one:\n%s", got)
	}
}

func without(t *testing.T, text string, fields ...string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if v[f] == nil {
			t.Errorf("there is no %s", f)
		}
		delete(v, f)
	}
	return v
}
