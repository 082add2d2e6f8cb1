package app

import "context"

// BackOff pauses before the n-th repetition of a request to the ledger.
func BackOff(ctx context.Context, n int) error { return backOff(ctx, n) }
