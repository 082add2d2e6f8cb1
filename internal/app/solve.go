package app

import (
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

func solve(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan {
	return provision.Plan(s, c, provision.Options{Explain: explain})
}
