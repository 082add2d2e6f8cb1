package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/lifecycle"
)

// Knower says what an instance of a record is, by the catalogue; the zero Known leaves
// what was reserved as it is.
type Knower func(r lifecycle.Record, in lifecycle.Instance) lifecycle.Known

// Unresolved is what a pass needs to find out what became of attempts.
type Unresolved struct {
	Attempts []lifecycle.Attempt
	Records  []lifecycle.Record
	// Recovering: nothing is sent again, because the table may be older than what it tells.
	Recovering bool
	Known      Knower
}

// Resolve goes one step on with every attempt whose outcome is not known, or not brought to
// its records yet (lifecycle.Attempt.Resolve says which), and returns when the next step is
// due, zero = none is. It needs no lease: whatever it does may be done by several at once.
func (x *Executor) Resolve(ctx context.Context, u Unresolved) (next time.Time, err error) {
	byClaim := make(map[string]lifecycle.Record, len(u.Records))
	for _, r := range u.Records {
		byClaim[r.Claim] = r
	}
	var errs []error
	due := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, a := range u.Attempts {
		at, err := x.resolve(ctx, a, byClaim, u)
		if err != nil {
			errs = append(errs, fmt.Errorf("attempt %s: %w", a.ID, err))
			at = x.Now().Add(lifecycle.LookEvery)
		}
		due(at)
		if ctx.Err() != nil {
			break
		}
	}
	return next, errors.Join(errs...)
}

// resolve goes on with one attempt until it has to wait, and returns until when.
func (x *Executor) resolve(ctx context.Context, a lifecycle.Attempt, byClaim map[string]lifecycle.Record, u Unresolved) (time.Time, error) {
	wanted := false
	for _, claim := range a.Claims {
		r, ok := byClaim[claim]
		wanted = wanted || ok && r.Attempt == a.ID && r.Phase.Live()
	}
	for {
		now := x.Now()
		m := a.Resolve(wanted && !u.Recovering, now)
		switch m.Move {
		case lifecycle.MoveNone:
			return time.Time{}, nil
		case lifecycle.MoveWait:
			return m.At, nil
		case lifecycle.MoveSettle:
			return time.Time{}, x.bring(ctx, a, byClaim, u.Known)
		}
		next, err := x.move(ctx, a, m.Move, now)
		if err != nil {
			return time.Time{}, err
		}
		if a, err = x.Memory.Answer(ctx, a, next); err != nil {
			return time.Time{}, err
		}
	}
}

// move finds out about an attempt: by sending its request again, or by tag.
func (x *Executor) move(ctx context.Context, a lifecycle.Attempt, m lifecycle.Move, now time.Time) (lifecycle.Attempt, error) {
	switch m {
	case lifecycle.MoveReplay:
		out, err := x.Cloud.Create(ctx, a.Request)
		if err == nil {
			return a.Answer(outcomeOf(out, func(string) string { return "" }, lifecycle.FromReplay, x.Now())), nil
		}
		// EC2 does not know, or does not say: from here on it is asked what is there.
		found, lerr := x.look(ctx, a)
		if lerr != nil {
			return a, errors.Join(err, lerr)
		}
		return a.Looked(found, x.Now()), nil
	case lifecycle.MoveLook:
		found, err := x.look(ctx, a)
		if err != nil {
			return a, err
		}
		return a.Looked(found, x.Now()), nil
	}
	return a.GiveUp(now), nil
}

// look finds the instances of an attempt by their tag.
func (x *Executor) look(ctx context.Context, a lifecycle.Attempt) ([]lifecycle.Instance, error) {
	found, err := x.Cloud.ByAttempt(ctx, a.ID)
	if err != nil {
		return nil, fmt.Errorf("look for instances by tag: %w", err)
	}
	prices := pricesOf(a.Request)
	var out []lifecycle.Instance
	for i := range found[a.ID] {
		in := InstanceOf(&found[a.ID][i])
		in.Price = prices(in.Type, in.Zone)
		out = append(out, in)
	}
	return out, nil
}

// pricesOf reads from a stored request what its offers cost.
func pricesOf(request []byte) func(typ, zone string) int64 {
	r, err := launch.Decode(request)
	return func(typ, zone string) int64 {
		if err != nil {
			return 0
		}
		if o := r.Offer(typ, zone); o != nil {
			return o.Price
		}
		return 0
	}
}

// InstanceOf is an instance as records have it. The price is not known from EC2.
func InstanceOf(d *launch.Described) lifecycle.Instance {
	return lifecycle.Instance{
		ID: d.ID, Type: d.Type, Zone: d.Zone, CapacityType: d.CapacityType, ReservationID: d.ReservationID, ImageID: d.ImageID, LaunchedAt: d.Launched,
	}
}

// bring brings the outcome of an attempt to its records, and ends what is nobody's.
func (x *Executor) bring(ctx context.Context, a lifecycle.Attempt, byClaim map[string]lifecycle.Record, known Knower) error {
	settled, err := x.Memory.Settle(ctx, a, func(claim string, in lifecycle.Instance) lifecycle.Known {
		r, ok := byClaim[claim]
		if !ok || known == nil {
			return lifecycle.Known{}
		}
		return known(r, in)
	})
	if err != nil {
		return err
	}
	rep := &Report{}
	x.endExtra(ctx, settled.Extra, rep)
	return errors.Join(rep.Errors...)
}
