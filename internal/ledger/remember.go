package ledger

import (
	"context"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// Remembered is the ledger as a plan needs it.
type Remembered struct {
	Records     []lifecycle.Record
	Attempts    []lifecycle.Attempt
	Nominations []snapshot.Nomination
	Health      []lifecycle.Health // offers about which something is remembered
	Learned     []lifecycle.Learned
	Usage       map[string]lifecycle.Usage // by pool
}

// Into puts what is remembered into a snapshot: nodes without an object, nodes that are
// going, and nominations (lifecycle.Remember). The snapshot is still to be normalized.
func (m Remembered) Into(s *snapshot.Snapshot) { lifecycle.Remember(s, m.Records, s.Now) }

// Unavailable are the offers that are not to be asked for at a time, sorted.
func (m Remembered) Unavailable(now time.Time) []lifecycle.Offer {
	var out []lifecycle.Offer
	for _, h := range m.Health {
		if !h.Available(now) {
			out = append(out, h.Offer)
		}
	}
	return out
}

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
