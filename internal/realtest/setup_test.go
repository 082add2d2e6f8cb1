package realtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/kube/setup"
	"kerf.sh/kerf/internal/snapshot"
)

// TestSetup: an empty cluster is set up, twice, and then serves Karpenter's kinds; each
// function may what it needs and not what others may; what goes leaves the definitions.
func TestSetup(t *testing.T) {
	ctx, c := start(t, Options{NoCRDs: true})
	client, err := live.New(c.Config, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := &setup.Installer{API: client, Version: "1.36", Mode: setup.Apply, Now: time.Now,
		Karpenter: func(context.Context) (string, error) { return "", nil },
		Wait:      func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }}
	rep, err := x.Install(ctx)
	if err != nil || len(rep.Left)+len(rep.Notes) > 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	flows, err := c.Clientset.FlowcontrolV1().FlowSchemas().Get(ctx, "kerf", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := x.Install(ctx); err != nil || !slices.Equal(rep.Applied, again.Applied) {
		t.Errorf("again: %+v, %v", again, err)
	}
	if after, err := c.Clientset.FlowcontrolV1().FlowSchemas().Get(ctx, "kerf", metav1.GetOptions{}); err != nil || after.Generation != flows.Generation {
		t.Errorf("applied again it is another one: generation %d, was %d, %v", after.Generation, flows.Generation, err)
	}
	err = Eventually(ctx, time.Minute, func() error { return c.Create(ctx, classAndPool) })
	if err != nil {
		t.Errorf("objects of Karpenter's kinds: %v", err)
	}
	for _, tt := range []struct {
		function, verb, group, resource string
		want                            bool
	}{
		{"plan", "list", "", "pods", true}, {"plan", "patch", "", "nodes", false}, {"interruption", "patch", "", "nodes", true}, {"interruption", "delete", "", "nodes", false},
		{"lifecycle", "create", "", "pods/eviction", true}, {"sweep", "create", "", "pods/eviction", false}, {"sweep", "create", "karpenter.sh", "nodeclaims", true},
		{"catalog", "patch", "karpenter.k8s.aws", "ec2nodeclasses/status", true}, {"catalog", "list", "", "secrets", false}, {"lifecycle", "get", "", "secrets", false},
	} {
		resource, sub, _ := strings.Cut(tt.resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "role", Groups: []string{setup.Group(tt.function)},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: tt.verb, Group: tt.group, Resource: resource, Subresource: sub}}}
		// The authorizer hears of new roles with a delay.
		err := Eventually(ctx, 30*time.Second, func() error {
			got, err := c.Clientset.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && got.Status.Allowed != tt.want {
				err = errNotYet
			}
			return err
		})
		if err != nil {
			t.Errorf("%s may %s %s: want %t: %v", tt.function, tt.verb, tt.resource, tt.want, err)
		}
	}
	planLooks(ctx, t, c)
	if gone, err := x.Uninstall(ctx); err != nil || len(gone.Removed) != 2*len(setup.Functions)+2 {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := c.Clientset.RbacV1().ClusterRoles().Get(ctx, "kerf-sweep", metav1.GetOptions{}); err == nil {
		t.Error("a role is left")
	}
	if pools, err := client.Metadata(ctx, "NodePool"); err != nil || len(pools) != 1 {
		t.Errorf("NodePools are gone with the functions: %v, %v", pools, err)
	}
}

// planLooks: in its group the plan function may read all that plans are made on and what the
// doctor looks at, and no other ConfigMap than aws-auth.
func planLooks(ctx context.Context, t *testing.T, c *Cluster) {
	t.Helper()
	as := rest.CopyConfig(c.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "role", Groups: []string{setup.Group("plan"), "system:authenticated"}}
	client, err := live.New(as, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, warnings, err := app.NewCluster(client, "prod", "us-east-1", snapshot.DefaultSettings()).Read(ctx, time.Now())
	if err != nil || len(s.Incomplete) > 0 || len(s.NodePools) != 1 {
		t.Errorf("a reading as the plan function: %v, %v, %v", err, warnings, s)
	}
	crd := live.Target{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Name: "nodepools.karpenter.sh"}
	if _, err := client.Get(ctx, crd); err != nil {
		t.Errorf("a definition: %v", err)
	}
	if _, err := client.Leases(ctx, "karpenter-leader-election"); err != nil {
		t.Errorf("Karpenter's lease: %v", err)
	}
	if _, err := client.ConfigMap(ctx, "kube-system", "aws-auth"); !errors.Is(err, live.ErrNotFound) {
		t.Errorf("aws-auth, which is not there: %v", err)
	}
	if _, err := client.ConfigMap(ctx, "kube-system", "extension-apiserver-authentication"); !errors.Is(err, live.ErrForbidden) {
		t.Errorf("a ConfigMap of others: %v", err)
	}
	data := map[string]string{"mapRoles": "- {rolearn: x, groups: [system:nodes]}"}
	if _, err := c.Clientset.CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "aws-auth"}, Data: data}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := client.ConfigMap(ctx, "kube-system", "aws-auth"); err != nil || got["mapRoles"] != data["mapRoles"] {
		t.Errorf("aws-auth: %v, %v", got, err)
	}
}

type notYet struct{}

func (notYet) Error() string { return "it is otherwise" }

var errNotYet = notYet{}

const classAndPool = `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: nodes
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
`

// TestDefinitionsAreUpstream: what is embedded is what Karpenter's module has.
func TestDefinitionsAreUpstream(t *testing.T) {
	if !slices.ContainsFunc(crdModules, func(m string) bool { return strings.HasSuffix(m, "@"+setup.KarpenterVersion) }) {
		t.Errorf("definitions of Karpenter %s, tests with %v", setup.KarpenterVersion, crdModules)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./scripts/crds", "-check")
	cmd.Dir = "../.."
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
