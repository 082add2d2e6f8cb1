package main

import (
	"fmt"
	"io"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/scripts/bench/karpenter"
	"kerf.sh/kerf/scripts/bench/market"
	"kerf.sh/kerf/scripts/bench/report"
)

// TestConsolidation: both sides see the same cluster at the same price, Kerf looks at every
// node of it, and Karpenter's first command is one of its own methods'.
func TestConsolidation(t *testing.T) {
	m, err := market.New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{cfg: config{mode: smoke}, market: m, log: io.Discard}
	s, err := b.halfEmpty(12)
	if err != nil {
		t.Fatal(err)
	}
	row := report.Consolidation{Nodes: 12}
	b.consolidate(s, &row)
	k := row.Kerf
	if k.Considered != 12 || k.Removed == 0 || k.Removals <= 0 || k.Saving < k.Removals || k.Floor <= 0 || k.Floor > row.Price-k.Saving {
		t.Errorf("%+v of %d", k, row.Price)
	}
	c, err := karpenter.NewCluster(s, karpenter.InstanceTypes(m), market.Variant{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Price(); got != row.Price {
		t.Errorf("it costs %d on one side and %d on the other", row.Price, got)
	}
	first, err := c.First()
	if err != nil {
		t.Fatal(err)
	}
	if first.Method != "Multi" || first.Candidates != 12 || first.Removed < 2 || first.Saving <= 0 || first.Saving > row.Price {
		t.Errorf("%+v", first)
	}
	b.run.Consolidation = append(b.run.Consolidation, row)
	b.run.Evaluate()
	found := false
	for _, target := range b.run.Targets {
		if target.Quality && target.Rows == 1 {
			found = true
			if target.Value != fmt.Sprintf("%.1f %%", share(k.Removals, row.Price)) {
				t.Errorf("%+v", target)
			}
		}
	}
	if !found {
		t.Error("the saving is no target")
	}
}
