package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/interruption"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/telemetry/report"
)

// SweepFunction builds the function sweep from its environment. It takes batches of ticks,
// {} (sweep now) and {"dryRun": true} (the plan that a sweep would make, as JSON).
func SweepFunction(ctx context.Context, environ []string) (Function, error) {
	b, err := newBase(ctx, "sweep", environ, stdout())
	if err != nil {
		return nil, err
	}
	if err := b.queues(); err != nil {
		return nil, err
	}
	f := &sweepFunction{base: b, acting: newActing(b)}
	f.lambda = sync.OnceValue(func() *lambda.Client { return lambda.NewFromConfig(b.aws) })
	f.sweep = handler.Sweep{
		Facts: &f.facts, ClusterName: b.conf.Cluster, Region: b.region, Interval: b.conf.Functions.SweepInterval, Instance: b.name,
		Quiet: b.conf.Functions.BatchIdle, Most: b.conf.Functions.BatchMax,
		Now: b.now, Wait: pause, Log: b.tel.Log,
	}
	if b.conf.Stack.CatalogFunction != "" {
		f.sweep.Resolve = f.resolve
	}
	return b.invocation(f.invoke), nil
}

// queues checks what functions with queues cannot do without.
func (b *base) queues() error {
	for key, url := range map[string]string{"KERF_TICK_QUEUE": b.conf.Stack.TickQueue, "KERF_WORK_QUEUE": b.conf.Stack.WorkQueue} {
		if url == "" {
			return fmt.Errorf("read the function's settings: %s is not set: name the queue by its URL", key)
		}
	}
	return nil
}

// acting is what functions that act on nodes have in common.
type acting struct {
	*base
	facts     handler.FactsCache
	templates func() *template.Store
	ticks     func() *queue.Queue
	work      func() *queue.Queue
}

func newActing(b *base) *acting {
	return &acting{
		base:      b,
		templates: sync.OnceValue(func() *template.Store { return template.New(b.ec2(), b.now) }),
		ticks:     sync.OnceValue(func() *queue.Queue { return queue.New(b.sqs(), b.conf.Stack.TickQueue) }),
		work:      sync.OnceValue(func() *queue.Queue { return queue.New(b.sqs(), b.conf.Stack.WorkQueue) }),
	}
}

// sender makes the client of a queue when something is sent.
type sender func() *queue.Queue

// Send implements execute.Sender.
func (s sender) Send(ctx context.Context, messages ...lifecycle.Outgoing) error {
	return s().Send(ctx, messages...)
}

// lifecycle is what looks after nodes, for one invocation. Its executor is that of launches
// too.
func (a *acting) lifecycle(ctx context.Context) (*handler.Lifecycle, error) {
	cluster, home, err := a.cluster(ctx)
	if err != nil {
		return nil, err
	}
	memory := a.ledger(ctx)
	h := &handler.Lifecycle{
		Memory: memory, Cluster: cluster, Work: sender(a.work), Now: a.now, Each: each, Pause: pause, Instance: a.name,
		Known: func(ctx context.Context) (execute.Knower, error) {
			return handler.LoadKnower(ctx, memory, cluster, a.region, a.now(), &a.facts)
		},
	}
	h.Executor = &execute.Executor{
		Memory: memory, Cloud: a.cloud(a.templates()), Cluster: cluster, Node: nodeFacts(home), Region: a.region,
		Isolated: a.conf.Functions.Isolated, Now: a.now, Each: each, Begun: h.Kick,
	}
	return h, nil
}

type sweepFunction struct {
	*base
	*acting
	sweep  handler.Sweep
	house  handler.Housekeeping
	lambda func() *lambda.Client
	asked  map[string]time.Time
}

// sweepRequest is the payload of a direct invocation.
type sweepRequest struct {
	DryRun bool `json:"dryRun"`
}

func (f *sweepFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	event, isBatch := queue.Decode(payload)
	var r sweepRequest
	if !isBatch && len(bytes.TrimSpace(payload)) > 0 {
		d := json.NewDecoder(bytes.NewReader(payload))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf(`read the payload: %w; {} sweeps now, {"dryRun": true} plans only`, err)
		}
	}
	look, err := f.lifecycle(ctx)
	if err != nil {
		return nil, err
	}
	f.sweep.Memory, f.sweep.Cluster, f.sweep.Executor, f.sweep.Ticks = look.Memory, look.Cluster, look.Executor, sender(f.ticks)
	f.housekeeping(look, rep)
	if isBatch {
		return f.batch(ctx, event, f.ticks(), rep, func(ctx context.Context, m lifecycle.Message) error {
			t, err := lifecycle.DecodeTick(m.Body, m.Sent)
			if err != nil {
				return err
			}
			begun := f.now()
			got, err := f.sweep.Handle(ctx, t)
			sweepSummary(rep, got, f.now().Sub(begun))
			return err
		}), nil
	}
	ctx, done := answering(ctx)
	defer done()
	if r.DryRun {
		p, err := handler.DryRun(ctx, look.Memory, look.Cluster, f.region, f.now(), &f.facts, solve)
		if err != nil {
			return nil, err
		}
		rep.Say("planId", p.ID)
		// Not by a Rendering: that knows pages too, and whatever brings templates along keeps the
		// linker from leaving out the two thousand operations of EC2 that nobody calls.
		out, err := plan.JSON(p, false)
		return json.RawMessage(bytes.TrimSpace(out)), err
	}
	begun := f.now()
	got, err := f.sweep.Sweep(ctx)
	sweepSummary(rep, got, f.now().Sub(begun))
	return got, err
}

// housekeeping is what minute ticks do besides, and what makes the records of a new table.
func (f *sweepFunction) housekeeping(look *handler.Lifecycle, rep *report.Report) {
	h := &f.house
	h.Memory, h.Cluster, h.Executor, h.Lifecycle = look.Memory, look.Cluster, look.Executor, look
	h.ClusterName, h.Now, h.Instance = f.conf.Cluster, f.now, f.name
	if h.Notices == nil {
		h.Notices = &handler.Interruption{ClusterName: f.conf.Cluster, Now: f.now, Instance: f.name}
	}
	n := h.Notices
	n.Memory, n.Cluster, n.Executor, n.Ticks, n.Work = look.Memory, look.Cluster, look.Executor, sender(f.ticks), sender(f.work)
	h.Statuses = func(ctx context.Context) ([]interruption.Status, error) { return fleet.Statuses(ctx, f.ec2(), each) }
	h.Pools = func(ctx context.Context) error { return f.ask(ctx, handler.CatalogRequest{Only: "pools"}) }
	h.Facts = func(ctx context.Context) (*handler.Facts, error) {
		return handler.LoadFacts(ctx, look.Memory, f.region, f.now(), &f.facts)
	}
	tell := func(r handler.HousekeepingReport) {
		rep.Add(report.Failures, float64(len(r.Problems)))
		rep.Say("housekeeping", r)
	}
	f.sweep.Housekeeping = func(ctx context.Context) (bool, error) {
		r, err := h.Run(ctx)
		tell(r)
		return r.Going, err
	}
	f.sweep.Recover = func(ctx context.Context) error {
		r, err := h.Recover(ctx)
		tell(r)
		return err
	}
}

// sweepSummary puts what a sweep did into the summary of its invocation.
func sweepSummary(rep *report.Report, got *handler.SweepReport, took time.Duration) {
	if got == nil {
		return
	}
	if got.Outcome == "Late" || got.Outcome == "Done" {
		rep.Count("ticks"+got.Outcome, 1)
		return
	}
	if !slices.Contains([]string{"Failed", "Refused", "Recovering", "Incomplete", "Busy"}, got.Outcome) {
		rep.Add(report.TickSuccess, 1)
	}
	rep.Say("outcome", got.Outcome)
	if got.Detail != "" {
		rep.Say("detail", got.Detail)
	}
	if got.Outcome == "Busy" {
		return // whoever has the lease reports what there is
	}
	rep.Set(report.PendingPods, float64(got.Pending))
	oldest := got.Oldest
	if got.Unschedulable > 0 && got.Launched+got.Placed == 0 {
		oldest = 0
	}
	rep.Set(report.OldestPendingSeconds, oldest.Seconds())
	if got.Passes == 0 {
		if len(got.Warnings) > 0 {
			rep.Say("warnings", got.Warnings) // ticks that could not be sent, among others
		}
		return
	}
	rep.Say("passSeconds", took.Seconds())
	rep.Set(report.Unschedulable, float64(got.Unschedulable))
	rep.Set(report.InFlight, float64(got.InFlight))
	rep.Add(report.Launched, float64(got.Launched))
	rep.Add(report.Failures, float64(len(got.Failed)))
	rep.Add(report.Left, float64(got.Left))
	for _, p := range []report.Property{
		{Key: "planId", Value: got.PlanID}, {Key: "passes", Value: got.Passes}, {Key: "placed", Value: got.Placed}, {Key: "calls", Value: got.Calls},
		{Key: "launchPricePerHour", Value: int64(got.LaunchPrice)}, {Key: "stale", Value: got.Stale}, {Key: "failed", Value: got.Failed}, {Key: "warnings", Value: got.Warnings},
	} {
		if p.Key == "calls" {
			p.Key = "fleetCalls"
		}
		rep.Say(p.Key, p.Value)
	}
}

// askAgain is when a class that was asked for is asked for again.
const askAgain = 30 * time.Second

// resolve asks the function catalog for classes, and does not wait for it.
func (f *sweepFunction) resolve(ctx context.Context, classes []string) error {
	now := f.now()
	if f.asked == nil {
		f.asked = map[string]time.Time{}
	}
	fresh := slices.DeleteFunc(slices.Clone(classes), func(c string) bool {
		at, ok := f.asked[c]
		return ok && now.Sub(at) < askAgain
	})
	if len(fresh) == 0 {
		return nil
	}
	if err := f.ask(ctx, handler.CatalogRequest{Classes: fresh}); err != nil {
		return fmt.Errorf("ask for EC2NodeClasses %s: %w", strings.Join(fresh, ", "), err)
	}
	for _, c := range fresh {
		f.asked[c] = now
	}
	return nil
}

// ask has the function catalog do something, and does not wait for it.
func (f *sweepFunction) ask(ctx context.Context, r handler.CatalogRequest) error {
	payload, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = f.lambda().Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(f.conf.Stack.CatalogFunction), InvocationType: types.InvocationTypeEvent, Payload: payload,
	})
	return err
}
