package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/telemetry/report"
)

// CatalogFunction builds the function catalog from its environment. It takes the event of a
// schedule and {} (everything that is due), {"class": "name"} or {"classes": [...]} (those, at
// once), and {"only": "classes"} or {"only": "prices"}. ask joins what is asked of AWS.
func CatalogFunction(ctx context.Context, environ []string, ask func(Region) Asked) (Function, error) {
	b, err := newBase(ctx, "catalog", environ, stdout())
	if err != nil {
		return nil, err
	}
	f := &catalogFunction{base: b, asked: ask(Region{
		AWS: b.aws, EC2: b.ec2(), Templates: template.New(b.ec2(), b.now), Cluster: b.conf.Cluster, Name: b.region,
		Isolated: b.conf.Functions.Isolated, Reservations: b.conf.Settings.ReservedCapacity, Now: b.now, Sleep: pause,
	})}
	return b.invocation(f.invoke), nil
}

// Region is where a cluster is, as one process asks AWS about it.
type Region struct {
	// AWS is how the SDK's clients are made; EC2 and Templates are there already.
	AWS           aws.Config
	EC2           *ec2.Client
	Templates     *template.Store
	Cluster, Name string // of the cluster, and of the region
	// Isolated: IAM and the price list cannot be reached. Reservations: the gate
	// ReservedCapacity is on.
	Isolated, Reservations bool
	Now                    func() time.Time
	Sleep                  func(ctx context.Context, d time.Duration) error
}

// Asked answers what is asked of AWS. It is handed in by the one program that needs it,
// because the clients behind it (SSM, IAM, the price list) cost megabytes: package region
// has it.
type Asked interface {
	Market() handler.Market
	Leftovers() handler.Leftovers
	// Resolver resolves classes for nodes of a cluster with a version of Kubernetes.
	Resolver(node userdata.Cluster, version string) (handler.Resolver, error)
}

type catalogFunction struct {
	*base
	facts handler.FactsCache
	asked Asked
}

func (f *catalogFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	r, err := handler.DecodeCatalogRequest(payload)
	if err != nil {
		return nil, err
	}
	h := &handler.Catalog{
		Memory: f.ledger(ctx), Market: f.asked.Market(), Facts: &f.facts, Region: f.region, Reservations: f.conf.Settings.ReservedCapacity,
		Controller: "kerf.sh/catalog", Instance: f.name, Now: f.now,
	}
	if r.Only != "prices" { // that half may run where the cluster cannot be reached
		cluster, home, err := f.cluster(ctx)
		if err != nil {
			return nil, err
		}
		if h.Resolver, err = f.asked.Resolver(nodeFacts(home), home.Version); err != nil {
			return nil, err
		}
		h.Cluster, h.Leftovers = cluster, f.asked.Leftovers()
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
