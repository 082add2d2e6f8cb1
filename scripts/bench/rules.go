package main

import (
	"fmt"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/bound"
	"kerf.sh/kerf/scripts/bench/market"
)

// most is how many pods of a deployment its rules let one node carry.
func most(d *workload.Deployment) int {
	switch {
	case d.HostAntiAffinity:
		return 1
	case d.HostMaxSkew > 0:
		return d.HostMaxSkew
	}
	return d.Replicas
}

// forcedNodes is how many nodes rules over hosts ask for, whatever the room.
func forcedNodes(w *workload.Workload) int64 {
	n := 1
	for i := range w.Deployments {
		d := &w.Deployments[i]
		n = max(n, (d.Replicas+most(d)-1)/most(d))
	}
	return int64(n)
}

// zonal reports whether pods are spread over zones.
func zonal(w *workload.Workload) bool {
	for i := range w.Deployments {
		if w.Deployments[i].ZoneMaxSkew > 0 {
			return true
		}
	}
	return false
}

// ruledBound is the program over filled nodes. Where pods are spread over zones it is
// for as many pods of each deployment in each zone as the plan puts there, zone by
// zone: it tells how well they are packed, not how well they are divided.
func ruledBound(w *workload.Workload, p *plan.Plan, view market.View) (snapshot.Price, error) {
	if !zonal(w) {
		return filled(w, view.Columns, func(d *workload.Deployment, _ int) int { return d.Replicas })
	}
	index := map[string]int{}
	for i := range w.Deployments {
		for k := range w.Deployments[i].Replicas {
			index[fmt.Sprintf("default/%s-%d", w.Deployments[i].Name, k)] = i
		}
	}
	total := snapshot.Price(0)
	for _, z := range workload.Zones() {
		count := make([]int, len(w.Deployments))
		for i := range p.Launches {
			if p.Launches[i].Chosen.Zone == z.Zone {
				for _, ref := range p.Launches[i].Pods {
					count[index[ref]]++
				}
			}
		}
		one, err := filled(w, view.InZone(z.Zone), func(_ *workload.Deployment, i int) int { return count[i] })
		if err != nil {
			return 0, err
		}
		total += one
	}
	return total, nil
}

func filled(w *workload.Workload, columns []bound.Column, count func(d *workload.Deployment, i int) int) (snapshot.Price, error) {
	var kinds []bound.Ruled
	for i := range w.Deployments {
		d := &w.Deployments[i]
		if n := count(d, i); n > 0 {
			kinds = append(kinds, bound.Ruled{
				Need: bound.Vector{bound.CPU: d.CPUMilli, bound.Memory: d.MemoryMiB << 20, bound.Pods: 1}, Count: float64(n), Most: most(d),
			})
		}
	}
	f, ok := bound.Fill(columns, kinds)
	if !ok {
		return 0, bound.ErrNothingFits
	}
	return f.Total(kinds), nil
}
