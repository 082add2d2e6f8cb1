package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
)

// restWorld is rememberedWorld with an empty node.
const restWorld = rememberedWorld + `---
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {karpenter.sh/nodepool: general, karpenter.sh/initialized: "true", node.kubernetes.io/instance-type: m7g.large, topology.kubernetes.io/zone: us-east-1a,
    karpenter.sh/capacity-type: on-demand, kubernetes.io/arch: arm64, kubernetes.io/os: linux, kubernetes.io/hostname: n1}
spec: {providerID: "aws:///us-east-1a/i-0123456789abcdef0"}
status: {capacity: {cpu: "2", memory: 8Gi, pods: "29"}, allocatable: {cpu: 100m, memory: 1Gi, pods: "29"}, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T00:00:00Z"}]}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-n1, labels: {karpenter.sh/nodepool: general}, creationTimestamp: "2026-03-01T00:00:00Z"}
spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, expireAfter: Never, requirements: []}
status:
  providerID: "aws:///us-east-1a/i-0123456789abcdef0"
  nodeName: n1
  conditions: [{type: Initialized, status: "True", reason: Initialized, message: "", lastTransitionTime: "2026-03-01T00:00:00Z"}]
`

// TestCoolDowns: a plan says which nodes rest because a move of theirs was taken back, as the
// ledger remembers it; a snapshot that was saved says so without the ledger.
func TestCoolDowns(t *testing.T) {
	table := ledger.NewMemory("table-2")
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
	_, err = l.SaveCommand(ctx, lease, lifecycle.Command{
		ID: "empty-1", Reason: "Empty", Phase: lifecycle.RolledBack, Why: "a pod came", Nodes: []string{"n1"}, Candidates: []string{"general-n1"}, Created: planTime, Changed: planTime,
	})
	must(err)
	dir := t.TempDir()
	world, saved := filepath.Join(dir, "world.yaml"), filepath.Join(dir, "saved.json")
	must(os.WriteFile(world, []byte(restWorld), 0o600))
	verdict := func(args ...string) string {
		t.Helper()
		status, out, errs := run(append(args, "--catalog", "testdata/files/catalog.json", "--now", planTime.Format(time.RFC3339), "--consolidate", "-o", "json"), "")
		if status != 0 {
			t.Fatal(errs)
		}
		var p struct {
			Moves []struct{ Remove []string }
			// Verdicts of nodes that stay.
			Verdicts []struct{ Object, Code, Detail string }
		}
		must(json.Unmarshal([]byte(out), &p))
		for _, v := range p.Verdicts {
			if v.Object == "node/n1" {
				return v.Code + ": " + v.Detail
			}
		}
		if len(p.Moves) == 1 {
			return "goes"
		}
		return "neither goes nor stays"
	}
	if got := verdict("-f", world); got != "goes" {
		t.Errorf("without the ledger: %s", got)
	}
	for _, args := range [][]string{{"-f", world, "--ledger", exported(t, table), "--save-snapshot", saved}, {"-f", saved}} {
		if got := verdict(args...); !strings.HasPrefix(got, "CoolingDown: ") || !strings.Contains(got, "a pod came") {
			t.Errorf("%v: %s", args, got)
		}
	}
}
