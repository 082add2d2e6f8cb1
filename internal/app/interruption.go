package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/telemetry/report"
)

const (
	// noticesAtATime is a whole batch: the last of ten nodes is to take no more pods as soon
	// as the first.
	noticesAtATime = 10
	// noticeFirst and noticeMost are when a notice comes back that could not be acted on:
	// there are two minutes in all.
	noticeFirst, noticeMost = 2 * time.Second, 5 * time.Second
	// keepChecked is for how long a table that was looked into is not looked into again, and
	// keepClient for how long notices go to where the cluster was. Both are asked for anew
	// behind a batch, not before it.
	keepChecked, keepClient = 5 * time.Minute, 24 * time.Hour
)

// InterruptionFunction builds the function interruption from its environment. It takes
// batches of events, and one event as EventBridge sends it.
func InterruptionFunction(ctx context.Context, environ []string) (Function, error) {
	b, err := newBase(ctx, "interruption", environ, stdout())
	if err != nil {
		return nil, err
	}
	if err := b.queues(); err != nil {
		return nil, err
	}
	for key, url := range map[string]string{"KERF_INTERRUPTION_QUEUE": b.conf.Stack.InterruptionQueue, "KERF_INTERRUPTION_DEAD_LETTERS": b.conf.Stack.InterruptionDeadLetters} {
		if url == "" {
			return nil, fmt.Errorf("read the function's settings: %s is not set: name the queue by its URL", key)
		}
	}
	a := newActing(b)
	f := &interruptionFunction{
		base: b,
		cluster: func(ctx context.Context, keep time.Duration) (handler.Cluster, error) {
			c, _, err := b.clusterKept(ctx, keep)
			return c, err
		},
		table:   func() ledger.Table { return b.table() },
		cloud:   sync.OnceValue(func() execute.Cloud { return a.cloud(a.templates()) }),
		notices: sync.OnceValue(func() *queue.Queue { return queue.New(b.sqs(), b.conf.Stack.InterruptionQueue) }),
		dead:    sync.OnceValue(func() *queue.Queue { return queue.New(b.sqs(), b.conf.Stack.InterruptionDeadLetters) }),
		ticks:   sender(a.ticks), work: sender(a.work),
	}
	return b.invocation(f.invoke), nil
}

type interruptionFunction struct {
	*base
	cluster       func(ctx context.Context, keep time.Duration) (handler.Cluster, error)
	table         func() ledger.Table
	cloud         func() execute.Cloud
	notices, dead func() *queue.Queue
	ticks, work   execute.Sender

	// checked is when the table was found to be this cluster's.
	checked time.Time
	// handlers remember which Events they wrote, from one invocation to the next.
	handlers []*handler.Interruption
}

// InterruptionAnswer is the answer to an event that came directly.
type InterruptionAnswer struct {
	Notices []handler.InterruptionReport `json:"notices"`
}

func (f *interruptionFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	r := f.begin(ctx)
	event, isBatch := queue.Decode(payload)
	if !isBatch {
		ctx, done := answering(ctx)
		defer done()
		err := r.handle(ctx, string(payload))
		err = errors.Join(err, r.end(ctx, rep))
		return InterruptionAnswer{r.told}, err
	}
	c := f.consumer(f.notices())
	c.AtATime, c.Again = noticesAtATime, queue.Backoff(noticeFirst, noticeMost)
	answer := consume(ctx, c, event, rep, func(ctx context.Context, m lifecycle.Message) error {
		err := r.handle(ctx, m.Body)
		if !errors.Is(err, lifecycle.ErrDrop) || m.Body == "" {
			return err
		}
		// It is acknowledged once somebody can look at it: where SQS itself would put it.
		if cerr := f.dead().Send(ctx, lifecycle.Outgoing{Body: m.Body[:min(len(m.Body), queue.MaxBody)]}); cerr != nil {
			return fmt.Errorf("put the message %q aside: %w", err, cerr)
		}
		return err
	})
	ctx, done := closing(ctx)
	defer done()
	if err := r.end(ctx, rep); err != nil { // the ledger has it: housekeeping sends it again
		f.tel.Log.WarnContext(ctx, "nodes are looked after later", "error", err.Error())
	}
	if end, ok := ctx.Deadline(); !ok || end.Sub(f.now()) > startTime {
		f.refresh(ctx)
	}
	return answer, nil
}

// closing ends a context just before the function is cut off: an answer that is late brings
// back everything.
func closing(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-answerTime/4))
}

// round is what one invocation needs, for several messages at a time.
type round struct {
	f           *interruptionFunction
	refused     error // why nothing can be done in this invocation
	free        chan *handler.Interruption
	ticks, work *outbox

	mu   sync.Mutex
	told []handler.InterruptionReport
}

// begin makes no request in a process that has made some before.
func (f *interruptionFunction) begin(ctx context.Context) *round {
	r := &round{f: f, free: make(chan *handler.Interruption, noticesAtATime), ticks: &outbox{to: f.ticks, one: true}, work: &outbox{to: f.work}}
	for len(f.handlers) < noticesAtATime {
		f.handlers = append(f.handlers, &handler.Interruption{ClusterName: f.conf.Cluster, Now: f.now, Instance: f.name})
	}
	id := invocationID(ctx)
	for i, h := range f.handlers {
		memory := f.ledgerOn(f.table(), id+"/"+strconv.Itoa(i))
		h.Memory, h.Executor, h.Ticks, h.Work, h.Told = memory, &execute.Executor{Memory: memory, Cloud: f.cloud(), Now: f.now}, r.ticks, r.work, r.tell
		r.free <- h
	}
	var checked error
	var group sync.WaitGroup
	if f.checked.IsZero() {
		group.Go(func() { checked = f.check(ctx) })
	}
	c, err := f.cluster(ctx, keepClient)
	group.Wait()
	for _, h := range f.handlers {
		h.Cluster = c
	}
	r.refused = errors.Join(checked, err)
	return r
}

// check looks whether the table is this cluster's and of a schema that is known. That it is
// being recovered is no reason to wait: what has a record is acted on.
func (f *interruptionFunction) check(ctx context.Context) error {
	if _, err := f.ledgerOn(f.table(), "check").Open(ctx); err != nil {
		f.checked = time.Time{}
		return err
	}
	f.checked = f.now()
	return nil
}

// refresh asks anew for what no notice should have to wait for.
func (f *interruptionFunction) refresh(ctx context.Context) {
	if !f.checked.IsZero() && f.now().Sub(f.checked) >= keepChecked {
		if err := f.check(ctx); err != nil {
			f.tel.Log.WarnContext(ctx, "the ledger could not be looked into", "error", err.Error())
		}
	}
	if _, err := f.cluster(ctx, keepHome); err != nil {
		f.tel.Log.WarnContext(ctx, "the cluster was not described anew", "error", err.Error())
	}
}

// handle is one message.
func (r *round) handle(ctx context.Context, body string) error {
	if r.refused != nil {
		return r.refused
	}
	h := <-r.free
	defer func() { r.free <- h }()
	return h.Handle(ctx, body)
}

// tell notes and logs what an instance came to.
func (r *round) tell(ctx context.Context, rep handler.InterruptionReport) {
	r.mu.Lock()
	r.told = append(r.told, rep)
	r.mu.Unlock()
	r.f.tel.Log.InfoContext(ctx, "notice", "notice", rep)
}

// end sends what is to be sent, and puts what was done into the summary.
func (r *round) end(ctx context.Context, rep *report.Report) error {
	var work error
	var group sync.WaitGroup
	group.Go(func() { work = r.work.Close(ctx) })
	err := errors.Join(r.ticks.Close(ctx), func() error { group.Wait(); return work }())
	counts := map[string]int{}
	var slowest time.Duration
	var problems []string
	for _, t := range r.told {
		counts[t.Outcome]++
		slowest = max(slowest, t.Tainted)
		problems = append(problems, t.Problems...)
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	rep.Say("notices", counts)
	if slowest > 0 {
		rep.Say("slowestTaintMs", slowest.Milliseconds())
	}
	if len(problems) > 0 {
		rep.Say("problems", problems)
	}
	rep.Add(report.Failures, float64(len(problems)))
	return err
}
