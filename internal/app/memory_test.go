package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// rememberedWorld has one pool of m7g.large and m7g.xlarge, and three pods.
const rememberedWorld = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: node
  subnetSelectorTerms: [{tags: {Name: private}}]
  securityGroupSelectorTerms: [{tags: {Name: node}}]
status:
  conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T00:00:00Z"}]
  subnets: [{id: subnet-1, zone: us-east-1a, zoneID: use1-az1}, {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}]
  amis: [{id: ami-1, name: al2023, requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: given, namespace: ns, uid: u-1}
spec: {containers: [{name: a, image: a, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: ns, uid: u-2}
spec: {containers: [{name: a, image: a, resources: {requests: {cpu: "1", memory: 6Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: ns, uid: u-3}
spec: {nodeSelector: {topology.kubernetes.io/zone: us-east-1a}, containers: [{name: a, image: a, resources: {requests: {cpu: "3", memory: 2Gi}}}]}
`

// planTime is now: what a table holds expires by the clock.
var planTime = time.Now().UTC().Truncate(time.Second)

// remembering is a ledger in memory: a node without an object that pod given waits for, a
// shortage of m7g.xlarge in us-east-1a, and nodes of m7g.large that are smaller than thought.
func remembering(t *testing.T) *ledger.Memory {
	t.Helper()
	table := ledger.NewMemory("table-1")
	l := ledger.New(ledger.Config{Table: table, Cluster: "shop", Owner: "test", Now: func() time.Time { return planTime }})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.BeginRecovery(ctx, "new"))
	lease, err := l.AcquireRecovery(ctx, time.Minute)
	must(err)
	must(l.EndRecovery(ctx, lease))
	lease, err = l.Acquire(ctx, time.Minute)
	must(err)
	_, err = l.Commit(ctx, lease, []lifecycle.Record{{
		Claim: "general-abc", NodePool: "general", Phase: lifecycle.Intended, PlanID: "p", Created: planTime,
		Allocatable: snapshot.Resources{CPU: 1900, Memory: 6 << 30, Pods: 29}, Reserved: lifecycle.Usage{snapshot.CPU: 2000, snapshot.Nodes: 1},
		Spec: lifecycle.Spec{
			ClassRef:     snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
			Requirements: []snapshot.SelectorRequirement{{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"m7g.large"}}},
		},
		Nominated: []lifecycle.Pod{{Namespace: "ns", Name: "given", UID: "u-1", Since: planTime, At: planTime}},
	}}, nil)
	must(err)
	must(l.Shortage(ctx, lifecycle.Offer{InstanceType: "m7g.xlarge", Zone: "us-east-1a", CapacityType: "on-demand"}, "InsufficientInstanceCapacity"))
	class := &snapshot.NodeClass{AMIFamily: "AL2023", Spec: []byte(`{}`)}
	must(l.Learn(ctx, lifecycle.Learned{
		InstanceType: "m7g.large", ImageID: "ami-1", Shape: lifecycle.Shape(class, snapshot.DefaultSettings()),
		Allocatable: snapshot.Resources{CPU: 1930, Memory: 5 << 30, Pods: 29}, Seen: planTime,
	}))
	return table
}

func exported(t *testing.T, table *ledger.Memory) string {
	t.Helper()
	var b bytes.Buffer
	if err := ledger.New(ledger.Config{Table: table, Cluster: "shop", Now: func() time.Time { return planTime }}).Export(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ledger.json")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// served is DynamoDB as far as it is read, over HTTP, and the environment of a program
// that asks it.
func served(t *testing.T, table *ledger.Memory) {
	t.Helper()
	attributes := func(it ledger.Item) map[string]any {
		out := map[string]any{}
		for name, v := range it {
			switch {
			case v.Bytes() != nil:
				out[name] = map[string]any{"B": v.Bytes()}
			case v.Str() != "":
				out[name] = map[string]any{"S": v.Str()}
			default:
				out[name] = map[string]any{"N": fmt.Sprint(v.Int())}
			}
		}
		return out
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			TableName                 string
			Key                       map[string]struct{ S string }
			ExpressionAttributeValues map[string]struct{ S string }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var out any
		switch target := r.Header.Get("X-Amz-Target"); {
		case in.TableName != "kerf-shop":
			out = map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "message": "Requested resource not found"}
		case strings.HasSuffix(target, ".GetItem"):
			it, _ := table.Get(t.Context(), ledger.Key{PK: in.Key["pk"].S, SK: in.Key["sk"].S})
			if it == nil {
				out = map[string]any{}
				break
			}
			out = map[string]any{"Item": attributes(it)}
		case strings.HasSuffix(target, ".Query"):
			items, _, _ := table.Query(t.Context(), in.ExpressionAttributeValues[":v0"].S, "")
			rows := []any{}
			for _, it := range items {
				rows = append(rows, attributes(it))
			}
			out = map[string]any{"Items": rows, "Count": len(rows)}
		default:
			t.Errorf("%s: a plan writes nothing, and asks for nothing else", target)
		}
		answer, err := json.Marshal(out)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(answer)))
		if _, failed := out.(map[string]string); failed {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": server.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(k, v)
	}
}

// TestLedger: what the functions remember is part of the plan, from a file as from the
// table, and of the saved snapshot: that alone gives the same plan, byte for byte.
func TestLedger(t *testing.T) {
	table := remembering(t)
	served(t, table)
	dir := t.TempDir()
	world := filepath.Join(dir, "world.yaml")
	if err := os.WriteFile(world, []byte(rememberedWorld), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(more ...string) []string {
		return append([]string{"--catalog", "testdata/files/catalog.json"}, more...)
	}
	plan := func(status int, args ...string) (string, string) {
		t.Helper()
		got, out, errs := run(args, "")
		if got != status {
			t.Fatalf("%v: exit %d: %s", args, got, errs)
		}
		return out, errs
	}
	saved := filepath.Join(dir, "saved.json")
	text, _ := plan(0, with("-f", world, "--now", planTime.Format(time.RFC3339), "--ledger", exported(t, table), "--save-snapshot", saved)...)
	for _, want := range []string{
		"Plan for cluster shop", "1 pod waits for the node that it was given before",
		"1 offer is left alone until " + planTime.Add(3*time.Minute).Format(time.TimeOnly) + " (InsufficientInstanceCapacity): m7g.xlarge on-demand in us-east-1a",
		"InsufficientCapacity", "1 type, none of which is launched, counted by what nodes of it turned out to have",
		"m7g.xlarge on-demand us-east-1b", "general-abc",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	inJSON := func(args ...string) string {
		t.Helper()
		out, _ := plan(0, with(append(args, "-o", "json")...)...)
		return out
	}
	want := inJSON("-f", world, "--now", planTime.Format(time.RFC3339), "--ledger", exported(t, table))
	for name, args := range map[string][]string{
		"the table":                      {"-f", world, "--now", planTime.Format(time.RFC3339), "--ledger", "kerf-shop"},
		"the saved snapshot":             {"-f", saved},
		"the saved snapshot, and a file": {"-f", saved, "--ledger", exported(t, table)},
	} {
		if got := inJSON(args...); got != want {
			t.Errorf("%s gives another plan:\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := inJSON("-f", world, "--now", planTime.Format(time.RFC3339), "--cluster", "shop"); got == want || strings.Contains(got, "remembered") {
		t.Error("without the ledger it is the same plan")
	}
	// A node that only the ledger knows can be taken away to see what then.
	text, _ = plan(0, with("-f", world, "--now", planTime.Format(time.RFC3339), "--ledger", exported(t, table), "--remove", "node/general-abc", "--diff")...)
	if !strings.Contains(text, "general-abc") {
		t.Error(text)
	}
	for _, tc := range []struct{ ledger, cluster, want string }{
		{filepath.Join(dir, "none.json"), "shop", "no such file"},
		{world, "shop", "read the ledger as JSON"},
		{"kerf-other", "shop", "ResourceNotFoundException"},
		{exported(t, table), "elsewhere", `it is that of cluster "shop" and not of "elsewhere"`},
		{exported(t, ledger.NewMemory("empty")), "shop", "it holds no ledger"},
	} {
		_, errs := plan(2, with("-f", world, "--cluster", tc.cluster, "--ledger", tc.ledger)...)
		if !strings.Contains(errs, tc.want) || !strings.Contains(errs, "--ledger "+tc.ledger) {
			t.Errorf("%s: %s, want %q", tc.ledger, errs, tc.want)
		}
	}
}

// TestFunctionReadsTheLedger: it always does, says when it could not, and leaves a saved
// snapshot as it is.
func TestFunctionReadsTheLedger(t *testing.T) {
	table := remembering(t)
	served(t, table)
	ask := func(tableName string, objects ...string) map[string]any {
		t.Helper()
		fn, err := app.PlanFunction([]string{"AWS_REGION=us-east-1", "CLUSTER_NAME=shop", "KERF_TABLE=" + tableName})
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := os.ReadFile("testdata/files/catalog.json")
		if err != nil {
			t.Fatal(err)
		}
		payload, err := json.Marshal(map[string]any{"objects": objects, "now": planTime, "catalog": json.RawMessage(catalog)})
		if err != nil {
			t.Fatal(err)
		}
		out, err := fn.Handle(context.Background(), payload)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil || got["error"] != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return got
	}
	got := ask("kerf-shop", rememberedWorld)
	if got["remembered"] == nil || got["complete"] != true || got["cluster"] != "shop" {
		t.Errorf("with the ledger: %v", got)
	}
	lost := ask("kerf-gone", rememberedWorld)
	if text := fmt.Sprint(lost["warnings"]); lost["complete"] != false || lost["remembered"] != nil ||
		!strings.Contains(text, "LedgerNotRead") || !strings.Contains(text, "kerf-gone") || !strings.Contains(text, "ResourceNotFound") {
		t.Errorf("without: %v %v", lost["complete"], lost["warnings"])
	}

	saved := filepath.Join(t.TempDir(), "saved.json")
	world := filepath.Join(t.TempDir(), "world.yaml")
	if err := os.WriteFile(world, []byte(rememberedWorld), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run([]string{"-f", world, "--catalog", "testdata/files/catalog.json", "--now", planTime.Format(time.RFC3339), "--ledger", exported(t, table), "--save-snapshot", saved}, ""); status != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	if again := ask("kerf-gone", string(text)); again["planId"] != got["planId"] || again["complete"] != true {
		t.Errorf("the saved snapshot: plan %v, want %v; warnings %v", again["planId"], got["planId"], again["warnings"])
	}

	l := ledger.New(ledger.Config{Table: table, Cluster: "shop", Owner: "somebody", Now: func() time.Time { return planTime }})
	if err := l.BeginRecovery(t.Context(), "somebody restored it"); err != nil {
		t.Fatal(err)
	}
	if got := ask("kerf-shop", rememberedWorld); !strings.Contains(fmt.Sprint(got["warnings"]), "LedgerInRecovery") {
		t.Errorf("in recovery: %v", got["warnings"])
	}
}
