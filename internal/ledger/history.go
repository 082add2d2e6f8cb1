package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
)

func offerKey(o lifecycle.Offer) string {
	key := o.InstanceType + "#" + o.Zone + "#" + o.CapacityType
	if o.ReservationID != "" {
		key += "#" + o.ReservationID
	}
	return key
}

// Offerings are the healths that are remembered, by offer.
func (l *Ledger) Offerings(ctx context.Context) ([]lifecycle.Health, error) {
	out, err := unrows[lifecycle.Health](l.query(ctx, pkOffering))
	if err != nil {
		return nil, fmt.Errorf("read the health of offers: %w", err)
	}
	return out, nil
}

// Shortage remembers that EC2 had no capacity for an offer.
func (l *Ledger) Shortage(ctx context.Context, o lifecycle.Offer, code string) error {
	return l.health(ctx, o, func(h lifecycle.Health) lifecycle.Health { return h.Shortage(code, l.Now()) })
}

// Interrupted remembers that an instance of an offer got a notice at a time.
func (l *Ledger) Interrupted(ctx context.Context, o lifecycle.Offer, at time.Time) error {
	return l.health(ctx, o, func(h lifecycle.Health) lifecycle.Health { return h.Interruption(at, l.Now()) })
}

func (l *Ledger) health(ctx context.Context, o lifecycle.Offer, change func(lifecycle.Health) lifecycle.Health) error {
	return l.update(ctx, Key{pkOffering, offerKey(o)}, func(it Item) (Item, error) {
		h := lifecycle.Health{Offer: o}
		if it != nil {
			if err := unrow(it, &h); err != nil {
				return nil, err
			}
		}
		h = change(h)
		h.Version = it[attrVersion].n + 1
		out, err := row(pkOffering, offerKey(o), h.Version, h)
		if err != nil {
			return nil, err
		}
		return expires(out, h.Forget()), nil
	})
}

// update reads a row, changes it and writes it over the version that was read, again if
// somebody else was quicker. change gets nil for a row that is not there and may be called
// more than once; nil from it leaves the row as it is.
func (l *Ledger) update(ctx context.Context, key Key, change func(Item) (Item, error)) error {
	var err error
	for range l.Tries {
		var it Item
		// Not get: a row that has expired is still in the way, with its version.
		if err = l.retry(ctx, func() (err error) {
			it, err = l.Table.Get(ctx, key)
			return err
		}); err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		was := it[attrVersion].n
		seen := it
		if l.expired(it) {
			seen = nil
		}
		next, err2 := change(seen)
		if err2 != nil || next == nil {
			return err2
		}
		next[attrVersion] = N(was + 1)
		if err = l.saveRow(ctx, next, was); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return err
}

// LearnedSizes are the sizes that nodes turned out to have.
func (l *Ledger) LearnedSizes(ctx context.Context) ([]lifecycle.Learned, error) {
	out, err := unrows[lifecycle.Learned](l.query(ctx, pkLearned))
	if err != nil {
		return nil, fmt.Errorf("read the learned sizes: %w", err)
	}
	return out, nil
}

// Learn remembers what a node turned out to have (Learned.Saw: what of it holds beside what
// was seen before).
func (l *Ledger) Learn(ctx context.Context, s lifecycle.Learned) error {
	key := Key{pkLearned, s.InstanceType + "#" + s.ImageID + "#" + s.Shape}
	return l.update(ctx, key, func(it Item) (Item, error) {
		var was lifecycle.Learned
		if it != nil {
			if err := unrow(it, &was); err != nil {
				return nil, err
			}
			if !s.Seen.After(was.Seen) {
				return nil, nil
			}
		}
		next := was.Saw(s)
		next.Version = was.Version + 1
		out, err := row(key.PK, key.SK, next.Version, next)
		if err != nil {
			return nil, err
		}
		return expires(out, s.Seen.Add(lifecycle.LearnedMemory)), nil
	})
}

// Moved remembers that pods of a workload had to move. The same move is remembered once.
func (l *Ledger) Moved(ctx context.Context, m lifecycle.WorkloadMove) error {
	it, err := row(pkMoves, instant(m.At)+"#"+m.Workload+"#"+m.From, 1, m)
	if err != nil {
		return err
	}
	return l.saveRow(ctx, expires(it, m.At.Add(keepMove)), 0)
}

// MovesSince are the moves from a time on, in the order of time.
func (l *Ledger) MovesSince(ctx context.Context, from time.Time) ([]lifecycle.WorkloadMove, error) {
	out, err := unrows[lifecycle.WorkloadMove](l.queryWhile(ctx, pkMoves, instant(from), func(string) bool { return true }))
	if err != nil {
		return nil, fmt.Errorf("read the moves since %s: %w", instant(from), err)
	}
	return out, nil
}

// Decide appends to the decision log. A line that is longer than a row holds loses the
// end of its list of objects, and says how many are missing.
func (l *Ledger) Decide(ctx context.Context, d lifecycle.Decision) error {
	d.Objects = slices.Clone(d.Objects)
	for total := len(d.Objects); ; {
		it, err := row(pkDecision+day(d.At), instant(d.At)+"#"+d.ID, 1, d)
		if err != nil {
			return err
		}
		if it.Size() <= MaxItem-1024 || len(d.Objects) <= 1 {
			return l.saveRow(ctx, expires(it, d.At.Add(keepDecision)), 0)
		}
		keep := len(d.Objects) / 2
		d.Objects = append(d.Objects[:keep:keep], fmt.Sprintf("and %d more", total-keep))
	}
}

// DecisionsOn are the lines of the decision log of a day (UTC, yyyy-mm-dd), in order.
func (l *Ledger) DecisionsOn(ctx context.Context, date string) ([]lifecycle.Decision, error) {
	out, err := unrows[lifecycle.Decision](l.query(ctx, pkDecision+date))
	if err != nil {
		return nil, fmt.Errorf("read the decisions of %s: %w", date, err)
	}
	return out, nil
}
