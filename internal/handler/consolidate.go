package handler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
)

const (
	// proposedFor is how old a proposal is at least when it is carried out: the next pass has
	// to find it again (Karpenter: validation after 15 s).
	proposedFor = 15 * time.Second
	// taintedFor is how long nodes carry the taint before their pods are looked at again: a
	// pod that was on its way is there by then.
	taintedFor = 5 * time.Second
	// replaceFor is how long replacements may take until they are initialized.
	replaceFor = 20 * time.Minute
)

// Consolidation makes the cluster cheaper: a pass proposes what could go, the next one
// carries out what still holds, step by step, and takes back what does not.
type Consolidation struct {
	// Sweep reads and launches.
	Sweep *Sweep
	// Kick has the lifecycle function look at once.
	Kick func(ctx context.Context) error
	// MassShare is the share of a pool, in percent, above which removals for a reason that is
	// new to the pool wait for a person; 0 = never.
	MassShare int
	// DryRun: nothing is changed, what would be is reported.
	DryRun bool
	// Notices are told of what is decided; nil = nobody is.
	Notices Notifier
	// Work bounds the search of one pass (disruption.Options.Work); 0 = enough for 5,000 nodes.
	Work int64

	// empty: the last pass of this process found no node, and none on its way.
	empty bool
}

// ConsolidationReport is what one pass did.
type ConsolidationReport struct {
	Outcome string `json:"outcome"` // Idle, Proposed, Moving, Busy, Refused, Incomplete, Failed, DryRun
	Detail  string `json:"detail,omitempty"`
	PlanID  string `json:"planId,omitempty"`
	// Nodes were looked at, Moves found, by reason.
	Nodes    int                     `json:"nodes"`
	Moves    map[plan.MoveReason]int `json:"moves,omitempty"`
	Proposed int                     `json:"proposed,omitempty"`
	Begun    int                     `json:"begun,omitempty"`
	Removed  int                     `json:"removed,omitempty"`
	Back     []string                `json:"rolledBack,omitempty"`
	Held     int                     `json:"held,omitempty"`
	// Mass says which removals wait for a person: pool, reason, how many.
	Mass     []string     `json:"massRemovals,omitempty"`
	Open     int          `json:"open,omitempty"` // commands under way
	Savings  plan.Savings `json:"savings"`
	Warnings []string     `json:"warnings,omitempty"`
	// Plan is what a dry run found.
	Plan *plan.Plan `json:"-"`
}

func (r *ConsolidationReport) warn(err error) {
	if err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

// Handle does one pass.
func (h *Consolidation) Handle(ctx context.Context) (*ConsolidationReport, error) {
	rep := &ConsolidationReport{Outcome: "Idle", Moves: map[plan.MoveReason]int{}}
	// While Karpenter runs a pass says so, nodes or not.
	if h.nothing(ctx) && Guard(ctx, h.Sweep.Cluster, h.Sweep.Now()) == nil {
		return rep, nil
	}
	h.empty = false
	lease, err := h.Sweep.Memory.Acquire(ctx, execute.LeaseTime)
	var busy *lifecycle.BusyError
	switch {
	case errors.As(err, &busy), errors.Is(err, lifecycle.ErrRecovery):
		rep.Outcome, rep.Detail = "Busy", err.Error()
		return rep, nil
	case err != nil:
		return rep, err
	}
	err = h.pass(ctx, &lease, rep)
	rep.warn(h.Sweep.letGo(ctx, lease, lease.Slot, false))
	if ignoreLost(err) == nil && err != nil {
		rep.Outcome, rep.Detail = "Busy", err.Error()
		return rep, nil
	}
	if err != nil {
		rep.Outcome, rep.Detail = "Failed", err.Error()
	}
	return rep, err
}

// pass goes one step on with what is under way, and proposes more.
func (h *Consolidation) pass(ctx context.Context, lease *lifecycle.Lease, rep *ConsolidationReport) error {
	if err := Guard(ctx, h.Sweep.Cluster, h.Sweep.Now()); err != nil {
		var karpenter *KarpenterError
		if errors.As(err, &karpenter) {
			rep.Outcome, rep.Detail = "Refused", err.Error()
			return nil
		}
		return err
	}
	sweep := &SweepReport{}
	w, err := h.Sweep.read(ctx, sweep)
	rep.Warnings = append(rep.Warnings, sweep.Warnings...)
	if err != nil {
		return err
	}
	if len(w.snap.Incomplete) > 0 {
		rep.Outcome, rep.Detail = "Incomplete", "nothing goes on an incomplete reading: "+strings.Join(w.snap.Incomplete, "; ")
		return nil
	}
	if !h.DryRun {
		rep.warn(h.Sweep.deleted(ctx, w))
	}
	commands, err := h.Sweep.Memory.Commands(ctx)
	if err != nil {
		return err
	}
	x := &consolidating{h: h, w: w, lease: lease, rep: rep, commands: commands}
	defer x.notify(ctx) // what was decided was, however the pass ends
	if err := x.rests(ctx); err != nil {
		return err
	}
	x.look(ctx)
	if !h.DryRun {
		x.strays(ctx)
		for _, c := range commands {
			if c.Over() || c.Phase == lifecycle.Proposed {
				continue
			}
			if err := x.step(ctx, c); err != nil {
				return err
			}
		}
		x.rest() // what was launched or chosen just now
	}
	base := provision.Plan(w.snap, w.facts.Catalog, provision.Options{})
	o := x.options(base)
	cursor, err := x.cursor(ctx)
	if err != nil {
		return err
	}
	o.From, o.Orphans = cursor.at, x.orphans(ctx)
	found := disruption.Propose(w.snap, w.facts.Catalog, o)
	rep.PlanID, rep.Nodes, rep.Savings = base.ID, found.Savings.Considered, found.Savings
	for i := range found.Moves {
		rep.Moves[found.Moves[i].Reason]++
	}
	x.looked()
	if h.DryRun {
		base.Moves, base.Savings = found.Moves, &found.Savings
		base.Verdicts = append(base.Verdicts, found.Verdicts...)
		rep.Outcome, rep.Plan = "DryRun", base
		return nil
	}
	if err := x.hold(ctx, found.Moves); err != nil {
		return err
	}
	if err := x.propose(ctx, base, found.Moves); err != nil {
		return err
	}
	rep.warn(x.goOn(ctx, cursor, found.Next))
	x.mark(ctx, found)
	x.tellClaims(ctx, found.States)
	x.tellNodes(ctx, found.Verdicts)
	x.noteHeld(found.Moves)
	x.outcome()
	return nil
}

// consolidating is one pass under way.
type consolidating struct {
	h        *Consolidation
	w        *reading
	lease    *lifecycle.Lease
	rep      *ConsolidationReport
	commands []lifecycle.Command
	moved    []lifecycle.WorkloadMove
	// What is known about instances and classes, beside the reading.
	instances map[string]disruption.Instance
	selected  map[string]disruption.Selected
	doomed    map[string]string
	kick      bool
	// notices are to be told at the end, events were written already.
	notices []lifecycle.Notice
	events  int
}

func (x *consolidating) now() time.Time { return x.h.Sweep.Now() }

func (x *consolidating) options(base *plan.Plan) disruption.Options {
	set := &x.w.snap.Settings
	return disruption.Options{
		Base: base, MinSaving: set.MinSaving, MinSavingShare: set.MinSavingPercent * 10_000, CostPerNode: set.CostPerNode,
		Work: x.h.Work, Offered: !x.w.facts.Prices.Types.IsZero(), Instances: x.instances, Selected: x.selected, Doomed: x.doomed,
	}
}

func (x *consolidating) outcome() {
	switch {
	case x.rep.Begun+x.rep.Removed > 0:
		x.rep.Outcome = "Moving"
	case x.rep.Proposed > 0 || x.rep.Open > 0:
		x.rep.Outcome = "Proposed"
	}
}

// rests reads what was moved lately, and says which nodes are left in peace.
func (x *consolidating) rests(ctx context.Context) (err error) {
	x.moved, err = x.h.Sweep.Memory.MovesSince(ctx, x.now().Add(-lifecycle.RestUnchanged))
	x.rest()
	return err
}

// rest says which nodes are left in peace, by what was just launched or chosen.
func (x *consolidating) rest() {
	x.w.snap.Rests = lifecycle.Rests(x.w.snap, x.commands, x.moved, x.w.known.Records)
}

// commandID names a move: the same nodes for the same reason are the same command.
func commandID(m *plan.Move) string {
	sum := sha256.Sum256([]byte(m.ID))
	return strings.ToLower(string(m.Reason)) + "-" + hex.EncodeToString(sum[:8])
}

// propose writes new proposals down, begins with those that were found again, and forgets
// those that were not.
func (x *consolidating) propose(ctx context.Context, base *plan.Plan, moves []plan.Move) error {
	byID := map[string]*lifecycle.Command{}
	for i := range x.commands {
		byID[x.commands[i].ID] = &x.commands[i]
	}
	found := map[string]bool{}
	for i := range moves {
		m := &moves[i]
		if disruption.Elsewhere(m.Reason) {
			continue
		}
		if m.Held != "" {
			x.rep.Held++
			continue
		}
		id := commandID(m)
		found[id] = true
		c := byID[id]
		switch {
		case !enough(ctx, x.now()):
			return nil
		case disruption.Forceful(m.Reason):
			if err := x.force(ctx, x.command(id, base.ID, m, c), m, c); err != nil {
				return err
			}
		case c == nil || c.Over():
			if err := x.save(ctx, x.command(id, base.ID, m, c)); err != nil {
				return err
			}
			x.rep.Proposed++
		case c.Phase == lifecycle.Proposed && x.now().Sub(c.Created) >= proposedFor:
			if err := x.begin(ctx, *c, m); err != nil {
				return err
			}
		}
	}
	for _, c := range x.commands {
		if c.Phase == lifecycle.Proposed && !found[c.ID] {
			c.Phase, c.Why = lifecycle.RolledBack, ""
			if err := x.save(ctx, c); err != nil {
				return err
			}
		}
	}
	if x.kick && x.h.Kick != nil {
		x.rep.warn(x.h.Kick(ctx))
	}
	return nil
}

// command is a proposal for a move. Over an old one of the same nodes it starts anew.
func (x *consolidating) command(id, planID string, m *plan.Move, old *lifecycle.Command) lifecycle.Command {
	c := lifecycle.Command{
		ID: id, Reason: string(m.Reason), Detail: m.Detail, Phase: lifecycle.Proposed, PlanID: planID, Saving: m.Saving, Nodes: slices.Clone(m.Remove),
		Adds: len(m.Add) > 0, Created: x.now(), NextAt: x.now().Add(proposedFor),
	}
	if old != nil {
		c.Version = old.Version
		if old.Phase == lifecycle.RolledBack && x.now().Sub(old.Changed) < 2*lifecycle.RestAtMost {
			c.Failed = old.Failed
		}
	}
	claims := x.claims()
	for _, n := range m.Remove {
		c.Candidates = append(c.Candidates, claims[n])
	}
	for i := range x.w.snap.NodeClaims {
		n := &x.w.snap.NodeClaims[i]
		if p := n.Labels[catalog.LabelNodePool]; slices.Contains(c.Candidates, n.Name) && !slices.Contains(c.Pools, p) {
			c.Pools = append(c.Pools, p)
		}
	}
	slices.Sort(c.Pools)
	added := map[string]bool{}
	for _, l := range m.Add {
		added[l.Name] = true
	}
	for _, p := range m.Placements {
		if !added[p.Node] && !slices.Contains(c.Targets, p.Node) {
			c.Targets = append(c.Targets, p.Node)
		}
	}
	slices.Sort(c.Targets)
	return c
}

// claims are the NodeClaims of nodes, by node, and by their own name where there is none yet.
func (x *consolidating) claims() map[string]string {
	out := map[string]string{}
	for _, r := range x.w.known.Records {
		out[r.Claim] = r.Claim
		if r.Node != "" {
			out[r.Node] = r.Claim
		}
	}
	return out
}

func (x *consolidating) save(ctx context.Context, c lifecycle.Command) error {
	c.Changed = x.now()
	saved, err := x.h.Sweep.Memory.SaveCommand(ctx, *x.lease, c)
	if errors.Is(err, lifecycle.ErrChanged) {
		return nil // another pass has gone on with it
	}
	if err != nil {
		return err
	}
	i, there := slices.BinarySearchFunc(x.commands, c.ID, func(o lifecycle.Command, id string) int { return cmp.Compare(o.ID, id) })
	if there {
		x.commands[i] = saved
	} else {
		x.commands = slices.Insert(x.commands, i, saved)
	}
	x.note(saved)
	return nil
}
