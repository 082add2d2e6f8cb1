package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// busProgram is what is run in place of the emulator's own.
//
//go:embed bus.py
var busProgram []byte

// warning is how long before EC2 takes a spot instance back it says so.
const warning = 2 * time.Minute

// Kinds of events that EC2 sends.
const (
	spotWarning = "EC2 Spot Instance Interruption Warning"
	stateChange = "EC2 Instance State-change Notification"
)

// Bus is the account's event bus: the emulator's, with the rules of the template and a queue
// behind them, whose messages are brought to the queue that the function is fed from.
type Bus struct {
	events *eventbridge.Client
	queues *sqs.Client
	url    string // of the queue behind the rules
}

// startBus makes the rules, all of which lead to one queue.
func startBus(ctx context.Context, e *emulator, rules map[string]string) (*Bus, error) {
	c := e.config()
	b := &Bus{events: eventbridge.NewFromConfig(c), queues: sqs.NewFromConfig(c)}
	q, err := b.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(noticeQueue)})
	if err != nil {
		return nil, fmt.Errorf("create queue %s: %w", noticeQueue, err)
	}
	b.url = *q.QueueUrl
	about, err := b.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &b.url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn}})
	if err != nil {
		return nil, fmt.Errorf("describe queue %s: %w", noticeQueue, err)
	}
	arn := about.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
	for name, pattern := range rules {
		if _, err := b.events.PutRule(ctx, &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern}); err != nil {
			return nil, fmt.Errorf("put rule %s: %w", name, err)
		}
		out, err := b.events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &name, Targets: []ebtypes.Target{{Id: aws.String("Notices"), Arn: &arn}}})
		if err == nil && out.FailedEntryCount > 0 {
			err = errors.New(aws.ToString(out.FailedEntries[0].ErrorMessage))
		}
		if err != nil {
			return nil, fmt.Errorf("put the target of rule %s: %w", name, err)
		}
	}
	return b, nil
}

// Send puts an event of EC2's about an instance on the bus.
func (b *Bus) Send(ctx context.Context, detailType, instance string, more map[string]string) error {
	detail := map[string]string{"instance-id": instance}
	for k, v := range more {
		detail[k] = v
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	out, err := b.events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
		Source: aws.String("aws.ec2"), DetailType: &detailType, Detail: aws.String(string(raw)), Resources: []string{"arn:aws:ec2:" + fakeaws.Region + ":" + fakeaws.Account + ":instance/" + instance},
	}}})
	if err == nil && out.FailedEntryCount > 0 {
		err = errors.New(aws.ToString(out.Entries[0].ErrorMessage))
	}
	if err != nil {
		return fmt.Errorf("send %q of %s: %w", detailType, instance, err)
	}
	return nil
}

// bridge brings messages to the queue of the function until ctx ends.
func (b *Bus) bridge(ctx context.Context, to *fakeaws.Queues, failed func(error)) {
	for ctx.Err() == nil {
		got, err := b.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &b.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			b.lost(ctx, err, failed)
			continue
		}
		for _, m := range got.Messages {
			if _, err := to.Send(noticeQueue, *m.Body, 0, nil); err != nil {
				failed(err)
			}
			if _, err := b.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &b.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				b.lost(ctx, err, failed)
			}
		}
	}
}

func (b *Bus) lost(ctx context.Context, err error, failed func(error)) {
	if ctx.Err() != nil {
		return
	}
	failed(fmt.Errorf("bus: %w", err))
	time.Sleep(time.Second)
}

// watch sends an event for every change of an instance's state until ctx ends.
func (b *Bus) watch(ctx context.Context, from *ec2fake.EC2, failed func(error)) {
	known := map[string]types.InstanceStateName{}
	for ctx.Err() == nil {
		for _, i := range from.Machines() {
			state := i.State(time.Now())
			if known[i.ID] == state {
				continue
			}
			if err := b.Send(ctx, stateChange, i.ID, map[string]string{"state": string(state)}); err != nil {
				b.lost(ctx, err, failed)
				continue
			}
			known[i.ID] = state
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Interrupt has EC2 say that it takes a spot instance back, and take it when the warning is
// over.
func (r *Rig) Interrupt(ctx context.Context, instance string) error {
	if err := r.Bus.Send(ctx, spotWarning, instance, map[string]string{"instance-action": "terminate"}); err != nil {
		return err
	}
	t := time.AfterFunc(warning, func() { r.EC2.Interrupt(instance) })
	r.onStop(func() { t.Stop() })
	return nil
}
