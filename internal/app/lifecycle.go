package app

import (
	"bytes"
	"context"
	"encoding/json"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/telemetry/report"
)

// LifecycleFunction builds the function lifecycle from its environment. It takes batches of
// work, one piece of work ({"kind": "register"}), and {}, which is the same as that.
func LifecycleFunction(ctx context.Context, environ []string) (Function, error) {
	b, err := newBase(ctx, "lifecycle", environ, stdout())
	if err != nil {
		return nil, err
	}
	if err := b.queues(); err != nil {
		return nil, err
	}
	f := &lifecycleFunction{acting: newActing(b)}
	return b.invocation(f.invoke), nil
}

type lifecycleFunction struct{ *acting }

func (f *lifecycleFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	event, isBatch := queue.Decode(payload)
	work := lifecycle.Work{Kind: lifecycle.WorkRegister}
	if text := bytes.TrimSpace(payload); !isBatch && len(text) > 0 && string(text) != "{}" {
		var err error
		if work, err = lifecycle.DecodeWork(string(text)); err != nil {
			return nil, err
		}
	}
	h, err := f.lifecycle(ctx)
	if err != nil {
		return nil, err
	}
	var last handler.LifecycleReport
	h.Told = func(_ context.Context, r handler.LifecycleReport) {
		last = r
		lifecycleSummary(rep, &r)
	}
	if isBatch {
		return f.batch(ctx, event, f.work(), rep, func(ctx context.Context, m lifecycle.Message) error {
			w, err := lifecycle.DecodeWork(m.Body)
			if err != nil {
				return err
			}
			return h.Handle(ctx, w)
		}), nil
	}
	ctx, done := answering(ctx)
	defer done()
	err = h.Handle(ctx, work)
	return last, err
}

// lifecycleSummary puts what a run did into the summary of its invocation.
func lifecycleSummary(rep *report.Report, r *handler.LifecycleReport) {
	rep.Set(report.InFlight, float64(r.InFlight))
	rep.Set(report.BlockedDrains, float64(r.Blocked))
	rep.Add(report.Left, float64(r.Left))
	rep.Add(report.Failures, float64(len(r.Problems)))
	for _, p := range []report.Property{
		{Key: "moved", Value: r.Moved}, {Key: "attempts", Value: r.Attempts}, {Key: "incomplete", Value: r.Incomplete}, {Key: "problems", Value: r.Problems},
		{Key: "refused", Value: r.Refused},
	} {
		rep.Say(p.Key, p.Value)
	}
}
