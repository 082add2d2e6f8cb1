package handler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// blockedPods are pods that a budget keeps, with its reason, by API server.
var blockedPods = map[*lifeKube]map[string]string{}

// end takes a pod away; false when it is not there.
func (k *lifeKube) end(p api.PodName) bool {
	n := len(k.pods)
	k.pods = slices.DeleteFunc(k.pods, func(q snapshot.Pod) bool { return q.Namespace == p.Namespace && q.Name == p.Name && q.UID == p.UID })
	return len(k.pods) < n
}

// Evict lets a pod end at once, unless a budget is in the way.
func (k *lifeKube) Evict(_ context.Context, p api.PodName, grace *int64) (bool, error) {
	if err := k.ask("create", "Eviction", p.Name); err != nil {
		return false, err
	}
	if why := blockedPods[k][p.Name]; why != "" {
		return false, fmt.Errorf("evict pod %s: %s: %w", p.Name, why, api.ErrBlocked)
	}
	return k.end(p), nil
}

// DeletePod lets a pod end at once.
func (k *lifeKube) DeletePod(_ context.Context, p api.PodName, grace *int64) (bool, error) {
	if err := k.ask("delete", "Pod", p.Name); err != nil {
		return false, err
	}
	if grace == nil || *grace < 1 {
		return false, fmt.Errorf("pod %s is deleted with grace %v", p.Name, grace)
	}
	return k.end(p), nil
}

// drained launches a node, lets it come up, and puts pods on it.
func drained(t *testing.T, pods ...snapshot.Pod) (*lifeWorld, lifecycle.Record) {
	t.Helper()
	w := newLifeWorld(t)
	w.launch(1)
	w.pass(2 * time.Minute)
	r := w.record(0)
	if r.Phase != lifecycle.Initialized {
		t.Fatalf("the node is %s", r.Phase)
	}
	w.kube.pods = nil
	for _, p := range pods {
		p.Namespace, p.NodeName, p.UID, p.Phase, p.Started = "shop", r.Node, p.Name, "Running", w.now
		w.kube.pods = append(w.kube.pods, p)
	}
	return w, r
}

// TestDrain: pods leave in the order of groups, then the instance ends.
func TestDrain(t *testing.T) {
	w, _ := drained(t, snapshot.Pod{Name: "web"}, snapshot.Pod{Name: "dns", Spec: snapshot.PodSpec{PriorityClass: "system-cluster-critical"}})
	w.deleteAs("NodeClaim", w.record(0).Claim)
	w.pass(3 * time.Minute)
	w.want("drained", "", 0)
	var evicted []string
	for _, c := range w.kube.calls {
		if c == "create Eviction web" || c == "create Eviction dns" {
			evicted = append(evicted, c)
		}
	}
	if want := []string{"create Eviction web", "create Eviction dns"}; !slices.Equal(evicted, want) {
		t.Errorf("evictions %v; want %v", evicted, want)
	}
}

// TestDrainBlocked: a budget keeps a pod. The node stays, says which pod and which budget, and
// goes once the budget allows it.
func TestDrainBlocked(t *testing.T) {
	w, _ := drained(t, snapshot.Pod{Name: "web"})
	blockedPods[w.kube] = map[string]string{"web": "PodDisruptionBudget one allows none now"}
	w.deleteAs("NodeClaim", w.record(0).Claim)
	w.pass(10 * time.Minute)
	w.want("blocked", "Draining", 1)
	if e := w.event("FailedDraining"); e == nil {
		t.Error("no Event says what the node waits for")
	}
	delete(blockedPods[w.kube], "web")
	w.pass(5 * time.Minute)
	w.want("after the budget allows it", "", 0)
}

// TestBlockedSays: what keeps a drain is in the NodeClaim's condition, with the pod, the
// budget and since when, and goes from there when it is over.
func TestBlockedSays(t *testing.T) {
	w, r := drained(t, snapshot.Pod{Name: "web"}, snapshot.Pod{Name: "job", Annotations: map[string]string{snapshot.DoNotDisrupt: "true"}})
	blockedPods[w.kube] = map[string]string{"web": "PodDisruptionBudget one allows none now"}
	w.deleteAs("NodeClaim", r.Claim)
	said := func(typ string) *snapshot.Condition {
		return snapshot.FindCondition(w.kube.claims[r.Claim].status.Conditions, typ)
	}
	w.pass(2 * time.Minute)
	c := said("Drained")
	if c == nil || c.Status != "Unknown" || c.Reason != "Draining" {
		t.Fatalf("Drained is %+v", c)
	}
	for _, want := range []string{"web", "PodDisruptionBudget one", "job", "do-not-disrupt", w.record(0).DeletingSince.UTC().Format(time.RFC3339)} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("the condition says %q, and nothing of %q", c.Message, want)
		}
	}
	if last := w.reports[len(w.reports)-1]; last.Blocked != 1 {
		t.Errorf("%d blocked drains are reported", last.Blocked)
	}
	// Nothing is written while nothing changes.
	version := w.record(0).Version
	w.pass(2 * time.Minute)
	if got := w.record(0).Version - version; got > 4 {
		t.Errorf("%d writes in two minutes in which nothing changed", got)
	}
	delete(blockedPods[w.kube], "web")
	for i := range w.kube.pods {
		w.kube.pods[i].Annotations = nil
	}
	for w.record(0).Phase == lifecycle.Draining && w.now.Sub(w.start) < time.Hour {
		w.pass(time.Second)
	}
	if d, v := said("Drained"), said("VolumesDetached"); d == nil || d.Status != "True" || v == nil || v.Status != "True" {
		t.Errorf("at its end Drained is %+v, VolumesDetached %+v", d, v)
	}
	w.pass(3 * time.Minute)
	w.want("after all", "", 0)
}

// TestGracePeriod is BC-31 (d): with a terminationGracePeriod the NodeClaim says when it
// ends, budgets hold until the pod's own grace would not fit any more, and no pod is taken
// without one.
func TestGracePeriod(t *testing.T) {
	forty := int64(40)
	w, r := drained(t, snapshot.Pod{Name: "web", Spec: snapshot.PodSpec{TerminationGrace: &forty}})
	r.Spec.TerminationGracePeriod = "10m"
	if _, err := w.memory.Save(background, lifecycle.Change{Was: w.record(0), Next: r}); err != nil {
		t.Fatal(err)
	}
	blockedPods[w.kube] = map[string]string{"web": "PodDisruptionBudget one allows none now"}
	began := w.now
	w.deleteAs("NodeClaim", r.Claim)
	w.pass(90 * time.Second)
	end, err := time.Parse(time.RFC3339, w.kube.claims[r.Claim].meta.Annotations[lifecycle.AnnotationEnd])
	if err != nil || end.Sub(began) < 10*time.Minute || end.Sub(began) > 10*time.Minute+5*time.Second {
		t.Fatalf("the NodeClaim says it ends at %s, %v; it was deleted at %s", end, err, began)
	}
	if w.event("TerminationGracePeriodExpiring") == nil {
		t.Error("no Event says that pods will end by force")
	}
	w.pass(end.Sub(w.now) - 90*time.Second)
	if len(w.kube.pods) != 1 {
		t.Fatal("the pod was taken while there was time")
	}
	w.pass(85 * time.Second)
	if len(w.kube.pods) != 0 {
		t.Error("the pod is still there when its grace does not fit any more")
	}
	w.pass(3 * time.Minute)
	w.want("at its end", "", 0)
}

// TestDoomed: EC2 takes the instance. The pods leave although a budget says no, with as much
// of their grace as there is, and no pod is told to end with none.
func TestDoomed(t *testing.T) {
	w, r := drained(t, snapshot.Pod{Name: "web"})
	blockedPods[w.kube] = map[string]string{"web": "PodDisruptionBudget one allows none now"}
	next, _ := r.Doom(lifecycle.Doom{Reason: "SpotInterrupted", At: w.now, Deadline: w.now.Add(2 * time.Minute)}, w.now)
	if _, err := w.memory.Save(background, lifecycle.Change{Was: r, Next: next}); err != nil {
		t.Fatal(err)
	}
	if err := w.life.Kick(background); err != nil {
		t.Fatal(err)
	}
	w.pass(4 * time.Minute)
	w.want("after the deadline", "", 0)
	if len(w.kube.pods) > 0 {
		t.Errorf("pods are left: %v", w.kube.pods)
	}
}

// TestDoomedWaits: while its replacement is coming, the pods of a node that EC2 takes stay
// where they are; when it is there they go, long before the deadline.
func TestDoomedWaits(t *testing.T) {
	w, r := drained(t, snapshot.Pod{Name: "web"})
	w.launch(1)
	var other lifecycle.Record
	for _, x := range w.records() {
		if x.Claim != r.Claim {
			other = x
		}
	}
	next, _ := r.Doom(lifecycle.Doom{Reason: "SpotInterrupted", At: w.now, Deadline: w.now.Add(10 * time.Minute)}, w.now)
	next.Relief = &lifecycle.Relief{At: w.now, Claims: []string{other.Claim}}
	if _, err := w.memory.Save(background, lifecycle.Change{Was: r, Next: next}); err != nil {
		t.Fatal(err)
	}
	if err := w.life.Kick(background); err != nil {
		t.Fatal(err)
	}
	w.pass(15 * time.Second)
	there := func() bool { return len(w.kube.podsOn(r.Node)) > 0 }
	if !there() {
		t.Fatal("the pod was evicted before it had somewhere to go")
	}
	w.pass(3 * time.Minute)
	if there() {
		t.Errorf("the pod is still there: %s", w.phases())
	}
}
