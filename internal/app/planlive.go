package app

import (
	"context"
	"io"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube"
)

// liveReader reads the cluster of a plan function's environment: its objects, what the
// functions remember, and what they found can be launched.
func liveReader(environ []string) (func(context.Context, handler.Input) (*handler.Reading, *catalog.Catalog, error), error) {
	b, err := newBase(context.Background(), "plan", environ, io.Discard)
	if err != nil {
		return nil, err
	}
	facts := &handler.FactsCache{}
	return func(ctx context.Context, in handler.Input) (*handler.Reading, *catalog.Catalog, error) {
		ctx, done := answering(ctx)
		defer done()
		cluster, _, err := b.cluster(ctx)
		if err != nil {
			return nil, nil, err
		}
		in.Cluster, in.Region = b.conf.Cluster, b.region
		m := &memory{name: b.conf.Stack.Table, open: tableNamed(b.conf.Stack.Table, b.region), now: b.now}
		in.Remember = m.into
		over := kube.Overlay{Sources: texts("whatIf", in.WhatIf), Remove: in.Remove}
		reading, _, err := read([]kube.Source{cluster.Source(ctx)}, over, in, b.region, b.now)
		if err != nil {
			return nil, nil, err
		}
		// Without the ledger, which the plan says it is, the embedded table has to do.
		var table *catalog.Catalog
		if got, err := handler.LoadFacts(ctx, b.ledger(ctx), b.region, b.now(), facts); err == nil {
			table = got.Catalog
		}
		return reading, table, nil
	}, nil
}
