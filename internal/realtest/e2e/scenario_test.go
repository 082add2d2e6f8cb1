//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kerf.sh/kerf/internal/realtest"
)

// patience is how long a step may take on a busy machine.
const patience = 5 * time.Minute

// resolved waits until the class can be launched from.
func (r *Rig) resolved(ctx context.Context, t *testing.T) {
	t.Helper()
	err := realtest.Eventually(ctx, patience, func() error {
		classes, err := r.list(ctx, classesPath)
		if err != nil {
			return err
		}
		if len(classes) != 1 || !strings.HasPrefix(condition(&classes[0], "Ready"), "True") {
			return fmt.Errorf("EC2NodeClass: %s", conditions(&classes[0]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorkloads: Deployments of several kinds get nodes, every pod runs where the plan
// wanted it, NodeClaims say all of their nodes, and a NodeClaim that a person deletes takes
// its node and its instance along.
func TestWorkloads(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	plan := r.watch(ctx)
	began := time.Now()
	r.apply(ctx, t, "workloads.yaml")
	const pods = 6 + 6 + 4 + 2 + 2 + 2
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", pods); return err }); err != nil {
		t.Fatal(err)
	}
	ran := time.Since(began)
	first := time.Time{}
	for _, i := range r.EC2.Machines() {
		if first.IsZero() || i.Launched.Before(first) {
			first = i.Launched
		}
	}
	t.Logf("first pod to CreateFleet: %v; to all pods running: %v; %d instances", first.Sub(began).Round(time.Millisecond), ran.Round(time.Millisecond), len(r.EC2.Machines()))

	running, err := r.running(ctx, "shop", pods)
	if err != nil {
		t.Fatal(err)
	}
	kept, wanted := plan.kept(running)
	t.Logf("%d of %d pods run where the plan wanted them; it wanted %d nodes, and %d were made", kept, pods, wanted, len(r.EC2.Machines()))
	if kept*10 < pods*8 || len(r.EC2.Machines()) > wanted+1 {
		t.Errorf("%d of %d pods run where the plan wanted them, want 80 %%; %d nodes were made for the %d of the plan, want at most one more", kept, pods, len(r.EC2.Machines()), wanted)
	}
	if err := realtest.Eventually(ctx, patience, func() error { return r.ready(ctx) }); err != nil {
		t.Fatal(err)
	}
	claims, err := r.list(ctx, claimsPath)
	if err != nil {
		t.Fatal(err)
	}
	if living := r.living(); len(living) != len(claims) || len(r.EC2.Machines()) != len(claims) {
		t.Errorf("%d instances live, %d were made, for %d nodeclaims", len(living), len(r.EC2.Machines()), len(claims))
	}
	r.nodesAreOurs(ctx, t, len(claims))
	r.statuses(ctx, t, len(claims))
	r.deleteClaim(ctx, t)
	r.clean(t)
}

// nodesAreOurs: every node carries what registration puts on it, and nothing of the way there.
func (r *Rig) nodesAreOurs(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	nodes, err := r.Cluster.Clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != n {
		t.Errorf("%d nodes, want %d; %v", len(nodes.Items), n, err)
	}
	for _, node := range nodes.Items {
		for label, want := range map[string]string{"karpenter.sh/nodepool": "general", "tier": "general", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"} {
			if node.Labels[label] != want {
				t.Errorf("node %s: label %s is %q, want %q", node.Name, label, node.Labels[label], want)
			}
		}
		if len(node.Spec.Taints) != 0 || !slices.Contains(node.Finalizers, "karpenter.sh/termination") || len(node.OwnerReferences) != 1 || node.OwnerReferences[0].Kind != "NodeClaim" {
			t.Errorf("node %s: taints %v, finalizers %v, owners %v", node.Name, node.Spec.Taints, node.Finalizers, node.OwnerReferences)
		}
	}
	for _, i := range r.EC2.Machines() {
		for tag, want := range map[string]string{"karpenter.sh/nodepool": "general", "eks:eks-cluster-name": clusterName, "kubernetes.io/cluster/" + clusterName: "owned", "team": "shop"} {
			if i.Tags[tag] != want {
				t.Errorf("instance %s: tag %s is %q, want %q", i.ID, tag, i.Tags[tag], want)
			}
		}
		if i.Profile == "" || !slices.Equal(i.Groups, []string{"sg-00000000000000001"}) {
			t.Errorf("instance %s: profile %q, groups %v", i.ID, i.Profile, i.Groups)
		}
	}
}

// statuses: the pool says how many nodes it has.
func (r *Rig) statuses(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	err := realtest.Eventually(ctx, patience, func() error {
		cells, err := r.columns(ctx, poolsPath)
		if err != nil {
			return err
		}
		row := cells["general"]
		if row["Ready"] != "True" || row["Nodes"] != fmt.Sprint(n) || row["CPU"] == "" || row["Memory"] == "" {
			return fmt.Errorf("nodepool: %v, want %d nodes", row, n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// deleteClaim takes the pods off one node and deletes its NodeClaim, as a person does.
func (r *Rig) deleteClaim(ctx context.Context, t *testing.T) {
	t.Helper()
	scale, err := r.Cluster.Clientset.AppsV1().Deployments("shop").GetScale(ctx, "arm", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.list(ctx, claimsPath)
	if err != nil {
		t.Fatal(err)
	}
	// All Deployments go, so that any node will do.
	for _, name := range []string{"plain", "spread", "apart", "arm", "steady", "cheap"} {
		s := scale.DeepCopy()
		s.Name, s.ResourceVersion, s.UID, s.Spec.Replicas = name, "", "", 0
		if _, err := r.Cluster.Clientset.AppsV1().Deployments("shop").UpdateScale(ctx, name, s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 0); return err }); err != nil {
		t.Fatal(err)
	}
	claim := all[0]
	id, _, _ := unstructured.NestedString(claim.Object, "status", "providerID")
	id = id[strings.LastIndexByte(id, '/')+1:]
	node, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
	began := time.Now()
	if err := r.Cluster.Clientset.RESTClient().Delete().AbsPath(claimsPath + "/" + claim.GetName()).Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
	// Nothing tells of it. The next pass that reads the cluster sees it: here one of
	// consolidation, of which the stack has one a minute.
	err = realtest.Eventually(ctx, patience, func() error {
		out, _, err := r.invoke(nameOf("consolidation"), []byte("{}"), false)
		if err == nil && bytes.Contains(out, []byte(`"outcome":"Busy"`)) {
			err = fmt.Errorf("somebody else plans: %s", out)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = realtest.Eventually(ctx, patience, func() error {
		left, err := r.list(ctx, claimsPath)
		if err != nil {
			return err
		}
		for i := range left {
			if left[i].GetName() == claim.GetName() {
				return fmt.Errorf("nodeclaim %s is still there: %s", claim.GetName(), conditions(&left[i]))
			}
		}
		if state, ok := r.living()[id]; ok {
			return fmt.Errorf("instance %s of nodeclaim %s is %s", id, claim.GetName(), state)
		}
		if _, err := r.Cluster.Clientset.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err == nil {
			return errors.New("node " + node + " is still there")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("a NodeClaim that was deleted is gone, with node and instance, %v after the pass that sees it", time.Since(began).Round(time.Millisecond))
	if living := r.living(); len(living) != len(all)-1 {
		t.Errorf("%d instances live, want %d: only one was to go", len(living), len(all)-1)
	}
}

// TestFromZero: a cluster with no node, whose DNS waits, and whose policy engine refuses
// NodeClaims because it waits too, gets its first node; the NodeClaim follows when it can.
func TestFromZero(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second})
	r.apply(ctx, t, "pools.yaml", "webhook.yaml")
	r.resolved(ctx, t)
	began := time.Now()
	r.apply(ctx, t, "coredns.yaml")
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "kube-system", 2); return err }); err != nil {
		t.Fatal(err)
	}
	t.Logf("both pods run after %v", time.Since(began).Round(time.Millisecond))
	claims, err := r.list(ctx, claimsPath)
	if err != nil || len(claims) != 0 {
		t.Errorf("%d nodeclaims got past the webhook, %v", len(claims), err)
	}
	n := len(r.living())
	if n == 0 || n > 2 {
		t.Errorf("%d instances", n)
	}
	// The policy engine has found a node.
	if err := r.Cluster.Clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "policy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	err = realtest.Eventually(ctx, patience, func() error {
		claims, err := r.list(ctx, claimsPath)
		if err != nil {
			return err
		}
		if len(claims) != n {
			return fmt.Errorf("%d nodeclaims for %d instances", len(claims), n)
		}
		return r.ready(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("NodeClaims are there and ready after %v", time.Since(began).Round(time.Millisecond))
	if made := len(r.EC2.Machines()); made != n {
		t.Errorf("%d instances were made, %d live", made, n)
	}
	r.clean(t)
}
