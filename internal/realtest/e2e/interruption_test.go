//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest"
)

// event is a line of a timeline.
type event struct {
	at   time.Time
	what string
}

// story is what happened around the end of one node, by the logs of everybody.
type story struct {
	sent, received, tainted time.Time
	warm                    bool
	tableCalls              []TableCall // of the function, before the taint
	launched, joined        time.Time   // the first replacement
	evicted, refused        []time.Time // evictions that were taken, and those that a budget refused
	forced                  []time.Time
	ended                   time.Time
	events                  []event
}

// tell gathers the story of a node whose instance was interrupted at sent.
func (r *Rig) tell(t *testing.T, node, instance string, sent time.Time) story {
	t.Helper()
	s := story{sent: sent}
	add := func(at time.Time, format string, args ...any) {
		s.events = append(s.events, event{at, fmt.Sprintf(format, args...)})
	}
	add(sent, "EC2 puts the warning on the bus")
	requests, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range requests {
		if q.At.Before(sent) {
			continue
		}
		path, _, _ := strings.Cut(q.URI, "?")
		switch {
		case q.User == "kerf-interruption" && q.Verb == "patch" && path == "/api/v1/nodes/"+node && q.Code == 200 && s.tainted.IsZero():
			s.tainted = q.Done
			add(q.Done, "the node is tainted")
		case q.User == "kerf-lifecycle" && strings.HasSuffix(path, "/eviction"):
			pod := strings.Split(path, "/")[6]
			if q.Code == 201 {
				s.evicted = append(s.evicted, q.At)
				add(q.At, "pod %s is evicted", pod)
			} else {
				s.refused = append(s.refused, q.At)
			}
		case q.User == "kerf-lifecycle" && q.Verb == "delete" && strings.Contains(path, "/pods/"):
			s.forced = append(s.forced, q.At)
			add(q.At, "pod %s is deleted by force", path)
		case q.User == "system:kube-scheduler" && strings.HasSuffix(path, "/binding") && q.Code == 201 && strings.Contains(path, "/shop/"):
			add(q.At, "kube-scheduler binds pod %s", strings.Split(path, "/")[6])
		}
	}
	for _, p := range r.Functions.Reports(nameOf("interruption")) {
		if p.At.After(sent) && p.At.Before(s.tainted) {
			s.received, s.warm = p.At, !p.Cold
		}
	}
	if !s.received.IsZero() {
		add(s.received, "the function receives it (warm: %t)", s.warm)
		s.tableCalls = r.table.between("interruption", s.received, s.tainted)
	}
	for _, i := range r.EC2.Machines() {
		if i.ID == instance {
			s.ended = i.ShuttingFrom
			add(s.ended, "its instance is terminated")
		} else if i.Launched.After(sent) {
			add(i.Launched, "CreateFleet launches %s %s", i.ID, i.Type)
			if s.launched.IsZero() {
				s.launched = i.Launched
			}
		}
	}
	nodes, err := r.Cluster.Clientset.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(sent) {
				add(c.LastTransitionTime.Time, "node %s is ready (to the second)", n.Name)
				if s.joined.IsZero() || c.LastTransitionTime.Time.Before(s.joined) {
					s.joined = c.LastTransitionTime.Time
				}
			}
		}
	}
	slices.SortStableFunc(s.events, func(a, b event) int { return a.at.Compare(b.at) })
	return s
}

// print shows the timeline, with times since the warning.
func (s *story) print(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, e := range s.events {
		fmt.Fprintf(&b, "\n%8.3f s  %s", e.at.Sub(s.sent).Seconds(), e.what)
	}
	t.Log(b.String())
}

// interrupted waits until an instance is gone, with its node, and every pod of shop runs.
func (r *Rig) interrupted(ctx context.Context, t *testing.T, instance string, node *corev1.Node, pods int) {
	t.Helper()
	err := realtest.Eventually(ctx, patience, func() error {
		if state, ok := r.living()[instance]; ok {
			return fmt.Errorf("instance %s is %s", instance, state)
		}
		if n, err := r.Cluster.Clientset.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{}); err == nil && n.UID == node.UID {
			return errors.New("node " + node.Name + " is still there")
		}
		running, err := r.running(ctx, "shop", pods)
		if err != nil {
			return err
		}
		for _, p := range running {
			if p.Spec.NodeName == node.Name {
				return fmt.Errorf("pod %s is on node %s", p.Name, node.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// machineOf is the instance of a node.
func (r *Rig) machineOf(t *testing.T, node string) (ec2fake.Instance, *corev1.Node) {
	t.Helper()
	n, err := r.Cluster.Clientset.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range r.EC2.Machines() {
		if strings.HasSuffix(n.Spec.ProviderID, "/"+i.ID) {
			return i, n
		}
	}
	t.Fatalf("node %s (%s) has no instance", node, n.Spec.ProviderID)
	return ec2fake.Instance{}, nil
}

// settled waits until nothing is told to the function any more: its queue is empty.
func (r *Rig) settled(ctx context.Context, t *testing.T) {
	t.Helper()
	err := realtest.Eventually(ctx, patience, func() error {
		if m := r.AWS.Queues.Messages(noticeQueue); len(m) > 0 {
			return fmt.Errorf("%d notices are left: %.300s", len(m), m[0].Body)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// outcomes counts what the function said of notices, by kind and outcome.
func (r *Rig) outcomes() map[string]int {
	out := map[string]int{}
	for line := range strings.SplitSeq(r.LogOf("interruption", 1000000), "\n") {
		var l struct {
			Message string
			Notice  struct{ Outcome, Kind string }
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Message == "notice" {
			out[l.Notice.Kind+" "+l.Notice.Outcome]++
		}
	}
	return out
}

// mostTableCalls is how many requests to DynamoDB a notice may make before its node takes no
// more pods.
const mostTableCalls = 3

// TestInterruption: a spot interruption on the bus goes by rule and queue to the function; the
// node takes no more pods, its replacement is launched before the first eviction, pods run
// there, and the instance ends before EC2 takes it.
func TestInterruption(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	const pods = 6
	if err := r.Cluster.Create(ctx, webOf("web", pods, "900m", "1Gi", "      nodeSelector: {karpenter.sh/capacity-type: spot}\n")); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", pods); return err }); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { return r.ready(ctx) }); err != nil {
		t.Fatal(err)
	}
	r.settled(ctx, t)
	// Events that no rule wants do not come.
	if err := r.Bus.Send(ctx, "EC2 Spot Instance Request Fulfillment", "i-00000000000000000", nil); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for round := range 4 {
		running, err := r.running(ctx, "shop", pods)
		if err != nil {
			t.Fatal(err)
		}
		i, node := r.machineOf(t, running[0].Spec.NodeName)
		on := 0
		for _, p := range running {
			if p.Spec.NodeName == node.Name {
				on++
			}
		}
		sent := time.Now()
		if err := r.Interrupt(ctx, i.ID); err != nil {
			t.Fatal(err)
		}
		r.interrupted(ctx, t, i.ID, node, pods)
		s := r.tell(t, node.Name, i.ID, sent)
		t.Logf("round %d: %s with %d pods", round, i.Type, on)
		s.print(t)
		if s.tainted.IsZero() || s.received.IsZero() {
			t.Fatalf("round %d: nobody tainted node %s", round, node.Name)
		}
		if s.warm {
			took = append(took, s.tainted.Sub(s.received))
			if len(s.tableCalls) > mostTableCalls {
				t.Errorf("round %d: %d requests to DynamoDB before the taint, want at most %d: %v", round, len(s.tableCalls), mostTableCalls, s.tableCalls)
			}
		}
		t.Logf("round %d: tainted %v after the receive (warm: %t), requests to DynamoDB before it: %v", round, s.tainted.Sub(s.received).Round(time.Millisecond), s.warm, ops(s.tableCalls))
		if len(s.evicted) != on || len(s.forced) > 0 {
			t.Errorf("round %d: %d evictions and %d deletions by force for %d pods", round, len(s.evicted), len(s.forced), on)
		}
		if s.launched.IsZero() || s.launched.After(s.evicted[0]) {
			t.Errorf("round %d: the replacement was launched %v, the first pod evicted %v after the warning", round, s.launched.Sub(sent), s.evicted[0].Sub(sent))
		}
		if s.ended.Sub(sent) >= warning {
			t.Errorf("round %d: the instance ended %v after the warning, want before EC2 takes it", round, s.ended.Sub(sent))
		}
	}
	if len(took) < 3 {
		t.Errorf("%d of 4 notices met a warm function", len(took))
	}
	t.Logf("receive to taint, warm: %v", took)
	r.settled(ctx, t)
	got := r.outcomes()
	t.Logf("notices: %v", got)
	if got["SpotInterrupted Handled"] != 4 {
		t.Errorf("notices: %v, want 4 interruptions handled", got)
	}
	r.clean(t)
}

func ops(calls []TableCall) (out []string) {
	for _, c := range calls {
		out = append(out, c.Op)
	}
	return out
}

// TestBudget: pods that take their time, under a budget that lets one go at a time, leave
// an interrupted node before EC2 takes it, none by force.
func TestBudget(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second, Starts: 3 * time.Second, Ends: 2 * time.Second})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	const pods = 6
	text := strings.Replace(webOf("web", pods, "900m", "1Gi", "      nodeSelector: {karpenter.sh/capacity-type: spot}\n"), "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 5", 1)
	if err := r.Cluster.Create(ctx, text); err != nil {
		t.Fatal(err)
	}
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	if _, err := r.Cluster.Clientset.PolicyV1().PodDisruptionBudgets("shop").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", pods); return err }); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { return r.ready(ctx) }); err != nil {
		t.Fatal(err)
	}
	running, err := r.running(ctx, "shop", pods)
	if err != nil {
		t.Fatal(err)
	}
	i, node := r.machineOf(t, running[0].Spec.NodeName)
	on := 0
	for _, p := range running {
		if p.Spec.NodeName == node.Name {
			on++
		}
	}
	w, err := r.witness(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	if err := r.Interrupt(ctx, i.ID); err != nil {
		t.Fatal(err)
	}
	r.interrupted(ctx, t, i.ID, node, pods)
	s := r.tell(t, node.Name, i.ID, sent)
	s.print(t)
	t.Logf("%d pods on %s; %d evictions, of which a budget refused %d; the instance ended %v after the warning", on, i.Type, len(s.evicted)+len(s.refused), len(s.refused), s.ended.Sub(sent).Round(time.Millisecond))
	if on < 3 {
		t.Errorf("%d pods are on the node: too few to show anything", on)
	}
	if len(s.evicted) != on || len(s.forced) > 0 || len(s.refused) == 0 {
		t.Errorf("%d evictions, %d refused and %d deletions by force for %d pods", len(s.evicted), len(s.refused), len(s.forced), on)
	}
	if s.launched.IsZero() || s.launched.After(s.evicted[0]) || s.ended.Sub(sent) >= warning {
		t.Errorf("launched %v, first eviction %v, ended %v after the warning", s.launched.Sub(sent), s.evicted[0].Sub(sent), s.ended.Sub(sent))
	}
	broken, told := w.stop()
	t.Logf("budgets: %v", told)
	if len(broken) > 0 {
		t.Errorf("budgets: %v", broken)
	}
	r.settled(ctx, t)
	r.clean(t)
}
