//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest"
)

// webOf is a Deployment of pods that ask for CPU and memory.
func webOf(name string, replicas int, cpu, memory, more string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: app, resources: {requests: {cpu: %[3]q, memory: %[4]q}}}]
%[5]s`, name, replicas, cpu, memory, more)
}

// once makes a hook that does something at the first call of an operation.
func once(op string, f func(ec2fake.Call) ec2fake.Fault) func(ec2fake.Call) ec2fake.Fault {
	var mu sync.Mutex
	done := false
	return func(c ec2fake.Call) ec2fake.Fault {
		mu.Lock()
		defer mu.Unlock()
		if done || c.Op != op {
			return ec2fake.Fault{}
		}
		done = true
		return f(c)
	}
}

// TestLostAnswer: CreateFleet launches and its answer is lost; every message comes twice;
// there are exactly the nodes that one plan wanted.
func TestLostAnswer(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second, Twice: true})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	lose := once("CreateFleet", func(ec2fake.Call) ec2fake.Fault {
		return ec2fake.Fault{After: ec2fake.Error("InternalError", "An internal error has occurred")}
	})
	r.EC2.Lock(func() { r.EC2.Hook = lose })
	if err := r.Cluster.Create(ctx, webOf("web", 4, "1500m", "2Gi", "      nodeSelector: {karpenter.sh/capacity-type: on-demand}\n")); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 4); return err }); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { return r.ready(ctx) }); err != nil {
		t.Fatal(err)
	}
	tokens := map[string]int{}
	for _, c := range r.EC2.Calls("CreateFleet") {
		tokens[*c.In.(*ec2.CreateFleetInput).ClientToken]++
	}
	claims, err := r.list(ctx, claimsPath)
	if err != nil {
		t.Fatal(err)
	}
	if made := len(r.EC2.Machines()); made != len(claims) || len(r.living()) != made {
		t.Errorf("%d instances were made and %d live for %d nodeclaims; CreateFleet by token: %v", made, len(r.living()), len(claims), tokens)
	}
	repeated := false
	for _, n := range tokens {
		repeated = repeated || n > 1
	}
	if !repeated {
		t.Errorf("no request was made again: %v", tokens)
	}
	r.clean(t)
}

// TestShortage: no spot capacity anywhere: the same pass falls back to on-demand.
func TestShortage(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	r.EC2.Lock(func() { r.EC2.Short = []ec2fake.Offer{{Type: "*", Zone: "*", CapacityType: "spot"}} })
	began := time.Now()
	if err := r.Cluster.Create(ctx, webOf("web", 3, "1500m", "2Gi", "")); err != nil {
		t.Fatal(err)
	}
	if err := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 3); return err }); err != nil {
		t.Fatal(err)
	}
	for _, i := range r.EC2.Machines() {
		if i.Spot {
			t.Errorf("instance %s is spot", i.ID)
		}
		t.Logf("instance %s %s after %v", i.ID, i.Type, i.Launched.Sub(began).Round(time.Millisecond))
	}
	if err := realtest.Eventually(ctx, patience, func() error { return r.ready(ctx) }); err != nil {
		t.Error(err)
	}
	r.clean(t)
}

// TestIdle: a tick with nothing pending is one request to the API server, at most one to
// DynamoDB, and none to anybody else.
func TestIdle(t *testing.T) {
	ctx, r := started(t, Options{Ticks: time.Second})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	idle := func() (ticks int, bad []string) {
		for line := range strings.SplitSeq(r.LogOf("sweep", 100000), "\n") {
			var s struct {
				Message, Outcome string
				PendingPods      *int
				Calls            map[string]struct{ N int }
			}
			if json.Unmarshal([]byte(line), &s) != nil || s.Message != "summary" || s.Outcome != "Idle" || s.Calls["sqs.SendMessageBatch"].N > 0 {
				continue // the minute's own tick sends the others, and keeps house
			}
			ticks++
			kube, dynamo, other := 0, 0, 0
			for name, c := range s.Calls {
				switch {
				case strings.HasPrefix(name, "kube."):
					kube += c.N
				case strings.HasPrefix(name, "dynamodb."):
					dynamo += c.N
				default:
					other += c.N
				}
			}
			if kube > 1 || dynamo > 1 || other > 0 {
				bad = append(bad, line)
			}
		}
		return ticks, bad
	}
	err := realtest.Eventually(ctx, patience, func() error {
		if n, _ := idle(); n < 10 {
			return fmt.Errorf("%d idle ticks", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first tick of each environment looks for the cluster.
	if n, bad := idle(); len(bad) > 2 {
		t.Errorf("%d of %d idle ticks make more requests:\n%s", len(bad), n, strings.Join(bad, "\n"))
	}
	if n := len(r.EC2.Machines()); n != 0 {
		t.Errorf("%d instances for no pod", n)
	}
	r.clean(t)
}

// TestSmaller: nodes of two families turn out with less memory than the table says, and a pod
// does not fit where it should: another type is bought, and none twice.
func TestSmaller(t *testing.T) {
	ctx, r := started(t, Options{Ticks: 2 * time.Second, Memory: func(name string, table int64) int64 {
		if strings.HasPrefix(name, "r6g.") || strings.HasPrefix(name, "r7g.") {
			return table * 85 / 100
		}
		return table
	}})
	r.apply(ctx, t, "pools.yaml")
	r.resolved(ctx, t)
	if err := r.Cluster.Create(ctx, webOf("large", 1, "1", "13Gi", "      nodeSelector: {karpenter.sh/capacity-type: on-demand}\n")); err != nil {
		t.Fatal(err)
	}
	werr := realtest.Eventually(ctx, patience, func() error { _, err := r.running(ctx, "shop", 1); return err })
	if werr != nil {
		t.Error(werr)
	}
	bought := map[string]int{}
	for _, i := range r.EC2.Machines() {
		bought[i.Type]++
	}
	t.Logf("bought %v", bought)
	if len(bought) < 2 || len(bought) > 3 {
		t.Errorf("%d types, want the one that is right after one or two that are not: %v", len(bought), bought)
	}
	for name, n := range bought {
		if n > 1 {
			t.Errorf("%d of type %s", n, name)
		}
	}
	r.clean(t)
}

// TestBinaries: what is deployed is small.
func TestBinaries(t *testing.T) {
	for _, p := range programs {
		info, err := os.Stat(os.Getenv("KERF_E2E_BUILD") + "/" + p + "/bootstrap")
		if err != nil {
			t.Fatal(err)
		}
		if size := info.Size(); size > 30_000_000 {
			t.Errorf("%s has %d bytes, want at most 30 MB", p, size)
		}
	}
}
