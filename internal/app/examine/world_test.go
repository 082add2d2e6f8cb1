package examine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"kerf.sh/kerf/internal/cloud/checkup"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a cluster, its account, and the ledger.
type world struct {
	aws    *fakeAWS
	kube   fakeKube
	memory *ledger.Memory
	x      *Examiner
}

// fakeKube is the API server.
type fakeKube struct {
	objects string
	deny    string // verb and resource
	down    error
	auth    map[string]string
	leases  []live.LeaseState
	missing string // definition
}

func (k *fakeKube) denied(verb, resource, name string) error {
	if k.down != nil {
		return k.down
	}
	if k.deny == verb+" "+resource {
		return &live.Error{Verb: verb, Resource: resource, Name: name, Is: live.ErrForbidden, Detail: "no"}
	}
	return nil
}

func (k *fakeKube) Get(_ context.Context, t live.Target) (json.RawMessage, error) {
	if err := k.denied("get", t.Resource, t.Name); err != nil {
		return nil, err
	}
	if t.Name == k.missing {
		return nil, &live.Error{Is: live.ErrNotFound}
	}
	return json.RawMessage(`{"spec":{"versions":[{"name":"v1beta1","served":false},{"name":"v1","served":true}]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`), nil
}

func (k *fakeKube) Leases(context.Context, string) ([]live.LeaseState, error) {
	return k.leases, k.denied("list", "leases", "")
}

func (k *fakeKube) ConfigMap(_ context.Context, namespace, name string) (map[string]string, error) {
	if namespace != "kube-system" || name != "aws-auth" {
		return nil, errors.New("another ConfigMap")
	}
	if err := k.denied("get", "configmaps", name); err != nil {
		return nil, err
	}
	if k.auth == nil {
		return nil, &live.Error{Is: live.ErrNotFound}
	}
	return k.auth, nil
}

func (k *fakeKube) Read(_ context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	if err := k.denied("list", "pods", ""); err != nil {
		return nil, nil, err
	}
	sources, err := kube.Files([]string{"-"}, strings.NewReader(k.objects))
	if err != nil {
		return nil, nil, err
	}
	s, report, err := kube.Read(sources, kube.Options{Cluster: "prod", Region: "us-east-1", Now: now, Settings: snapshot.DefaultSettings()})
	if err != nil {
		return nil, nil, err
	}
	return s, report.Warnings, nil
}

const manifests = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general, uid: u-pool}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      startupTaints: [{key: agent, effect: NoSchedule}]
      expireAfter: Never
      requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-11-30T11:00:00Z"}]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default, uid: u-class, generation: 1}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{name: nodes}]
status:
  conditions: [{type: Ready, status: "True", reason: Ready, message: "", observedGeneration: 1, lastTransitionTime: "2026-11-30T11:00:00Z"}]
  subnets: [{id: subnet-a, zone: us-east-1a}, {id: subnet-b, zone: us-east-1b}]
  amis: [{id: ami-1, name: al2023, requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]
---
apiVersion: v1
kind: Node
metadata: {name: n-1, labels: {karpenter.sh/nodepool: general, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}, creationTimestamp: "2026-11-30T10:00:00Z"}
spec: {providerID: "aws:///us-east-1a/i-1"}
status: {conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-11-30T10:01:00Z"}], capacity: {cpu: "4", memory: 16Gi, pods: "50"}, allocatable: {cpu: "4", memory: 15Gi, pods: "50"}}
`

// template are the resources of the stack's golden template, by logical id.
func template(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "infra", "autoscaler", "testdata", "template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tm struct {
		Resources map[string]struct{ Type string }
	}
	if err := json.Unmarshal(text, &tm); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for id, r := range tm.Resources {
		out[id] = r.Type
	}
	return out
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		aws: &fakeAWS{template: template(t), calls: map[string]bool{}, gone: map[string]bool{}, authMode: ekstypes.AuthenticationModeApiAndConfigMap,
			pass: "allowed", nodeMay: "allowed", now: now.Add(-10 * time.Minute)},
		kube: fakeKube{objects: manifests}, memory: ledger.NewMemory("table"),
	}
	open := ledger.New(ledger.Config{Table: w.memory, Cluster: "prod", Owner: "test", Now: func() time.Time { return now }, Wait: func(context.Context, int) error { return nil }})
	if err := open.BeginRecovery(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	lease, err := open.AcquireRecovery(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := open.EndRecovery(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	a := w.aws
	w.x = &Examiner{
		Cluster: "prod", Region: "us-east-1", Now: func() time.Time { return now },
		Cloud: &checkup.Checkup{Stacks: a, Functions: a, Schedules: a, Rules: a, Queues: a, Alarms: a, Identities: a, Cluster: a, EC2: a, Quotas: a, Caller: a, Stack: "kerf-prod", Timeout: time.Second},
		Kube:  func(context.Context) (Cluster, error) { return &w.kube, nil },
		Memory: func(table string) Memory {
			if table != "ledger" {
				t.Errorf("table %q", table)
			}
			return open
		},
		Images: func(_ context.Context, c *nodeclass.Class, version string) ([]nodeclass.Image, error) {
			if version != "1.33" {
				t.Errorf("Kubernetes %s", version)
			}
			return []nodeclass.Image{{ID: "ami-1"}}, nil
		},
		Instances: func(context.Context, string) ([]launch.Described, error) {
			var out []launch.Described
			for _, i := range a.instances {
				out = append(out, launch.Described{ID: *i.InstanceId, State: "running", Type: "m7g.large", Launched: *i.LaunchTime, Tags: map[string]string{"karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default"}})
			}
			return out, nil
		},
	}
	return w
}

func (w *world) examine(t *testing.T) *doctor.Report {
	t.Helper()
	return doctor.Examine(w.x.Facts(t.Context()))
}
