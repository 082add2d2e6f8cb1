package runtimeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// Mapping brings the messages of a queue to a function.
type Mapping struct {
	Queue, Function string
	// Batch is how many messages one invocation gets at most; 0 = 10. Window is how long
	// is waited for a batch to fill.
	Batch  int
	Window time.Duration
	// Concurrency is how many invocations run at a time; 0 = 1.
	Concurrency int
}

// poll is how often a queue is looked at.
const poll = 20 * time.Millisecond

// Pump runs mappings until ctx ends; the returned function waits for that. An invocation
// that failed is told to failed.
func (f *Functions) Pump(ctx context.Context, queues *fakeaws.Queues, failed func(m Mapping, err error), list ...Mapping) (wait func()) {
	var group sync.WaitGroup
	for _, m := range list {
		if m.Batch == 0 {
			m.Batch = 10
		}
		for range max(1, m.Concurrency) {
			group.Go(func() {
				for ctx.Err() == nil {
					batch := queues.Receive(m.Queue, m.Batch)
					if len(batch) > 0 && len(batch) < m.Batch && m.Window > 0 {
						sleep(ctx, m.Window)
						batch = append(batch, queues.Receive(m.Queue, m.Batch-len(batch))...)
					}
					if len(batch) == 0 {
						sleep(ctx, poll)
						continue
					}
					if err := f.deliver(ctx, queues, m, batch); err != nil && ctx.Err() == nil {
						failed(m, err)
					}
				}
			})
		}
	}
	return group.Wait
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// deliver gives a batch to a function and deletes what was done.
func (f *Functions) deliver(ctx context.Context, queues *fakeaws.Queues, m Mapping, batch []fakeaws.Message) error {
	event, err := fakeaws.Event(m.Queue, batch)
	if err != nil {
		return err
	}
	out, err := f.Invoke(ctx, m.Function, event)
	if errors.Is(err, ErrThrottled) {
		// Lambda waits with the batch; here it comes back.
		for _, one := range batch {
			queues.Hide(m.Queue, one.Handle, new(int64)) //nolint:errcheck // then it comes later
		}
		sleep(ctx, poll)
		return nil
	}
	if err != nil {
		return err
	}
	bad, err := failures(out, batch)
	if err != nil {
		return fmt.Errorf("deliver %s to %s: %w", m.Queue, m.Function, err)
	}
	for _, one := range batch {
		if !bad[one.ID] {
			if err := queues.Delete(m.Queue, one.Handle); err != nil {
				return err
			}
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("deliver %s to %s: %d of %d messages failed", m.Queue, m.Function, len(bad), len(batch))
	}
	return nil
}

// failures are the messages that an answer names. An answer that names one that was not in
// the batch is a failure of the whole batch, as Lambda has it.
func failures(out []byte, batch []fakeaws.Message) (map[string]bool, error) {
	var answer struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(out) > 0 && string(out) != "null" {
		if err := json.Unmarshal(out, &answer); err != nil {
			return nil, fmt.Errorf("read its answer %q: %w", out, err)
		}
	}
	known, bad := map[string]bool{}, map[string]bool{}
	for _, one := range batch {
		known[one.ID] = true
	}
	for _, one := range answer.BatchItemFailures {
		if !known[one.ItemIdentifier] {
			return nil, fmt.Errorf("its answer names message %q, which it was not given", one.ItemIdentifier)
		}
		bad[one.ItemIdentifier] = true
	}
	return bad, nil
}
