package main

import (
	"fmt"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/measure"
	"kerf.sh/kerf/scripts/bench/report"
)

// The running cluster: many nodes a third full, and many pods that wait.
const (
	worldNodes   = 5000
	worldPending = 50000
	worldUse     = 35 // percent
	worldSeed    = 7
)

// worldTypes are what the cluster runs on.
var worldTypes = []string{"c6g.4xlarge", "c7g.2xlarge", "m6a.4xlarge", "m7g.2xlarge", "m7i.2xlarge", "r7g.xlarge"}

// world measures one plan of a large running cluster.
func (b *bench) world() (*report.World, error) {
	types, err := b.worldTypes()
	if err != nil {
		return nil, err
	}
	running := workload.Running(types, worldNodes, worldUse, worldSeed)
	s := workload.Snapshot(workload.Named(workload.MixedWeb, worldPending), false, 0)
	running.Join(s)
	out := &report.World{Nodes: len(running.Nodes), Running: len(running.Pods), Pending: worldPending}
	running = workload.World{} // the snapshot has it all
	var p *plan.Plan
	memory, ok := measure.Peak(func() {
		u := measure.Once(func() { p = provision.Plan(s, b.market.Catalog, provision.Options{}) })
		out.CPU = u.CPU.Seconds()
	})
	if ok {
		out.RSSBefore, out.RSSPeak = memory.Before, memory.Peak
	}
	out.Placed, out.Launches = len(p.Placements), len(p.Launches)
	out.Unscheduled = p.Summary.Unschedulable
	if got := p.Summary.Placed + p.Summary.Unschedulable + inLaunches(p); got != worldPending {
		return nil, fmt.Errorf("the plan speaks of %d pods, %d are pending", got, worldPending)
	}
	return out, nil
}

func inLaunches(p *plan.Plan) int {
	n := 0
	for i := range p.Launches {
		n += len(p.Launches[i].Pods)
	}
	return n
}
