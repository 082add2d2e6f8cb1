package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"kerf.sh/kerf/internal/lifecycle"
)

// SQS's limits.
const (
	// MaxDelay is the longest that a message can be held back.
	MaxDelay = 900 * time.Second
	// MaxVisibility is the longest that a message that was taken can be kept from others.
	MaxVisibility = 12 * time.Hour
	// MaxBody is the size of a message, and of all messages of one call, that every region
	// and every emulator takes. Ours have some hundred bytes.
	MaxBody = 256 << 10

	// maxBatch is how many messages one call may carry.
	maxBatch = 10
)

const (
	// answerTimeout is how long an answer of SQS is waited for, the SDK's own retries
	// included; it takes milliseconds.
	answerTimeout = 5 * time.Second
	// rounds is how often messages are sent that SQS did not take for its own reasons,
	// with waits of pause, 2 x pause, ... between.
	rounds = 3
	pause  = 100 * time.Millisecond
)

// API are the methods of the SDK's client that are used.
type API interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// Options sets a client up for New: it gives up while there is still time to say so.
func Options(o *sqs.Options) {
	o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts, r.MaxBackoff = 3, 500*time.Millisecond })
}

// Queue is one queue, not a FIFO one.
type Queue struct {
	api API
	url string
}

// New gives the queue with a URL.
func New(api API, url string) *Queue { return &Queue{api: api, url: url} }

// entry is one part of a batch: which of the caller's, and what became of it.
type entry struct {
	index  int
	body   string // to send
	handle string // to change
	delay  time.Duration
}

// Failed is one part of a batch that was not done.
type Failed struct {
	// Index is its place in what was given.
	Index int
	// Err is why. If the answer of SQS was lost, the message may be there all the same.
	Err error
}

// BatchError is the error of a batch that was not done, or in part. What is not in it was
// done.
type BatchError struct {
	Do     string // send, ...
	Of     int    // how many were given
	Failed []Failed
}

// Error implements error.
func (e *BatchError) Error() string {
	return fmt.Sprintf("%s %d of %d messages: %v", e.Do, len(e.Failed), e.Of, e.Failed[0].Err)
}

// Unwrap gives the reasons.
func (e *BatchError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		out[i] = f.Err
	}
	return out
}

// ErrDelay is the reason of a message with a delay that SQS does not know: below zero, or
// above MaxDelay. What is due later is sent later.
var ErrDelay = errors.New("the delay is out of bounds")

// Send sends messages, ten at a time. A delay goes up to the next second: a message is
// never early. One that cannot be sent does not keep the others back; the error is then a
// *BatchError that says which.
func (q *Queue) Send(ctx context.Context, ms ...lifecycle.Outgoing) error {
	b := batch{do: "send", of: len(ms)}
	for i, m := range ms {
		switch {
		case m.Delay < 0 || m.Delay > MaxDelay:
			b.fail(i, fmt.Errorf("%w: %s, want 0s to %s", ErrDelay, m.Delay, MaxDelay))
		case m.Body == "" || len(m.Body) > MaxBody:
			b.fail(i, fmt.Errorf("the body has %d bytes, want 1 to %d", len(m.Body), MaxBody))
		default:
			b.todo = append(b.todo, entry{index: i, body: m.Body, delay: m.Delay})
		}
	}
	return b.run(ctx, q.send)
}

func (q *Queue) send(ctx context.Context, es []entry) ([]types.BatchResultErrorEntry, error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url}
	for _, e := range es {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(e.index)), MessageBody: aws.String(e.body), DelaySeconds: seconds(e.delay),
		})
	}
	out, err := q.api.SendMessageBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	if len(out.Successful)+len(out.Failed) != len(es) {
		return nil, fmt.Errorf("the answer is about %d of %d messages", len(out.Successful)+len(out.Failed), len(es))
	}
	return out.Failed, nil
}

// Visibility is a change of when a message that was taken comes back to its queue, if
// nobody deletes it before.
type Visibility struct {
	Receipt string
	After   time.Duration
}

// ChangeVisibility changes when messages come back, at most MaxVisibility from now; to the
// next second, and at least one. It is possible only while this delivery is the last one.
// The error is a *BatchError.
func (q *Queue) ChangeVisibility(ctx context.Context, vs ...Visibility) error {
	b := batch{do: "change when to bring back", of: len(vs)}
	for i, v := range vs {
		if v.After < 0 || v.After > MaxVisibility {
			b.fail(i, fmt.Errorf("%w: %s, want 0s to %s", ErrDelay, v.After, MaxVisibility))
			continue
		}
		// The SDK does not write a zero in a batch, and SQS then takes the queue's own time.
		b.todo = append(b.todo, entry{index: i, handle: v.Receipt, delay: max(v.After, time.Second)})
	}
	return b.run(ctx, q.change)
}

func (q *Queue) change(ctx context.Context, es []entry) ([]types.BatchResultErrorEntry, error) {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url}
	for _, e := range es {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(e.index)), ReceiptHandle: aws.String(e.handle), VisibilityTimeout: seconds(e.delay),
		})
	}
	out, err := q.api.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	if len(out.Successful)+len(out.Failed) != len(es) {
		return nil, fmt.Errorf("the answer is about %d of %d messages", len(out.Successful)+len(out.Failed), len(es))
	}
	return out.Failed, nil
}

// seconds rounds up.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

// batch is what one call of Send or ChangeVisibility is about.
type batch struct {
	do     string
	of     int
	todo   []entry
	failed []Failed
}

func (b *batch) fail(index int, err error) {
	b.failed = append(b.failed, Failed{Index: index, Err: err})
}

// run does everything in chunks, and again what SQS did not do for its own reasons.
func (b *batch) run(ctx context.Context, call func(context.Context, []entry) ([]types.BatchResultErrorEntry, error)) error {
	for round := 1; len(b.todo) > 0; round++ {
		var again []entry
		var why []error
		for chunk := range chunks(b.todo) {
			failed, err := b.one(ctx, chunk, call)
			if err != nil {
				for _, e := range chunk {
					b.fail(e.index, err)
				}
				continue
			}
			for _, e := range chunk {
				f, ok := failed[e.index]
				switch {
				case !ok:
				case f.SenderFault:
					b.fail(e.index, reason(f))
				default:
					again, why = append(again, e), append(why, reason(f))
				}
			}
		}
		if len(again) > 0 && (round == rounds || !wait(ctx, time.Duration(round)*pause)) {
			for i, e := range again {
				b.fail(e.index, why[i])
			}
			break
		}
		b.todo = again
	}
	if len(b.failed) == 0 {
		return nil
	}
	return &BatchError{Do: b.do, Of: b.of, Failed: sorted(b.failed)}
}

// one makes one call and says which of its entries failed, by index.
func (b *batch) one(ctx context.Context, chunk []entry, call func(context.Context, []entry) ([]types.BatchResultErrorEntry, error)) (map[int]types.BatchResultErrorEntry, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	failed, err := call(ctx, chunk)
	if err != nil {
		return nil, err
	}
	out := map[int]types.BatchResultErrorEntry{}
	for _, f := range failed {
		i, err := strconv.Atoi(aws.ToString(f.Id))
		if err != nil {
			return nil, fmt.Errorf("the answer is about message %q, which was not asked for", aws.ToString(f.Id))
		}
		out[i] = f
	}
	return out, nil
}

func reason(f types.BatchResultErrorEntry) error {
	return errors.New(strings.TrimSuffix(aws.ToString(f.Code)+": "+aws.ToString(f.Message), ": "))
}
