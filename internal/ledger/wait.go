package ledger

import (
	"context"
	"time"
)

// The pauses before a request is repeated: drawn from 0 to a span that doubles, so that
// those who met once do not meet again.
const (
	waitFirst = 25 * time.Millisecond
	waitMost  = time.Second
)

// Jitter makes a Config.Wait. draw gives a number from 0 up to n, without n.
func Jitter(draw func(n int64) int64) func(ctx context.Context, n int) error {
	return func(ctx context.Context, n int) error {
		span := waitFirst
		for range min(n-1, 10) {
			span = min(2*span, waitMost)
		}
		timer := time.NewTimer(time.Duration(draw(int64(span) + 1)))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
}
