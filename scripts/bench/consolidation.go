package main

import (
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/karpenter"
	"kerf.sh/kerf/scripts/bench/market"
	"kerf.sh/kerf/scripts/bench/measure"
	"kerf.sh/kerf/scripts/bench/report"
)

// clusterSizes are how many nodes the half-empty clusters have.
func (m mode) clusterSizes() []int {
	if m == smoke {
		return []int{100}
	}
	return []int{100, 500, 1000, 2000, 5000}
}

// halfEmpty is a running cluster of on-demand nodes with nothing that holds them: what
// both sides consolidate.
func (b *bench) halfEmpty(nodes int) (*snapshot.Snapshot, error) {
	types, err := b.worldTypes()
	if err != nil {
		return nil, err
	}
	s := workload.Snapshot(workload.Workload{}, false, 0)
	workload.Running(types, nodes, worldUse, worldSeed).Join(s)
	s.NodePools[0].Disruption = snapshot.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", ConsolidateAfter: "0s", Budgets: []snapshot.Budget{{Nodes: "100%"}}}
	s.Now = s.Now.Add(time.Hour)
	return s, nil
}

// consolidation measures the first pass of either side over half-empty clusters.
func (b *bench) consolidation() error {
	types := karpenter.InstanceTypes(b.market)
	for _, n := range b.cfg.mode.clusterSizes() {
		s, err := b.halfEmpty(n)
		if err != nil {
			return err
		}
		row := report.Consolidation{Nodes: n}
		for i := range s.Pods {
			if !s.Pods[i].Daemon() {
				row.Pods++
			}
		}
		b.consolidate(s, &row)
		b.logf("Kerf       %5d nodes: %4.1f %% saved, %4.1f %% by removals alone, %8.0f ms CPU", n, row.Kerf.Saved(row.Price), share(row.Kerf.Removals, row.Price), row.Kerf.CPU*1e3)
		if b.cfg.karpenter.any() {
			c, err := karpenter.NewCluster(s, types, market.Variant{})
			if err != nil {
				return fmt.Errorf("%d nodes: %w", n, err)
			}
			if got := c.Price(); got != row.Price {
				return fmt.Errorf("%d nodes: they cost %d on one side and %d on the other", n, row.Price, got)
			}
			var first karpenter.Command
			u := measure.Once(func() { first, err = c.First() })
			if err != nil {
				return fmt.Errorf("%d nodes: %w", n, err)
			}
			row.Karpenter = &report.FirstCommand{
				Cost: costOf(u, 1), Method: first.Method, Considered: first.Considered, Removed: first.Removed, Added: first.Added, Saving: first.Saving,
			}
			b.logf("Karpenter  %5d nodes: %4.1f %% saved by its first command, %8.0f ms CPU", n, share(first.Saving, row.Price), row.Karpenter.CPU*1e3)
		}
		b.run.Consolidation = append(b.run.Consolidation, row)
	}
	return nil
}

// consolidate measures Kerf's whole pass: who may go, the search over all nodes, the proof
// that the planner carries the moves out, and the floor.
func (b *bench) consolidate(s *snapshot.Snapshot, row *report.Consolidation) {
	c := b.market.Catalog
	base := provision.Plan(s, c, provision.Options{})
	pass := func(o disruption.Options) (*disruption.Result, measure.Usage, int) {
		o.Base = base
		var r *disruption.Result
		runs := measure.Repeat(b.mostRepeats(), b.repeatBudget(), func() { r = disruption.Propose(s, c, o) })
		return r, measure.Median(runs), len(runs)
	}
	r, u, repeats := pass(disruption.Options{})
	k := &report.WholePass{Cost: costOf(u, repeats), Considered: r.Savings.Considered - r.Savings.Left, Moves: len(r.Moves), Saving: r.Savings.Now - r.Savings.After, Floor: r.Savings.Floor}
	for i := range r.Moves {
		m := &r.Moves[i]
		k.Removed, k.Added = k.Removed+len(m.Remove), k.Added+len(m.Add)
	}
	// With a least saving that no replacement reaches, removals are all there is.
	alone, _, _ := pass(disruption.Options{NoFloor: true, MinSaving: r.Savings.Now})
	k.Removals = alone.Savings.Now - alone.Savings.After
	row.Price, row.Kerf = r.Savings.Now, k
}

func share(part, whole snapshot.Price) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// worldTypes are the types that running clusters consist of.
func (b *bench) worldTypes() ([]workload.NodeType, error) {
	var out []workload.NodeType
	for _, name := range worldTypes {
		i := slices.IndexFunc(b.market.Types, func(r catalog.Resolved) bool { return r.Type.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the catalogue has no type %s", name)
		}
		t := &b.market.Types[i]
		out = append(out, workload.NodeType{Name: name, Labels: t.Labels(), Capacity: t.Capacity, Allocatable: t.Allocatable})
	}
	return out, nil
}
