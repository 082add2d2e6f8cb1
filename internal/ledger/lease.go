package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Attributes of the lease row. Times are in milliseconds since 1970.
const (
	attrOwner   = "owner"
	attrToken   = "token"
	attrExpires = "expires"
	attrRerun   = "rerun"
	attrSlot    = "slot"
	attrTable   = "table"
	attrMode    = "mode"
)

var leaseKey = Key{pkLease, skPlanner}

// Acquire takes the lease for a time if nobody holds it, or its holder let it expire. The
// errors are a *BusyError, and ErrRecovery. Taking it again is taking it anew, with
// another token.
func (l *Ledger) Acquire(ctx context.Context, ttl time.Duration) (Lease, error) {
	return l.acquire(ctx, ttl, Normal)
}

// AcquireRecovery takes the lease of a table in recovery mode.
func (l *Ledger) AcquireRecovery(ctx context.Context, ttl time.Duration) (Lease, error) {
	return l.acquire(ctx, ttl, Recovery)
}

func (l *Ledger) acquire(ctx context.Context, ttl time.Duration, mode Mode) (Lease, error) {
	id, err := l.tableID(ctx)
	if err != nil {
		return Lease{}, err
	}
	if l.Owner == "" {
		return Lease{}, errors.New("acquire the lease: Config.Owner is empty")
	}
	now := l.Now()
	until := now.Add(ttl)
	it, err := l.write(ctx, Write{
		Key:    leaseKey,
		Set:    Item{attrOwner: S(l.Owner), attrExpires: N(until.UnixMilli())},
		Add:    map[string]int64{attrToken: 1},
		Remove: []string{attrRerun},
		When: All(Eq(attrTable, S(id)), Eq(attrMode, S(string(mode))),
			Any(Absent(attrOwner), Eq(attrOwner, S(l.Owner)), AtMost(attrExpires, now.UnixMilli()))),
	})
	if c, ok := errors.AsType[*ConditionError](err); ok {
		if c.Old == nil || c.Old[attrTable].s != id || c.Old[attrMode].s != string(mode) {
			return Lease{}, fmt.Errorf("acquire the lease: the row is of table %q in mode %q, this is %q: %w",
				c.Old[attrTable].s, c.Old[attrMode].s, id, ErrRecovery)
		}
		return Lease{}, &BusyError{Owner: c.Old[attrOwner].s, Expires: time.UnixMilli(c.Old[attrExpires].n), Slot: c.Old[attrSlot].n}
	}
	if err != nil {
		return Lease{}, fmt.Errorf("acquire the lease: %w", err)
	}
	return Lease{Owner: l.Owner, Token: it[attrToken].n, Expires: until, Slot: it[attrSlot].n, Mode: mode, Table: id}, nil
}

// held is the condition that a lease is good: every commit carries it.
func (l *Ledger) held(lease Lease) Cond {
	return All(owned(lease), AtLeast(attrExpires, l.Now().UnixMilli()+1))
}

// owned is the condition that nobody took the lease.
func owned(lease Lease) Cond {
	return All(Eq(attrOwner, S(lease.Owner)), Eq(attrToken, N(lease.Token)), Eq(attrTable, S(lease.Table)), Eq(attrMode, S(string(lease.Mode))))
}

// check is the action of a transaction that applies it only under the lease.
func (l *Ledger) check(lease Lease) Write { return Write{Key: leaseKey, When: l.held(lease)} }

// Renew extends a lease that nobody took.
func (l *Ledger) Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	until := l.Now().Add(ttl)
	err := l.lease(ctx, "renew", Write{Set: Item{attrExpires: N(until.UnixMilli())}, When: owned(lease)})
	if err != nil {
		return lease, err
	}
	lease.Expires = until
	return lease, nil
}

// Release lets go of the lease and marks a slot as done. If a tick asked for another
// round in the meantime, the lease is kept and again is true: plan once more, then
// release.
func (l *Ledger) Release(ctx context.Context, lease Lease, slot int64) (again bool, err error) {
	w := Write{Key: leaseKey, Set: Item{attrSlot: N(max(slot, lease.Slot))}, Remove: []string{attrOwner, attrExpires}, When: All(owned(lease), Absent(attrRerun))}
	_, err = l.write(ctx, w)
	c, failed := errors.AsType[*ConditionError](err)
	switch {
	case !failed && err != nil:
		return false, fmt.Errorf("release the lease: %w", err)
	case !failed:
		return false, nil
	case c.Old[attrToken].n == lease.Token && c.Old[attrMode].s == string(lease.Mode) && c.Old[attrOwner].s == "":
		return false, nil // let go before, and the answer was lost
	case !owned(lease).holds(c.Old):
		return false, fmt.Errorf("release the lease: %w", ErrLostLease)
	}
	err = l.lease(ctx, "keep", Write{Remove: []string{attrRerun}, Set: Item{attrSlot: N(max(slot, lease.Slot))}, When: owned(lease)})
	return err == nil, err
}

// SetRerun asks the holder of the lease for another round. held is false when nobody
// holds it any more: then the tick can plan itself.
func (l *Ledger) SetRerun(ctx context.Context) (held bool, err error) {
	_, err = l.write(ctx, Write{
		Key: leaseKey, Set: Item{attrRerun: N(1)},
		When: All(Exists(attrOwner), AtLeast(attrExpires, l.Now().UnixMilli()+1)),
	})
	if _, ok := errors.AsType[*ConditionError](err); ok {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the planner for another round: %w", err)
	}
	return true, nil
}

// ReadLease reads the lease. A table without one is in recovery.
func (l *Ledger) ReadLease(ctx context.Context) (LeaseState, error) {
	it, err := l.get(ctx, leaseKey)
	if err != nil {
		return LeaseState{}, fmt.Errorf("read the lease: %w", err)
	}
	if it == nil {
		return LeaseState{Mode: Recovery}, nil
	}
	out := LeaseState{
		Owner: it[attrOwner].s, Token: it[attrToken].n, Slot: it[attrSlot].n, Mode: Mode(it[attrMode].s),
		Rerun: it[attrRerun].n != 0,
	}
	if ms := it[attrExpires].n; ms != 0 {
		out.Expires = time.UnixMilli(ms)
	}
	return out, nil
}

func (l *Ledger) lease(ctx context.Context, verb string, w Write) error {
	w.Key = leaseKey
	_, err := l.write(ctx, w)
	if _, ok := errors.AsType[*ConditionError](err); ok {
		return fmt.Errorf("%s the lease: %w", verb, ErrLostLease)
	}
	if err != nil {
		return fmt.Errorf("%s the lease: %w", verb, err)
	}
	return nil
}
