//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/instancetype"
	"kerf.sh/kerf/internal/realtest"
)

// started is a rig for one test. If the test fails, the last lines of the logs are shown,
// and all are kept where KERF_E2E_LOGS says.
func started(t *testing.T, o Options) (context.Context, *Rig) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o.Log = t.Logf
	began := time.Now()
	r, err := Start(ctx, o)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Logf("the rig is up after %v", time.Since(began))
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range programs {
				t.Logf("-- %s\n%s", p, r.LogOf(p, 15))
			}
			if dir := logsDir(t); dir != "" {
				if err := r.Keep(dir); err != nil {
					t.Log(err)
				}
				t.Logf("logs: %s", dir)
			}
		}
		cancel()
		r.Stop()
	})
	return ctx, r
}

// TestRig: the rig with functions that make a request of every kind: a pod gets a node of an
// instance, runs, and the node goes with the instance.
func TestRig(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", binary, "./testdata/standin").CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in: %v\n%s", err, out)
	}
	ctx, r := started(t, Options{Ticks: 500 * time.Millisecond, Binaries: map[string]string{"sweep": binary, "lifecycle": binary}})
	if err := r.Cluster.Create(ctx, "apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: kube-system}\nspec: {containers: [{name: app, image: app, resources: {requests: {cpu: 500m}}}], automountServiceAccountToken: false}\n"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pods := r.Cluster.Clientset.CoreV1().Pods("kube-system")
	err := realtest.Eventually(ctx, 2*time.Minute, func() error {
		p, err := pods.Get(ctx, "one", metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("the pod is %s on %q; machines: %v", p.Status.Phase, p.Spec.NodeName, r.Machines.Failed())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the pod runs after %v", time.Since(began))
	nodes, err := r.Cluster.Clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	n, made := nodes.Items[0], r.EC2.Machines()
	if len(made) != 1 || n.Spec.ProviderID != "aws:///us-east-1b/"+made[0].ID || len(n.Spec.Taints) != 0 || n.Labels[catalog.LabelInstanceType] != "m7g.xlarge" ||
		n.Labels["karpenter.sh/registered"] != "true" || n.Labels[catalog.LabelZone] != "us-east-1b" || n.Status.Allocatable.Cpu().MilliValue() != 3920 || n.Status.Allocatable.Pods().Value() != 58 {
		t.Errorf("instances %+v, node %+v", made, n)
	}
	if !made[0].Spot || made[0].Tags["eks:eks-cluster-name"] != clusterName {
		t.Errorf("instance: %+v", made[0])
	}
	refused, err := r.Refused()
	if err != nil || len(refused) != 0 {
		t.Errorf("refused: %q, %v", refused, err)
	}
	if r.Webhook.Taken("kerf-sweep") == 0 || r.Webhook.Taken("kerf-lifecycle") == 0 || len(r.Webhook.Refused()) != 0 {
		t.Errorf("tokens refused: %v", r.Webhook.Refused())
	}
	began = time.Now()
	r.EC2.Interrupt(made[0].ID)
	err = realtest.Eventually(ctx, 2*time.Minute, func() error {
		nodes, err := r.Cluster.Clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err == nil && len(nodes.Items) > 0 {
			err = errors.New("the node of an instance that was terminated is still there")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("the node is gone after %v", time.Since(began))
	// A missing verb is seen.
	if err := r.Cluster.Clientset.RbacV1().ClusterRoles().Delete(ctx, "kerf-sweep", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = realtest.Eventually(ctx, 20*time.Second, func() error {
		refused, err := r.Refused()
		if err == nil && (len(refused) == 0 || !strings.HasPrefix(refused[0], "kerf-sweep may not list /api/v1/pods")) {
			err = fmt.Errorf("refused: %q", refused)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	for _, p := range []string{"sweep", "lifecycle"} {
		report := r.Functions.Reports(nameOf(p))[0]
		t.Logf("%s: started in %v (%v of CPU), answered in %v", p, report.Init, report.InitCPU, report.Took)
	}
}

// unsaid are figures that EC2 does not describe: the table has them from elsewhere.
var unsaid = cmp.FilterPath(func(p cmp.Path) bool {
	return slices.Contains([]string{".Volumes", ".Branch", ".NetworkMbps", ".Labels"}, p.Last().String())
}, cmp.Ignore())

// TestWorld: EC2 describes the types as the embedded table has them.
func TestWorld(t *testing.T) {
	f, _ := newEC2(catalog.Default())
	found, err := instancetype.Types(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]catalog.InstanceType{}
	for _, one := range found {
		got[one.Type.Name] = one.Type
	}
	checked := 0
	for _, want := range catalog.Default().Types {
		if onDemand(&want) == 0 {
			continue
		}
		checked++
		want.Offerings = nil
		one := got[want.Name]
		one.Offerings = nil
		if one.ENI.Cards <= 1 && want.ENI.Cards <= 1 {
			one.ENI.Cards, want.ENI.Cards = 0, 0
		}
		if d := cmp.Diff(want, one, unsaid); d != "" {
			t.Errorf("%s: table (-), EC2 (+): %s", want.Name, d)
			if checked > 30 {
				break
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d types are there", checked)
	}
}
