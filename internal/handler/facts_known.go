package handler

import (
	"context"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// Knower says what instances are, for whoever finds out late what became of an attempt: by
// the types that their pools can have now, in a snapshot that was filled. What it does not
// know stays as it was reserved.
func (f *Facts) Knower(s *snapshot.Snapshot) execute.Knower {
	var types map[string]map[string]*catalog.Resolved
	return func(r lifecycle.Record, in lifecycle.Instance) lifecycle.Known {
		class, ok := f.Classes[r.Spec.ClassRef.Name]
		if !ok {
			return lifecycle.Known{}
		}
		if types == nil {
			types = scheduling.PoolTypes(s, f.Catalog)
		}
		return execute.KnownOf(types[r.NodePool][in.Type], class.Resolved, in)
	}
}

// LoadKnower reads what a Knower needs.
func LoadKnower(ctx context.Context, m Memory, c Cluster, region string, now time.Time, cache *FactsCache) (execute.Knower, error) {
	f, err := LoadFacts(ctx, m, region, now, cache)
	if err != nil {
		return nil, err
	}
	s, err := c.Some(ctx, kindPool, kindClass, "NodeOverlay")
	if err != nil {
		return nil, fmt.Errorf("read what nodes can be: %w", err)
	}
	s.Now, s.Region = now, region
	f.Fill(s)
	return f.Knower(s), nil
}

// DryRun is the plan that a sweep would make now. It changes nothing, and takes no lease.
func DryRun(ctx context.Context, m Memory, c Cluster, region string, now time.Time, cache *FactsCache,
	solve func(*snapshot.Snapshot, *catalog.Catalog, string) *plan.Plan) (*plan.Plan, error) {
	s, warnings, err := c.Read(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	known, err := m.Remember(ctx)
	if err != nil {
		return nil, err
	}
	f, err := LoadFacts(ctx, m, region, now, cache)
	if err != nil {
		return nil, err
	}
	s.Incomplete = plausible(s, known.Records)
	f.Fill(s)
	known.Into(s)
	s.Normalize()
	return Make(&Reading{Snapshot: s, Warnings: append(warnings, f.Warnings...)}, f.Catalog, "", solve)
}
