package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/lifecycle"
)

// Records are all live records, sorted by claim.
func (l *Ledger) Records(ctx context.Context) ([]lifecycle.Record, error) {
	out, err := unrows[lifecycle.Record](l.query(ctx, pkNodes))
	if err != nil {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	return out, nil
}

// Record reads one live record; ok is false when there is none.
func (l *Ledger) Record(ctx context.Context, claim string) (r lifecycle.Record, ok bool, err error) {
	it, err := l.get(ctx, Key{pkNodes, claim})
	if err != nil || it == nil {
		return r, false, wrapRead("record "+claim, err)
	}
	return r, true, unrow(it, &r)
}

// ClaimOf is the claim of an instance, "" when the ledger does not know it. That of a
// closed record is known for a day.
func (l *Ledger) ClaimOf(ctx context.Context, instance string) (string, error) {
	it, err := l.get(ctx, Key{pkInstance + instance, skClaim})
	if err != nil {
		return "", wrapRead("the claim of instance "+instance, err)
	}
	return it[skClaim].s, nil
}

// ClosedOn are the records that were closed on a day (UTC, yyyy-mm-dd) and are still kept.
func (l *Ledger) ClosedOn(ctx context.Context, date string) ([]lifecycle.Record, error) {
	out, err := unrows[lifecycle.Record](l.query(ctx, pkClosed+date))
	if err != nil {
		return nil, fmt.Errorf("read the records closed on %s: %w", date, err)
	}
	return out, nil
}

// Split cuts records into commits that DynamoDB takes in one transaction each, in order.
func Split(records []lifecycle.Record) ([][]lifecycle.Record, error) {
	var out [][]lifecycle.Record
	var chunk []lifecycle.Record
	pools := map[string]bool{}
	size := 0
	for _, r := range records {
		it, err := row(pkNodes, r.Claim, 1, r)
		if err != nil {
			return nil, err
		}
		n := it.Size()
		actions := len(chunk) + len(pools) + 2 // this one, and the lease
		if !pools[r.NodePool] {
			actions++
		}
		if len(chunk) > 0 && (actions > maxActions || size+n > MaxTransaction*3/4) {
			out, chunk, size = append(out, chunk), nil, 0
			clear(pools)
		}
		chunk = append(chunk, r)
		pools[r.NodePool] = true
		size += n
	}
	if len(chunk) > 0 {
		out = append(out, chunk)
	}
	return out, nil
}

// Commit writes new records with what they reserve, under the lease and within limits,
// all or none; Split makes what fits. The errors are ErrLostLease, ErrRecovery, a
// *LimitError and an *ExistsError. Committing the same again is no other commit: the
// records as stored come back.
func (l *Ledger) Commit(ctx context.Context, lease Lease, records []lifecycle.Record, limits Limits) ([]lifecycle.Record, error) {
	if lease.Mode != Normal {
		return nil, fmt.Errorf("commit %d records: %w", len(records), ErrRecovery)
	}
	out := slices.Clone(records)
	changes := map[string]lifecycle.Usage{}
	ws := []Write{l.check(lease)}
	for i := range out {
		r := &out[i]
		if r.Phase != lifecycle.Intended || r.Attempt != "" {
			return nil, fmt.Errorf("commit claim %s: it is %s, only an intent is committed", r.Claim, r.Phase)
		}
		r.Version, r.Fence = 1, lease.Token
		changes[r.NodePool] = changes[r.NodePool].Add(r.Reserved)
		it, err := row(pkNodes, r.Claim, r.Version, r)
		if err != nil {
			return nil, err
		}
		ws = append(ws, Write{Key: it.Key(), Put: it, When: Absent(attrPK)})
	}
	ws = append(ws, reserve(changes, limits)...)
	if len(ws) > maxActions {
		return nil, fmt.Errorf("commit %d records: %w: %d actions, %d are possible", len(records), ErrTooLarge, len(ws), maxActions)
	}
	err := l.transact(ctx, ws)
	c, ok := errors.AsType[*CanceledError](err)
	if !ok {
		if err != nil {
			return nil, fmt.Errorf("commit %d records: %w", len(records), err)
		}
		return out, nil
	}
	if applied, stored := l.committed(c, ws, lease, out); applied {
		return stored, nil
	}
	return nil, fmt.Errorf("commit %d records: %w", len(records), why(c, changes, limits))
}

// committed reports whether a cancelled commit had been applied before, and some of its
// records have moved on since: they are of this lease and this plan.
func (l *Ledger) committed(c *CanceledError, ws []Write, lease Lease, records []lifecycle.Record) (bool, []lifecycle.Record) {
	out := slices.Clone(records)
	proof := false
	for i := range records {
		reason := c.Reasons[i+1] // the lease comes first
		if reason.Code != ReasonCondition {
			return false, nil
		}
		var was lifecycle.Record
		if reason.Old == nil || unrow(reason.Old, &was) != nil {
			return false, nil
		}
		if was.Fence != lease.Token || was.PlanID != records[i].PlanID || !was.Created.Equal(records[i].Created) {
			return false, nil
		}
		out[i], proof = was, true
	}
	return proof, out
}

// why turns the reasons of a cancelled transaction into the error that says what to do:
// a lost lease before all, then limits, then rows that are not as they were read.
func why(c *CanceledError, changes map[string]lifecycle.Usage, limits Limits) error {
	var limit *LimitError
	var moved error
	for _, r := range c.Reasons {
		switch {
		case r.Code != ReasonCondition:
		case r.Key == leaseKey:
			return ErrLostLease
		case r.Key.PK == pkPools:
			if limit == nil {
				limit = exceeded(r.Key.SK, changes[r.Key.SK], limits, r.Old)
			}
		case moved == nil && r.Key.PK == pkNodes && r.Old[attrVersion].n == 1:
			moved = &ExistsError{Claim: r.Key.SK}
		case moved == nil:
			moved = fmt.Errorf("%s: %w", r.Key, ErrChanged)
		}
	}
	switch {
	case limit != nil:
		return limit
	case moved != nil:
		return moved
	}
	return c
}

// Save writes changes of records, all or none: each over the version that was read, with
// what that changes in what its pool uses, and the row by which its instance is found. A
// record that became Closed leaves the live ones. It needs no lease. ErrChanged means
// that somebody else was quicker. The records come back with their new versions.
//
// Limits are not checked: what a node turns out to be is a fact. What grows a reservation
// for something not launched yet is Begin.
func (l *Ledger) Save(ctx context.Context, changes ...Change) ([]lifecycle.Record, error) {
	return l.save(ctx, nil, changes)
}

// SaveUnder is Save under the lease: for what only the planner may change. Its errors
// include ErrLostLease.
func (l *Ledger) SaveUnder(ctx context.Context, lease Lease, changes ...Change) ([]lifecycle.Record, error) {
	return l.save(ctx, []Write{l.check(lease)}, changes)
}

func (l *Ledger) save(ctx context.Context, ws []Write, changes []Change) ([]lifecycle.Record, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	out := make([]lifecycle.Record, len(changes))
	usage := map[string]lifecycle.Usage{}
	for i, c := range changes {
		out[i] = c.Next
		out[i].Version = c.Was.Version + 1
		more, err := l.saves(c.Was, &out[i], usage)
		if err != nil {
			return nil, err
		}
		ws = append(ws, more...)
	}
	ws = append(ws, reserve(usage, nil)...)
	if len(ws) > MaxActions {
		return nil, fmt.Errorf("save %d records: %w: %d actions, %d are possible", len(changes), ErrTooLarge, len(ws), MaxActions)
	}
	err := l.transact(ctx, ws)
	if c, ok := errors.AsType[*CanceledError](err); ok {
		return nil, fmt.Errorf("save %d records: %w", len(changes), whyChanged(c))
	}
	if err != nil {
		return nil, fmt.Errorf("save %d records: %w", len(changes), err)
	}
	return out, nil
}

func whyChanged(c *CanceledError) error {
	for _, r := range c.Reasons {
		switch {
		case r.Code != ReasonCondition:
		case r.Key == leaseKey:
			return ErrLostLease
		default:
			return fmt.Errorf("%s: %w", r.Key, ErrChanged)
		}
	}
	return c
}

// saves are the actions that change one record, and its part of the change of usage.
func (l *Ledger) saves(was lifecycle.Record, next *lifecycle.Record, usage map[string]lifecycle.Usage) ([]Write, error) {
	if was.Claim != "" && was.Claim != next.Claim || was.Version > 0 && was.NodePool != next.NodePool {
		return nil, fmt.Errorf("save claim %s of nodepool %q over %s of %q: a record keeps both", next.Claim, next.NodePool, was.Claim, was.NodePool)
	}
	reserved := next.Reserved
	if next.Phase == lifecycle.Closed {
		reserved = nil
	}
	usage[next.NodePool] = usage[next.NodePool].Add(reserved).Sub(was.Reserved)
	var ws []Write
	if next.Phase == lifecycle.Closed {
		if next.ClosedAt.IsZero() {
			next.ClosedAt = l.Now()
		}
		it, err := row(pkClosed+day(next.ClosedAt), next.Claim, next.Version, next)
		if err != nil {
			return nil, err
		}
		ws = append(ws,
			Write{Key: Key{pkNodes, next.Claim}, Delete: true, When: stored(was.Version)},
			Write{Key: it.Key(), Put: expires(it, next.ClosedAt.Add(keepClosed)), When: Absent(attrPK)})
	} else {
		it, err := row(pkNodes, next.Claim, next.Version, next)
		if err != nil {
			return nil, err
		}
		ws = append(ws, Write{Key: it.Key(), Put: it, When: stored(was.Version)})
	}
	id := next.Instance.ID
	switch {
	case id == "":
	case next.Phase == lifecycle.Closed:
		ws = append(ws, Write{Key: Key{pkInstance + id, skClaim}, Set: expires(Item{skClaim: S(next.Claim)}, next.ClosedAt.Add(keepInstance))})
	case was.Instance.ID != id:
		ws = append(ws, Write{Key: Key{pkInstance + id, skClaim}, Set: Item{skClaim: S(next.Claim)}, Remove: []string{attrTTL}})
	}
	return ws, nil
}

// Adopt writes a record of a node that is there and has none: one that Karpenter made, or
// that a table which was lost or restored does not know. An *ExistsError means that it has
// one. Limits do not stop it, and it counts in what its pool uses from then on.
func (l *Ledger) Adopt(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	r.Adopted = true
	out, err := l.Save(ctx, Change{Next: r})
	if errors.Is(err, ErrChanged) {
		return r, &ExistsError{Claim: r.Claim}
	}
	if err != nil {
		return r, fmt.Errorf("adopt claim %s: %w", r.Claim, err)
	}
	return out[0], nil
}

func wrapRead(what string, err error) error {
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}
