package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// noticeAt is when the scenes' notices come: the pods run by then.
const noticeAt = 3 * time.Minute

// warned1 is a calm world of spot nodes in which EC2 takes one with pods on it.
func warned1(hit *string) (*Profile, func(*World)) {
	p := sound(Load{After: 12 * time.Second, Kind: "plain", Pods: 6, CPU: 1500, Mem: 1024, Grace: 20})
	p.Pools[0].CapacityType, p.Faults.States, p.Trouble = []string{"spot"}, true, 8*time.Minute
	return p, func(w *World) {
		w.after(noticeAt, func() {
			i := busiest(w)
			*hit = i.ID
			w.bus.warn(i)
		})
	}
}

// busiest is the instance with the most pods.
func busiest(w *World) *ec2fake.Instance {
	var out *ec2fake.Instance
	most := 0
	for _, i := range w.aws.ec2.Instances() {
		n := 0
		for _, p := range w.cluster.podsOf(w.cluster.machines[i.ID].node) {
			if !isDaemon(&p.v) && p.v.Phase == "Running" {
				n++
			}
		}
		if n > most {
			out, most = i, n
		}
	}
	return out
}

// TestWarned: of a spot instance that EC2 takes nothing is lost. Its replacement is launched
// before the first pod leaves, the pods are gone from it before EC2 takes it.
func TestWarned(t *testing.T) {
	var hit string
	p, before := warned1(&hit)
	launched := map[string]time.Time{}
	rep := inBubble(t, 3, Options{Profile: p, Before: before, After: func(w *World) {
		for _, i := range w.aws.ec2.Instances() {
			launched[i.ID] = i.Launched
		}
	}})
	must(t, "warned", rep)
	c := rep.World.checks
	claim := c.owner[hit]
	left, doomed := c.left[claim], c.doomed[claim]
	replaced := slices.ContainsFunc(sortedValues(launched), func(at time.Time) bool { return at.After(doomed) && at.Before(left) })
	end := warned(rep.World, hit)
	t.Logf("warned at %s, written down after %s, first pod told to leave after %s, ended %s before its time", sinceEpoch(end.Add(-2*time.Minute)), doomed.Sub(end.Add(-2*time.Minute)),
		left.Sub(doomed), end.Sub(rep.World.cluster.machines[hit].i.ShuttingFrom))
	if !replaced || c.caught[hit] > 0 || !rep.World.cluster.machines[hit].i.ShuttingFrom.Before(end) {
		t.Errorf("replaced first %v, %d pods were on it when EC2 took it", replaced, c.caught[hit])
	}
}

func sortedValues(m map[string]time.Time) (out []time.Time) {
	for _, t := range m {
		out = append(out, t)
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// TestNoticeCutOffAnywhere: the function that acts on a notice, and those that drain and plan
// after it, may end at any call, before or after its effect. The node is replaced, once.
func TestNoticeCutOffAnywhere(t *testing.T) {
	var hit string
	p, before := warned1(&hit)
	whole := inBubble(t, 3, Options{Profile: p, Before: before})
	must(t, "nothing is cut off", whole)
	for _, name := range []string{"interruption", "lifecycle", "sweep"} {
		for _, what := range []troubleKind{crashBefore, crashAfter} {
			t.Run(fmt.Sprintf("%s %s", name, what), func(t *testing.T) {
				t.Parallel()
				places := 0
				for n := 0; n < 40; n++ {
					done := ""
					script := func(w *World) func(bound) (trouble, bool) {
						at := 0
						return func(b bound) (trouble, bool) {
							if done != "" || !strings.HasPrefix(b.Proc, name) || w.now().Before(epoch.Add(noticeAt)) || b.Service == "kube" && b.Op == "list" || b.Op == "Query" {
								return trouble{}, false
							}
							if at++; at-1 != n {
								return trouble{}, false
							}
							done = fmt.Sprintf("%s.%s %s", b.Service, b.Op, b.Object)
							return trouble{what: what}, true
						}
					}
					var id string
					p, before := warned1(&id)
					rep := inBubble(t, 3, Options{Profile: p, Before: before, Script: script})
					if done == "" {
						break
					}
					places++
					must(t, done, rep)
					if rep.Stats.Doomed != 1 || rep.Stats.Instances > whole.Stats.Instances+1 {
						t.Errorf("%s: %d records are doomed, %d instances; without it %d", done, rep.Stats.Doomed, rep.Stats.Instances, whole.Stats.Instances)
					}
				}
				if places < 10 {
					t.Errorf("only %d places to cut off", places)
				}
			})
		}
	}
}

// TestNoticesOfAll: notices about an instance that has not joined, one that EC2 alone knows
// (its attempt is not over), a stranger, nobody, and bodies of every wrong shape, in one batch.
func TestNoticesOfAll(t *testing.T) {
	p := sound(Load{After: 12 * time.Second, Kind: "spot", Pods: 2, CPU: 1500, Mem: 1024}, Load{After: 90 * time.Second, Kind: "anti", Pods: 3, CPU: 500, Mem: 512})
	p.Trouble, p.Faults.States = 8*time.Minute, true
	acted := map[string]bool{}
	var watched func(w *World)
	watched = func(w *World) {
		for _, i := range w.aws.ec2.Instances() {
			_, known := w.checks.owner[i.ID]
			r := w.checks.records[w.checks.owner[i.ID]]
			what := map[bool]string{true: "before its Node", false: "before its record"}[known && r.Instance.ID == i.ID]
			if !acted[what] && w.cluster.machines[i.ID] != nil && w.cluster.machines[i.ID].node == "" && i.ShuttingFrom.IsZero() && !w.bus.warned[i.ID] {
				acted[what] = true
				w.bus.warn(i)
			}
		}
		if len(acted) < 2 && w.now().Before(epoch.Add(5*time.Minute)) {
			w.after(20*time.Millisecond, func() { watched(w) })
		}
	}
	rep := inBubble(t, 4, Options{Profile: p, Before: func(w *World) {
		w.after(13*time.Second, func() { watched(w) })
		w.after(100*time.Second, func() {
			w.bus.foreign()
			for _, body := range wrongShapes {
				w.bus.publish(&notice{body: body, due: dueAside})
			}
		})
	}})
	must(t, "notices of all", rep)
	if len(acted) != 2 {
		t.Errorf("notices came %v", acted)
	}
	if got := len(rep.World.queues["dead"].messages); got != len(wrongShapes)-1 {
		t.Errorf("%d messages were put aside, want %d: not the empty one", got, len(wrongShapes)-1)
	}
}

// TestOneAtATime is BC-31 (c): two nodes go, each with one pod of a budget that lets one go
// at a time. At no time are both away.
func TestOneAtATime(t *testing.T) {
	p := sound(Load{After: 12 * time.Second, Kind: "anti", Pods: 2, CPU: 1500, Mem: 1024})
	p.Trouble = 10 * time.Minute
	fewest := 2
	rep := inBubble(t, 5, Options{Profile: p, Before: func(w *World) {
		w.cluster.budgets.create("default/anti-0", snapshot.PodDisruptionBudget{Namespace: "default", Name: "anti-0", Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": "anti-0"}}, MinAvailable: "1", HasStatus: true}, nil)
		w.after(noticeAt, func() {
			for _, it := range w.cluster.claims.all() {
				w.cluster.claims.delete(it)
			}
		})
		for at := noticeAt; at < p.Trouble; at += time.Second {
			w.after(at, func() {
				n := 0
				for _, it := range w.cluster.pods.all() {
					if it.v.Labels["app"] == "anti-0" && it.v.NodeName != "" && it.deleting.IsZero() {
						n++
					}
				}
				fewest = min(fewest, n)
			})
		}
	}})
	must(t, "one at a time", rep)
	closed := 0
	for _, r := range rep.World.checks.closed {
		if r.Reason == lifecycle.ReasonDeleted {
			closed++
		}
	}
	if fewest != 1 || closed != 2 {
		t.Errorf("%d pods ran at the least, want 1; %d nodes are gone, want 2", fewest, closed)
	}
}
