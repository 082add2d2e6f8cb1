package main

import (
	"reflect"
	"time"

	"kerf.sh/kerf/internal/packing"
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

// planPods measures the whole call (pods in memory to plan), its peak memory, and
// its stages. Writing is what the whole call takes beyond the other two stages, each
// at its least: differences of single runs would drown in noise.
func (b *bench) planPods(s *snapshot.Snapshot) planned {
	c := b.market.Catalog
	var out planned
	call := func() { out.plan = provision.Plan(s, c, provision.Options{}) }
	out.memory, _ = measure.Peak(call)
	first := out.plan
	whole := measure.Repeat(b.mostRepeats(), b.repeatBudget(), call)
	out.cost, out.repeats = measure.Median(whole), len(whole)
	out.differs = !reflect.DeepEqual(first, out.plan)

	var p *packing.Problem
	group := measure.Repeat(len(whole), b.repeatBudget(), func() {
		w := scheduling.New(s, c)
		p = w.Problem()
		out.classes = len(w.Classes)
	})
	solve := measure.Repeat(len(whole), b.repeatBudget(), func() { packing.Solve(p) })
	out.stages = report.Stages{
		Group: measure.Median(group).CPU.Seconds(),
		Solve: measure.Median(solve).CPU.Seconds(),
		Write: max(0, least(whole)-least(group)-least(solve)).Seconds(),
	}
	return out
}

func least(runs []measure.Usage) time.Duration {
	best := runs[0].CPU
	for _, r := range runs {
		best = min(best, r.CPU)
	}
	return best
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
	if b.cfg.mode == smoke {
		return 100 * time.Millisecond
	}
	return time.Second
}
