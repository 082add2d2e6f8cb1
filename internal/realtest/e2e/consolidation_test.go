//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/realtest"
)

// paid is what the instances that run or start cost, in micro-dollars per hour, and how many
// they are.
func (r *Rig) paid() (price int64, nodes int) {
	living := r.living()
	for _, i := range r.EC2.Machines() {
		if _, ok := living[i.ID]; !ok {
			continue
		}
		nodes++
		if t := r.EC2.Types[i.Type]; i.Spot {
			price += t.Spot
		} else {
			price += t.OnDemand
		}
	}
	return price, nodes
}

// savings is what a dry run of consolidation says: what is paid, what its moves come to, and
// what a cluster costs that is packed anew, in dollars per hour.
type savings struct {
	Now        json.Number `json:"pricePerHourNow"`
	After      json.Number `json:"pricePerHourAfterMoves"`
	Floor      json.Number `json:"floorPerHour"`
	Considered int         `json:"nodesConsidered"`
}

func (r *Rig) dryRun(ctx context.Context) (savings, error) {
	out, err := r.Functions.Invoke(ctx, nameOf("consolidation"), []byte(`{"dryRun": true}`))
	if err != nil {
		return savings{}, err
	}
	var answer struct {
		Savings *savings
		Outcome string
		Detail  string
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return savings{}, err
	}
	if answer.Savings == nil {
		return savings{}, fmt.Errorf("no savings: %s %s", answer.Outcome, answer.Detail)
	}
	return *answer.Savings, nil
}

// passes are the summaries of consolidation.
func (r *Rig) passes() (out []string, quiet int) {
	for line := range strings.SplitSeq(r.LogOf("consolidation", 1000000), "\n") {
		var s struct {
			Message, Outcome, Detail                           string
			Nodes, Proposed, Begun, Removed, Held, Open, Price int
			Seconds                                            float64
			RolledBack                                         []string
			Warnings                                           []string
		}
		if json.Unmarshal([]byte(line), &s) != nil || s.Message != "summary" || s.Outcome == "DryRun" {
			continue
		}
		out = append(out, fmt.Sprintf("%s %s: %d nodes, %d proposed, %d begun, %d removed, %d held, %d open, taken back %v, in %.2f s %v", s.Outcome, s.Detail, s.Nodes, s.Proposed, s.Begun, s.Removed, s.Held, s.Open, s.RolledBack, s.Seconds, s.Warnings))
		if quiet++; s.Outcome != "Idle" || s.Nodes == 0 {
			quiet = 0
		}
	}
	return out, quiet
}

// TestConsolidation: the half of the pods of a cluster of 50 nodes goes, and the cluster
// shrinks to what a new one would cost, with every workload within its budget throughout.
func TestConsolidation(t *testing.T) {
	const every = 20 * time.Second
	ctx, r := started(t, Options{Ticks: 2 * time.Second, Consolidate: every, Starts: 2 * time.Second, Ends: time.Second})
	r.apply(ctx, t, "half.yaml")
	r.resolved(ctx, t)
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 76+76+60); return err }); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { return r.ready(ctx) }); err != nil {
		t.Fatal(err)
	}
	price, nodes := r.paid()
	t.Logf("full: %d nodes for %.4f $/h", nodes, float64(price)/1e6)
	if nodes < 50 {
		t.Errorf("%d nodes, the scenario is about 50", nodes)
	}
	for name, n := range map[string]int32{"web": 38, "api": 38, "jobs": 30} {
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}
		if _, err := r.Cluster.Clientset.AppsV1().Deployments("shop").UpdateScale(ctx, name, scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 38+38+30); return err }); err != nil {
		t.Fatal(err)
	}
	// The budgets have seen it.
	err := realtest.Eventually(ctx, patience, func() error {
		list, err := r.Cluster.Clientset.PolicyV1().PodDisruptionBudgets("shop").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, b := range list.Items {
			if b.Status.ExpectedPods > 38 {
				return fmt.Errorf("budget %s expects %d pods", b.Name, b.Status.ExpectedPods)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.witness(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var planned savings
	err = realtest.Eventually(ctx, patience, func() error { // a pass may be at work
		planned, err = r.dryRun(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	price, nodes = r.paid()
	t.Logf("half empty: %d nodes for %.4f $/h; a dry run says: now %s, after its moves %s, packed anew %s $/h", nodes, float64(price)/1e6, planned.Now, planned.After, planned.Floor)

	last, at, quietest := nodes, time.Now(), time.Duration(0)
	err = realtest.Eventually(ctx, 3*patience, func() error {
		p, n := r.paid()
		if n != last {
			last, at = n, time.Now()
			t.Logf("%6.1f s: %d nodes for %.4f $/h", time.Since(began).Seconds(), n, float64(p)/1e6)
		}
		quietest = time.Since(at)
		if _, quiet := r.passes(); quiet < 4 || quietest < 4*every {
			return fmt.Errorf("%d nodes, since %v; %d quiet passes", n, quietest, quiet)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	took := at.Sub(began)
	price, nodes = r.paid()
	list, _ := r.passes()
	for _, one := range list {
		t.Log(one)
	}
	floor, err := planned.Floor.Float64()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes for %.4f $/h after %v, with a pass every %v; packed anew it costs %.4f $/h", nodes, float64(price)/1e6, took.Round(time.Second), every, floor)
	if float64(price) > floor*1e6*1.1 {
		t.Errorf("it came to rest at %.4f $/h, want at most a tenth above %.4f", float64(price)/1e6, floor)
	}
	if _, err := r.running(ctx, "shop", 38+38+30); err != nil {
		t.Error(err)
	}
	broken, told := w.stop()
	t.Logf("budgets: %v", told)
	if len(broken) > 0 {
		t.Errorf("budgets: %v", broken)
	}
	r.settled(ctx, t)
	r.clean(t)
	r.seen(ctx, t)
}

// seen breaks a budget, to know that a witness would have said so.
func (r *Rig) seen(ctx context.Context, t *testing.T) {
	t.Helper()
	w, err := r.witness(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	pods, err := r.Cluster.Clientset.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=web", Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if err := r.Cluster.Clientset.CoreV1().Pods("shop").Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 38+38+30); return err }); err != nil {
		t.Error(err)
	}
	if broken, _ := w.stop(); len(broken) == 0 {
		t.Error("four pods were deleted past a budget of two, and nobody saw it")
	}
}
