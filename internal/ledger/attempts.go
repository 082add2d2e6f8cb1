package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kerf.sh/kerf/internal/lifecycle"
)

// attrRequest is the compressed request of an attempt.
const attrRequest = "rq"

// MaxClaims is how many claims an attempt may have.
const MaxClaims = 80

// Attempts are all attempts that are not settled, and those settled lately, by id.
func (l *Ledger) Attempts(ctx context.Context) ([]lifecycle.Attempt, error) {
	items, err := l.query(ctx, pkAttempts)
	if err != nil {
		return nil, fmt.Errorf("read the attempts: %w", err)
	}
	out := make([]lifecycle.Attempt, len(items))
	for i, it := range items {
		if out[i], err = attemptOf(it); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Attempt reads one attempt; ok is false when there is none.
func (l *Ledger) Attempt(ctx context.Context, id string) (a lifecycle.Attempt, ok bool, err error) {
	it, err := l.get(ctx, Key{pkAttempts, id})
	if err != nil || it == nil {
		return a, false, wrapRead("attempt "+id, err)
	}
	a, err = attemptOf(it)
	return a, err == nil, err
}

// Begin stores an attempt just before its call, under the lease and within limits: the
// claims of the attempt, as read, go from Intended to Launching. reserved is what each
// may take with this request, by claim; where it is missing the reservation stays. After
// Begin the call may be made until Attempt.NotAfter, and no other attempt for these claims
// can begin until its outcome is stored. The errors are as those of Commit, with
// ErrChanged.
func (l *Ledger) Begin(ctx context.Context, lease Lease, a lifecycle.Attempt, records []lifecycle.Record, reserved map[string]lifecycle.Usage, limits Limits) (Begun, error) {
	fail := func(err error) (Begun, error) {
		return Begun{}, fmt.Errorf("begin attempt %s: %w", a.ID, err)
	}
	if lease.Mode != Normal {
		return fail(ErrRecovery)
	}
	if len(records) == 0 || len(records) > MaxClaims {
		return fail(fmt.Errorf("%w: %d claims, 1 to %d are possible", ErrTooLarge, len(records), MaxClaims))
	}
	now := l.Now()
	a.State, a.Fence, a.Version = lifecycle.Calling, lease.Token, 1
	a.Created, a.NotAfter = now, now.Add(lifecycle.CallTimeout)
	a.Outcome, a.Claims = nil, nil
	next := slices.Clone(records)
	changes := map[string]lifecycle.Usage{}
	ws := []Write{l.check(lease), {}}
	for i := range next {
		r := &next[i]
		if r.Phase != lifecycle.Intended || r.Attempt != "" {
			return fail(fmt.Errorf("claim %s is %s: %w", r.Claim, r.Phase, ErrChanged))
		}
		r.Phase, r.Attempt, r.Version = lifecycle.Launching, a.ID, r.Version+1
		r.Tries++
		if want, ok := reserved[r.Claim]; ok {
			changes[r.NodePool] = changes[r.NodePool].Add(want).Sub(r.Reserved)
			r.Reserved = want
		}
		a.Claims = append(a.Claims, r.Claim)
		it, err := row(pkNodes, r.Claim, r.Version, r)
		if err != nil {
			return fail(err)
		}
		ws = append(ws, Write{Key: it.Key(), Put: it, When: stored(records[i].Version)})
	}
	it, err := attemptRow(a)
	if err != nil {
		return fail(err)
	}
	ws[1] = Write{Key: it.Key(), Put: it, When: Absent(attrPK)}
	ws = append(ws, reserve(changes, limits)...)
	if len(ws) > maxActions {
		return fail(fmt.Errorf("%w: %d actions, %d are possible", ErrTooLarge, len(ws), maxActions))
	}
	err = l.transact(ctx, ws)
	if c, ok := errors.AsType[*CanceledError](err); ok {
		err = why(c, changes, limits)
		if _, there := errors.AsType[*ExistsError](err); there {
			err = ErrChanged
		}
	}
	if err != nil {
		return fail(err)
	}
	return Begun{Attempt: a, Records: next}, nil
}

// Answer stores the outcome of an attempt, or another look in vain: next is what
// lifecycle made of a. The first outcome stays; if there is one already it comes back in
// the place of next.
func (l *Ledger) Answer(ctx context.Context, was, next lifecycle.Attempt) (lifecycle.Attempt, error) {
	next.Version = was.Version + 1
	it, err := attemptRow(next)
	if err != nil {
		return was, err
	}
	_, err = l.write(ctx, Write{Key: it.Key(), Put: it, When: stored(was.Version)})
	if c, ok := errors.AsType[*ConditionError](err); ok {
		if c.Old == nil {
			return was, fmt.Errorf("store the outcome of attempt %s: %w", was.ID, ErrChanged)
		}
		there, err := attemptOf(c.Old)
		if err != nil {
			return was, err
		}
		if there.Outcome != nil {
			return there, nil
		}
		return there, fmt.Errorf("store the outcome of attempt %s: %w", was.ID, ErrChanged)
	}
	if err != nil {
		return was, fmt.Errorf("store the outcome of attempt %s: %w", was.ID, err)
	}
	return next, nil
}

// Settle brings the outcome of an attempt to its records: those that got an instance are
// Launched and use what it is, the others are Intended again, free for the next attempt.
// known says what an instance is, from the catalogue. It may be repeated, also by others
// at the same time, until it succeeds.
func (l *Ledger) Settle(ctx context.Context, a lifecycle.Attempt, known func(claim string, in lifecycle.Instance) lifecycle.Known) (Settled, error) {
	if a.Outcome == nil {
		return Settled{}, fmt.Errorf("settle attempt %s: it has no outcome", a.ID)
	}
	owned, extra := a.Pair(a.Outcome.Instances)
	out := Settled{Extra: extra}
	// A record takes up to two actions, its pool one for the whole transaction.
	const each = 40
	for chunk := range slices.Chunk(a.Claims, each) {
		records, orphans, err := l.settle(ctx, a, chunk, owned, known)
		if err != nil {
			return out, fmt.Errorf("settle attempt %s: %w", a.ID, err)
		}
		out.Records = append(out.Records, records...)
		out.Extra = append(out.Extra, orphans...)
	}
	if a.State == lifecycle.Settled {
		return out, nil
	}
	was := a
	a.State, a.Version = lifecycle.Settled, a.Version+1
	it, err := attemptRow(a)
	if err != nil {
		return out, err
	}
	expires(it, a.Outcome.At.Add(keepAttempt))
	_, err = l.write(ctx, Write{Key: it.Key(), Put: it, When: stored(was.Version)})
	if c, ok := errors.AsType[*ConditionError](err); ok {
		if there, bad := attemptOf(c.Old); bad == nil && there.State == lifecycle.Settled {
			return out, nil
		}
		err = ErrChanged
	}
	if err != nil {
		return out, fmt.Errorf("settle attempt %s: %w", a.ID, err)
	}
	return out, nil
}

func (l *Ledger) settle(ctx context.Context, a lifecycle.Attempt, claims []string, owned map[string]lifecycle.Instance, known func(string, lifecycle.Instance) lifecycle.Known) ([]lifecycle.Record, []lifecycle.Instance, error) {
	var err error
	for range l.Tries {
		var records []lifecycle.Record
		var orphans []lifecycle.Instance
		var changes []Change
		for _, claim := range claims {
			was, ok, err := l.Record(ctx, claim)
			if err != nil {
				return nil, nil, err
			}
			in, got := owned[claim]
			if !ok {
				if got {
					orphans = append(orphans, in)
				}
				continue
			}
			var k lifecycle.Known
			if got {
				k = known(claim, in)
			}
			next, orphan := was.Settle(a, in, k, l.Now())
			if orphan {
				orphans = append(orphans, in)
			}
			if next == nil {
				records = append(records, was)
				continue
			}
			changes = append(changes, Change{Was: was, Next: *next})
		}
		var saved []lifecycle.Record
		if saved, err = l.Save(ctx, changes...); err == nil {
			return append(records, saved...), orphans, nil
		}
		if !errors.Is(err, ErrChanged) {
			return nil, nil, err
		}
	}
	return nil, nil, err
}

func attemptRow(a lifecycle.Attempt) (Item, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(a.Request); err != nil {
		return nil, fmt.Errorf("compress the request of attempt %s: %w", a.ID, err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress the request of attempt %s: %w", a.ID, err)
	}
	a.Request = nil
	it, err := row(pkAttempts, a.ID, a.Version, a)
	if err != nil {
		return nil, err
	}
	it[attrRequest] = B(buf.Bytes())
	return it, nil
}

func attemptOf(it Item) (lifecycle.Attempt, error) {
	var a lifecycle.Attempt
	if err := unrow(it, &a); err != nil {
		return a, err
	}
	z, err := gzip.NewReader(bytes.NewReader(it[attrRequest].b))
	if err != nil {
		return a, fmt.Errorf("read the request of attempt %s: %w", a.ID, err)
	}
	a.Request, err = io.ReadAll(z)
	if err != nil {
		return a, fmt.Errorf("read the request of attempt %s: %w", a.ID, err)
	}
	return a, nil
}
