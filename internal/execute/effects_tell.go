package execute

import (
	"context"
	"errors"
	"slices"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// untold says which NodeClaims do not say what their records are to say. A record that
// nobody would look at any more is looked at again: whoever writes it down may not come to
// telling.
func (x *Executor) untold(out []Applied) []bool {
	due := make([]bool, len(out))
	for i := range out {
		r := &out[i].Record
		if out[i].Err != nil || r.UID == "" || r.Phase == lifecycle.Closed || r.Shown == Shown(*r) {
			continue
		}
		due[i] = true
		if r.Phase == lifecycle.Initialized && r.NextAt.IsZero() {
			r.NextAt = x.Now().Add(showAgain)
		}
	}
	return due
}

// tell makes NodeClaims say what was written down, and writes down that they do. Where
// somebody else changed the record meanwhile, what was said may have taken the place of what
// that one said: then the record as it is now is what is told.
func (x *Executor) tell(ctx context.Context, steps []Stepped, out []Applied, due []bool) {
	written := make([]lifecycle.Record, len(out))
	x.each(len(out), func(i int) {
		if !due[i] || out[i].Err != nil {
			return
		}
		written[i] = out[i].Record
		x.show(ctx, &steps[i], &out[i])
		if out[i].Record.Shown != written[i].Shown {
			out[i].Record.NextAt = steps[i].Step.Record.NextAt
		}
	})
	var todo []int
	for i := range out {
		if r := &out[i].Record; due[i] && out[i].Err == nil && (r.Shown != written[i].Shown || !r.NextAt.Equal(written[i].NextAt)) {
			todo = append(todo, i)
		}
	}
	save := func(some []int) error {
		changes := make([]lifecycle.Change, len(some))
		for n, i := range some {
			changes[n] = lifecycle.Change{Was: written[i], Next: out[i].Record}
		}
		saved, err := x.Memory.Save(ctx, changes...)
		for n, i := range some {
			if err == nil {
				out[i].Record = saved[n]
			}
		}
		return err
	}
	for some := range slices.Chunk(todo, saveTogether) {
		if len(some) > 1 && save(some) == nil {
			continue
		}
		for _, i := range some {
			err := save([]int{i})
			if err == nil {
				continue
			}
			if errors.Is(err, lifecycle.ErrChanged) {
				x.tellTruth(ctx, written[i].Claim)
			}
			out[i].Record = written[i]
		}
	}
}

// tellTruth makes a NodeClaim say what its record says, until that is what it says. Where it
// cannot be written now, the record is marked as one that is still to be told.
func (x *Executor) tellTruth(ctx context.Context, claim string) {
	for range 3 {
		r, ok, err := x.Memory.Record(ctx, claim)
		if err != nil || !ok || r.UID == "" {
			return
		}
		c := r.NodeClaim()
		if _, err := x.Cluster.PatchStatus(ctx, "NodeClaim", r.Claim, r.UID, api.ClaimStatus(&c)); err != nil && !errors.Is(err, api.ErrNotFound) {
			next := r
			next.Shown = ""
			if next.NextAt.IsZero() {
				next.NextAt = x.Now().Add(showAgain)
			}
			if _, err := x.Memory.Save(ctx, lifecycle.Change{Was: r, Next: next}); errors.Is(err, lifecycle.ErrChanged) {
				continue
			}
			return
		}
		again, ok, err := x.Memory.Record(ctx, claim)
		if err != nil || !ok || again.Version == r.Version {
			return
		}
	}
}
