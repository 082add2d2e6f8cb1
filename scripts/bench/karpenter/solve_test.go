package karpenter

import (
	"testing"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/bound"
	"kerf.sh/kerf/scripts/bench/market"
)

// Karpenter sees the same market: for one pod it can only choose the cheapest type
// that fits, and that price must be the one of the benchmark's own view.
func TestOnePodCostsTheCheapestTypeOfTheView(t *testing.T) {
	m, err := market.New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	types := InstanceTypes(m)
	for _, v := range market.Variants() {
		view := m.View(v)
		for _, d := range []workload.Deployment{
			{CPUMilli: 100, MemoryMiB: 128}, {CPUMilli: 3000, MemoryMiB: 20_000}, {CPUMilli: 1770, MemoryMiB: 3000}, {CPUMilli: 20_000, MemoryMiB: 100_000},
		} {
			d.Name, d.Replicas = "one", 1
			w := workload.Workload{Name: "one", N: 1, Deployments: []workload.Deployment{d}}
			results, timedOut, err := NewProblem(Pods(w.Pods()), types, v).Run(time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(results, timedOut)
			if err != nil {
				t.Fatal(err)
			}
			want, err := bound.Equal(view.Columns, bound.Vector{d.CPUMilli, d.MemoryMiB << 20, 1}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got.Price != want || got.Nodes != 1 || got.Scheduled != 1 || got.Failed != 0 {
				t.Errorf("%s, one pod of %d m and %d MiB: Karpenter says %+v, the view %d", v, d.CPUMilli, d.MemoryMiB, got, want)
			}
		}
	}
}

func TestATimeLimitIsReported(t *testing.T) {
	m, err := market.New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	w := workload.Named(workload.MixedWeb, 100)
	results, timedOut, err := NewProblem(Pods(w.Pods()), InstanceTypes(m), market.Variant{}).Run(time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Read(results, timedOut)
	if err != nil || !r.TimedOut || r.Scheduled == 100 {
		t.Errorf("after a nanosecond: %+v, %v; want a timeout and pods left", r, err)
	}
}
