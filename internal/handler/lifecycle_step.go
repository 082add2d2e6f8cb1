package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// advance goes one step on with records, and returns them as they are then. The error says
// that the pass has to end; what a single record had is in the report.
func (h *Lifecycle) advance(ctx context.Context, records []lifecycle.Record, look *look, rep *LifecycleReport) ([]lifecycle.Record, error) {
	// With more than one run can take, each run begins with others.
	if n := len(records); n > together && look.chain != nil {
		at := int(look.chain.Step % int64(n/together+1) * together % int64(n))
		records = slices.Concat(records[at:], records[:at])
	}
	around := execute.Around{Pool: h.pools(), Opening: opening(look.now)}
	for i := range records {
		if r := &records[i]; r.UID == "" && r.Phase.Live() && r.NodePool != "" {
			pool, err := around.Pool(ctx, r.NodePool)
			look.poolGone[r.NodePool] = err == nil && pool == nil
		}
	}
	after := make([]lifecycle.Record, 0, len(records))
	for some := range slices.Chunk(records, together) {
		if !h.enough(ctx) {
			rep.Left += len(some)
			after = append(after, some...)
			continue
		}
		var steps []execute.Stepped
		for i := range some {
			s := h.step(&some[i], look)
			// One that is still shut waits: a Node that counts as initialized is looked at no more.
			if s.Step.Record.Phase == lifecycle.Initialized && s.Was.Phase != lifecycle.Initialized && len(s.Nodes) == 1 && shut(&s.Nodes[0].Node) {
				after = append(after, s.Was)
				continue
			}
			steps = append(steps, s)
		}
		applied, err := h.Executor.Apply(ctx, steps, around)
		for i := range applied {
			after = append(after, applied[i].Record)
			h.count(&steps[i], &applied[i], rep)
		}
		h.tell(ctx, steps, applied, rep)
		if err != nil {
			return after, err
		}
	}
	return after, nil
}

// step is what becomes of one record by what was seen of it.
func (h *Lifecycle) step(r *lifecycle.Record, look *look) execute.Stepped {
	o := look.observation(r)
	s := execute.Stepped{Was: *r, Step: r.Advance(o, look.now), Nodes: o.Nodes, Object: look.byClaim[r.Claim], Instance: look.instances[r.Instance.ID]}
	next := &s.Step.Record
	if x := look.left[r.Claim]; x != nil && next.Phase == lifecycle.Draining && len(x.pods) > 0 {
		if text := next.Reason + ": " + x.waitsFor(); next.Message != text {
			next.Message, s.Step.Changed = text, true
		}
	}
	return s
}

func (h *Lifecycle) count(s *execute.Stepped, a *execute.Applied, rep *LifecycleReport) {
	switch {
	case errors.Is(a.Err, lifecycle.ErrChanged):
		return // somebody was quicker: what that came to is seen next time
	case a.Err != nil:
		rep.Problems = append(rep.Problems, fmt.Sprintf("nodeclaim %s: %v", s.Was.Claim, a.Err))
	case a.Record.Phase != s.Was.Phase:
		rep.Moved[a.Record.Phase]++
	}
	for _, l := range a.Late {
		rep.Problems = append(rep.Problems, fmt.Sprintf("nodeclaim %s: %s: %v", s.Was.Claim, l.Reason, l.Err))
	}
}

// warnings are the remarks that people should act on; others are told as they come.
var warnings = []string{
	lifecycle.ReasonLaunchTimeout, lifecycle.ReasonRegisterTimeout, lifecycle.ReasonInstanceGone, lifecycle.ReasonMultipleNodes,
	"UnregisteredTaintMissing", "UndeclaredTaint", execute.LateObject,
}

// tell writes Events about what happened to nodes: one per object and reason.
func (h *Lifecycle) tell(ctx context.Context, steps []execute.Stepped, applied []execute.Applied, rep *LifecycleReport) {
	for i := range steps {
		r := &applied[i].Record
		if applied[i].Err != nil {
			continue
		}
		var remarks []lifecycle.Remark
		remarks = append(remarks, steps[i].Step.Remarks...)
		if r.Reason == lifecycle.ReasonMultipleNodes {
			remarks = append(remarks, lifecycle.Remark{Reason: r.Reason, Message: r.Message})
		}
		if r.Phase == lifecycle.Draining && r.Message != steps[i].Was.Message && strings.Contains(r.Message, "waits for") {
			remarks = append(remarks, lifecycle.Remark{Reason: "FailedDraining", Message: r.Message})
		}
		for _, l := range applied[i].Late {
			remarks = append(remarks, lifecycle.Remark{Reason: l.Reason, Message: l.Err.Error()})
		}
		for _, m := range remarks {
			if !h.emit(ctx, r, m, rep) {
				return
			}
		}
	}
}

// emit writes one Event at the NodeClaim of a record; false when no more are to be written.
func (h *Lifecycle) emit(ctx context.Context, r *lifecycle.Record, m lifecycle.Remark, rep *LifecycleReport) bool {
	now := h.Now()
	key := r.Claim + "\x00" + r.UID + "\x00" + m.Reason
	if !h.told.fresh(key, now) {
		return true
	}
	if rep.events == maxEvents || !h.enough(ctx) {
		h.told.forget(key)
		return false
	}
	rep.events++
	_, err := h.Cluster.Emit(ctx, api.Event{
		Object: api.Reference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: r.Claim, UID: r.UID},
		Key:    m.Reason, Reason: m.Reason, Action: "Lifecycle", Note: m.Message, Warning: slices.Contains(warnings, m.Reason),
		Time: now, Controller: "kerf.sh/lifecycle", Instance: h.Instance,
	})
	if err != nil {
		h.told.forget(key)
		rep.Problems = append(rep.Problems, fmt.Sprintf("write an Event: %v", err))
		return false
	}
	return true
}

// once keeps what was read, for the rest of a run.
func once[T any](read func(ctx context.Context) (T, error)) func(ctx context.Context) (T, error) {
	var got T
	var err error
	done := make(chan struct{}, 1)
	done <- struct{}{}
	asked := false
	return func(ctx context.Context) (T, error) {
		<-done
		defer func() { done <- struct{}{} }()
		if !asked {
			got, err = read(ctx)
			asked = true
		}
		return got, err
	}
}

// age is how long ago something was, at least 0.
func age(t, now time.Time) time.Duration { return max(0, now.Sub(t)) }
