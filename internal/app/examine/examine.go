package examine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/checkup"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Cluster is what is asked of the API server: *app.Cluster has it.
type Cluster interface {
	Get(ctx context.Context, t live.Target) (json.RawMessage, error)
	Leases(ctx context.Context, name string) ([]live.LeaseState, error)
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error)
}

// Memory is what is asked of the ledger: *ledger.Ledger has it.
type Memory interface {
	handler.Memory
	Stored(ctx context.Context) (lifecycle.Meta, bool, error)
	Remember(ctx context.Context) (lifecycle.Remembered, error)
}

// Images finds the images that a class selects.
type Images func(ctx context.Context, c *nodeclass.Class, kubernetes string) ([]nodeclass.Image, error)

// Examiner looks at one cluster.
type Examiner struct {
	Cluster, Region string
	Inside          bool // it runs as a function of the stack
	// Table is the ledger's, "" = the one of the stack.
	Table string

	Cloud *checkup.Checkup
	// Kube is the way to the API server; it is asked for once EKS was asked.
	Kube   func(ctx context.Context) (Cluster, error)
	Memory func(table string) Memory
	Images Images
	// Instances are those of the cluster that pools made.
	Instances func(ctx context.Context, cluster string) ([]launch.Described, error)
	Now       func() time.Time
}

// timeout bounds one look.
const timeout = 15 * time.Second

// Facts gathers what can be seen.
func (x *Examiner) Facts(ctx context.Context) *doctor.Facts {
	f := &doctor.Facts{Now: x.Now().UTC().Truncate(time.Second), Cluster: x.Cluster, Region: x.Region, Inside: x.Inside}
	x.Cloud.Who(ctx, f)
	x.Cloud.FindCluster(ctx, f)
	table := x.Cloud.FindStack(ctx, f)
	if x.Table != "" {
		table = x.Table
	}
	m := x.ledger(ctx, f, table)
	s := x.kubernetes(ctx, f, m)
	x.Cloud.FindNetwork(ctx, f)
	x.images(ctx, f, s)
	x.Cloud.FindRoles(ctx, f)
	x.Cloud.FindEntries(ctx, f)
	if s != nil {
		x.Cloud.FindQuotas(ctx, f, wants(s.NodePools))
	} else {
		checkup.Note(f, doctor.LookQuotas, doctor.Unseen{Why: "what pools may launch is not known"})
	}
	x.instances(ctx, f, s)
	return f
}

// memory is what was found in the ledger.
type memory struct {
	remembered lifecycle.Remembered
	facts      *handler.Facts
}

// ledger reads what the functions remember; nil when there is nothing to see.
func (x *Examiner) ledger(ctx context.Context, f *doctor.Facts, table string) *memory {
	if table == "" {
		if _, unseen := f.Unseen[doctor.LookStack]; unseen {
			checkup.Note(f, doctor.LookLedger, doctor.Unseen{Why: "the stack could not be looked at, which says which table it is"})
		}
		return nil
	}
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	l, out := x.Memory(table), &doctor.Ledger{Table: table}
	failed := func(err error) *memory {
		u := checkup.Unseen(err)
		if u.Permission == "" && awserr.Is(err, awserr.Unauthorized) {
			u.Permission = strings.Join(doctor.Permissions[doctor.LookLedger], ", ")
		}
		checkup.Note(f, doctor.LookLedger, u)
		return nil
	}
	meta, ok, err := l.Stored(ctx)
	if err != nil {
		return failed(err)
	}
	f.Ledger = out
	if !ok {
		out.Missing = true
		return nil
	}
	out.Cluster = meta.Cluster
	if meta.Mode == lifecycle.Recovery {
		out.Recovery = "in recovery since " + meta.Since.UTC().Format(time.RFC3339) + ": " + meta.Why
	}
	got := &memory{}
	if got.remembered, err = l.Remember(ctx); err != nil {
		f.Ledger = nil
		return failed(err)
	}
	got.facts, err = handler.LoadFacts(ctx, l, x.Region, f.Now, &handler.FactsCache{})
	if err != nil {
		f.Ledger = nil
		return failed(err)
	}
	remembered(f, &got.remembered)
	return got
}

// remembered puts what the ledger says of launches into facts.
func remembered(f *doctor.Facts, m *lifecycle.Remembered) {
	for _, a := range m.Attempts {
		if a.Outcome == nil || len(a.Outcome.Errors) == 0 {
			continue
		}
		got := doctor.Attempt{Pool: a.NodePool, At: a.Outcome.At, Got: len(a.Outcome.Instances)}
		for _, e := range a.Outcome.Errors {
			i := slices.IndexFunc(got.Errors, func(c doctor.CodeCount) bool { return c.Code == e.Code })
			if i < 0 {
				i = len(got.Errors)
				got.Errors = append(got.Errors, doctor.CodeCount{Code: e.Code, Message: e.Message})
			}
			got.Errors[i].Count++
		}
		slices.SortStableFunc(got.Errors, func(a, b doctor.CodeCount) int { return b.Count - a.Count })
		f.Ledger.Attempts = append(f.Ledger.Attempts, got)
	}
	slices.SortStableFunc(f.Ledger.Attempts, func(a, b doctor.Attempt) int { return b.At.Compare(a.At) })
	for _, r := range m.Records {
		if r.Failure != nil {
			f.Ledger.Failures = append(f.Ledger.Failures, doctor.Failure{Claim: r.Claim, Pool: r.NodePool, Reason: r.Failure.Reason, Message: r.Failure.Message, At: r.Failure.At})
		}
	}
	for _, o := range m.Unavailable(f.Now) {
		f.Ledger.Short++
		if o.InstanceType == "" && o.Zone == "" && o.ReservationID == "" && o.CapacityType != "" {
			f.Ledger.ShortAll = append(f.Ledger.ShortAll, o.CapacityType)
		}
	}
}

// definitions are those without which nothing works.
var definitions = []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"}

// kubernetes asks the API server; nil when it has nothing to plan on.
func (x *Examiner) kubernetes(ctx context.Context, f *doctor.Facts, m *memory) *snapshot.Snapshot {
	all := []doctor.Look{doctor.LookDefinitions, doctor.LookKarpenter, doctor.LookAwsAuth, doctor.LookObjects}
	blind := func(why string) {
		for _, l := range all {
			checkup.Note(f, l, doctor.Unseen{Why: why})
		}
	}
	if f.EKS == nil || f.EKS.Endpoint == "" {
		checkup.Note(f, doctor.LookAPI, doctor.Unseen{Why: "its address is not known"})
		blind("the API server's address is not known")
		return nil
	}
	k, err := x.Kube(ctx)
	if err != nil {
		f.API = &doctor.API{Problem: doctor.Unreachable, Detail: err.Error()}
		blind("the API server cannot be asked")
		return nil
	}
	if f.API = x.api(ctx, f, k); f.API.Problem != "" {
		blind("the API server cannot be asked")
		return nil
	}
	leases, err := k.Leases(ctx, handler.KarpenterLease)
	if err != nil {
		checkup.Note(f, doctor.LookKarpenter, denied(err))
	}
	f.Karpenter, _ = handler.Alive(leases, f.Now)
	x.awsAuth(ctx, f, k)
	s, warnings, err := k.Read(ctx, f.Now)
	if err != nil {
		checkup.Note(f, doctor.LookObjects, denied(err))
		return nil
	}
	objects(f, s, m)
	f.Pending = pending(s, warnings, m)
	return s
}

// denied is an error of the API server as a reason.
func denied(err error) doctor.Unseen {
	var e *live.Error
	if errors.As(err, &e) && errors.Is(err, live.ErrForbidden) {
		what := e.Resource
		if e.Name != "" {
			what += " " + e.Name
		}
		return doctor.Unseen{Permission: e.Verb + " " + what, Why: "the API server forbids it"}
	}
	return doctor.Unseen{Why: err.Error()}
}

// api asks for the definitions: that it answers is known then, too.
func (x *Examiner) api(ctx context.Context, f *doctor.Facts, k Cluster) *doctor.API {
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	for _, name := range definitions {
		raw, err := k.Get(ctx, live.Target{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Name: name})
		switch {
		case err == nil:
			f.Definitions = append(f.Definitions, definition(name, raw))
		case errors.Is(err, live.ErrNotFound):
			f.Definitions = append(f.Definitions, doctor.Definition{Name: name})
		case errors.Is(err, live.ErrUnauthorized):
			return &doctor.API{Problem: doctor.Unauthorized, Detail: err.Error()}
		case errors.Is(err, live.ErrForbidden):
			f.Definitions = nil
			checkup.Note(f, doctor.LookDefinitions, denied(err))
			return &doctor.API{}
		default:
			return &doctor.API{Problem: doctor.Unreachable, Detail: err.Error()}
		}
	}
	return &doctor.API{}
}

func definition(name string, raw json.RawMessage) doctor.Definition {
	var c struct {
		Spec struct {
			Versions []struct {
				Name   string
				Served bool
			}
		}
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	d := doctor.Definition{Name: name}
	if json.Unmarshal(raw, &c) != nil {
		return d
	}
	for _, v := range c.Spec.Versions {
		if v.Served {
			d.Served = append(d.Served, v.Name)
		}
	}
	for _, k := range c.Status.Conditions {
		d.Established = d.Established || k.Type == "Established" && k.Status == "True"
	}
	return d
}

// awsAuth looks for the roles of nodes and functions in the ConfigMap, where it counts.
func (x *Examiner) awsAuth(ctx context.Context, f *doctor.Facts, k Cluster) {
	if f.EKS.AuthMode == "API" {
		return
	}
	data, err := k.ConfigMap(ctx, "kube-system", "aws-auth")
	if err != nil && !errors.Is(err, live.ErrNotFound) {
		checkup.Note(f, doctor.LookAwsAuth, denied(err))
		return
	}
	x.Cloud.Mapped = mapped(data["mapRoles"])
	if f.Stack == nil {
		return
	}
	for i := range f.Stack.Functions {
		fn := &f.Stack.Functions[i]
		fn.Mapped = slices.Contains(x.Cloud.Mapped["kerf:"+fn.Name], fn.Role)
	}
}

// embedded is the table to plan with where the functions found out nothing yet.
func embedded(region string, m *memory) *catalog.Catalog {
	if m != nil && m.facts != nil && m.facts.Catalog != nil {
		return m.facts.Catalog
	}
	if c, ok := catalog.Embedded(region); ok {
		return c
	}
	return nil
}
