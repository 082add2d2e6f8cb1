package app

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

func solve(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan {
	return provision.Plan(s, c, provision.Options{Explain: explain})
}

// moves adds to a plan which nodes could go, and why the others stay.
func moves(s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan) {
	r := disruption.Propose(s, c, disruption.Options{Base: p, CostPerNode: s.Settings.CostPerNode,
		MinSaving: s.Settings.MinSaving, MinSavingShare: s.Settings.MinSavingPercent * 10_000})
	p.Moves, p.Savings = r.Moves, &r.Savings
	p.Verdicts = append(p.Verdicts, r.Verdicts...)
	slices.SortStableFunc(p.Verdicts, func(a, b plan.Verdict) int { return cmp.Compare(a.Object, b.Object) })
}
