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
// its stages, each run alone. What reading, grouping and writing take with a single
// pod is the same at every size (the catalogue under the pool's rules, mostly): it is
// measured apart and not counted per pod.
func (b *bench) planPods(s *snapshot.Snapshot) (planned, error) {
	c := b.market.Catalog
	var out planned
	call := func() { out.plan = provision.Plan(s, c, provision.Options{}) }
	out.memory, _ = measure.Peak(call)
	first := out.plan
	whole := measure.Repeat(b.mostRepeats(), b.repeatBudget(), call)
	out.cost, out.repeats = measure.Median(whole), len(whole)
	out.differs = !reflect.DeepEqual(first, out.plan)

	all := b.stages(s)
	one := *s
	one.Pods = s.Pods[:1]
	fixed := b.stages(&one)
	out.classes = all.classes
	out.stages = report.Stages{
		Known: true, Solve: all.solve, Fixed: fixed.group + fixed.write,
		Group: max(0, all.group-fixed.group), Write: max(0, all.write-fixed.write),
	}
	return out, nil
}

// staged is the CPU time of each stage of a plan, in seconds.
type staged struct {
	group, solve, write float64
	classes             int
}

func (b *bench) stages(s *snapshot.Snapshot) staged {
	var out staged
	c := b.market.Catalog
	cpu := func(f func()) float64 {
		return measure.Median(measure.Repeat(4*b.mostRepeats(), b.repeatBudget(), f)).CPU.Seconds()
	}
	var w *scheduling.World
	var p *packing.Problem
	var r *packing.Result
	out.group = cpu(func() {
		w = scheduling.New(s, c)
		p = w.Problem()
	})
	out.solve = cpu(func() { r = packing.Solve(p) })
	out.write = cpu(func() { provision.Write(s, c, w, p, r, provision.Options{}) })
	out.classes = len(w.Classes)
	return out
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
