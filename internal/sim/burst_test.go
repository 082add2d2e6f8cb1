package sim

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
)

// burst is a workload that comes within a minute.
func burst(kind string, pods int) *Profile {
	p := calm()
	p.Trouble, p.Settle, p.Quiet, p.Work, p.Free = 6*time.Minute, 20*time.Minute, time.Minute, snapshot.DefaultSettings().Work, 4000
	p.Pools[0].CapacityType = []string{"on-demand"}
	for i := range catalog.Default().Types {
		t := &catalog.Default().Types[i]
		if t.Name[0] == 'c' || t.Name[0] == 'm' || t.Name[0] == 'r' {
			p.Types = append(p.Types, t.Name)
		}
	}
	for i, d := range workload.Named(kind, pods).Deployments {
		p.Loads = append(p.Loads, Load{
			After: 12*time.Second + time.Duration(i*977%5000)*time.Millisecond, Over: time.Minute, Kind: "plain", Pods: d.Replicas, CPU: d.CPUMilli, Mem: d.MemoryMiB,
		})
	}
	return p
}

// priced is what the nodes cost that run, and what any nodes for all pods cost at least.
func (w *World) priced() (price, bound int64) {
	for _, i := range w.aws.ec2.Instances() {
		if i.ShuttingFrom.IsZero() {
			price += i.Price
		}
	}
	return price, w.anew(func(*snapshot.Pod) bool { return true }).Summary.LaunchLowerBound
}

func percentile(ds []time.Duration, p int) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	ds = slices.Sorted(slices.Values(ds))
	return ds[min(len(ds)-1, len(ds)*p/100)]
}

// TestBurst: 1,000 pods that come within a minute are asked nodes for soon, and the nodes
// cost little more than any could.
func TestBurst(t *testing.T) {
	var price, bound int64
	rep := inBubble(t, 1, Options{Profile: burst(workload.MixedWeb, 1000), After: func(w *World) { price, bound = w.priced() }})
	must(t, "burst", rep)
	p50, p95 := percentile(rep.World.checks.waits, 50), percentile(rep.World.checks.waits, 95)
	t.Logf("%d nodes, price %.3f of the bound, pods wait %s (half), %s (95 %%) until a node is asked for, at rest %s after", rep.Stats.Instances, float64(price)/float64(bound), p50, p95, rep.Stats.Settled)
	if bound == 0 || price*100 > bound*115 {
		t.Errorf("the nodes cost %d, the bound is %d", price, bound)
	}
	if p95 > 15*time.Second || len(rep.World.checks.waits) < 900 {
		t.Errorf("of %d pods 95 %% wait up to %s", len(rep.World.checks.waits), p95)
	}
}

// crowd puts nodes into the world that are full, with their records.
func crowd(nodes int) func(*World) {
	return func(w *World) {
		ctx, k := context.Background(), w.cluster
		l := ledger.New(ledger.Config{Table: w.table.live, Cluster: clusterName, Owner: "crowd", Now: w.now})
		check := func(err error) {
			if err != nil {
				panic(err)
			}
		}
		check(l.BeginRecovery(ctx, "new"))
		size, _ := w.aws.size("m5.large")
		pool := k.pools.by["general"]
		var changes []lifecycle.Change
		for i := range nodes {
			name, id := fmt.Sprintf("crowd-%05d", i), fmt.Sprintf("i-%017d", i)
			labels := map[string]string{
				"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.large", zoneKey: zones[i%3].zone, "karpenter.sh/capacity-type": "on-demand",
				"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", hostKey: name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
			}
			now := w.now()
			r := lifecycle.Record{
				Claim: name, Phase: lifecycle.Initialized, NodePool: "general", Node: name, Created: now, LaunchedAt: now, RegisteredAt: now, InitializedAt: now, Tagged: true,
				Spec:     lifecycle.Spec{Labels: labels, ClassRef: pool.v.ClassRef, ExpireAfter: "720h"},
				Instance: lifecycle.Instance{ID: id, Type: "m5.large", Zone: zones[i%3].zone, CapacityType: "on-demand", Price: 96_000, ImageID: "ami-amd64"},
				Capacity: size.Capacity, Allocatable: size.Allocatable, Reserved: lifecycle.UsageOf(size.Capacity, 96_000),
			}
			claim, _ := k.claims.create(name, r.NodeClaim(), nil, finalizer)
			node, _ := k.nodes.create(name, snapshot.Node{
				Name: name, ProviderID: r.Instance.ProviderID(), Labels: labels, Capacity: size.Capacity, Allocatable: size.Allocatable,
				Conditions: []snapshot.Condition{{Type: "Ready", Status: "True"}},
			}, nil, finalizer)
			r.UID, r.NodeUID = claim.uid, node.uid
			k.pods.create("default/full-"+name, snapshot.Pod{
				Namespace: "default", Name: "full-" + name, NodeName: name, Phase: "Running",
				Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: size.Allocatable.CPU - 120, Memory: size.Allocatable.Memory - 300*mib, Pods: 1}},
			}, nil)
			changes = append(changes, lifecycle.Change{Next: r})
		}
		for some := range slices.Chunk(changes, 25) {
			_, err := l.Save(ctx, some...)
			check(err)
		}
		lease, err := l.AcquireRecovery(ctx, time.Minute)
		check(err)
		check(l.EndRecovery(ctx, lease))
	}
}

// BenchmarkFiveThousand is a burst of 1,000 pods in a cluster of 5,000 nodes: how long pods
// wait until a node is asked for. Calls take the time that the world gives them, code takes
// none there: what it took is reported beside, for all passes together.
func BenchmarkFiveThousand(b *testing.B) {
	for range b.N {
		p := burst(workload.MixedWeb, 1000)
		p.Trouble, p.Daemons = 130*time.Second, 0
		var rep *Report
		was := used()
		bench(b, func() { rep = Run(1, Options{Profile: p, Before: crowd(5000), Short: true}) })
		waits := rep.World.checks.waits
		b.ReportMetric(percentile(waits, 50).Seconds(), "p50-s")
		b.ReportMetric(percentile(waits, 95).Seconds(), "p95-s")
		b.ReportMetric(float64(len(waits)), "pods")
		b.ReportMetric(float64(rep.Stats.Plans), "passes")
		b.ReportMetric((used() - was).Seconds(), "cpu-s")
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
