package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/lifecycle"
)

// linger is how long a message waits for others that can go with it.
const linger = 50 * time.Millisecond

// outbox sends together what several goroutines send within a moment. What it takes is sent
// once Close has returned, or is part of its error.
type outbox struct {
	to execute.Sender
	// one: a message says all that the others say.
	one bool

	mu    sync.Mutex
	held  []lifecycle.Outgoing
	timer *time.Timer
	going sync.WaitGroup
	errs  []error
}

var _ execute.Sender = (*outbox)(nil)

// Send implements execute.Sender. It does not wait.
func (o *outbox) Send(ctx context.Context, messages ...lifecycle.Outgoing) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.one && len(messages) > 0 {
		o.held, messages = nil, messages[len(messages)-1:]
	}
	o.held = append(o.held, messages...)
	if o.timer == nil && len(o.held) > 0 {
		ctx := context.WithoutCancel(ctx) // that of one message, which may end before the others
		o.going.Add(1)
		o.timer = time.AfterFunc(linger, func() {
			defer o.going.Done()
			o.flush(ctx)
		})
	}
	return nil
}

// flush sends what is there.
func (o *outbox) flush(ctx context.Context) {
	o.mu.Lock()
	messages := o.held
	o.held, o.timer = nil, nil
	o.mu.Unlock()
	if len(messages) == 0 {
		return
	}
	if err := o.to.Send(ctx, messages...); err != nil {
		o.mu.Lock()
		o.errs = append(o.errs, err)
		o.mu.Unlock()
	}
}

// Close sends what is left and waits for what is on its way. Nothing may be sent any more.
func (o *outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	if o.timer != nil && o.timer.Stop() {
		o.going.Done()
	}
	o.mu.Unlock()
	o.flush(ctx)
	o.going.Wait()
	return errors.Join(o.errs...)
}
