package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queue is an SQS queue with its trigger.
type mailbox struct {
	w          *World
	name       string
	visibility time.Duration
	retention  time.Duration
	// receives is after how many deliveries a message goes to dead, 0 = never.
	receives int
	batch    int
	to       *function
	dice     dice
	messages []*message
	dead     []*message
	sent     int
	// over is told of every message that the queue has no more, and how that came; nil =
	// nobody is.
	over func(m *message, how string)
}

// How a message ends.
const (
	acknowledged = "acknowledged"
	gaveUp       = "in the dead-letter queue"
	forgotten    = "forgotten"
)

// message is one message, or one copy of it.
type message struct {
	id, body, receipt string
	sent, visible     time.Time
	receives          int
}

// put takes a message, and returns its id.
func (q *mailbox) put(body string, delay time.Duration) string {
	w, f := q.w, &q.w.Profile.Faults
	copies := 1
	if w.faults && q.dice.in(f.Duplicate) {
		copies = 2
	}
	q.sent++
	for range copies {
		m := &message{id: fmt.Sprintf("%s-%d", q.name, q.sent), body: body, sent: w.now(), visible: w.now().Add(delay)}
		if w.faults && q.dice.in(f.Late) {
			m.visible = m.visible.Add(q.dice.between(5*time.Second, 3*time.Minute))
		}
		q.messages = append(q.messages, m)
		q.pollAt(m.visible)
	}
	return fmt.Sprintf("%s-%d", q.name, q.sent)
}

// ends tells that a message is over.
func (q *mailbox) ends(m *message, how string) {
	if q.over != nil {
		q.over(m, how)
	}
}

func (q *mailbox) pollAt(t time.Time) {
	q.w.at(t.Add(q.dice.between(5*time.Millisecond, 400*time.Millisecond)), q.poll)
}

// poll brings what is visible to the function, as long as it may run once more.
func (q *mailbox) poll() {
	now := q.w.now()
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool {
		if now.Sub(m.sent) > q.retention {
			q.w.tracef("queue %s forgets %s", q.name, m.id)
			q.ends(m, forgotten)
			return true
		}
		if q.receives > 0 && m.receives >= q.receives && !now.Before(m.visible) {
			q.w.tracef("queue %s gives %s up: %s", q.name, m.id, m.body)
			q.dead = append(q.dead, m)
			q.ends(m, gaveUp)
			return true
		}
		return false
	})
	for q.to != nil && q.to.free() {
		var due []*message
		for _, m := range q.messages {
			if !now.Before(m.visible) {
				due = append(due, m)
			}
		}
		if len(due) == 0 {
			return
		}
		if q.w.faults && q.dice.in(q.w.Profile.Faults.Order) {
			q.dice.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
		}
		q.deliver(due[:min(len(due), q.batch)])
	}
}

func (q *mailbox) deliver(ms []*message) {
	for _, m := range ms {
		m.receives++
		m.visible = q.w.now().Add(q.visibility)
		m.receipt = fmt.Sprintf("%s/%d", m.id, m.receives)
		q.pollAt(m.visible)
	}
	receipts := make([]string, len(ms))
	for i, m := range ms {
		receipts[i] = m.receipt
	}
	event := sqsEvent(q, ms)
	q.to.invoke(event, func(answer any, err error, ok bool) {
		q.w.after(q.dice.between(time.Millisecond, 50*time.Millisecond), q.poll)
		if !ok || err != nil {
			return // all come back
		}
		failed := map[string]bool{}
		if r, ok := answer.(events.SQSEventResponse); ok {
			for _, f := range r.BatchItemFailures {
				failed[f.ItemIdentifier] = true
			}
		}
		for i, m := range ms {
			if !failed[m.id] {
				q.ack(m, receipts[i])
			}
		}
	})
}

// ack deletes a message, if this delivery is the last one.
func (q *mailbox) ack(m *message, receipt string) {
	if m.receipt != receipt {
		return
	}
	q.messages = slices.DeleteFunc(q.messages, func(o *message) bool { return o == m })
	q.ends(m, acknowledged)
}

// sqsClient is SQS as one container calls it. It implements queue.API.
type sqsClient struct {
	c *container
	s *service
}

var errSQS = errors.New("ServiceUnavailable: the service is not available for the moment")

func newSQSService(w *World) *service {
	return &service{
		name: "sqs", least: 4 * time.Millisecond, most: 60 * time.Millisecond, dice: newDice(w.Seed, "sqs"),
		errors: func(*bound, dice) error { return errSQS },
		lost:   func(*bound) error { return errors.New("the connection was reset") },
		gone:   func(_ *bound, err error) error { return err },
	}
}

// SendMessageBatch implements queue.API.
func (s *sqsClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q := s.c.w.queues[awssdk.ToString(in.QueueUrl)]
	if q == nil {
		return nil, fmt.Errorf("AWS.SimpleQueueService.NonExistentQueue: %s", awssdk.ToString(in.QueueUrl))
	}
	b := bound{Op: "SendMessageBatch", Object: fmt.Sprintf("%s x%d", q.name, len(in.Entries)), Write: true}
	return call(ctx, s.c, s.s, b, func() (*sqs.SendMessageBatchOutput, error) {
		if len(in.Entries) == 0 || len(in.Entries) > 10 {
			return nil, fmt.Errorf("AWS.SimpleQueueService.TooManyEntriesInBatchRequest: %d", len(in.Entries))
		}
		out := &sqs.SendMessageBatchOutput{}
		for _, e := range in.Entries {
			if e.DelaySeconds < 0 || e.DelaySeconds > 900 {
				return nil, fmt.Errorf("InvalidParameterValue: DelaySeconds %d", e.DelaySeconds)
			}
			if s.c.w.faults && q.dice.in(s.c.w.Profile.Faults.SQS/2) {
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: awssdk.String("InternalError"), SenderFault: false})
				continue
			}
			q.put(awssdk.ToString(e.MessageBody), time.Duration(e.DelaySeconds)*time.Second)
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: awssdk.String(fmt.Sprintf("%s-%d", q.name, q.sent))})
		}
		return out, nil
	})
}

// ChangeMessageVisibilityBatch implements queue.API.
func (s *sqsClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	q := s.c.w.queues[awssdk.ToString(in.QueueUrl)]
	b := bound{Op: "ChangeMessageVisibilityBatch", Object: q.name, Write: true}
	return call(ctx, s.c, s.s, b, func() (*sqs.ChangeMessageVisibilityBatchOutput, error) {
		out := &sqs.ChangeMessageVisibilityBatchOutput{}
		for _, e := range in.Entries {
			i := slices.IndexFunc(q.messages, func(m *message) bool { return m.receipt == awssdk.ToString(e.ReceiptHandle) })
			if i < 0 {
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: awssdk.String("ReceiptHandleIsInvalid"), SenderFault: true})
				continue
			}
			q.messages[i].visible = q.w.now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
			q.pollAt(q.messages[i].visible)
			out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
		}
		return out, nil
	})
}
