package handler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
)

// Notifier tells others of decisions. *notice.Bus is one.
type Notifier interface {
	Notify(ctx context.Context, notices []lifecycle.Notice) error
}

// note keeps what a command has come to for those who are told: when it begins, goes on to
// remove its nodes, is over, or is taken back. Proposals are no decisions yet.
func (x *consolidating) note(c lifecycle.Command) {
	if x.h.Notices == nil || c.Phase == lifecycle.Proposed || c.Phase == lifecycle.RolledBack && c.Why == "" {
		return
	}
	x.notices = append(x.notices, lifecycle.Notice{
		At: x.now(), Cluster: x.h.Sweep.ClusterName, Command: c.ID, Phase: c.Phase, Reason: c.Reason, Pools: c.Pools, Nodes: c.Nodes,
		Detail: c.Detail, Why: c.Why, Saving: c.Saving,
	})
}

// noteHeld keeps which moves wait for a person. They are told once an hour.
func (x *consolidating) noteHeld(moves []plan.Move) {
	if x.h.Notices == nil {
		return
	}
	for i := range moves {
		m := &moves[i]
		if m.Held == "" || disruption.Elsewhere(m.Reason) || !x.h.Sweep.told.fresh("held\x00"+m.ID, x.now()) {
			continue
		}
		x.notices = append(x.notices, lifecycle.Notice{
			At: x.now(), Cluster: x.h.Sweep.ClusterName, Command: commandID(m), Phase: lifecycle.Held, Reason: string(m.Reason), Nodes: m.Remove,
			Detail: m.Detail, Why: m.Held + ": confirm it, or see why so many nodes would go", Saving: m.Saving,
		})
	}
}

// tellFor is how long it may take to tell others: a bus that cannot be reached costs no more.
const tellFor = 3 * time.Second

// notify tells others what was decided. That nobody could be told stops nothing.
func (x *consolidating) notify(ctx context.Context) {
	if len(x.notices) == 0 {
		return
	}
	for i := range x.notices {
		x.notices[i].Price = x.rep.Savings.Now
	}
	ctx, cancel := context.WithTimeout(ctx, tellFor)
	defer cancel()
	x.rep.warn(x.h.Notices.Notify(ctx, x.notices))
	x.notices = nil
}

// mostNodeEvents is how many Events about nodes one pass writes.
const mostNodeEvents = 50

// Reasons of Events about nodes (Karpenter: same).
const (
	disruptionBlocked     = "DisruptionBlocked"
	unconsolidatable      = "Unconsolidatable"
	disruptionTerminating = "DisruptionTerminating"
	repairBlocked         = "NodeRepairBlocked"
)

// toldAs is the Event that a verdict about a node makes, "" for what passes by itself.
func toldAs(code plan.Code) string {
	switch code {
	case plan.NodeRepairBlocked:
		return repairBlocked
	case plan.NodeDoNotDisrupt, plan.PodDoNotDisrupt, plan.EvictionBlocked, plan.NodePoolGone, plan.NodeNominated, plan.BudgetExhausted, plan.PodsWouldNotFit:
		return disruptionBlocked
	case plan.NothingCheaper, plan.SavingTooSmall, plan.ScoreTooLow, plan.PriceUnknown, plan.CoolingDown:
		return unconsolidatable
	}
	return ""
}

// tellNodes writes Events at nodes that stay, and why. The same is written once an hour.
func (x *consolidating) tellNodes(ctx context.Context, verdicts []plan.Verdict) {
	var events []api.Event
	for i := range verdicts {
		v := &verdicts[i]
		reason := toldAs(v.Code)
		name, ok := strings.CutPrefix(v.Object, "node/")
		if reason == "" || !ok {
			continue
		}
		events = append(events, api.Event{
			Object: api.Reference{APIVersion: "v1", Kind: "Node", Name: name, UID: x.uidOf(name)},
			Reason: reason, Action: "Consolidate", Key: reason + "/" + string(v.Code), Note: string(v.Code) + ": " + v.Detail, Warning: reason == repairBlocked,
		})
	}
	x.emit(ctx, events)
}

// tellGoing writes Events at nodes and NodeClaims that go.
func (x *consolidating) tellGoing(ctx context.Context, c lifecycle.Command, detail string) {
	var events []api.Event
	for i, node := range c.Nodes {
		note := fmt.Sprintf("Disrupting: %s: %s", c.Reason, detail)
		key := disruptionTerminating + "/" + c.ID
		if uid := x.uidOf(node); uid != "" {
			events = append(events, api.Event{Object: api.Reference{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}, Reason: disruptionTerminating, Action: "Consolidate", Key: key, Note: note})
		}
		if claim := c.Candidates[i]; claim != "" {
			events = append(events, api.Event{Object: api.Reference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim, UID: x.claimUID(claim)}, Reason: disruptionTerminating, Action: "Consolidate", Key: key, Note: note})
		}
	}
	x.emit(ctx, events)
}

func (x *consolidating) claimUID(name string) string {
	i := slices.IndexFunc(x.w.known.Records, func(r lifecycle.Record) bool { return r.Claim == name })
	if i < 0 {
		return ""
	}
	return x.w.known.Records[i].UID
}

// emit writes what is new of Events, as many as a pass may.
func (x *consolidating) emit(ctx context.Context, events []api.Event) {
	s := x.h.Sweep
	for _, e := range events {
		if x.events == mostNodeEvents || !enough(ctx, x.now()) {
			return
		}
		key := strings.Join([]string{e.Object.Kind, e.Object.Name, e.Object.UID, e.Key}, "\x00")
		if !s.told.fresh(key, x.now()) {
			continue
		}
		x.events++
		e.Time, e.Controller, e.Instance = x.now(), "kerf.sh/consolidation", s.Instance
		if _, err := s.Cluster.Emit(ctx, e); err != nil {
			s.told.forget(key)
			x.rep.warn(fmt.Errorf("write an Event: %w", err))
			return
		}
	}
}
