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

	one := *s
	one.Pods = s.Pods[:1]
	out.stages, out.classes = b.stages(s, &one)
	return out, nil
}

// stages measures the stages of a plan, each run alone. Reading, grouping and writing
// are what they take beyond the same for a single pod; the rest is fixed.
func (b *bench) stages(s, one *snapshot.Snapshot) (report.Stages, int) {
	c := b.market.Catalog
	type run struct {
		s *snapshot.Snapshot
		w *scheduling.World
		p *packing.Problem
		r *packing.Result
	}
	all, few := &run{s: s}, &run{s: one}
	group := func(r *run) func() {
		return func() {
			r.w = scheduling.New(r.s, c)
			r.p = r.w.Problem()
		}
	}
	write := func(r *run) func() {
		return func() { provision.Write(r.s, c, r.w, r.p, r.r, provision.Options{}) }
	}
	cpu := func(f func()) float64 {
		return measure.Median(measure.Repeat(b.mostRepeats(), b.repeatBudget(), f)).CPU.Seconds()
	}
	beyond := func(of func(*run) func()) float64 {
		return max(0, measure.Difference(b.pairs(), 2*b.repeatBudget(), of(all), of(few)).Seconds())
	}
	out := report.Stages{Known: true, Group: beyond(group)}
	out.Solve = cpu(func() { all.r = packing.Solve(all.p) })
	few.r = packing.Solve(few.p)
	out.Write = beyond(write)
	out.Fixed = cpu(group(few)) + cpu(write(few))
	return out, len(all.w.Classes)
}

// pairs is how often at most a run and that of a single pod are compared. The garbage
// collected before each costs more than the runs.
func (b *bench) pairs() int {
	if b.cfg.mode == smoke {
		return 9
	}
	return 101
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
