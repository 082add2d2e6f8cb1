package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// fake is an SQS that is as strict as the real one about batches, and fails as told.
type fake struct {
	sent    []string         // bodies with their delay, in order
	changed map[string]int32 // receipt -> seconds
	sizes   []int            // of the batches
	// refuse says why a body or receipt fails this time; nil takes everything.
	refuse func(what string) *types.BatchResultErrorEntry
	// fail is the error of the next calls, one after the other.
	fail []error
	// forget leaves the last entry out of the answer.
	forget bool
}

func (f *fake) begin(ctx context.Context, ids []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.sizes = append(f.sizes, len(ids))
	if len(f.fail) > 0 {
		err := f.fail[0]
		f.fail = f.fail[1:]
		if err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			return errors.New("AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
		}
		seen[id] = true
	}
	if len(ids) == 0 || len(ids) > 10 {
		return fmt.Errorf("AWS.SimpleQueueService.TooManyEntriesInBatchRequest: %d", len(ids))
	}
	return nil
}

func (f *fake) refused(id *string, what string) *types.BatchResultErrorEntry {
	if f.refuse == nil {
		return nil
	}
	e := f.refuse(what)
	if e != nil {
		e.Id = id
	}
	return e
}

func (f *fake) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	var ids []string
	size := 0
	for _, e := range in.Entries {
		ids = append(ids, *e.Id)
		size += len(*e.MessageBody)
		if e.DelaySeconds < 0 || e.DelaySeconds > 900 {
			return nil, fmt.Errorf("InvalidParameterValue: DelaySeconds %d", e.DelaySeconds)
		}
	}
	if size > MaxBody {
		return nil, fmt.Errorf("AWS.SimpleQueueService.BatchRequestTooLong: %d", size)
	}
	if err := f.begin(ctx, ids); err != nil {
		return nil, err
	}
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		if r := f.refused(e.Id, *e.MessageBody); r != nil {
			out.Failed = append(out.Failed, *r)
			continue
		}
		f.sent = append(f.sent, fmt.Sprintf("%s+%d", *e.MessageBody, e.DelaySeconds))
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	if f.forget {
		out.Successful = out.Successful[:len(out.Successful)-1]
	}
	return out, nil
}

func (f *fake) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	var ids []string
	for _, e := range in.Entries {
		ids = append(ids, *e.Id)
	}
	if err := f.begin(ctx, ids); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		if r := f.refused(e.Id, *e.ReceiptHandle); r != nil {
			out.Failed = append(out.Failed, *r)
			continue
		}
		if f.changed == nil {
			f.changed = map[string]int32{}
		}
		f.changed[*e.ReceiptHandle] = e.VisibilityTimeout
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	if f.forget {
		out.Successful = out.Successful[:len(out.Successful)-1]
	}
	return out, nil
}

func entryError(code string, sender bool) *types.BatchResultErrorEntry {
	return &types.BatchResultErrorEntry{Code: aws.String(code), Message: aws.String("for a test"), SenderFault: sender}
}
