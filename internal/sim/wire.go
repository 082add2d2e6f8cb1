package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/pricing"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/cloud/resolve"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/interruption"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/snapshot"
)

// Mutant breaks what the handlers are given, in the place of the good one. nil fields break
// nothing.
type Mutant struct {
	Memory  func(handler.Memory) handler.Memory
	Cluster func(handler.Cluster) handler.Cluster
	Cloud   func(execute.Cloud) execute.Cloud
	Table   func(ledger.Table) ledger.Table
	// Journal changes the snapshot that is kept.
	Journal func(*snapshot.Snapshot) *snapshot.Snapshot
	// Script decides what happens to calls.
	Script func(bound) (trouble, bool)
}

// interval is that of ticks.
const interval = 10 * time.Second

// wire makes the functions, the queues, and what they are connected to: what package app
// does for the real ones.
func (w *World) wire(m *Mutant) {
	if m == nil {
		m = &Mutant{}
	}
	if m.Script != nil {
		w.Script = m.Script
	}
	kube, mail, lambda := newKubeService(w), newSQSService(w), newLambdaService(w)
	function := func(name string, timeout time.Duration, concurrency int, begin func(*parts) func(context.Context, json.RawMessage) (any, error)) *function {
		f := &function{w: w, name: name, timeout: timeout, concurrency: concurrency, dice: newDice(w.Seed, "lambda "+name)}
		f.begin = func(c *container) func(context.Context, json.RawMessage) (any, error) {
			p := &parts{c: c, w: w, m: m, kube: kube, mail: mail, lambda: lambda, table: w.table.live}
			p.make()
			return begin(p)
		}
		w.lambdas[name] = f
		return f
	}
	concurrent := 2
	if w.Profile.Wide {
		concurrent = 10
	}
	sweep := function("sweep", 3*time.Minute, 2, (*parts).sweep)
	work := function("lifecycle", time.Minute, concurrent, (*parts).lifecycleBegin)
	function("catalog", 2*time.Minute, 2, (*parts).catalogBegin)
	if w.Profile.Consolidate {
		function("consolidation", 5*time.Minute, 1, (*parts).consolidationBegin)
	}
	w.noticing(function("interruption", 20*time.Second, 5, (*parts).interruptionBegin))
	w.queues["ticks"] = &mailbox{w: w, name: "ticks", visibility: 3*time.Minute + 10*time.Second, retention: 2 * time.Minute, batch: 1, to: sweep, dice: newDice(w.Seed, "ticks")}
	w.queues["work"] = &mailbox{w: w, name: "work", visibility: 90 * time.Second, retention: 4 * 24 * time.Hour, receives: 10, batch: 5, to: work, dice: newDice(w.Seed, "work")}
}

// parts are what a container has: adapters around what it may call.
type parts struct {
	c                  *container
	w                  *World
	m                  *Mutant
	kube, mail, lambda *service
	table              *ledger.Memory

	memory    handler.Memory
	cluster   handler.Cluster
	cloud     execute.Cloud
	ec2       *ec2Client
	ticks     *queue.Queue
	work      *queue.Queue
	facts     *handler.FactsCache
	executor  *execute.Executor
	lifecycle *handler.Lifecycle
	// message is the id of the message that is handled, for what is told of it.
	message string
}

func (p *parts) make() {
	w, c := p.w, p.c
	p.ec2 = &ec2Client{c: c, a: w.aws}
	p.cluster = &clusterClient{c: c, k: w.cluster, s: p.kube}
	if p.m.Cluster != nil {
		p.cluster = p.m.Cluster(p.cluster)
	}
	p.cloud = &cloud{Fleet: &fleet.Fleet{Client: p.ec2}, Store: template.New(p.ec2, c.now)}
	if p.m.Cloud != nil {
		p.cloud = p.m.Cloud(p.cloud)
	}
	mail := &sqsClient{c: c, s: p.mail}
	p.ticks, p.work = queue.New(mail, "ticks"), queue.New(mail, "work")
	p.facts = &handler.FactsCache{}
	p.executor = &execute.Executor{Cloud: p.cloud, Cluster: p.cluster, Node: nodeCluster, Region: region, Now: c.now}
	p.lifecycle = p.newLifecycle()
	p.executor.Begun = p.lifecycle.Kick
	if w.Profile.Wide {
		p.executor.Each, p.lifecycle.Each = p.each, p.each
	}
}

// each is as package app has it.
func (p *parts) each(n int, f func(i int)) {
	p.c.together(min(n, 8), func() {
		for i := range n {
			f(i)
		}
	})
}

// nodeCluster is what nodes know of the cluster.
var nodeCluster = userdata.Cluster{Name: clusterName, Endpoint: "https://kube.example.com", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"}

// begin gives an invocation its own ledger.
func (p *parts) begin() {
	var t ledger.Table = &tableClient{c: p.c, t: p.w.table, m: p.table}
	if p.m.Table != nil {
		t = p.m.Table(t)
	}
	l := ledger.New(ledger.Config{
		Table: t, Cluster: clusterName, Owner: p.c.proc.name, Now: p.c.now,
		Wait: func(ctx context.Context, n int) error { return p.c.wait(ctx, time.Duration(n*n)*20*time.Millisecond) },
	})
	p.memory = l
	if p.m.Memory != nil {
		p.memory = p.m.Memory(l)
	}
	p.executor.Memory, p.lifecycle.Memory = p.memory, p.memory
}

// wait pauses an invocation.
func (c *container) wait(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok {
		d = min(d, end.Sub(c.w.now())+time.Millisecond)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.proc.yield(max(0, d))
	return ctx.Err()
}

// cloud is EC2 as the executor wants it.
type cloud struct {
	*fleet.Fleet
	Store *template.Store
}

// Ensure implements execute.Cloud.
func (c *cloud) Ensure(ctx context.Context, ts []launch.Template) error {
	return c.Store.Ensure(ctx, ts)
}

// Forget implements execute.Cloud.
func (c *cloud) Forget(names ...string) { c.Store.Forget(names...) }

// Templates implements execute.Cloud.
func (c *cloud) Templates(ctx context.Context, cluster string) ([]launch.Stored, error) {
	return c.Store.List(ctx, cluster)
}

// DeleteTemplates implements execute.Cloud.
func (c *cloud) DeleteTemplates(ctx context.Context, ts []launch.Stored) ([]string, error) {
	return c.Store.Delete(ctx, ts)
}

func (p *parts) newLifecycle() *handler.Lifecycle {
	return &handler.Lifecycle{
		Cluster: p.cluster, Executor: p.executor, Work: p.work, Now: p.c.now, Pause: p.c.wait, Instance: "kerf.sh/lifecycle",
		Known: func(ctx context.Context) (execute.Knower, error) {
			return handler.LoadKnower(ctx, p.memory, p.cluster, region, p.c.now(), p.facts)
		},
		Told: func(_ context.Context, r handler.LifecycleReport) {
			p.w.tracef("  %s looked at %d, moved %v, attempts %d, left %d, next %s, incomplete %v, problems %v %s", p.c.proc.name, r.InFlight, r.Moved, r.Attempts, r.Left, r.Next.Sub(epoch), r.Incomplete, r.Problems, r.Refused)
		},
	}
}

// consumer takes the batches of a function.
func (p *parts) consumer(q *queue.Queue, again func(queue.Message) time.Duration) queue.Consumer {
	return queue.Consumer{Queue: q, Margin: 5 * time.Second, Reserve: time.Second, Again: again, Now: p.c.now, Log: p.c.log()}
}

func (p *parts) sweep() func(context.Context, json.RawMessage) (any, error) {
	h := &handler.Sweep{
		Cluster: p.cluster, Executor: p.executor, Ticks: p.ticks, Facts: p.facts,
		Resolve: p.resolve, Journal: p.journal, ClusterName: clusterName, Region: region, Interval: interval, Instance: "kerf.sh/sweep",
		Now: p.c.now, Wait: p.c.wait, Log: p.c.log(),
	}
	keep := p.newHousekeeping()
	h.Housekeeping = func(ctx context.Context) (bool, error) {
		rep, err := keep.Run(ctx)
		return rep.Going, p.housekept(rep, err)
	}
	h.Recover = func(ctx context.Context) error { return p.housekept(keep.Recover(ctx)) }
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		p.begin()
		h.Memory = p.memory
		keep.Memory, keep.Notices.Memory = p.memory, p.memory
		told := func(rep *handler.SweepReport, err error) error {
			if rep != nil {
				p.w.tracef("  %s %s %s: pending %d placed %d unschedulable %d launched %d failed %d left %d passes %d warnings %q", p.c.proc.name, rep.Outcome, rep.Detail,
					rep.Pending, rep.Placed, rep.Unschedulable, rep.Launched, len(rep.Failed), rep.Left, rep.Passes, rep.Warnings)
				p.w.checks.swept(p.c, rep)
			}
			return err
		}
		event, ok := queue.Decode(payload)
		if !ok {
			return nil, told(h.Sweep(ctx))
		}
		return p.consumer(p.ticks, nil).Each(ctx, event, func(ctx context.Context, m queue.Message) error {
			t, err := lifecycle.DecodeTick(m.Body, m.Sent)
			if err != nil {
				return err
			}
			p.w.checks.ticked(p.c, t)
			return told(h.Handle(ctx, t))
		}).Response, nil
	}
}

func (p *parts) lifecycleHandle(ctx context.Context, payload json.RawMessage) (any, error) {
	p.begin()
	event, ok := queue.Decode(payload)
	if !ok {
		return nil, errors.New("no event of a queue")
	}
	return p.consumer(p.work, queue.Backoff(2*time.Second, time.Minute)).Each(ctx, event, func(ctx context.Context, m queue.Message) error {
		work, err := lifecycle.DecodeWork(m.Body)
		if err != nil {
			return err
		}
		return p.lifecycle.Handle(ctx, work)
	}).Response, nil
}

func (p *parts) lifecycleBegin() func(context.Context, json.RawMessage) (any, error) {
	return p.lifecycleHandle
}

func (p *parts) catalogBegin() func(context.Context, json.RawMessage) (any, error) {
	r := &resolve.Resolver{
		Network: p.ec2, Images: &image.Resolver{EC2: p.ec2, SSM: p.w.aws.ssm, Now: p.c.now}, Reserved: p.ec2, Region: region, Now: p.c.now,
		Profiles: &profile.Profiles{Client: p.w.aws.iam, Cluster: clusterName, Region: region, Sleep: p.c.wait},
		Cluster:  nodeCluster, Kubernetes: image.Version{Major: 1, Minor: 35},
	}
	h := &handler.Catalog{
		Cluster: p.cluster, Resolver: r, Market: &market{p}, Facts: p.facts, Region: region, Reservations: true,
		Controller: "kerf.sh/catalog", Instance: "catalog", Now: p.c.now,
	}
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		p.begin()
		h.Memory = p.memory
		req, err := handler.DecodeCatalogRequest(payload)
		if err != nil {
			return nil, err
		}
		rep, err := h.Handle(ctx, req)
		if rep != nil {
			p.w.tracef("  %s resolved %+v, left %v, warnings %v", p.c.proc.name, rep.Classes, rep.Left, rep.Warnings)
		}
		return rep, err
	}
}

// resolve asks the function catalog for classes, and does not wait for it.
func (p *parts) resolve(ctx context.Context, classes []string) error {
	_, err := call(ctx, p.c, p.lambda, bound{Op: "Invoke", Object: fmt.Sprint(classes), Write: true}, func() (struct{}, error) {
		p.w.invokeCatalog(classes)
		return struct{}{}, nil
	})
	return err
}

// invokeCatalog invokes the function catalog asynchronously.
func (w *World) invokeCatalog(classes []string) {
	payload := map[string]any{}
	if len(classes) > 0 {
		payload["classes"] = classes
	}
	w.after(w.lambdas["catalog"].dice.between(20*time.Millisecond, time.Second), func() { w.invokeAgain("catalog", payload, 1) })
}

func newLambdaService(w *World) *service {
	return &service{
		name: "lambda", least: 10 * time.Millisecond, most: 80 * time.Millisecond, dice: newDice(w.Seed, "invoke"),
		errors: func(*bound, dice) error { return errors.New("TooManyRequestsException: Rate Exceeded") },
		lost:   func(*bound) error { return errors.New("connection reset by peer") },
		gone:   func(_ *bound, err error) error { return err },
	}
}

// market is what the region sells.
type market struct{ p *parts }

// Offered implements handler.Market.
func (m *market) Offered(ctx context.Context, _ *catalog.Catalog, _ map[string]string) (*catalog.Catalog, error) {
	return call(ctx, m.p.c, m.p.w.aws.s, bound{Op: "DescribeInstanceTypes"}, func() (*catalog.Catalog, error) { return m.p.w.aws.table, nil })
}

// OnDemand implements handler.Market: there is no price list here.
func (m *market) OnDemand(context.Context) (map[string]int64, error) { return nil, nil }

// Spot implements handler.Market.
func (m *market) Spot(ctx context.Context) (map[string]map[string]int64, error) {
	return pricing.Spot(ctx, m.p.ec2, m.p.c.now())
}

// Priced implements handler.Market.
func (m *market) Priced(c *catalog.Catalog, onDemand map[string]int64, spot map[string]map[string]int64) *catalog.Catalog {
	return pricing.Apply(c, onDemand, spot)
}

// journal keeps what a pass was decided on, and holds it against what the plan program
// makes of it.
func (p *parts) journal(_ context.Context, s *snapshot.Snapshot, c *catalog.Catalog, made *plan.Plan) (string, error) {
	if p.m.Journal != nil {
		s = p.m.Journal(s)
	}
	p.w.checks.planned(s, c, made)
	return "plan/" + made.ID, nil
}

// newHousekeeping is what is done once a minute, and when the table is new.
func (p *parts) newHousekeeping() *handler.Housekeeping {
	notices := p.newInterruption()
	notices.Ticks, notices.Work = p.ticks, p.work
	return &handler.Housekeeping{
		Notices: notices, Statuses: func(ctx context.Context) ([]interruption.Status, error) {
			return fleet.Statuses(ctx, p.ec2, p.executor.Parallel)
		},
		Cluster: p.cluster, Executor: p.executor, Lifecycle: p.lifecycle, ClusterName: clusterName, Now: p.c.now, Instance: "kerf.sh/housekeeping",
		Facts: func(ctx context.Context) (*handler.Facts, error) {
			return handler.LoadFacts(ctx, p.memory, region, p.c.now(), p.facts)
		},
	}
}

// housekept tells what a round of housekeeping came to.
func (p *parts) housekept(rep handler.HousekeepingReport, err error) error {
	p.w.tracef("  %s housekeeping: %s; adopted %v released %v due %v orphans %v ended %v corrections %v incomplete %q problems %q", p.c.proc.name, rep.String(),
		rep.Adopted, rep.Released, rep.Due, rep.Orphans, rep.Ended, rep.Corrections, rep.Incomplete, rep.Problems)
	return err
}
