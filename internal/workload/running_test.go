package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

func nodeTypes() []NodeType {
	mk := func(name string, cpu, gib, pods int64) NodeType {
		r := snapshot.Resources{CPU: cpu, Memory: gib << 30, Pods: pods}
		return NodeType{Name: name, Labels: map[string]string{"kubernetes.io/arch": "arm64"}, Capacity: r, Allocatable: r}
	}
	return []NodeType{mk("m7g.2xlarge", 7_910, 29, 58), mk("r7g.xlarge", 3_920, 29, 58)}
}

func TestRunningFillsNodesToTheirShare(t *testing.T) {
	w := Running(nodeTypes(), 300, 35, 1)
	if diff := cmp.Diff(w, Running(nodeTypes(), 300, 35, 1)); diff != "" {
		t.Fatalf("equal arguments gave two clusters:\n%s", diff)
	}
	used := map[string]snapshot.Resources{}
	daemons := map[string]int{}
	for _, p := range w.Pods {
		used[p.NodeName] = used[p.NodeName].Add(p.Spec.Requests)
		if p.Owner.Kind == "DaemonSet" {
			daemons[p.NodeName]++
		}
	}
	var cpu, memory, allCPU, allMemory float64
	types := map[string]bool{}
	for i, n := range w.Nodes {
		u := used[n.Name]
		if !u.Fits(n.Allocatable) {
			t.Errorf("pods on %s need %+v of %+v", n.Name, u, n.Allocatable)
		}
		if daemons[n.Name] != len(DaemonSets()) {
			t.Errorf("%d daemonset pods on %s, want %d", daemons[n.Name], n.Name, len(DaemonSets()))
		}
		if c := w.Claims[i]; c.NodeName != n.Name || c.ProviderID != n.ProviderID {
			t.Errorf("claim %s is for %s (%s), want %s (%s)", c.Name, c.NodeName, c.ProviderID, n.Name, n.ProviderID)
		}
		types[n.Labels["node.kubernetes.io/instance-type"]] = true
		cpu, memory = cpu+float64(u.CPU), memory+float64(u.Memory)
		allCPU, allMemory = allCPU+float64(n.Allocatable.CPU), allMemory+float64(n.Allocatable.Memory)
	}
	if share := max(cpu/allCPU, memory/allMemory); share < 0.25 || share > 0.45 {
		t.Errorf("pods ask for %.2f of the cluster, want about 0.35", share)
	}
	if len(types) != 2 {
		t.Errorf("types in use: %v, want both", types)
	}
}

func TestJoinKeepsOrder(t *testing.T) {
	s := Snapshot(Named(Uniform, 50), false, 0)
	w := Running(nodeTypes(), 20, 35, 1)
	w.Join(s)
	if got, want := len(s.Pods), 50+len(w.Pods); got != want || len(s.Nodes) != 20 || len(s.NodeClaims) != 20 {
		t.Fatalf("%d pods, %d nodes, %d claims; want %d, 20, 20", got, len(s.Nodes), len(s.NodeClaims), want)
	}
	for i := 1; i < len(s.Pods); i++ {
		if s.Pods[i-1].Ref() >= s.Pods[i].Ref() {
			t.Fatalf("pods %s and %s are out of order", s.Pods[i-1].Ref(), s.Pods[i].Ref())
		}
	}
}
