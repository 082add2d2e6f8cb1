package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/eks"
	"kerf.sh/kerf/internal/kube/setup"
	"kerf.sh/kerf/internal/telemetry/report"
)

// BootstrapFunction builds the function bootstrap from its environment. It takes the events
// of a custom resource of CloudFormation (properties Version, which only says that something
// changed, Crds: apply, force or leave, and NodeRoles), and the same properties directly, or {}: the
// cluster is set up again.
func BootstrapFunction(ctx context.Context, environ []string) (Function, error) {
	b, err := newBase(ctx, "bootstrap", environ, stdout())
	if err != nil {
		return nil, err
	}
	f := &bootstrapFunction{base: b, installer: b.installer, entries: func() eks.EntryAPI { return b.eks() }, respond: cfn.LambdaWrap}
	return b.invocation(f.invoke), nil
}

type bootstrapFunction struct {
	*base
	installer func(ctx context.Context) (*setup.Installer, error)
	entries   func() eks.EntryAPI
	// respond wraps what answers an event so that CloudFormation gets the answer.
	respond func(cfn.CustomResourceFunction) cfn.CustomResourceLambdaFunction
}

// installer sets up the function's cluster.
func (b *base) installer(ctx context.Context) (*setup.Installer, error) {
	cluster, home, err := b.cluster(ctx)
	if err != nil {
		return nil, err
	}
	return &setup.Installer{
		API: cluster.Client, Version: home.Version, AutoMode: home.AutoMode, Now: b.now, Wait: pause,
		Karpenter: func(ctx context.Context) (string, error) {
			leases, err := cluster.Leases(ctx, handler.KarpenterLease)
			if err != nil {
				return "", err
			}
			holder, _ := handler.Alive(leases, b.now())
			return holder, nil
		},
	}, nil
}

// bootstrapRequest are the properties of the custom resource.
type bootstrapRequest struct {
	// ServiceToken and ServiceTimeout are CloudFormation's, which sends its own properties along.
	ServiceToken   string
	ServiceTimeout any
	Version        string
	Crds           setup.Mode
	// NodeRoles are roles of nodes, by ARN, that the cluster lets in by access entries.
	NodeRoles []string
}

func decodeBootstrap(raw []byte) (r bootstrapRequest, err error) {
	if len(bytes.TrimSpace(raw)) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			return r, fmt.Errorf(`read the properties: %w; {"Crds": "apply"} or {} sets the cluster up again`, err)
		}
	}
	if r.Crds == "" {
		r.Crds = setup.Apply
	}
	if !slices.Contains(setup.Modes, r.Crds) {
		return r, fmt.Errorf("property Crds: %q is not known; want %s, %s or %s", r.Crds, setup.Apply, setup.Force, setup.Leave)
	}
	return r, nil
}

// bootstrapAnswerTime is kept back for the answer to CloudFormation: without one a stack
// waits for an hour.
const bootstrapAnswerTime = 15 * time.Second

func (f *bootstrapFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	var event cfn.Event
	if err := json.Unmarshal(payload, &event); err != nil || event.ResponseURL == "" {
		r, err := decodeBootstrap(payload)
		if err != nil {
			return nil, err
		}
		ctx, done := answering(ctx)
		defer done()
		return f.install(ctx, r, rep)
	}
	return f.respond(func(ctx context.Context, event cfn.Event) (string, map[string]any, error) {
		if end, ok := ctx.Deadline(); ok {
			var done context.CancelFunc
			ctx, done = context.WithDeadline(ctx, end.Add(-bootstrapAnswerTime))
			defer done()
		}
		got, err := f.event(ctx, event, rep)
		return "kerf-" + f.conf.Cluster, summaryOf(got), reason(err)
	})(ctx, event)
}

// event answers one event of CloudFormation.
func (f *bootstrapFunction) event(ctx context.Context, event cfn.Event, rep *report.Report) (*setup.Report, error) {
	switch event.RequestType {
	case cfn.RequestDelete:
		return f.uninstall(ctx, rep), nil
	case cfn.RequestCreate, cfn.RequestUpdate:
		raw, err := json.Marshal(event.ResourceProperties)
		if err != nil {
			return nil, err
		}
		r, err := decodeBootstrap(raw)
		if err != nil {
			return nil, err
		}
		return f.install(ctx, r, rep)
	}
	return nil, fmt.Errorf("request type %q is not known", event.RequestType)
}

func (f *bootstrapFunction) install(ctx context.Context, r bootstrapRequest, rep *report.Report) (*setup.Report, error) {
	x, err := f.installer(ctx)
	if err != nil {
		return nil, err
	}
	x.Mode = r.Crds
	got, err := x.Install(ctx)
	if err == nil {
		err = f.letNodesIn(ctx, r.NodeRoles, got)
	}
	rep.Say("setup", got)
	return got, err
}

// letNodesIn makes access entries for the roles of nodes. They stay when the stack goes:
// nodes outlive it.
func (f *bootstrapFunction) letNodesIn(ctx context.Context, roles []string, got *setup.Report) error {
	for _, role := range roles {
		made, note, err := eks.LetNodesIn(ctx, f.entries(), f.conf.Cluster, role)
		if err != nil {
			return err
		}
		if made {
			got.Applied = append(got.Applied, "access entry of "+role)
		}
		if note != "" {
			got.Notes = append(got.Notes, note)
		}
	}
	return nil
}

// uninstall does what it can: a cluster that is gone, or that lets nobody in any more, is no
// reason for a stack that cannot be deleted.
func (f *bootstrapFunction) uninstall(ctx context.Context, rep *report.Report) *setup.Report {
	got := &setup.Report{}
	x, err := f.installer(ctx)
	if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
		got.Notes = []string{"the cluster is gone, and everything in it"}
	} else if err == nil {
		got, err = x.Uninstall(ctx)
	}
	rep.Say("setup", got)
	if err != nil && len(got.Notes) == 0 {
		f.tel.Log.WarnContext(ctx, "something of Kerf stays in the cluster", "error", err.Error())
		got.Notes = append(got.Notes, "left in the cluster, for kubectl to delete (label app.kubernetes.io/managed-by=kerf): "+err.Error())
	}
	return got
}

// mostReason is how much of a reason a person gets to see in the events of a stack: in all
// CloudFormation takes 4 KB of an answer.
const mostReason = 1500

// reason is an error as CloudFormation shows it.
func reason(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) > mostReason {
		text = strings.ToValidUTF8(text[:mostReason], "") + "..."
	}
	return errors.New(text)
}

// summaryOf are the attributes of the custom resource.
func summaryOf(r *setup.Report) map[string]any {
	if r == nil {
		return nil
	}
	notes := strings.Join(append(slices.Clone(r.Left), r.Notes...), "; ")
	return map[string]any{"Applied": len(r.Applied), "Removed": len(r.Removed), "Notes": notes[:min(len(notes), mostReason)]}
}
