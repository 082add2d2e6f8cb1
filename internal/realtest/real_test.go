package realtest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/snapshot"
)

var (
	nodes = flag.Int("nodes", 20, "nodes of the cluster that is read")
	pods  = flag.Int("pods", 200, "pods of the cluster that is read")
)

const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: gvisor}
handler: runsc
overhead: {podFixed: {cpu: 50m, memory: 32Mi}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {storageClassName: gp3, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: shop}
spec: {limits: [{type: Container, defaultRequest: {cpu: 100m, memory: 64Mi}}]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {kerf: real}}]
  securityGroupSelectorTerms: [{tags: {kerf: real}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: 1000}
  template:
    spec:
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheaper}
spec:
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m7g]}]
  priceAdjustment: "-10%"
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: "true", other: x}}
    spec:
      priorityClassName: high
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 250m}}, ports: [{containerPort: 80, hostPort: 8080}]}
      volumes: [{name: cache, emptyDir: {}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {tolerations: [{operator: Exists}], containers: [{name: agent, image: agent, resources: {requests: {cpu: 50m, memory: 64Mi}}}]}
`

const oneClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1, labels: {karpenter.sh/nodepool: general}}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
  resources: {requests: {cpu: 1500m, memory: 2Gi}}
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
status:
  providerID: aws:///us-east-1a/i-00000000000000001
  capacity: {cpu: "8", memory: 31Gi}
  conditions: [{type: Launched, status: "True", reason: Launched, message: "", lastTransitionTime: "2026-11-30T10:00:00Z"}]
`

func machine(i int) Machine {
	return Machine{
		Name: fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", i/250, i%250), ProviderID: fmt.Sprintf("aws:///us-east-1a/i-%017x", i),
		Labels: map[string]string{
			"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "spot", "node.kubernetes.io/instance-type": "m7g.2xlarge",
			"topology.kubernetes.io/zone": "us-east-1" + string(rune('a'+i%3)), "kubernetes.io/arch": "arm64",
		},
		Capacity: map[string]string{"cpu": "8", "memory": "32Gi", "pods": "58", "ephemeral-storage": "100Gi"},
	}
}

// parallel runs f for 0..n-1, sixteen at a time.
func parallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var group sync.WaitGroup
	next := make(chan int)
	for range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				if err := f(i); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

func start(t *testing.T, o Options) (context.Context, *Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	wait := c.Kubelet(ctx)
	t.Cleanup(func() { cancel(); wait(); c.Stop() })
	return ctx, c
}

// TestLiveEqualsFiles: what is read from the API server is, byte for byte, what is read
// from its objects as kubectl writes them, and so is the plan.
func TestLiveEqualsFiles(t *testing.T) {
	ctx, c := start(t, Options{Scheduler: true, Controllers: true})
	if err := c.Create(ctx, objects); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, oneClaim); err != nil {
		t.Fatal(err)
	}
	err := Eventually(ctx, time.Minute, func() error {
		_, err := c.Clientset.CoreV1().ServiceAccounts("shop").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	parallel(t, *nodes, func(i int) error { _, err := c.Join(ctx, machine(i)); return err })
	parallel(t, *pods, func(i int) error {
		cpu := "500m"
		if i%10 == 0 {
			cpu = "64" // fits nowhere: it stays pending
		}
		_, err := c.Clientset.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i), Labels: map[string]string{"app": "many"}},
			Spec: corev1.PodSpec{PriorityClassName: "high", Containers: []corev1.Container{{Name: "app", Image: "app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}},
		}, metav1.CreateOptions{})
		return err
	})
	t.Logf("%d nodes and %d pods created in %v", *nodes, *pods, time.Since(began))
	client, err := live.New(c.Config, live.Options{PageSize: 37})
	if err != nil {
		t.Fatal(err)
	}
	// A machine that does much else answers late: what fails is asked again.
	err = Eventually(ctx, 10*time.Minute, func() error {
		if n, err := client.Metadata(ctx, "Pod"); err != nil || len(n) < *pods+3+*nodes {
			return fmt.Errorf("%d pods are there yet, %v", len(n), err) // DaemonSets take a while
		}
		before, err := fromCluster(ctx, client)
		if err != nil {
			return err
		}
		if !strings.Contains(before, `"name":"cheaper"`) || !strings.Contains(before, `"phase":"Running"`) {
			return fmt.Errorf("the cluster is not there yet")
		}
		files, err := fromFiles(ctx, c, t.TempDir())
		if err != nil {
			return err
		}
		after, err := fromCluster(ctx, client)
		switch {
		case err != nil:
			return err
		case before != after:
			return fmt.Errorf("the cluster does not settle: %s", firstDifference(before, after))
		case files != before:
			return fmt.Errorf("files and cluster differ: %s", firstDifference(files, before))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshotOf(ctx, t, client)
	if len(s.Nodes) != *nodes || len(s.Pods) < *pods+3+*nodes || len(s.Incomplete) != 0 {
		t.Errorf("%d nodes, %d pods, incomplete %q", len(s.Nodes), len(s.Pods), s.Incomplete)
	}
	dir := t.TempDir()
	how, err := writeFiles(ctx, c, dir)
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	plan := planned(t, "--kubeconfig", c.Kubeconfig)
	took := time.Since(began)
	files := planned(t, "-f", dir)
	t.Logf("planned from the kubeconfig in %v, from what %s wrote in %v: %d bytes", took, how, time.Since(began)-took, len(plan))
	if files != plan {
		t.Errorf("the plans of files and of the cluster differ: %s", firstDifference(files, plan))
	}
	if !strings.Contains(plan, `"launches"`) || !strings.Contains(plan, "shop/p-10") {
		t.Errorf("nothing was planned: %s", plan[:min(len(plan), 500)])
	}
	began = time.Now()
	pending, err := client.PendingPods(ctx)
	if err != nil || len(pending) < *pods/10 {
		t.Errorf("%d pods are pending, %v", len(pending), err)
	}
	t.Logf("pending pods asked for in %v", time.Since(began))
	metas, err := client.Metadata(ctx, "Node")
	if err != nil || len(metas) != *nodes || metas[0].Labels["karpenter.sh/nodepool"] != "general" {
		t.Errorf("%d metadata, %v", len(metas), err)
	}
	if metas, err = client.Metadata(ctx, "NodePool"); err != nil || len(metas) != 1 || metas[0].Version.UID == "" {
		t.Errorf("metadata of a custom resource: %v, %v", metas, err)
	}
}

var at = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func snapshotOf(ctx context.Context, t *testing.T, c *live.Client) *snapshot.Snapshot {
	t.Helper()
	s, _, err := kube.Read([]kube.Source{c.Source(ctx)}, kube.Options{Now: at})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fromCluster(ctx context.Context, c *live.Client) (string, error) {
	s, _, err := kube.Read([]kube.Source{c.Source(ctx)}, kube.Options{Now: at})
	if err != nil {
		return "", err
	}
	return text(s)
}

func text(s *snapshot.Snapshot) (string, error) {
	var b strings.Builder
	err := kube.Save(&b, s)
	return b.String(), err
}

// fromFiles writes every kind into a folder, and reads that.
func fromFiles(ctx context.Context, c *Cluster, dir string) (string, error) {
	if _, err := writeFiles(ctx, c, dir); err != nil {
		return "", err
	}
	sources, err := kube.Files([]string{dir}, io.MultiReader())
	if err != nil {
		return "", err
	}
	s, _, err := kube.Read(sources, kube.Options{Now: at})
	if err != nil {
		return "", err
	}
	return text(s)
}

// firstDifference is where two long texts part.
func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	around := func(s string) string { return s[max(0, min(i, len(s))-200):min(len(s), i+200)] }
	return fmt.Sprintf("at byte %d\n%s\n%s", i, around(a), around(b))
}

// writeFiles writes every kind into a folder: by kubectl, where the machine has it, else as
// the API server writes YAML.
func writeFiles(ctx context.Context, c *Cluster, dir string) (how string, err error) {
	kubectl, err := exec.LookPath("kubectl")
	if how = "kubectl get -o yaml"; err != nil {
		how = "the API server"
	}
	for _, k := range live.Kinds() {
		var raw []byte
		if kubectl != "" {
			name := k.Resource
			if k.Group != "" {
				name += "." + k.Group
			}
			cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", c.Kubeconfig, "get", name, "-A", "-o", "yaml")
			cmd.Env = append(os.Environ(), "HOME="+dir) // where it keeps what it found out
			var msg bytes.Buffer
			cmd.Stderr = &msg
			if raw, err = cmd.Output(); err != nil {
				return how, fmt.Errorf("kubectl get %s: %w: %s", name, err, msg.String())
			}
		} else if raw, err = c.Clientset.RESTClient().Get().AbsPath(listPath(k.Group, k.Resource)).SetHeader("Accept", "application/yaml").DoRaw(ctx); err != nil {
			return how, fmt.Errorf("list %s: %w", k.Resource, err)
		}
		if err := os.WriteFile(filepath.Join(dir, k.Resource+".yaml"), raw, 0o600); err != nil {
			return how, err
		}
	}
	return how, os.RemoveAll(filepath.Join(dir, ".kube"))
}

func listPath(group, resource string) string {
	version := "v1"
	switch resource {
	case "nodeoverlays":
		version = "v1alpha1"
	case "capacitybuffers":
		version = "v1beta1"
	}
	if group == "" {
		return "/api/v1/" + resource
	}
	return "/apis/" + group + "/" + version + "/" + resource
}

// planned is what the plan program answers.
func planned(t *testing.T, args ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	status := app.Main(append(args, "--now", "2026-11-30T12:00:00Z", "--region", "us-east-1", "--cluster", "real", "-o", "json"), nil, &out, &msg, nil)
	if status != 0 {
		t.Fatalf("plan %q: status %d: %s", args, status, msg.String())
	}
	return out.String()
}
