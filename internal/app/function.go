package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/telemetry/report"
)

const (
	// answerTime is kept back of a function's time for its answer and its summary.
	answerTime = 2 * time.Second
	// startTime is what has to be left for a message to be begun.
	startTime = 5 * time.Second
)

// answering ends a context early enough for an answer.
func answering(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-answerTime))
}

// invocation wraps what a function does with its summary.
func (b *base) invocation(do func(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error)) Function {
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		b.tel.Begin()
		rep := &report.Report{}
		out, err := do(ctx, payload, rep)
		if err != nil {
			rep.Say("error", err.Error())
			rep.Add(report.Failures, 1)
			b.tel.Log.ErrorContext(ctx, "invocation failed", "error", err.Error())
		}
		if serr := b.tel.Summary(ctx, rep); serr != nil {
			b.tel.Log.ErrorContext(ctx, "no summary", "error", serr.Error())
		}
		return out, err
	}
}

// batch gives each message of an event to do, and answers which are to come back.
func (b *base) batch(ctx context.Context, event events.SQSEvent, from *queue.Queue, rep *report.Report, do func(context.Context, lifecycle.Message) error) events.SQSEventResponse {
	return consume(ctx, b.consumer(from), event, rep, do)
}

// consumer takes messages one after the other, and lets what failed come back later each
// time.
func (b *base) consumer(from *queue.Queue) queue.Consumer {
	return queue.Consumer{
		Queue: from, Margin: startTime, Reserve: answerTime, Now: b.now, Log: b.tel.Log,
		Again: queue.Backoff(2*time.Second, time.Minute),
	}
}

// consume is batch for a consumer.
func consume(ctx context.Context, c queue.Consumer, event events.SQSEvent, rep *report.Report, do func(context.Context, lifecycle.Message) error) events.SQSEventResponse {
	r := c.Each(ctx, event, do)
	for _, n := range []struct {
		key string
		n   int
	}{{"messages", r.Handled}, {"messagesDropped", r.Dropped}, {"messagesFailed", r.Failed}, {"messagesLeft", r.Left}} {
		if n.n > 0 {
			rep.Count(n.key, n.n)
		}
	}
	rep.Add(report.Failures, float64(r.Failed))
	return r.Response
}
