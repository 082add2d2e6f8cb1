package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// recoverTime is how long the lease of a recovery is taken for, and again while it goes on.
const recoverTime = 3 * time.Minute

// Recover makes the records of a table that is new, lost or restored again, from what is
// there: instances, NodeClaims and Nodes. Until it ends nothing is launched or disrupted.
// It touches no node and no object, and may be cut off anywhere: it goes on with what it
// did not come to. What Karpenter made becomes known the same way.
func (h *Housekeeping) Recover(ctx context.Context) (rep HousekeepingReport, err error) {
	err = Guard(ctx, h.Cluster, h.Now())
	var karpenter *KarpenterError
	if errors.As(err, &karpenter) {
		rep.Refused = karpenter.Error()
		return rep, nil
	}
	if err == nil {
		err = h.recover(ctx, &rep)
	}
	if err != nil {
		return rep, fmt.Errorf("recover: %w", err)
	}
	return rep, nil
}

func (h *Housekeeping) recover(ctx context.Context, rep *HousekeepingReport) error {
	meta, err := h.Memory.Open(ctx)
	if err != nil || meta.Mode == lifecycle.Normal {
		return err
	}
	if err := h.Memory.BeginRecovery(ctx, meta.Why); err != nil {
		return err
	}
	lease, err := h.Memory.AcquireRecovery(ctx, recoverTime)
	var busy *lifecycle.BusyError
	if errors.As(err, &busy) {
		rep.Refused = "somebody else recovers: " + busy.Error()
		return nil
	}
	if err != nil {
		return err
	}
	w, err := h.recoverable(ctx)
	if err != nil {
		return err
	}
	// What was asked of EC2 before is found by its tag, and never asked for again.
	if _, err := h.Executor.Resolve(ctx, execute.Unresolved{Attempts: w.open, Records: w.records, Recovering: true}); err != nil {
		rep.problem("resolve attempts", err)
	}
	if w.records, err = h.Memory.Records(ctx); err != nil {
		return err
	}
	fresh, changes := h.rebuild(ctx, w)
	for some := range slices.Chunk(fresh, 100) {
		if lease, err = h.Memory.Renew(ctx, lease, recoverTime); err != nil {
			return err
		}
		if !h.Lifecycle.enough(ctx) {
			return fmt.Errorf("%d of %d nodes have no record yet: the next round goes on", len(fresh)-len(rep.Adopted), len(fresh))
		}
		h.adoptAll(ctx, some, rep)
	}
	h.save(ctx, changes, rep)
	if len(rep.Problems) > 0 {
		return errors.New("some records could not be made: " + strings.Join(rep.Problems, "; "))
	}
	if err := h.Memory.EndRecovery(ctx, lease); err != nil {
		return err
	}
	return h.Lifecycle.Kick(ctx)
}

// recovery is what a table is rebuilt from.
type recovery struct {
	objects   *snapshot.Snapshot
	instances map[string]*launch.Described
	nodes     map[string]*snapshot.Node
	records   []lifecycle.Record
	open      []lifecycle.Attempt
}

// recoverable reads it, whole or not at all.
func (h *Housekeeping) recoverable(ctx context.Context) (*recovery, error) {
	w := &recovery{instances: map[string]*launch.Described{}}
	list, err := h.Executor.Cloud.List(ctx, h.ClusterName)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	for i := range list {
		w.instances[list[i].ID] = &list[i]
	}
	if w.objects, err = h.Cluster.Some(ctx, "NodeClaim", "Node", "NodePool"); err != nil {
		return nil, fmt.Errorf("read nodeclaims and nodes: %w", err)
	}
	if err := whole(w.objects); err != nil {
		return nil, err
	}
	w.nodes = nodesByInstance(w.objects.Nodes)
	attempts, err := h.Memory.Attempts(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		if a.State != lifecycle.Settled {
			w.open = append(w.open, a)
		}
	}
	w.records, err = h.Memory.Records(ctx)
	return w, err
}

// whole says why a reading of NodeClaims and Nodes shows less than there is; nil when it does
// not. None of the nodes of a cluster has to have joined yet.
func whole(s *snapshot.Snapshot) error {
	for _, why := range s.Incomplete {
		if !strings.HasPrefix(why, api.NoNodes) && !strings.Contains(why, "not a single Node") {
			return errors.New("the reading is incomplete: " + why)
		}
	}
	for i := range s.NodeClaims {
		if c := &s.NodeClaims[i]; c.NodeName != "" && len(s.Nodes) == 0 {
			return fmt.Errorf("the API server shows no Node, and nodeclaim %s has one: that is not believed", c.Name)
		}
	}
	return nil
}

// rebuild says which records are missing, and which of those that a backup brought are not
// what is there. A record whose attempt is not resolved stays: its instance may show yet.
func (h *Housekeeping) rebuild(ctx context.Context, w *recovery) (fresh []lifecycle.Record, changes []lifecycle.Change) {
	now := h.Now()
	known := map[string]*lifecycle.Record{}
	owned := map[string]bool{}
	for i := range w.records {
		known[w.records[i].Claim] = &w.records[i]
	}
	claims := map[string]bool{}
	for i := range w.objects.NodeClaims {
		c := &w.objects.NodeClaims[i]
		if !Ours(c.ClassRef) {
			continue
		}
		id := instanceOf(c.ProviderID)
		is := known[c.Name]
		if id == "" && is == nil {
			continue // nothing stands behind it: housekeeping says what becomes of it
		}
		claims[c.Name], owned[id] = true, true
		r := h.adopted(ctx, c, w.nodes[id], w.instances[id])
		switch {
		case is == nil:
			fresh = append(fresh, r)
		case id == "", w.pending(is), same(is, &r):
			// The record knows as much, or more.
		case is.NodePool == r.NodePool:
			r.Shown = ""
			changes = append(changes, lifecycle.Change{Was: *is, Next: r})
		}
	}
	for i := range w.records {
		r := &w.records[i]
		if claims[r.Claim] || w.pending(r) {
			owned[r.Instance.ID] = true
			continue
		}
		if r.Instance.ID != "" && age(r.LaunchedAt, now) < lifecycle.InstanceGrace {
			owned[r.Instance.ID] = true
			continue // EC2 may not show it yet
		}
		if in := w.instances[r.Instance.ID]; r.Instance.ID != "" && (in != nil && !in.Gone() || w.nodes[r.Instance.ID] != nil) {
			owned[r.Instance.ID] = true
			continue // it is looked after, and goes if somebody deleted its NodeClaim
		}
		next := *r
		next.Phase, next.Reason, next.Message = lifecycle.Closed, lifecycle.ReasonInstanceGone, "neither its NodeClaim nor its instance is there any more"
		next.ClosedAt, next.NextAt = now, time.Time{}
		changes = append(changes, lifecycle.Change{Was: *r, Next: next})
	}
	taken := func(name string) bool { return claims[name] || known[name] != nil }
	for _, id := range sortedKeys(w.instances) {
		in, n := w.instances[id], w.nodes[id]
		if owned[id] || in.Gone() || w.under(in.Tags[nodeclass.TagAttempt]) {
			continue
		}
		if n == nil {
			if in.Launched.IsZero() || age(in.Launched, now) >= orphanAge {
				continue // it will not join any more: housekeeping ends it
			}
			// It was launched a moment ago, and its NodeClaim could not be made yet. What it
			// takes of the limits is known by its type alone.
			n = &snapshot.Node{ProviderID: in.ProviderID()}
			if f := h.facts(ctx); f != nil {
				n.Capacity = f.SizeOf(in.Type)
			}
		}
		r := adoptNode(in, n, w.objects, taken, now)
		claims[r.Claim] = true
		fresh = append(fresh, h.priced(ctx, r))
	}
	return fresh, changes
}

// pending reports whether an attempt for the record is not resolved.
func (w *recovery) pending(r *lifecycle.Record) bool {
	return slices.ContainsFunc(w.open, func(a lifecycle.Attempt) bool { return a.ID == r.Attempt && r.Instance.ID == "" })
}

// under reports whether an attempt is not resolved: what it made gets its record when it is.
func (w *recovery) under(attempt string) bool {
	return slices.ContainsFunc(w.open, func(a lifecycle.Attempt) bool { return a.ID == attempt })
}

// same reports whether a record says what is there.
func same(a, b *lifecycle.Record) bool {
	return a.UID == b.UID && a.Phase == b.Phase && a.Instance.ID == b.Instance.ID && a.Node == b.Node && a.NodeUID == b.NodeUID
}

// adopted is the record of a NodeClaim that has none. What its status says stays as it is
// until there is something else to say: that of a node in use has to say that it is.
func (h *Housekeeping) adopted(ctx context.Context, c *snapshot.NodeClaim, n *snapshot.Node, in *launch.Described) lifecycle.Record {
	var i lifecycle.Instance
	if in != nil {
		i = execute.InstanceOf(in)
	}
	r := h.priced(ctx, lifecycle.Adopt(*c, n, i, h.Now()))
	// One that Kerf made says which plan wanted it; that is no annotation of its pool.
	if plan, ok := strings.CutPrefix(r.Spec.Annotations[creationAnnotation], r.Claim+"/"); ok {
		r.PlanID = plan
	}
	delete(r.Spec.Annotations, creationAnnotation)
	if ready := snapshot.FindCondition(c.Conditions, "Ready"); r.Phase != lifecycle.Initialized || ready != nil && ready.Status == "True" {
		r.Shown = execute.Shown(r)
	}
	return r
}

// facts are the catalogue; nil when it is not known.
func (h *Housekeeping) facts(ctx context.Context) *Facts {
	if h.Facts == nil {
		return nil
	}
	f, err := h.Facts(ctx)
	if err != nil {
		return nil
	}
	return f
}

func (h *Housekeeping) priced(ctx context.Context, r lifecycle.Record) lifecycle.Record {
	if r.Instance.Price != 0 || r.Instance.Type == "" {
		return r
	}
	if f := h.facts(ctx); f != nil {
		r.Instance.Price = f.PriceOf(r.Instance)
		r.Reserved = lifecycle.UsageOf(r.Capacity, r.Instance.Price)
	}
	return r
}

// adoptNode is the record of an instance of ours that has no NodeClaim, or none any more. The
// NodeClaim is made from what Node, tags and NodePool say. A Node without a name stands for
// one that has not joined.
func adoptNode(in *launch.Described, n *snapshot.Node, s *snapshot.Snapshot, taken func(string) bool, now time.Time) lifecycle.Record {
	pool := in.Tags[nodeclass.TagNodePool]
	c := snapshot.NodeClaim{
		Name: in.Tags[nodeclass.TagNodeClaim], Labels: map[string]string{}, ProviderID: n.ProviderID, NodeName: n.Name, ImageID: in.ImageID,
		ClassRef: snapshot.ClassRef{Group: ourGroup, Kind: "EC2NodeClass", Name: in.Tags[nodeclass.TagNodeClass]},
		Capacity: n.Capacity, Allocatable: n.Allocatable, Created: in.Launched,
	}
	if c.Name == "" || taken(c.Name) {
		c.Name = pool + "-" + strings.TrimPrefix(in.ID, "i-")
	}
	for key, value := range map[string]string{
		nodeclass.TagNodePool: pool, nodeclass.TagNodeClass: c.ClassRef.Name, catalog.LabelInstanceType: in.Type, catalog.LabelZone: in.Zone, catalog.LabelCapacityType: in.CapacityType,
	} {
		if value != "" {
			c.Labels[key] = value
		}
	}
	for _, key := range []string{catalog.LabelCapacityType, catalog.LabelInstanceType, catalog.LabelZone} {
		if v := c.Labels[key]; v != "" {
			c.Requirements = append(c.Requirements, snapshot.SelectorRequirement{Key: key, Operator: "In", Values: []string{v}})
		}
	}
	for i := range s.NodePools {
		if p := &s.NodePools[i]; p.Name == pool {
			c.Taints, c.StartupTaints, c.ExpireAfter, c.TerminationGracePeriod = p.Taints, p.StartupTaints, p.ExpireAfter, p.TerminationGracePeriod
		}
	}
	if n.Name == "" {
		n = nil
	}
	return lifecycle.Adopt(c, n, execute.InstanceOf(in), now)
}

// adoptAll writes records, several in one transaction. One that exists is not written.
func (h *Housekeeping) adoptAll(ctx context.Context, records []lifecycle.Record, rep *HousekeepingReport) {
	for some := range slices.Chunk(records, 20) {
		changes := make([]lifecycle.Change, len(some))
		for i := range some {
			changes[i] = lifecycle.Change{Next: some[i]}
		}
		if _, err := h.Memory.Save(ctx, changes...); err == nil {
			for i := range some {
				rep.Adopted = append(rep.Adopted, some[i].Claim)
			}
			continue
		}
		for i := range some {
			h.adopt(ctx, some[i], rep)
		}
	}
}

func (h *Housekeeping) adopt(ctx context.Context, r lifecycle.Record, rep *HousekeepingReport) {
	_, err := h.Memory.Adopt(ctx, r)
	var exists *lifecycle.ExistsError
	if errors.As(err, &exists) {
		return
	}
	if err != nil {
		rep.problem("adopt nodeclaim "+r.Claim, err)
		return
	}
	rep.Adopted = append(rep.Adopted, r.Claim)
}

// SizeOf is what a type has of CPU and memory by the catalogue, in millicores and bytes, before
// anything is taken off for the system; nothing when it is not known.
func (f *Facts) SizeOf(instanceType string) (size snapshot.Resources) {
	for i := range f.Catalog.Types {
		if t := &f.Catalog.Types[i]; t.Name == instanceType {
			size.CPU, size.Memory = 1000*t.VCPU, t.MemoryMiB<<20
		}
	}
	return size
}

// PriceOf is what an instance costs by the catalogue, in micro-dollars per hour; 0 = it is
// not known. It is what a node that was there before Kerf counts with.
func (f *Facts) PriceOf(in lifecycle.Instance) snapshot.Price {
	for i := range f.Catalog.Types {
		t := &f.Catalog.Types[i]
		if t.Name != in.Type {
			continue
		}
		for _, o := range t.Offerings {
			if o.Zone == in.Zone && o.CapacityType == in.CapacityType {
				return o.Price
			}
		}
	}
	return 0
}
