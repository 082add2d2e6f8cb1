package scheduling

import (
	"fmt"
	"testing"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
)

// BenchmarkGroup is pods to classes: ns/op over the number of pods is the cost of
// one pod.
func BenchmarkGroup(b *testing.B) {
	for _, kind := range []string{workload.MixedWeb, workload.Diverse, workload.Zonal} {
		for _, n := range []int{5000, 50000} {
			b.Run(fmt.Sprintf("%s-%d", kind, n), func(b *testing.B) {
				s := workload.Snapshot(workload.Named(kind, n), false, 0)
				list := podOrder(s.Pods)
				b.ReportAllocs()
				for b.Loop() {
					if g := Group(s.Pods, list, GroupBy{}); len(g.Classes) == 0 {
						b.Fatal("no class")
					}
				}
			})
		}
	}
}

// BenchmarkProblem is everything before the search but the grouping of pods: it
// hardly grows with their number.
func BenchmarkProblem(b *testing.B) {
	for _, kind := range []string{workload.Uniform, workload.MixedWeb, workload.Diverse} {
		for _, n := range []int{1000, 50000} {
			b.Run(fmt.Sprintf("%s-%d", kind, n), func(b *testing.B) {
				s, c := workload.Snapshot(workload.Named(kind, n), true, 0), catalog.Default()
				b.ReportAllocs()
				for b.Loop() {
					if p := New(s, c).Problem(); len(p.Classes) == 0 {
						b.Fatal("no class")
					}
				}
			})
		}
	}
}

// BenchmarkMemory is BenchmarkProblem with what a ledger remembers: nothing of it costs
// anything where there is none.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			s, c := workload.Snapshot(workload.Named(workload.MixedWeb, 1000), true, 0), catalog.Default()
			class := &s.NodeClasses[0]
			class.Images = []snapshot.Image{{ID: "ami-1"}}
			shape := lifecycle.Shape(class, s.Settings)
			for i := range n {
				t := &c.Types[i*7%len(c.Types)]
				s.Shortages = append(s.Shortages, snapshot.Shortage{
					InstanceType: t.Name, Zone: t.Offerings[i%len(t.Offerings)].Zone, CapacityType: catalog.Spot, Until: s.Now.Add(time.Minute), Code: "InsufficientInstanceCapacity",
				})
				s.Learned = append(s.Learned, snapshot.LearnedSize{
					InstanceType: t.Name, ImageID: "ami-1", Shape: shape, Allocatable: snapshot.Resources{CPU: t.VCPU*1000 - 100, Memory: t.MemoryMiB << 20 * 9 / 10},
				})
			}
			s.Normalize()
			b.ReportAllocs()
			for b.Loop() {
				if p := New(s, c).Problem(); len(p.Classes) == 0 {
					b.Fatal("no class")
				}
			}
		})
	}
}

// BenchmarkResolve is the part of BenchmarkProblem that is the catalogue's.
func BenchmarkResolve(b *testing.B) {
	s, c := workload.Snapshot(workload.Named(workload.Uniform, 100), true, 0), catalog.Default()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Resolve(&s.NodeClasses[0], s.Settings); err != nil {
			b.Fatal(err)
		}
	}
}

// cluster is a large one: nodes with pods on them, and pending pods with many
// different selectors.
func cluster(nodes, bound, pending, selectors int) *snapshot.Snapshot {
	s := workload.Snapshot(workload.Named(workload.MixedWeb, pending), false, 0)
	for i := range s.Pods {
		s.Pods[i].Spec.NodeSelector = map[string]string{
			"topology.kubernetes.io/zone": workload.Zones()[i%3].Zone,
			"team":                        fmt.Sprint("t", i%selectors),
		}
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, snapshot.Node{
			Name: fmt.Sprintf("node-%05d", i),
			Labels: map[string]string{
				"topology.kubernetes.io/zone": workload.Zones()[i%3].Zone, "team": fmt.Sprint("t", i%selectors),
				"kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "m7i.2xlarge",
				"karpenter.sh/nodepool": "default", "karpenter.sh/initialized": "true",
			},
			Allocatable: snapshot.Resources{CPU: 7910, Memory: 29317 << 20, Pods: 58},
			Capacity:    snapshot.Resources{CPU: 8000, Memory: 30310 << 20, Pods: 58},
		})
	}
	for i := range bound {
		s.Pods = append(s.Pods, snapshot.Pod{
			Namespace: "running", Name: fmt.Sprintf("p-%06d", i), NodeName: s.Nodes[i%nodes].Name, Phase: "Running",
			Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 250, Memory: 512 << 20, Pods: 1}},
		})
	}
	return s
}

// BenchmarkNodes is a cluster of 5,000 nodes with 50,000 pods on them, and
// pending pods with hundreds of different rules.
func BenchmarkNodes(b *testing.B) {
	for _, selectors := range []int{1, 300} {
		b.Run(fmt.Sprintf("rules-%d", 3*selectors), func(b *testing.B) {
			s, c := cluster(5000, 50000, 5000, selectors), catalog.Default()
			b.ReportAllocs()
			for b.Loop() {
				if p := New(s, c).Problem(); len(p.Nodes) != 5000 {
					b.Fatal("nodes are missing")
				}
			}
		})
	}
}

// BenchmarkExplain is the reasons for pods that fit nowhere, each of another size.
func BenchmarkExplain(b *testing.B) {
	s, c := workload.Snapshot(workload.Named(workload.Diverse, 5000), false, 0), catalog.Default()
	for i := range s.Pods {
		s.Pods[i].Spec.Requests.CPU += 1_000_000
	}
	w := New(s, c)
	w.Problem()
	b.ReportAllocs()
	for b.Loop() {
		for k := range w.Classes {
			if r := w.Explain(k, nil, false); len(r) != 1 || r[0].Detail == "" {
				b.Fatal("no reason")
			}
		}
	}
}

// BenchmarkOpenLabels is a pool that leaves a label open, and pods that ask for
// three hundred values of it: as many templates.
func BenchmarkOpenLabels(b *testing.B) {
	s, c := cluster(0, 0, 5000, 300), catalog.Default()
	s.NodePools[0].Requirements = append(s.NodePools[0].Requirements, snapshot.SelectorRequirement{Key: "team", Operator: "Exists"})
	b.ReportAllocs()
	for b.Loop() {
		if p := New(s, c).Problem(); len(p.Templates) != 301 {
			b.Fatalf("%d templates", len(p.Templates))
		}
	}
}
