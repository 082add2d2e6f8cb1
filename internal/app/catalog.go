package app

import (
	"context"
	"encoding/json"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/telemetry/report"
)

// CatalogFunction builds the function catalog from its environment. It takes the event of a
// schedule and {} (everything that is due), {"class": "name"} or {"classes": [...]} (those, at
// once), and {"only": "classes"} or {"only": "prices"}.
func CatalogFunction(ctx context.Context, environ []string) (Function, error) {
	b, err := newBase(ctx, "catalog", environ, stdout())
	if err != nil {
		return nil, err
	}
	f := &catalogFunction{base: b, templates: template.New(b.ec2(), b.now)}
	return b.invocation(f.invoke), nil
}

type catalogFunction struct {
	*base
	facts     handler.FactsCache
	templates *template.Store
}

func (f *catalogFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	r, err := handler.DecodeCatalogRequest(payload)
	if err != nil {
		return nil, err
	}
	h := &handler.Catalog{
		Memory: f.ledger(ctx), Market: f.market(), Facts: &f.facts, Region: f.region, Reservations: f.conf.Settings.ReservedCapacity,
		Controller: "kerf.sh/catalog", Instance: f.name, Now: f.now,
	}
	if r.Only != "prices" { // that half may run where the cluster cannot be reached
		cluster, home, err := f.cluster(ctx)
		if err != nil {
			return nil, err
		}
		profiles := f.profiles()
		if h.Resolver, err = f.resolver(home, profiles); err != nil {
			return nil, err
		}
		h.Cluster = cluster
		h.Leftovers = &Leftovers{Cluster: f.conf.Cluster, Cloud: f.cloud(f.templates), Profiler: profiles}
	}
	ctx, done := answering(ctx)
	defer done()
	got, err := h.Handle(ctx, r)
	catalogSummary(rep, got)
	return got, err
}

// catalogSummary puts what a run did into the summary of its invocation.
func catalogSummary(rep *report.Report, got *handler.CatalogReport) {
	failures := 0
	for _, c := range got.Classes {
		if c.Ready == nodeclass.False || c.Ready == nodeclass.Unknown || c.Problem != "" {
			failures++
		}
	}
	rep.Add(report.Failures, float64(failures))
	for _, p := range []report.Property{
		{Key: "classes", Value: got.Classes}, {Key: "poolsChanged", Value: got.Pools}, {Key: "read", Value: got.Read}, {Key: "types", Value: got.Types},
		{Key: "prices", Value: got.Prices}, {Key: "refused", Value: got.Refused}, {Key: "removed", Value: got.Removed}, {Key: "left", Value: got.Left},
		{Key: "warnings", Value: got.Warnings},
	} {
		rep.Say(p.Key, p.Value)
	}
}
