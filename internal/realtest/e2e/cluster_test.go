//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
)

func (r *Rig) apply(ctx context.Context, t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		text, err := os.ReadFile("testdata/" + f)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Cluster.Create(ctx, string(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// path of the objects of Karpenter's that tests look at.
const (
	claimsPath  = "/apis/karpenter.sh/v1/nodeclaims"
	poolsPath   = "/apis/karpenter.sh/v1/nodepools"
	classesPath = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
)

func (r *Rig) list(ctx context.Context, path string) ([]unstructured.Unstructured, error) {
	raw, err := r.Cluster.Clientset.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var out unstructured.UnstructuredList
	err = json.Unmarshal(raw, &out)
	return out.Items, err
}

// condition is the status of a condition with its reason, "" when it is not there.
func condition(u *unstructured.Unstructured, name string) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == name {
			return fmt.Sprintf("%v %v: %v", m["status"], m["reason"], m["message"])
		}
	}
	return ""
}

// conditions are all of them.
func conditions(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var out []string
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprintf("%v=%v(%v: %v)", m["type"], m["status"], m["reason"], m["message"]))
		}
	}
	return strings.Join(out, ", ")
}

// columns are what kubectl get -o wide prints of a kind: for each object, by name, the cells
// by column.
func (r *Rig) columns(ctx context.Context, path string) (map[string]map[string]string, error) {
	raw, err := r.Cluster.Clientset.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, row := range table.Rows {
		cells := map[string]string{}
		for i, c := range table.ColumnDefinitions {
			if row.Cells[i] != nil {
				cells[c.Name] = fmt.Sprint(row.Cells[i])
			} else {
				cells[c.Name] = ""
			}
		}
		out[cells["Name"]] = cells
	}
	return out, nil
}

// ledger reads what the functions have written down.
func (r *Rig) ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{Table: ledger.NewDynamoDB(r.Dynamo, tableName), Cluster: clusterName, Owner: "e2e", Now: time.Now})
}

// meant is where the first plan wanted pods: the NodeClaim that a pod was first nominated
// for, by its UID, and the node that the claim became.
type meant struct {
	mu     sync.Mutex
	claims map[string]string
	nodes  map[string]string
}

// watch reads the records again and again until ctx ends.
func (r *Rig) watch(ctx context.Context) *meant {
	m := &meant{claims: map[string]string{}, nodes: map[string]string{}}
	go func() {
		l := r.ledger()
		for ctx.Err() == nil {
			records, err := l.Records(ctx)
			if err == nil {
				m.see(records)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return m
}

func (m *meant) see(records []lifecycle.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rec := range records {
		for _, p := range rec.Nominated {
			if m.claims[p.UID] == "" {
				m.claims[p.UID] = rec.Claim
			}
		}
		if rec.Node != "" {
			m.nodes[rec.Claim] = rec.Node
		}
	}
}

// kept is how many pods run where the plan wanted them, and how many nodes it wanted. Pods of
// one Deployment are alike: the plan says how many of them a node takes.
func (m *meant) kept(pods []corev1.Pod) (kept, nodes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type share struct{ node, app string }
	want, claims := map[share]int{}, map[string]bool{}
	for _, p := range pods {
		claim := m.claims[string(p.UID)]
		claims[claim] = true
		want[share{m.nodes[claim], p.Labels["app"]}]++
	}
	for _, p := range pods {
		s := share{p.Spec.NodeName, p.Labels["app"]}
		if want[s] > 0 {
			want[s]--
			kept++
		}
	}
	return kept, len(claims)
}

// running are the pods of a namespace; an error until there are so many and all run.
func (r *Rig) running(ctx context.Context, namespace string, n int) ([]corev1.Pod, error) {
	list, err := r.Cluster.Clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	waiting := map[string]string{}
	for _, p := range list.Items {
		if len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind == "DaemonSet" {
			continue
		}
		out = append(out, p)
		if p.Status.Phase != corev1.PodRunning {
			waiting[p.Name] = string(p.Status.Phase) + " nominated=" + p.Status.NominatedNodeName
		}
	}
	if len(out) != n || len(waiting) > 0 {
		return out, fmt.Errorf("%d pods of %d are there, and these wait: %v; machines: %v", len(out), n, waiting, r.Machines.Failed())
	}
	return out, nil
}

// living are the instances that run or will.
func (r *Rig) living() map[string]types.InstanceStateName {
	out := map[string]types.InstanceStateName{}
	for _, i := range r.EC2.Machines() {
		if s := i.State(time.Now()); s == types.InstanceStateNameRunning || s == types.InstanceStateNamePending {
			out[i.ID] = s
		}
	}
	return out
}

// ready is nil when every NodeClaim is Ready and every column of it is filled.
func (r *Rig) ready(ctx context.Context) error {
	claims, err := r.list(ctx, claimsPath)
	if err != nil {
		return err
	}
	for i := range claims {
		if c := condition(&claims[i], "Ready"); !strings.HasPrefix(c, "True") {
			return fmt.Errorf("nodeclaim %s: %s", claims[i].GetName(), conditions(&claims[i]))
		}
	}
	cells, err := r.columns(ctx, claimsPath)
	if err != nil {
		return err
	}
	if len(cells) != len(claims) || len(claims) == 0 {
		return fmt.Errorf("%d nodeclaims, %d rows", len(claims), len(cells))
	}
	for name, row := range cells {
		for column, cell := range row {
			// A node that has not drifted says nothing there.
			if cell == "" && column != "Drifted" {
				return fmt.Errorf("nodeclaim %s: column %s is empty: %v", name, column, row)
			}
		}
	}
	return nil
}

// clean reports what should not have happened in any scenario: requests that were refused
// for want of a permission, invocations that failed, machines that could not join, messages
// that died.
func (r *Rig) clean(t *testing.T) {
	t.Helper()
	refused, err := r.Refused()
	if err != nil {
		t.Error(err)
	}
	slices.Sort(refused)
	for _, one := range slices.Compact(refused) {
		t.Errorf("refused: %s", one)
	}
	for _, err := range r.Failed() {
		t.Errorf("failed: %v", err)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Machines.Failed())) {
		t.Errorf("machine %s: %v", id, r.Machines.Failed()[id])
	}
	for _, body := range r.AWS.Queues.Waiting(deadQueue) {
		t.Errorf("dead letter: %s", body)
	}
	for _, p := range programs {
		for _, report := range r.Functions.Reports(nameOf(p)) {
			if report.Cold {
				t.Logf("%s: started in %v, %v of CPU", p, report.Init.Round(time.Millisecond), report.InitCPU.Round(time.Millisecond))
			}
		}
	}
}
