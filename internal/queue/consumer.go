package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"kerf.sh/kerf/internal/lifecycle"
)

// Message is a message as it was received.
type Message = lifecycle.Message

// ErrDrop marks what is acknowledged though nothing was done about it.
var ErrDrop = lifecycle.ErrDrop

// ErrLeft is why a message comes back that nobody looked at: the time was up.
var ErrLeft = errors.New("no time was left for the message")

// PanicError is the error of a message whose handling panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error. The stack is not part of it.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Decode reads the event that Lambda passes to a function with an SQS trigger. ok is false
// for any other payload, that of somebody who invokes the function directly.
func Decode(payload []byte) (event events.SQSEvent, ok bool) {
	if err := json.Unmarshal(payload, &event); err != nil || len(event.Records) == 0 {
		return events.SQSEvent{}, false
	}
	for _, r := range event.Records {
		if r.EventSource != "aws:sqs" {
			return events.SQSEvent{}, false
		}
	}
	return event, true
}

// Messages are those of an event, in its order.
func Messages(event events.SQSEvent) []Message {
	out := make([]Message, len(event.Records))
	for i, r := range event.Records {
		out[i] = Message{ID: r.MessageId, Receipt: r.ReceiptHandle, Body: r.Body}
		if ms, err := strconv.ParseInt(r.Attributes["SentTimestamp"], 10, 64); err == nil && ms > 0 {
			out[i].Sent = time.UnixMilli(ms).UTC()
		}
		if n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"]); err == nil && n > 0 {
			out[i].Receives = n
		}
	}
	return out
}

// Consumer takes batches.
type Consumer struct {
	// Queue is where the messages come from; nil leaves it to the queue's visibility timeout
	// when a message comes back.
	Queue *Queue
	// Margin is what has to be left until the function is cut off for a message to be begun.
	Margin time.Duration
	// Reserve, a part of Margin, is kept back for the answer: what handles a message has a
	// context that ends so long before the function does. A function that is cut off hands
	// back the whole batch.
	Reserve time.Duration
	// Again says when a failed message should come back, nil = when the queue says. A
	// lifecycle.Delay among its errors wins.
	Again func(Message) time.Duration
	// AtATime is how many messages are handled at a time; 0 = one after the other.
	AtATime int
	Now     func() time.Time
	Log     *slog.Logger
}

// Backoff is an Again that doubles with each delivery, from first to most.
func Backoff(first, most time.Duration) func(Message) time.Duration {
	return func(m Message) time.Duration {
		d := first
		for n := 1; n < m.Receives && d < most; n++ {
			d *= 2
		}
		return min(d, most)
	}
}

// Result is what became of a batch. Every message is counted once.
type Result struct {
	// Response is what the function has to answer: exactly the failed and left ones.
	Response events.SQSEventResponse
	Handled  int
	Dropped  int // acknowledged, though nothing was done about them: ErrDrop
	Failed   int
	Left     int // not begun
}

// Each calls do for each message until the context is done or near its deadline; what is
// left is handed back. An error or a panic is that message's alone.
// The trigger needs ReportBatchItemFailures, or the answer means nothing.
//
// Each is where an outcome is decided and logged: nil is done, ErrDrop is acknowledged, and
// with any other error the message comes back.
func (c Consumer) Each(ctx context.Context, event events.SQSEvent, do func(context.Context, Message) error) Result {
	out := Result{Response: events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}}
	var back []Visibility
	ms := Messages(event)
	errs := c.handle(ctx, ms, do)
	for i, m := range ms {
		err := errs[i]
		log := c.Log.With("messageId", m.ID, "receives", m.Receives)
		switch panicked, _ := errors.AsType[*PanicError](err); {
		case err == nil:
			out.Handled++
			continue
		case errors.Is(err, ErrDrop):
			log.WarnContext(ctx, "message dropped", "error", err.Error())
			out.Dropped++
			continue
		case errors.Is(err, ErrLeft):
			log.WarnContext(ctx, "message left", "error", err.Error())
			out.Left++
		case panicked != nil:
			log.ErrorContext(ctx, "message failed", "error", err.Error(), "stack", string(panicked.Stack))
			out.Failed++
		default:
			log.ErrorContext(ctx, "message failed", "error", err.Error())
			out.Failed++
		}
		out.Response.BatchItemFailures = append(out.Response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.ID})
		if after, ok := c.again(m, err); ok {
			back = append(back, Visibility{Receipt: m.Receipt, After: after})
		}
	}
	c.bringBack(ctx, back)
	return out
}

// handle gives the outcome of every message.
func (c Consumer) handle(ctx context.Context, ms []Message, do func(context.Context, Message) error) []error {
	out := make([]error, len(ms))
	slots := make(chan struct{}, max(c.AtATime, 1))
	var group sync.WaitGroup
	for i, m := range ms {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			out[i] = c.one(ctx, m, do)
		})
	}
	group.Wait()
	return out
}

// one handles one message.
func (c Consumer) one(ctx context.Context, m Message, do func(context.Context, Message) error) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	if end, ok := ctx.Deadline(); ok {
		if left := end.Sub(c.Now()); left < c.Margin {
			return fmt.Errorf("%w: %s until the function is cut off, want %s", ErrLeft, left.Round(time.Millisecond), c.Margin)
		}
		// Measured by Now, as the margin is: a deadline may be of another clock than ours.
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, end.Sub(c.Now())-c.Reserve)
		defer done()
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return do(ctx, m)
}

// again says when a message should come back; ok is false when that is the queue's to say.
func (c Consumer) again(m Message, err error) (after time.Duration, ok bool) {
	if c.Queue == nil || m.Receipt == "" {
		return 0, false
	}
	if d, ok := errors.AsType[*lifecycle.Delay](err); ok {
		return min(max(d.After, 0), MaxVisibility), true
	}
	switch {
	case errors.Is(err, ErrLeft):
		return 0, true // another invocation can have it
	case c.Again != nil:
		return min(max(c.Again(m), 0), MaxVisibility), true
	}
	return 0, false
}

// bringBack is a service to the messages, and no more: without it they come back later.
func (c Consumer) bringBack(ctx context.Context, vs []Visibility) {
	if len(vs) == 0 {
		return
	}
	// The function's own time is up when messages are left: the reserve is for this.
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), min(answerTimeout, max(c.Reserve/2, 200*time.Millisecond)))
	defer done()
	if err := c.Queue.ChangeVisibility(ctx, vs...); err != nil {
		c.Log.WarnContext(ctx, "messages come back later than asked for", "error", err.Error())
	}
}
