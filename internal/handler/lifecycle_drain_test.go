package handler_test

import (
	"context"
	"fmt"
	"slices"
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
