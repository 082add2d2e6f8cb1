package provision

import (
	"fmt"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/workload"
)

// BenchmarkPlan is the whole call: pods in memory to plan.
func BenchmarkPlan(b *testing.B) {
	for _, kind := range []string{workload.Uniform, workload.MixedWeb, workload.Diverse} {
		for _, n := range []int{1000, 5000, 10000, 50000} {
			if kind == workload.Diverse && n > 5000 {
				continue // packing's time, measured by the bench command
			}
			b.Run(fmt.Sprintf("%s-%d", kind, n), func(b *testing.B) {
				s, c := workload.Snapshot(workload.Named(kind, n), false, 0), catalog.Default()
				b.ReportAllocs()
				for b.Loop() {
					if p := Plan(s, c, Options{}); len(p.Launches) == 0 {
						b.Fatal("no launch")
					}
				}
			})
		}
	}
}

// BenchmarkRefused is a plan in which every pod is too large, each in its own way.
func BenchmarkRefused(b *testing.B) {
	s, c := workload.Snapshot(workload.Named(workload.Diverse, 5000), false, 0), catalog.Default()
	for i := range s.Pods {
		s.Pods[i].Spec.Requests.CPU += 1_000_000
	}
	b.ReportAllocs()
	for b.Loop() {
		if p := Plan(s, c, Options{}); len(p.Verdicts) != 5000 {
			b.Fatalf("%d verdicts", len(p.Verdicts))
		}
	}
}
