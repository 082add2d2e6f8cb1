package realtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/snapshot"
)

// TestWrites: every write against the real API server, and each a second time.
func TestWrites(t *testing.T) {
	ctx, c := start(t, Options{Scheduler: true, Controllers: true})
	if err := c.Create(ctx, objects); err != nil {
		t.Fatal(err)
	}
	client, err := live.New(c.Config, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pools, err := client.Metadata(ctx, "NodePool")
	if err != nil || len(pools) != 1 {
		t.Fatal(pools, err)
	}

	// A NodeClaim, made twice by one intent, and once by another.
	n := live.NewNodeClaim{Creation: "intent-1", Pool: live.Owner{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "general", UID: pools[0].Version.UID}}
	n.Claim = snapshot.NodeClaim{
		Name: "general-abcde", Labels: map[string]string{"karpenter.sh/nodepool": "general"},
		Requirements:  []snapshot.SelectorRequirement{{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"spot"}}},
		StartupTaints: []snapshot.Taint{{Key: "wait", Effect: "NoSchedule"}},
		Requests:      snapshot.Resources{CPU: 1500, Memory: 2 << 30, Pods: 4},
		ClassRef:      snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}, ExpireAfter: "720h",
	}
	uid, err := client.CreateNodeClaim(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.CreateNodeClaim(ctx, n)
	if err != nil || again != uid {
		t.Errorf("made again: %q, %v; want %q", again, err, uid)
	}
	other := n
	other.Creation = "intent-2"
	if _, err := client.CreateNodeClaim(ctx, other); !errors.Is(err, live.ErrConflict) {
		t.Errorf("another intent took the name: %v", err)
	}
	bad := n
	bad.Claim.Name, bad.Claim.ClassRef.Kind = "general-bad", ""
	if _, err := client.CreateNodeClaim(ctx, bad); !errors.Is(err, live.ErrInvalid) {
		t.Errorf("an invalid claim: %v", err)
	}

	// Its status, which shows in the columns of kubectl.
	status := live.ClaimStatus(&snapshot.NodeClaim{
		ProviderID: "aws:///us-east-1a/i-1", NodeName: "n-1", ImageID: "ami-1", Capacity: snapshot.Resources{CPU: 8000, Memory: 32 << 30, Pods: 58},
		Conditions: []snapshot.Condition{{Type: "Launched", Status: "True", Since: at}, {Type: "Ready", Status: "False", Reason: "NotRegistered", Since: at}},
	})
	for i, want := range []bool{true, false} {
		if changed, err := client.PatchStatus(ctx, "NodeClaim", "general-abcde", uid, status); err != nil || changed != want {
			t.Errorf("status, time %d: changed %v, %v", i+1, changed, err)
		}
	}
	if _, err := client.PatchStatus(ctx, "NodeClaim", "general-abcde", "no-such-uid", status); !errors.Is(err, live.ErrConflict) {
		t.Errorf("the status of another claim of the name: %v", err)
	}
	later := live.Status{Conditions: []snapshot.Condition{{Type: "Launched", Status: "True", Since: at.Add(time.Hour)}, {Type: "Ready", Status: "True", Since: at.Add(time.Hour)}}}
	if changed, err := client.PatchStatus(ctx, "NodeClaim", "general-abcde", uid, later); err != nil || !changed {
		t.Errorf("ready: %v, %v", changed, err)
	}
	if changed, err := client.PatchStatus(ctx, "NodePool", "general", "", live.Status{
		Fields: map[string]any{"resources": map[string]string{"cpu": "8"}}, Conditions: []snapshot.Condition{{Type: "Ready", Status: "True", Since: at}}}); err != nil || !changed {
		t.Errorf("status of the pool: %v, %v", changed, err)
	}
	if changed, err := client.PatchStatus(ctx, "EC2NodeClass", "default", "", live.Status{Conditions: []snapshot.Condition{{Type: "SubnetsReady", Status: "False", Reason: "SubnetsNotFound", Message: "none", Since: at}}}); err != nil || !changed {
		t.Errorf("status of the class: %v, %v", changed, err)
	}

	// A Node: everything of its registration in one write.
	m := machine(1)
	m.Taints = []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
	node, err := c.Join(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	change := live.NodeChange{
		Labels: map[string]string{"karpenter.sh/registered": "true"}, Annotations: map[string]string{"karpenter.sh/x": "1"},
		Taints: []snapshot.Taint{{Key: "wait", Effect: "NoSchedule"}}, DropTaints: []snapshot.Taint{{Key: "karpenter.sh/unregistered"}},
		Finalizer: live.TerminationFinalizer, Owner: &live.Owner{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "general-abcde", UID: uid},
	}
	for i, want := range []bool{true, false} {
		if changed, err := client.ChangeNode(ctx, m.Name, string(node.UID), change); err != nil || changed != want {
			t.Errorf("node, time %d: changed %v, %v", i+1, changed, err)
		}
	}
	got, err := c.Clientset.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil || got.Labels["karpenter.sh/registered"] != "true" || len(got.Finalizers) != 1 || len(got.OwnerReferences) != 1 {
		t.Errorf("the node has labels %v, finalizers %v, owners %v, %v", got.Labels, got.Finalizers, got.OwnerReferences, err)
	}
	for _, taint := range got.Spec.Taints {
		if taint.Key == "karpenter.sh/unregistered" {
			t.Error("the taint is still there")
		}
	}
	// A cordon with its mark, and the end of both with the taint that the controller adds.
	for _, on := range []bool{true, false} {
		change := live.NodeChange{Unschedulable: &on, Annotations: map[string]string{"kerf.sh/mark": "1"}}
		if !on {
			change = live.NodeChange{
				Unschedulable: &on, DropAnnotations: []string{"kerf.sh/mark", "kerf.sh/none"},
				DropTaints: []snapshot.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}},
			}
		}
		errs := client.ChangeNodes(ctx, []api.NodeName{{Name: m.Name, UID: string(node.UID)}, {Name: m.Name, UID: "no-such-uid"}, {Name: "no-such-node", UID: string(node.UID)}}, change)
		if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], live.ErrConflict) || !errors.Is(errs[2], live.ErrNotFound) {
			t.Errorf("cordon %t: %v", on, errs)
		}
		n, err := c.Clientset.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if _, marked := n.Annotations["kerf.sh/mark"]; err != nil || n.Spec.Unschedulable != on || marked != on || n.Annotations["karpenter.sh/x"] != "1" {
			t.Errorf("cordoned %t with annotations %v, want %t, %v", n.Spec.Unschedulable, n.Annotations, on, err)
		}
		tainted := func() (bool, error) {
			n, err := c.Clientset.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
			return err == nil && slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == "node.kubernetes.io/unschedulable" }), err
		}
		if on {
			err = Eventually(ctx, time.Minute, func() error {
				if there, err := tainted(); err != nil || !there {
					return fmt.Errorf("the controller has not put its taint on: %v", err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		} else if there, err := tainted(); err != nil || there {
			t.Errorf("the taint of the cordon is there: %t, %v", there, err)
		}
	}
	s := snapshotOf(ctx, t, client)
	if len(s.NodeClaims) != 1 {
		t.Fatalf("%d claims", len(s.NodeClaims))
	}
	read := s.NodeClaims[0]
	if launched := snapshot.FindCondition(read.Conditions, "Launched"); launched == nil || !launched.Since.Equal(at) {
		t.Errorf("a condition that stays has another time: %+v", launched)
	}
	if ready := snapshot.FindCondition(read.Conditions, "Ready"); ready == nil || ready.Status != "True" || !ready.Since.Equal(at.Add(time.Hour)) {
		t.Errorf("Ready: %+v", ready)
	}
	if read.Requests.CPU != 1500 || read.Requests.Memory != 2<<30 || read.Capacity.Memory != 32<<30 || read.ProviderID != "aws:///us-east-1a/i-1" {
		t.Errorf("read back: %+v", read)
	}

	// An event, once for its key; too long a note is cut.
	for i, want := range []bool{true, false} {
		fresh, err := client.Emit(ctx, live.Event{Object: api.Reference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "general-abcde"}, Key: "launched", Reason: "Launched", Action: "Launch",
			Note: strings.Repeat("é", 2000), Time: at, Controller: "kerf.sh/sweep", Instance: "test"})
		if err != nil || fresh != want {
			t.Errorf("event, time %d: %v, %v", i+1, fresh, err)
		}
	}

	// The end: deleted, held by its finalizer, let go; each twice.
	for range 2 {
		if err := client.Delete(ctx, "NodeClaim", "", "general-abcde", "no-such-uid"); err != nil {
			t.Errorf("delete another: %v", err)
		}
	}
	if o, err := client.NodeClaim(ctx, "general-abcde"); err != nil || !o.Deleting.IsZero() {
		t.Errorf("another UID deleted it: %+v, %v", o, err)
	}
	for range 2 {
		if err := client.Delete(ctx, "NodeClaim", "", "general-abcde", uid); err != nil {
			t.Error(err)
		}
		if o, err := client.NodeClaim(ctx, "general-abcde"); err != nil || o.Deleting.IsZero() {
			t.Errorf("it is not held: %+v, %v", o, err)
		}
	}
	for range 2 {
		if err := client.RemoveFinalizer(ctx, "NodeClaim", "general-abcde", uid, live.TerminationFinalizer); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.NodeClaim(ctx, "general-abcde"); !errors.Is(err, live.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestEviction: BC-32, with the disruption controller's own budgets.
func TestEviction(t *testing.T) {
	ctx, c := start(t, Options{Scheduler: true, Controllers: true})
	if err := c.Create(ctx, objects); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := c.Join(ctx, machine(i)); err != nil {
			t.Fatal(err)
		}
	}
	client, err := live.New(c.Config, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	web := func() (out []snapshot.Pod) {
		for _, p := range snapshotOf(ctx, t, client).Pods {
			if p.Labels["app"] == "web" && p.Ready != nil && p.Deleting.IsZero() {
				out = append(out, p)
			}
		}
		return out
	}
	allowed := func(n int32) error {
		b, err := c.Clientset.PolicyV1().PodDisruptionBudgets("shop").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && b.Status.DisruptionsAllowed != n {
			err = fmt.Errorf("the budget allows %d", b.Status.DisruptionsAllowed)
		}
		return err
	}
	if err := Eventually(ctx, 2*time.Minute, func() error { return allowed(1) }); err != nil {
		t.Fatal(err)
	}
	pods := web()
	name := func(p snapshot.Pod) live.PodName {
		return live.PodName{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
	}
	if waits, err := client.Nominate(ctx, name(pods[0]), "n"); err != nil || waits {
		t.Errorf("nominate for a bound pod: %v, %v", waits, err)
	}
	if err := c.Create(ctx, "apiVersion: v1\nkind: Pod\nmetadata: {name: big, namespace: shop}\nspec: {containers: [{name: app, image: app, resources: {requests: {cpu: 64}}}]}\n"); err != nil {
		t.Fatal(err)
	}
	big, err := client.Pod(ctx, "shop", "big")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"ip-10-0-0-9.ec2.internal", "ip-10-0-0-9.ec2.internal", ""} {
		if waits, err := client.Nominate(ctx, name(big), node); err != nil || !waits {
			t.Errorf("nominate: %v, %v", waits, err)
		}
		if p, err := client.Pod(ctx, "shop", "big"); err != nil || p.NominatedNode != node {
			t.Errorf("nominated: %q, want %q, %v", p.NominatedNode, node, err)
		}
	}
	wrong := name(pods[0])
	wrong.UID = "no-such-uid"
	if there, err := client.Evict(ctx, wrong, nil); err != nil || there {
		t.Errorf("a pod of another UID: %v, %v", there, err)
	}
	other := name(big)
	other.UID = "no-such-uid"
	if there, err := client.Nominate(ctx, other, "x"); err != nil || there {
		t.Errorf("nominate for a pod of another UID: %v, %v", there, err)
	}
	if there, err := client.Evict(ctx, name(pods[0]), nil); err != nil || !there {
		t.Fatalf("evict: %v, %v", there, err)
	}
	_, err = client.Evict(ctx, name(pods[1]), nil)
	if !errors.Is(err, live.ErrBlocked) || !strings.Contains(err.Error(), "disruption budget web needs 2 healthy pods and has 2 currently") {
		t.Errorf("a second eviction: %v", err)
	}
	gone := func() error {
		there, err := client.Evict(ctx, name(pods[0]), nil)
		if err == nil && there {
			err = errors.New("it is still going")
		}
		return err
	}
	if err := Eventually(ctx, time.Minute, gone); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
	// Two budgets over one pod: the API server evicts it for nobody.
	if err := Eventually(ctx, time.Minute, func() error { return allowed(1) }); err != nil {
		t.Fatal(err)
	}
	err = c.Create(ctx, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: twice, namespace: shop}\nspec: {minAvailable: 0, selector: {matchLabels: {app: web}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Evict(ctx, name(web()[0]), nil); !errors.Is(err, live.ErrBlocked) || !strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
		t.Errorf("two budgets: %v", err)
	}

	// A user without permissions is told which one is missing.
	path, err := c.User("nobody", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := live.New(config, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		do   func() error
		want string
	}{
		{func() error { _, err := nobody.PendingPods(ctx); return err }, `lacks verb "list" on resource "pods" of API group ""`},
		{func() error { _, err := nobody.Evict(ctx, name(pods[1]), nil); return err }, `lacks verb "get" on resource "pods" of API group ""`},
		{func() error { _, err := nobody.Nominate(ctx, name(pods[1]), "n"); return err }, `lacks verb "patch" on resource "pods/status"`},
		{func() error { _, err := nobody.PatchStatus(ctx, "NodePool", "general", "", live.Status{}); return err }, `lacks verb "get" on resource "nodepools" of API group "karpenter.sh"`},
		{func() error {
			_, err := nobody.ChangeNode(ctx, "ip-10-0-0-1.ec2.internal", "", live.NodeChange{})
			return err
		}, `lacks verb "get" on resource "nodes"`},
	} {
		if err := tt.do(); !errors.Is(err, live.ErrForbidden) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
