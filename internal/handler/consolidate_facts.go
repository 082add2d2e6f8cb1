package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// mostMarks is how many nodes one pass annotates.
const mostMarks = 100

// look asks what decides about drift and is in no object: in which subnets, groups and
// reservations instances are. What cannot be asked is not known, and no drift.
func (x *consolidating) look(ctx context.Context) {
	x.instances, x.selected, x.doomed = map[string]disruption.Instance{}, map[string]disruption.Selected{}, map[string]string{}
	for i := range x.w.snap.NodeClasses {
		c := &x.w.snap.NodeClasses[i]
		ready := snapshot.FindCondition(c.Conditions, nodeclass.Ready)
		if r := x.w.classes[c.Name].Resolved; r != nil && ready != nil && ready.Status == nodeclass.True {
			x.selected[c.Name] = selected(r, x.w.snap.Settings.ReservedCapacity)
		}
	}
	nodes := map[string]string{}
	for _, r := range x.w.known.Records {
		if r.Node == "" || r.Instance.ID == "" {
			continue
		}
		if r.Doomed != nil {
			x.doomed[r.Node] = r.Doomed.Reason
		}
		if r.Phase.Live() {
			nodes[r.Instance.ID] = r.Node
		}
	}
	if len(x.selected) == 0 || len(nodes) == 0 {
		return
	}
	found, _, err := x.h.Sweep.Executor.Cloud.Describe(ctx, sortedKeys(nodes))
	if err != nil {
		x.rep.warn(fmt.Errorf("look at instances; drift of networks and reservations is not known: %w", err))
		return
	}
	for i := range found {
		d := &found[i]
		if d.Gone() {
			continue
		}
		x.instances[nodes[d.ID]] = disruption.Instance{Subnet: d.Subnet, Groups: d.SecurityGroups, Reservation: d.ReservationID, PlacementGroup: d.PlacementGroup}
	}
}

// selected is what a class that is ready selects.
func selected(r *nodeclass.Resolved, reservations bool) disruption.Selected {
	out := disruption.Selected{PlacementKnown: true, ReservationsKnown: reservations}
	for _, s := range r.Subnets {
		out.Subnets = append(out.Subnets, s.ID)
	}
	for _, g := range r.SecurityGroups {
		out.Groups = append(out.Groups, g.ID)
	}
	for i := range r.Reservations {
		out.Reservations = append(out.Reservations, r.Reservations[i].ID)
	}
	if r.PlacementGroup != nil {
		out.PlacementGroup = []string{r.PlacementGroup.ID, r.PlacementGroup.Name}
	}
	return out
}

// mark writes on nodes what they count as launched from, where nothing says so, and that
// those whose reservation is over are on-demand now.
func (x *consolidating) mark(ctx context.Context, found *disruption.Result) {
	left := mostMarks
	change := func(node string, c api.NodeChange) bool {
		if left--; left < 0 || !enough(ctx, x.now()) {
			return false
		}
		_, err := x.h.Sweep.Cluster.ChangeNode(ctx, node, x.uidOf(node), c)
		if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrConflict) {
			x.rep.warn(fmt.Errorf("annotate node %s: %w", node, err))
		}
		return err == nil
	}
	for _, name := range found.Released {
		if !x.onDemand(ctx, name) {
			continue
		}
		change(name, api.NodeChange{Labels: map[string]string{catalog.LabelCapacityType: catalog.OnDemand}, DropLabels: []string{catalog.LabelReservationID}})
	}
	for _, m := range found.Marks {
		change(m.Node, api.NodeChange{Annotations: m.Annotations})
	}
}

// onDemand writes down that a node is in no reservation any more.
func (x *consolidating) onDemand(ctx context.Context, node string) bool {
	for i := range x.w.known.Records {
		r := x.w.known.Records[i]
		if r.Node != node {
			continue
		}
		next := r
		next.Instance.CapacityType, next.Instance.ReservationID = catalog.OnDemand, ""
		if next.Instance == r.Instance {
			return true
		}
		return x.saveRecord(ctx, r, next)
	}
	return false
}

func (x *consolidating) saveRecord(ctx context.Context, was, next lifecycle.Record) bool {
	_, err := x.h.Sweep.Memory.Save(ctx, lifecycle.Change{Was: was, Next: next})
	if err != nil {
		x.rep.warn(fmt.Errorf("write down what became of %s: %w", was.Claim, err))
	}
	return err == nil
}

func (x *consolidating) uidOf(node string) string {
	i := slices.IndexFunc(x.w.snap.Nodes, func(n snapshot.Node) bool { return n.Name == node })
	if i < 0 {
		return ""
	}
	return x.w.snap.Nodes[i].UID
}

// force carries a move out that waits for nothing: its nodes are deleted at once, and drain
// as their NodeClaims say. It is written down first, so that a pass that is cut off goes on.
func (x *consolidating) force(ctx context.Context, c lifecycle.Command, m *plan.Move, old *lifecycle.Command) error {
	if old != nil && !old.Over() && old.Phase != lifecycle.Proposed {
		return nil // it is under way
	}
	if slices.Contains(c.Candidates, "") {
		x.rep.Warnings = append(x.rep.Warnings, fmt.Sprintf("%s: a node of it has no record yet", c.ID))
		return nil
	}
	return x.remove(ctx, c, m)
}

// endNow sets the end of nodes that do not work any more to now: their pods are not waited
// for (Karpenter: node repair sets the termination timestamp).
func (x *consolidating) endNow(ctx context.Context, c lifecycle.Command) error {
	for _, claim := range c.Candidates {
		r, ok, err := x.h.Sweep.Memory.Record(ctx, claim)
		if err != nil {
			return fmt.Errorf("end %s at once: %w", claim, err)
		}
		if now := x.now(); ok && (r.Deadline.IsZero() || r.Deadline.After(now)) {
			next := r
			next.Deadline = now
			if _, err := x.h.Sweep.Memory.Save(ctx, lifecycle.Change{Was: r, Next: next}); err != nil {
				return fmt.Errorf("end %s at once: %w", claim, err)
			}
		}
	}
	return nil
}
