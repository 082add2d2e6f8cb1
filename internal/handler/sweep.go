package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// settleQuiet and settleMost: a pass plans when no pod came for the one, or the oldest
	// waits for the other (Karpenter: batch idle and maximum duration, 1 s and 10 s).
	settleQuiet = 2 * time.Second
	settleMost  = 10 * time.Second
	// maxPasses is how often a sweep plans before it lets go of the lease: anew after a lack
	// of capacity, or because somebody asked meanwhile.
	maxPasses = 5
)

// Sweep launches nodes for pods that wait.
type Sweep struct {
	Memory   Memory
	Cluster  Cluster
	Executor *execute.Executor
	Ticks    execute.Sender
	Facts    *FactsCache
	// Resolve asks the function catalog for classes that have changed; it returns at once.
	Resolve func(ctx context.Context, classes []string) error
	// Housekeeping is done on minute ticks, and says whether there are nodes that go; Recover
	// while the table is in recovery mode.
	Housekeeping func(ctx context.Context) (going bool, err error)
	Recover      func(ctx context.Context) error
	// Journal keeps what a pass that changes something was decided on; nil = nobody does.
	Journal func(ctx context.Context, s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan) (where string, err error)

	ClusterName, Region string
	// Quiet and Most are for how long no pod came, and for how long the oldest one waits, when
	// pods are planned; 0 = 2 s and 10 s.
	Quiet, Most time.Duration
	// Interval is that of ticks. Instance tells this function apart in Events.
	Interval time.Duration
	Instance string
	Now      func() time.Time
	Wait     Waiter
	Log      *slog.Logger

	told told
	// going: housekeeping of the minute before found nodes that go.
	going bool
}

// SweepReport is what one sweep did: its summary line, its answer and its metrics.
type SweepReport struct {
	// Outcome is one word: Idle, Launched, NotLaunched, Placed, Nothing, Hopeless, Busy, Late, Done,
	// Refused, Recovering, Incomplete, Failed.
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
	PlanID  string `json:"planId,omitempty"`
	Passes  int    `json:"passes,omitempty"`
	// Pending pods at the start, and since when the oldest waits.
	Pending int           `json:"pending"`
	Oldest  time.Duration `json:"oldest,omitempty"`
	// Placed pods have a place on nodes that are there or coming, Unschedulable ones none.
	Placed        int `json:"placed,omitempty"`
	Unschedulable int `json:"unschedulable,omitempty"`
	// Launched instances, requests that were made, launches that failed, and those that were
	// left because time ran out.
	Launched int              `json:"launched,omitempty"`
	Calls    int              `json:"calls,omitempty"`
	Failed   []execute.Failed `json:"failed,omitempty"`
	Left     int              `json:"left,omitempty"`
	// shortages counts those that were met.
	shortages int
	// LaunchPrice is what the launched nodes cost, in micro-dollars per hour.
	LaunchPrice snapshot.Price `json:"launchPricePerHour,omitempty"`
	InFlight    int            `json:"inFlight,omitempty"`
	// Stale are classes that were not resolved at their present generation.
	Stale    []string `json:"stale,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func (r *SweepReport) warn(err error) {
	if err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

// Handle answers a tick. An error brings the tick back; what a later tick does just as well
// is no error.
func (h *Sweep) Handle(ctx context.Context, t lifecycle.Tick) (*SweepReport, error) {
	now := h.Now()
	if t.Old(now, h.Interval) {
		return &SweepReport{Outcome: "Late", Detail: fmt.Sprintf("tick of %s", t.Sent.UTC().Format(time.RFC3339))}, nil
	}
	rest, err := t.Rest(now, h.Interval)
	if err == nil && len(rest) > 0 {
		err = h.Ticks.Send(ctx, rest...)
	}
	// A minute without its other ticks is slow, one without its own is worse.
	rep, serr := h.sweep(ctx, t.Slot, t.Kind)
	rep.warn(err)
	if serr != nil {
		return rep, serr
	}
	if t.Kind != lifecycle.TickMinute || h.Housekeeping == nil || rep.Outcome == "Refused" || rep.Outcome == "Recovering" {
		return rep, nil
	}
	going, err := h.Housekeeping(ctx)
	rep.warn(err)
	h.going = going || h.going && err != nil // what could not be read is as it was
	if !h.going || rep.Outcome != "Idle" {
		return rep, nil
	}
	// Pods of nodes that go need others before they are pending.
	more, err := h.sweep(ctx, t.Slot, lifecycle.TickUrgent)
	more.Warnings = append(rep.Warnings, more.Warnings...)
	return more, err
}

// Sweep sweeps now, whatever the ticks do: somebody asks.
func (h *Sweep) Sweep(ctx context.Context) (*SweepReport, error) {
	return h.sweep(ctx, 0, lifecycle.TickUrgent)
}

// sweep looks for pods that wait and launches for them. An urgent tick plans in any case, a
// minute's where something needs nodes though no pod waits.
func (h *Sweep) sweep(ctx context.Context, slot int64, kind lifecycle.TickKind) (*SweepReport, error) {
	rep := &SweepReport{Outcome: "Idle"}
	pods, err := h.settled(ctx)
	if err != nil {
		rep.Outcome, rep.Detail = "Failed", err.Error()
		return rep, fmt.Errorf("look for pending pods: %w", err)
	}
	h.count(rep, pods)
	whole := kind == lifecycle.TickUrgent
	if len(pods) == 0 && kind == lifecycle.TickMinute {
		if whole, err = h.unasked(ctx); err != nil {
			rep.Outcome, rep.Detail = "Failed", err.Error()
			return rep, err
		}
	}
	if len(pods) == 0 && !whole {
		return rep, nil
	}
	hopeless, err := h.readHopeless(ctx)
	if err != nil {
		return rep, err
	}
	if !whole && hopeless.skip(pods, h.Now()) {
		world, err := h.world(ctx)
		if err != nil {
			rep.warn(err)
		} else if hopeless.World == world {
			rep.Outcome, rep.Detail = "Hopeless", fmt.Sprintf("nothing has changed since the last pass placed nothing; again at %s", hopeless.Until.UTC().Format(time.TimeOnly))
			return rep, nil
		}
	}
	lease, err := h.lease(ctx, rep)
	if err != nil || rep.Outcome != "Idle" {
		return rep, err
	}
	if slot != 0 && lease.Slot >= slot {
		rep.Outcome = "Done"
		return rep, h.letGo(ctx, lease, lease.Slot, false)
	}
	for {
		rep.Passes++
		again, err := h.pass(ctx, &lease, hopeless, rep)
		if err != nil {
			// Whoever holds the lease now goes on; otherwise it is free for the next tick.
			rep.warn(h.letGo(ctx, lease, lease.Slot, false))
			if errors.Is(err, lifecycle.ErrLostLease) || errors.Is(err, lifecycle.ErrRecovery) {
				rep.Outcome, rep.Detail = "Busy", err.Error()
				return rep, nil
			}
			rep.Outcome, rep.Detail = "Failed", err.Error()
			return rep, err
		}
		if again && rep.Passes < maxPasses && enough(ctx, h.Now()) {
			continue
		}
		asked, err := h.Memory.Release(ctx, lease, slot)
		if err != nil || !asked {
			return rep, ignoreLost(err)
		}
		if rep.Passes >= maxPasses || !enough(ctx, h.Now()) {
			return rep, h.letGo(ctx, lease, slot, true)
		}
	}
}

// letGo releases the lease although others ask for another round. In a storm somebody does
// all the time, and a lease that is kept by nobody would keep everybody from planning. Who
// asked, now or before, gets a sweep of its own.
func (h *Sweep) letGo(ctx context.Context, lease lifecycle.Lease, slot int64, asked bool) error {
	const tries = 10
	kept := fmt.Errorf("the lease is kept until %s: somebody asked for another round at each of %d tries to let it go", lease.Expires.UTC().Format(time.TimeOnly), tries)
	for range tries {
		again, err := h.Memory.Release(ctx, lease, slot)
		if err != nil || !again {
			kept = ignoreLost(err)
			break
		}
		asked = true
	}
	if asked && h.Ticks != nil {
		return errors.Join(kept, h.goOn(ctx))
	}
	return kept
}

// goOn asks for another sweep, at once.
func (h *Sweep) goOn(ctx context.Context) error {
	body, err := lifecycle.Tick{Kind: lifecycle.TickUrgent, Sent: h.Now()}.Encode()
	if err != nil {
		return err
	}
	return h.Ticks.Send(ctx, lifecycle.Outgoing{Body: body})
}

// enough reports whether there is time for another pass.
func enough(ctx context.Context, now time.Time) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || end.Sub(now) > execute.Reserve)
}

func ignoreLost(err error) error {
	if errors.Is(err, lifecycle.ErrLostLease) || errors.Is(err, lifecycle.ErrRecovery) {
		return nil
	}
	return err
}

// settled are the pods that wait, once no more of them are coming.
func (h *Sweep) settled(ctx context.Context) ([]snapshot.Pod, error) {
	for {
		all, err := h.Cluster.PendingPods(ctx)
		if err != nil {
			return nil, err
		}
		pods := all[:0]
		var newest, oldest time.Time
		for _, p := range all {
			if code, _ := scheduling.NotPlanned(&p); code != "" || p.NodeName != "" {
				continue
			}
			pods = append(pods, p)
			if newest.IsZero() || p.Created.After(newest) {
				newest = p.Created
			}
			if oldest.IsZero() || p.Created.Before(oldest) {
				oldest = p.Created
			}
		}
		now := h.Now()
		quiet, most := cmp.Or(h.Quiet, settleQuiet)-now.Sub(newest), cmp.Or(h.Most, settleMost)
		if len(pods) == 0 || newest.IsZero() || quiet <= 0 || now.Sub(oldest) >= most {
			return pods, nil
		}
		if err := h.Wait(ctx, min(quiet, most-now.Sub(oldest))); err != nil {
			return nil, err
		}
	}
}

// unasked reports whether something needs nodes that no pending pod asks for: pods of nodes
// that go, of which housekeeping tells, a static NodePool, a CapacityBuffer.
func (h *Sweep) unasked(ctx context.Context) (bool, error) {
	if h.going {
		return true, nil
	}
	s, err := h.Cluster.Some(ctx, "NodePool", "CapacityBuffer")
	if err != nil {
		return false, fmt.Errorf("look for what needs nodes without pods: %w", err)
	}
	return len(s.Buffers) > 0 || slices.ContainsFunc(s.NodePools, func(p snapshot.NodePool) bool { return p.Replicas != nil }), nil
}

func (h *Sweep) count(rep *SweepReport, pods []snapshot.Pod) {
	rep.Pending = len(pods)
	now := h.Now()
	for i := range pods {
		rep.Oldest = max(rep.Oldest, now.Sub(pods[i].Created))
	}
}

// lease takes the right to plan. Where somebody else has it, that one is asked for another
// round; rep says what came instead of a lease.
func (h *Sweep) lease(ctx context.Context, rep *SweepReport) (lifecycle.Lease, error) {
	for try := 0; ; try++ {
		lease, err := h.Memory.Acquire(ctx, execute.LeaseTime)
		var busy *lifecycle.BusyError
		switch {
		case errors.As(err, &busy):
			held, err := h.Memory.SetRerun(ctx)
			if err != nil {
				return lease, err
			}
			if held || try == 3 {
				rep.Outcome, rep.Detail = "Busy", busy.Error()
				return lease, nil
			}
		case errors.Is(err, lifecycle.ErrRecovery) && h.Recover != nil && try == 0:
			if err := h.Recover(ctx); err != nil {
				rep.Outcome, rep.Detail = "Recovering", err.Error()
				return lease, nil
			}
		case errors.Is(err, lifecycle.ErrRecovery):
			rep.Outcome, rep.Detail = "Recovering", err.Error()
			return lease, nil
		default:
			return lease, err
		}
	}
}
