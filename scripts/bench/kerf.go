package main

import (
	"reflect"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/scripts/bench/measure"
	"kerf.sh/kerf/scripts/bench/report"
)

// planned is the planner measured on one snapshot.
type planned struct {
	plan    *plan.Plan
	cost    measure.Usage
	repeats int
	stages  report.Stages
	classes int
	memory  measure.Memory
	// differs: two runs on the same snapshot gave different plans.
	differs bool
}

// Names of functions of the planner, as a profile has them.
const (
	planner = "kerf.sh/kerf/internal/"
	solver  = "kerf.sh/kerf/internal/packing."
)

// planPods measures the whole call (pods in memory to plan), its peak memory, and
// its stages. How much of the call is the solver comes from a profile of whole calls:
// the solver alone, on a problem that is made, finds other caches and another heap.
func (b *bench) planPods(s *snapshot.Snapshot) (planned, error) {
	c := b.market.Catalog
	var out planned
	call := func() { out.plan = provision.Plan(s, c, provision.Options{}) }
	out.memory, _ = measure.Peak(call)
	first := out.plan
	whole := measure.Repeat(b.mostRepeats(), b.repeatBudget(), call)
	out.cost, out.repeats = measure.Median(whole), len(whole)
	out.differs = !reflect.DeepEqual(first, out.plan)

	group := measure.Median(measure.Repeat(b.mostRepeats(), b.repeatBudget(), func() {
		w := scheduling.New(s, c)
		w.Problem()
		out.classes = len(w.Classes)
	})).CPU.Seconds()
	share, ok, err := measure.Share(planner, solver, b.repeatBudget(), call)
	if err != nil {
		return out, err
	}
	if !ok {
		return out, nil // stages unknown
	}
	cpu := out.cost.CPU.Seconds()
	out.stages.Known = true
	out.stages.Solve = cpu * share
	out.stages.Group = min(group, cpu-out.stages.Solve)
	out.stages.Write = cpu - out.stages.Solve - out.stages.Group
	return out, nil
}

// mostRepeats and repeatBudget say how often a short run is repeated: until it took
// the budget in CPU time.
func (b *bench) mostRepeats() int {
	if b.cfg.mode == smoke {
		return 3
	}
	return 9
}

func (b *bench) repeatBudget() time.Duration {
	switch b.cfg.mode {
	case smoke:
		return 150 * time.Millisecond
	case full:
		return 700 * time.Millisecond
	}
	return 300 * time.Millisecond
}
