package disruption

import (
	"fmt"
	"testing"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
)

// halfEmpty is a cluster at 35 % use with nothing that holds its nodes.
func halfEmpty(tb testing.TB, nodes int) (*snapshot.Snapshot, *catalog.Catalog) {
	tb.Helper()
	c := catalog.Default()
	s := workload.Snapshot(workload.Workload{}, false, 0)
	resolved, err := c.Resolve(&s.NodeClasses[0], s.Settings)
	if err != nil {
		tb.Fatal(err)
	}
	var types []workload.NodeType
	for _, name := range []string{"c6g.4xlarge", "c7g.2xlarge", "m6a.4xlarge", "m7g.2xlarge", "m7i.2xlarge", "r7g.xlarge"} {
		for i := range resolved {
			if t := &resolved[i]; t.Type.Name == name {
				types = append(types, workload.NodeType{Name: name, Labels: t.Labels(), Capacity: t.Capacity, Allocatable: t.Allocatable})
			}
		}
	}
	workload.Running(types, nodes, 35, 7).Join(s)
	s.NodePools[0].Disruption = snapshot.Disruption{ConsolidationPolicy: whenUnderutilized, ConsolidateAfter: "0s", Budgets: []snapshot.Budget{{Nodes: "100%"}}}
	s.Now = s.Now.Add(time.Hour)
	return s, c
}

func BenchmarkPropose(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, c := halfEmpty(b, n)
			var r *Result
			for b.Loop() {
				r = Propose(s, c, Options{})
			}
			b.ReportMetric(100*float64(r.Savings.Now-r.Savings.After)/float64(r.Savings.Now), "%saved")
		})
	}
}

// BenchmarkDrift: all nodes have drifted, and as many are planned new places for as a pass may.
func BenchmarkDrift(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, c := halfEmpty(b, n)
			s.NodePools[0].Disruption.ConsolidateAfter = never
			for i := range s.NodeClaims {
				s.NodeClaims[i].Annotations = map[string]string{AnnotationPoolHash: "other", AnnotationPoolHashVersion: PoolHashVersion}
			}
			var r *Result
			for b.Loop() {
				r = Propose(s, c, Options{})
			}
			b.ReportMetric(float64(len(r.Moves)), "moves")
		})
	}
}
