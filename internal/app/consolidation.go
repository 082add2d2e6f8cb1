package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/notice"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/telemetry/report"
)

// ConsolidationFunction builds the function consolidation from its environment. Whatever its
// schedule sends is one pass; {"dryRun": true} answers with what one would do, as JSON, and
// {"confirm": {"nodePool": "general", "reason": "Drifted"}} lets a mass removal go first.
func ConsolidationFunction(ctx context.Context, environ []string) (Function, error) {
	b, err := newBase(ctx, "consolidation", environ, stdout())
	if err != nil {
		return nil, err
	}
	if err := b.queues(); err != nil {
		return nil, err
	}
	f := &consolidationFunction{acting: newActing(b)}
	return b.invocation(f.invoke), nil
}

type consolidationFunction struct {
	*acting
	// sweep reads and launches; what it remembers of Events lives as long as the process, and
	// so does what pass remembers of the one before.
	sweep handler.Sweep
	pass  handler.Consolidation
}

func (f *consolidationFunction) invoke(ctx context.Context, payload json.RawMessage, rep *report.Report) (any, error) {
	var r struct {
		sweepRequest
		// Confirm lets a mass removal go that passes hold.
		Confirm *struct {
			NodePool string          `json:"nodePool"`
			Reason   plan.MoveReason `json:"reason"`
		} `json:"confirm"`
	}
	if len(bytes.TrimSpace(payload)) > 0 {
		// A schedule sends an event of its own shape: only our own field is looked for.
		if err := json.Unmarshal(payload, &r); err != nil {
			return nil, fmt.Errorf(`read the payload: %w; {} does a pass, {"dryRun": true} says what it would do`, err)
		}
	}
	look, err := f.lifecycle(ctx)
	if err != nil {
		return nil, err
	}
	s := &f.sweep
	s.Memory, s.Cluster, s.Executor, s.Ticks = look.Memory, look.Cluster, look.Executor, sender(f.ticks)
	s.Facts, s.ClusterName, s.Region, s.Interval, s.Instance = &f.facts, f.conf.Cluster, f.region, f.conf.Functions.SweepInterval, f.name
	s.Now, s.Wait, s.Log = f.now, pause, f.tel.Log
	h := &f.pass
	h.Sweep, h.Kick, h.MassShare, h.DryRun = s, look.Kick, int(f.conf.Functions.MassRemovalPercent), f.conf.Functions.ConsolidationDryRun || r.DryRun
	if name := f.conf.Functions.NoticeBus; name != "" {
		h.Notices = &notice.Bus{Client: eventbridge.NewFromConfig(f.aws), Name: name}
	}
	if r.Confirm != nil {
		if err := h.Confirm(ctx, r.Confirm.NodePool, r.Confirm.Reason); err != nil {
			return nil, err
		}
	}
	begun := f.now()
	got, err := h.Handle(ctx)
	if got == nil {
		return nil, err
	}
	rep.Say("passSeconds", f.now().Sub(begun).Seconds())
	tellConsolidation(rep, got)
	for key, v := range map[string]any{
		"outcome": got.Outcome, "detail": got.Detail, "planId": got.PlanID, "nodes": got.Nodes, "moves": got.Moves, "proposed": got.Proposed, "begun": got.Begun,
		"removed": got.Removed, "rolledBack": got.Back, "held": got.Held, "massRemovals": got.Mass, "open": got.Open, "warnings": got.Warnings,
	} {
		rep.Say(key, v)
	}
	if err != nil || got.Plan == nil {
		return got, err
	}
	out, err := plan.JSON(got.Plan, false)
	return json.RawMessage(bytes.TrimSpace(out)), err
}

// tellConsolidation gives a pass's figures their names.
func tellConsolidation(rep *report.Report, got *handler.ConsolidationReport) {
	rep.Add(report.NodesRemoved, float64(got.Removed))
	rep.Add(report.MovesRolledBack, float64(len(got.Back)))
	rep.Add(report.MovesHeld, float64(got.Held))
	rep.Add(report.Left, float64(got.Savings.Left))
	if got.Nodes == 0 {
		return // it has not come so far as to look
	}
	rep.Set(report.PricePerHour, float64(got.Savings.Now)/1e6)
	rep.Set(report.PriceReachable, float64(got.Savings.After)/1e6)
	rep.Set(report.PriceFloor, float64(got.Savings.Floor)/1e6)
}
