package scheduling

import (
	"fmt"
	"testing"

	"kerf.sh/kerf/internal/catalog"
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
					if g := Group(s.Pods, list, nil); len(g.Classes) == 0 {
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
