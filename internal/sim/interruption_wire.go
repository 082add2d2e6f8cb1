package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/queue"
)

// noticing makes the queues of the function interruption, as the stack has them.
func (w *World) noticing(f *function) {
	q := &mailbox{w: w, name: "notices", visibility: 30 * time.Second, retention: time.Hour, receives: 60, batch: 10, to: f, dice: newDice(w.Seed, "notices queue")}
	q.over = w.checks.noticed
	w.queues["notices"], w.bus.queue = q, q
	w.queues["dead"] = &mailbox{w: w, name: "dead", retention: 14 * 24 * time.Hour, dice: newDice(w.Seed, "dead")}
}

// gathered sends what an invocation has to send at its end, in one request: what it does
// not get to is lost with it.
type gathered struct {
	to   execute.Sender
	one  bool // a message says all that the others say
	held []lifecycle.Outgoing
}

// Send implements execute.Sender.
func (g *gathered) Send(_ context.Context, ms ...lifecycle.Outgoing) error {
	if g.one {
		g.held = nil
	}
	g.held = append(g.held, ms...)
	return nil
}

func (g *gathered) flush(ctx context.Context) error {
	if len(g.held) == 0 {
		return nil
	}
	return g.to.Send(ctx, g.held...)
}

// interruptionBegin is the function interruption. In a wide world the messages of a batch go
// beside one another, in others one after the other.
func (p *parts) interruptionBegin() func(context.Context, json.RawMessage) (any, error) {
	mail := &sqsClient{c: p.c, s: p.mail}
	notices, dead := queue.New(mail, "notices"), queue.New(mail, "dead")
	h := p.newInterruption()
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		p.begin()
		ticks, work := &gathered{to: p.ticks, one: true}, &gathered{to: p.work}
		h.Memory, h.Ticks, h.Work = p.memory, ticks, work
		event, ok := queue.Decode(payload)
		if !ok {
			return nil, errors.New("no event of a queue")
		}
		out := p.consumer(notices, queue.Backoff(2*time.Second, 5*time.Second)).Each(ctx, event, func(ctx context.Context, m queue.Message) error {
			p.message = m.ID
			err := error(nil)
			beside := 1
			if p.w.Profile.Wide {
				beside = len(event.Records)
			}
			p.c.together(beside, func() { err = h.Handle(ctx, m.Body) })
			if errors.Is(err, lifecycle.ErrDrop) && m.Body != "" {
				if derr := dead.Send(ctx, lifecycle.Outgoing{Body: m.Body}); derr != nil {
					return fmt.Errorf("put the message aside: %w", derr)
				}
			}
			return err
		})
		if err := errors.Join(ticks.flush(ctx), work.flush(ctx)); err != nil {
			p.w.tracef("  %s could not send: %v", p.c.proc.name, err)
		}
		return out.Response, nil
	}
}

func (p *parts) newInterruption() *handler.Interruption {
	return &handler.Interruption{
		Cluster: p.cluster, Executor: p.executor, ClusterName: clusterName, Now: p.c.now, Instance: "kerf.sh/interruption",
		Told: func(_ context.Context, r handler.InterruptionReport) {
			p.w.tracef("  %s notice %s: %s %s %s claim %s node %q until %s, tainted after %s; %s %q", p.c.proc.name, p.message, r.Outcome, r.Kind, r.Instance, r.Claim, r.Node,
				sinceEpoch(r.Deadline), r.Tainted, r.Detail, r.Problems)
			p.w.checks.told(p.message, r)
		},
	}
}
