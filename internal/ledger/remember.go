package ledger

import (
	"context"
	"fmt"

	"kerf.sh/kerf/internal/lifecycle"
)

// Remember reads what a plan is made on beside the cluster. It is whole or an error: a
// plan on half a memory would do things twice.
func (l *Ledger) Remember(ctx context.Context) (Remembered, error) {
	var out Remembered
	var err error
	read := func(f func() error) {
		if err == nil {
			err = f()
		}
	}
	read(func() (err error) { out.Records, err = l.Records(ctx); return err })
	read(func() (err error) { out.Attempts, err = l.Attempts(ctx); return err })
	read(func() (err error) { out.Health, err = l.Offerings(ctx); return err })
	read(func() (err error) { out.Learned, err = l.LearnedSizes(ctx); return err })
	read(func() (err error) { out.Usage, err = l.Usage(ctx); return err })
	if err != nil {
		return Remembered{}, fmt.Errorf("read what is remembered: %w", err)
	}
	out.Nominations = lifecycle.Nominations(out.Records, l.Now())
	return out, nil
}
