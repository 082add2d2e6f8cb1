package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// begin taints the nodes of a proposal that was found again: no new pod comes from now on.
// The command is written down first: whoever finds it knows what the taints are for.
func (x *consolidating) begin(ctx context.Context, c lifecycle.Command, m *plan.Move) error {
	if slices.Contains(c.Candidates, "") {
		return x.back(ctx, c, "a node of it has no record")
	}
	c.Phase, c.Saving, c.Adds, c.NextAt = lifecycle.Tainted, m.Saving, len(m.Add) > 0, x.now().Add(taintedFor)
	if err := x.save(ctx, c); err != nil {
		return err
	}
	x.rep.Begun++
	for i, name := range c.Nodes {
		if err := x.taint(ctx, c, i, true); err != nil {
			return x.back(ctx, x.latest(c), fmt.Sprintf("node %s could not be tainted: %v", name, err))
		}
	}
	return nil
}

// latest is a command as it was written last.
func (x *consolidating) latest(c lifecycle.Command) lifecycle.Command {
	for _, o := range x.commands {
		if o.ID == c.ID {
			return o
		}
	}
	return c
}

// taint puts the taint on a candidate, or takes it off.
func (x *consolidating) taint(ctx context.Context, c lifecycle.Command, i int, on bool) error {
	uid := x.uidOf(c.Nodes[i])
	if uid == "" {
		return fmt.Errorf("node %s: %w", c.Nodes[i], api.ErrNotFound)
	}
	change := api.NodeChange{Taints: []snapshot.Taint{snapshot.Disrupted}}
	if !on {
		change = api.NodeChange{DropTaints: []snapshot.Taint{snapshot.Disrupted}}
	}
	_, err := x.h.Sweep.Cluster.ChangeNode(ctx, c.Nodes[i], uid, change)
	return err
}

// back takes a command back: the nodes stay and take pods again. Replacements stay too, and
// go as empty nodes when nobody needs them.
func (x *consolidating) back(ctx context.Context, c lifecycle.Command, why string) error {
	var errs []error
	for i := range c.Nodes {
		if err := x.taint(ctx, c, i, false); err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrConflict) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		x.rep.warn(errors.Join(errs...))
		return nil // the next pass takes it back
	}
	c.Phase, c.Why = lifecycle.RolledBack, why
	x.rep.Back = append(x.rep.Back, c.ID+": "+why)
	return x.save(ctx, c)
}

// step goes one step on with a command.
func (x *consolidating) step(ctx context.Context, c lifecycle.Command) error {
	x.rep.Open++
	if x.now().Before(c.NextAt) {
		return nil
	}
	switch c.Phase {
	case lifecycle.Tainted:
		return x.tainted(ctx, c)
	case lifecycle.Replacing:
		return x.replacing(ctx, c)
	case lifecycle.Removing:
		return x.removing(ctx, c)
	}
	return nil
}

// tainted asks again whether the nodes may go, now that no pod comes any more; then launches
// what stands in for them, or lets them go.
func (x *consolidating) tainted(ctx context.Context, c lifecycle.Command) error {
	for i := range c.Nodes { // a pass that was cut off may have left one without
		if err := x.taint(ctx, c, i, true); err != nil {
			return x.back(ctx, c, fmt.Sprintf("node %s: %v", c.Nodes[i], err))
		}
	}
	m, why := disruption.Recheck(x.w.snap, x.w.facts.Catalog, x.options(nil), plan.MoveReason(c.Reason), c.Nodes, c.Adds || c.Reason == string(plan.MoveDrifted))
	if m == nil {
		if why.Code == plan.PodsWouldNotFit {
			c.Failed++ // what is found again and again, and never holds, is tried ever more seldom
		}
		return x.back(ctx, c, why.Object+": "+why.Detail)
	}
	if len(m.Add) == 0 {
		return x.remove(ctx, c, m)
	}
	return x.launch(ctx, c, m)
}

// launch launches the replacement of a command. The command is written down first: a pass
// that finds it so launches nothing again.
func (x *consolidating) launch(ctx context.Context, c lifecycle.Command, m *plan.Move) error {
	p := &plan.Plan{ID: c.PlanName(), Launches: m.Add}
	order := &execute.Order{
		Plan: p, Snapshot: x.w.snap, Types: scheduling.PoolTypes(x.w.snap, x.w.facts.Catalog), Classes: x.w.classes, Lease: *x.lease,
		Avoid: x.w.avoid, Taken: taken(x.w.known), Reservations: x.w.snap.Settings.ReservedCapacity,
	}
	c.Phase, c.NextAt = lifecycle.Replacing, x.now()
	if err := x.save(ctx, c); err != nil {
		return err
	}
	got, err := x.h.Sweep.Executor.Launch(ctx, order)
	*x.lease = order.Lease
	if err != nil {
		return err
	}
	for _, e := range got.Errors {
		x.rep.warn(e)
	}
	if len(got.Failed) > 0 {
		c = x.latest(c)
		c.Failed++
		return x.back(ctx, c, "the replacement could not be launched: "+got.Failed[0].Message)
	}
	return nil
}

// replacing waits until the replacements can be counted on, then asks again.
func (x *consolidating) replacing(ctx context.Context, c lifecycle.Command) error {
	c.Replacements = nil
	for i := range x.w.known.Records {
		r := &x.w.known.Records[i]
		if r.PlanID != c.PlanName() || !r.Phase.Live() {
			continue
		}
		c.Replacements = append(c.Replacements, r.Claim)
		if r.Phase != lifecycle.Initialized {
			if x.now().Sub(c.Changed) > replaceFor {
				c.Failed++
				return x.back(ctx, c, "replacement "+r.Claim+" is "+string(r.Phase)+" for too long")
			}
			return nil
		}
	}
	if len(c.Replacements) == 0 {
		c.Failed++
		return x.back(ctx, c, "its replacement never became useful")
	}
	m, why := disruption.Recheck(x.ready(c), x.w.facts.Catalog, x.options(nil), plan.MoveReason(c.Reason), c.Nodes, false)
	if m == nil {
		return x.back(ctx, c, why.Object+": "+why.Detail)
	}
	return x.remove(ctx, c, m)
}

// ready is the cluster in which the replacements of a command are there for its pods alone:
// the promises that hold them are kept by letting the candidates go.
func (x *consolidating) ready(c lifecycle.Command) *snapshot.Snapshot {
	s := *x.w.snap
	node := map[string]bool{}
	for _, r := range x.w.known.Records {
		if slices.Contains(c.Replacements, r.Claim) {
			node[r.Claim], node[r.Node] = true, true
		}
	}
	s.Nominations = slices.DeleteFunc(slices.Clone(s.Nominations), func(n snapshot.Nomination) bool { return node[n.Node] })
	return &s
}

// remove lets the candidates go: their NodeClaims are deleted, and the lifecycle function
// drains them. The command is written down first, so that a pass that is cut off goes on.
func (x *consolidating) remove(ctx context.Context, c lifecycle.Command, m *plan.Move) error {
	c.Phase, c.NextAt = lifecycle.Removing, x.now()
	for _, p := range m.Placements {
		if !slices.Contains(c.Targets, p.Node) {
			c.Targets = append(c.Targets, p.Node)
		}
	}
	slices.Sort(c.Targets)
	if err := x.save(ctx, c); err != nil {
		return err
	}
	x.remember(ctx, c, m)
	x.rep.warn(x.h.Sweep.Memory.Decide(ctx, lifecycle.Decision{
		At: x.now(), ID: c.PlanID, Kind: c.Reason, Why: m.Detail, Before: x.rep.Savings.Now, After: x.rep.Savings.Now - m.Saving, Objects: c.Nodes,
	}))
	x.tellGoing(ctx, c, m.Detail)
	return x.delete(ctx, c)
}

// remember writes down which workloads are moved.
func (x *consolidating) remember(ctx context.Context, c lifecycle.Command, m *plan.Move) {
	count := map[string]int{}
	from := map[string]string{}
	for i := range x.w.snap.Pods {
		p := &x.w.snap.Pods[i]
		if slices.Contains(c.Nodes, p.NodeName) && p.Reschedulable() {
			count[lifecycle.WorkloadOf(p)]++
			from[lifecycle.WorkloadOf(p)] = p.NodeName
		}
	}
	for _, w := range sortedKeys(count) {
		x.rep.warn(x.h.Sweep.Memory.Moved(ctx, lifecycle.WorkloadMove{
			Workload: w, At: c.Changed, From: from[w], Reason: c.Reason, Command: c.ID, Saving: m.Saving, Pods: count[w],
		}))
	}
}

// delete deletes the NodeClaims of a command's candidates.
func (x *consolidating) delete(ctx context.Context, c lifecycle.Command) error {
	if c.Reason == string(plan.MoveUnhealthy) {
		if err := x.endNow(ctx, c); err != nil {
			x.rep.warn(err)
			return nil // the next pass goes on
		}
	}
	uids := map[string]string{}
	for i := range x.w.snap.NodeClaims {
		uids[x.w.snap.NodeClaims[i].Name] = x.w.snap.NodeClaims[i].UID
	}
	for _, claim := range c.Candidates {
		if uids[claim] == "" {
			continue
		}
		err := x.h.Sweep.Cluster.Delete(ctx, "NodeClaim", "", claim, uids[claim])
		if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrConflict) {
			x.rep.warn(fmt.Errorf("delete nodeclaim %s: %w", claim, err))
			return nil // the next pass goes on
		}
		x.rep.Removed++
		x.kick = true
	}
	return nil
}

// removing sees to it that candidates go, and ends the command when they have.
func (x *consolidating) removing(ctx context.Context, c lifecycle.Command) error {
	left := false
	for _, r := range x.w.known.Records {
		left = left || slices.Contains(c.Candidates, r.Claim)
	}
	if !left {
		c.Phase = lifecycle.Done
		return x.save(ctx, c)
	}
	for i := range x.w.snap.NodeClaims {
		n := &x.w.snap.NodeClaims[i]
		if slices.Contains(c.Candidates, n.Name) && n.Deleting.IsZero() {
			return x.delete(ctx, c)
		}
	}
	return nil
}
