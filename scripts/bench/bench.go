package main

import (
	"fmt"
	"io"

	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/bound"
	"kerf.sh/kerf/scripts/bench/karpenter"
	"kerf.sh/kerf/scripts/bench/market"
	"kerf.sh/kerf/scripts/bench/measure"
	"kerf.sh/kerf/scripts/bench/recheck"
	"kerf.sh/kerf/scripts/bench/report"
)

type bench struct {
	cfg    config
	market *market.Market
	log    io.Writer
	run    report.Run
}

// measure runs the planner on every case, then Karpenter, so that the planner's peak
// memory is not that of Karpenter's types.
func (b *bench) measure() error {
	var cases []testCase
	for _, c := range b.cfg.mode.cases(b.cfg.drawn, b.cfg.seed, b.cfg.karpenter) {
		if b.cfg.only.MatchString(c.workload().Name + ", " + c.pool.String()) {
			cases = append(cases, c)
		}
	}
	if b.run.Seed != 0 {
		b.logf("Seed of the drawn workloads: %d", b.run.Seed)
	}
	b.run.Rows = make([]report.Row, len(cases))
	for i, c := range cases {
		row, err := b.plan(c)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", c.workload().Name, c.pool, err)
		}
		b.run.Rows[i] = row
		if k := row.Kerf; k != nil {
			b.logf("Kerf       %-26s %-14s %8.4f of the bound, %9.2f ms CPU, %d faults", row.Workload, row.Pool, k.Ratio, k.CPU*1e3, len(row.Faults))
		}
	}
	if b.cfg.world {
		w, err := b.world()
		if err != nil {
			return fmt.Errorf("running cluster: %w", err)
		}
		b.run.World = w
	}
	if b.cfg.clusters {
		if err := b.consolidation(); err != nil {
			return fmt.Errorf("consolidation: %w", err)
		}
	}
	types := karpenter.InstanceTypes(b.market)
	for i, c := range cases {
		if !c.karpenter {
			continue
		}
		row := &b.run.Rows[i]
		problem := karpenter.NewProblem(karpenter.Pods(c.workload().Pods()), types, c.pool)
		k, err := b.solve(problem, row)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", row.Workload, c.pool, err)
		}
		row.Karpenter = k
		b.logf("Karpenter  %-26s %-14s %8.4f of the bound, %9.2f s CPU", row.Workload, row.Pool, k.Ratio, k.CPU)
	}
	return nil
}

func (b *bench) logf(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

// plan measures and checks the planner on one case.
func (b *bench) plan(c testCase) (report.Row, error) {
	w := c.workload()
	row := report.Row{Workload: w.Name, Kind: w.Kind, Pods: w.N, Drawn: c.drawn, Pool: c.pool}
	snap := workload.Snapshot(w, c.pool.Spot, c.pool.CapVCPU)
	view := b.market.View(c.pool)
	demand := recheck.Demand(snap.Pods)
	demand[bound.Nodes] = forcedNodes(&w)
	shapes := workload.Shapes(w)
	columns := bound.Tighten(view.Columns, needs(shapes))
	lp, err := bound.LP(columns, demand)
	if err != nil {
		return row, fmt.Errorf("bound: %w", err)
	}
	capped, err := bound.LP(bound.Cap(columns, demand), demand)
	if err != nil {
		return row, fmt.Errorf("bound: %w", err)
	}
	row.LPBound, row.Bound = lp.Total, max(lp.Total, capped.Total)
	if len(shapes) == 1 && !w.Constrained() {
		if row.Bound, err = bound.Equal(view.Columns, needs(shapes)[0], shapes[0].Count); err != nil {
			return row, fmt.Errorf("bound: %w", err)
		}
	}

	run, err := b.planPods(snap)
	if err != nil {
		return row, err
	}
	p := run.plan
	for _, warning := range p.Warnings {
		if warning.Code == plan.RuleNotYetApplied {
			row.NotBuilt = warning.Detail
			return row, nil
		}
	}
	if w.Constrained() {
		total, err := ruledBound(&w, p, view)
		if err != nil {
			return row, fmt.Errorf("bound: %w", err)
		}
		row.Bound = max(row.Bound, total)
	}
	if len(shapes) > 1 && !w.Constrained() {
		found := bound.Whole(columns, demand, p.Summary.LaunchPrice, searchBudget(w.N))
		row.Bound = max(row.Bound, found.Total)
	}
	if len(shapes) > 1 && len(shapes) <= mostKinds && !w.Constrained() {
		row.Bound = max(row.Bound, bound.Contents(columns, kinds(shapes)).Total)
	}
	k := &report.Kerf{
		Cost: costOf(run.cost, run.repeats), Stages: run.stages, Classes: run.classes,
		RSSBefore: run.memory.Before, RSSPeak: run.memory.Peak,
		Nodes: len(p.Launches), Price: p.Summary.LaunchPrice, Worst: p.Summary.LaunchPriceWorst,
		OwnBound: p.Summary.LaunchLowerBound, Unscheduled: p.Summary.Unschedulable,
		Ratio: over(p.Summary.LaunchPrice, row.Bound), WorstRatio: over(p.Summary.LaunchPriceWorst, row.Bound),
	}
	row.Kerf = k
	independent := recheck.Independent{Columns: bound.Cap(columns, demand), Low: lp.Total, High: capped.Primal, Best: row.Bound}
	if zonal(&w) {
		for _, z := range workload.Zones() {
			independent.Zones = append(independent.Zones, bound.Cap(bound.Tighten(view.InZone(z.Zone), needs(shapes)), demand))
		}
	}
	k.OwnConfirmed = recheck.Confirmed(p, independent)
	if run.differs {
		row.Faults = append(row.Faults, "two runs on the same input gave different plans")
	}
	for _, f := range []recheck.Faults{
		recheck.Plan(snap.Pods, p, view),
		recheck.Bounds(p, demand, independent),
		recheck.Rules(snap.Pods, p),
	} {
		row.Faults = append(row.Faults, f.List...)
		if f.More > 0 {
			row.Faults = append(row.Faults, fmt.Sprintf("and %d more of this kind", f.More))
		}
	}
	return row, nil
}

// needs are the distinct requests of a workload.
func needs(shapes []workload.Shape) []bound.Vector {
	out := make([]bound.Vector, len(shapes))
	for i, s := range shapes {
		out[i] = bound.Vector{bound.CPU: s.CPUMilli, bound.Memory: s.MemoryMiB << 20, bound.Pods: 1}
	}
	return out
}

// mostKinds is up to how many different requests a bound by contents is tried: its
// program has a row for each. Many kinds fill nodes well, the relaxation is near then.
const mostKinds = 80

// kinds are the distinct requests of a workload with their numbers.
func kinds(shapes []workload.Shape) []bound.Kind {
	var out []bound.Kind
	for i, need := range needs(shapes) {
		out = append(out, bound.Kind{Need: need, Count: shapes[i].Count})
	}
	return out
}

// searchBudget is how many steps the search over whole nodes gets. It pays while a
// plan has few nodes; with many the relaxation is near enough.
func searchBudget(pods int) int { return 4_000_000 / max(pods, 200) }

// solve measures Karpenter on one case.
func (b *bench) solve(p *karpenter.Problem, row *report.Row) (*report.Karpenter, error) {
	var results scheduling.Results
	var timedOut bool
	var err error
	runs := measure.Repeat(3, b.repeatBudget(), func() { results, timedOut, err = p.Run(b.cfg.timeout) })
	if err != nil {
		return nil, err
	}
	r, err := karpenter.Read(results, timedOut)
	if err != nil {
		return nil, err
	}
	k := &report.Karpenter{
		Cost: costOf(measure.Median(runs), len(runs)), Nodes: r.Nodes, Price: r.Price, Unscheduled: row.Pods - r.Scheduled,
		TimedOut: r.TimedOut, Options: r.Options,
	}
	if k.Unscheduled == 0 {
		k.Ratio = over(r.Price, row.Bound)
	}
	return k, nil
}

func costOf(u measure.Usage, repeats int) report.Cost {
	return report.Cost{CPU: u.CPU.Seconds(), Wall: u.Wall.Seconds(), Allocs: u.Allocs, AllocBytes: u.AllocBytes, Repeats: repeats}
}

func over(price, bound snapshot.Price) float64 { return float64(price) / float64(bound) }
