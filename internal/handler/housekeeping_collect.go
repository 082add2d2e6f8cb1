package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// orphanAge is the age below which an instance is nobody's orphan: whoever launched it
	// may not have written that down yet.
	orphanAge = lifecycle.LaunchTimeout + 10*time.Minute
	// orphanTwice is the time that has to be between the two readings that show an orphan.
	orphanTwice = 30 * time.Second
	orphanNote  = "orphans"

	// templatesEvery is how often launch templates are collected, templateNote remembers
	// when each was used last.
	templatesEvery = 10 * time.Minute
	templateNote   = "templates"
)

// orphans finds instances of the cluster that nobody owns: no record, no attempt under way,
// no NodeClaim and no Node. They are terminated when they are old enough and two complete
// readings showed them so. One that has joined is adopted: pods may run on it.
func (h *Housekeeping) orphans(ctx context.Context, f *found, rep *HousekeepingReport) {
	if !f.instancesWhole {
		return
	}
	now := h.Now()
	open := map[string]bool{}
	for i := range f.attempts {
		if f.attempts[i].State != lifecycle.Settled {
			open[f.attempts[i].ID] = true
		}
	}
	var candidates []*launch.Described
	for i := range f.instances {
		in := &f.instances[i]
		switch {
		case f.byInstance[in.ID] != nil, in.Gone(), open[in.Tags[nodeclass.TagAttempt]]:
		case in.Launched.IsZero() || age(in.Launched, now) < orphanAge:
		default:
			candidates = append(candidates, in)
		}
	}
	seen, note, err := readNote[map[string]time.Time](ctx, h.Memory, orphanNote)
	if err != nil {
		rep.problem("read what was seen of orphans", err)
		return
	}
	if len(candidates) == 0 && len(seen) == 0 {
		return
	}
	orphans, ok := h.ownerless(ctx, candidates, f, rep)
	if !ok {
		return
	}
	next := map[string]time.Time{}
	var end []string
	for _, in := range orphans {
		rep.Orphans = append(rep.Orphans, in.ID)
		first, known := seen[in.ID]
		if !known {
			first = now
		}
		next[in.ID] = first
		if known && age(first, now) >= orphanTwice {
			end = append(end, in.ID)
		}
	}
	note.Until = now.Add(time.Hour)
	if err := saveNote(ctx, h.Memory, note, next); err != nil {
		rep.problem("remember what was seen of orphans", ignoreChanged(err))
		return // somebody else is at it
	}
	if len(end) == 0 {
		return
	}
	rep.Ended, _, err = h.Executor.Cloud.Terminate(ctx, end)
	rep.problem("terminate orphans", err)
}

func ignoreChanged(err error) error {
	if errors.Is(err, lifecycle.ErrChanged) {
		return nil
	}
	return err
}

// ownerless are those instances that neither a NodeClaim nor a Node is of; ok is false when
// that cannot be said. Those with a Node are adopted.
func (h *Housekeeping) ownerless(ctx context.Context, candidates []*launch.Described, f *found, rep *HousekeepingReport) (orphans []*launch.Described, ok bool) {
	if len(candidates) == 0 {
		return nil, true
	}
	s, err := h.Cluster.Some(ctx, "NodeClaim", "Node", "NodePool")
	if err == nil {
		err = whole(s)
	}
	if err != nil {
		rep.Incomplete = append(rep.Incomplete, "read nodeclaims and nodes: "+err.Error())
		return nil, false
	}
	claims := map[string]bool{}
	for i := range s.NodeClaims {
		claims[instanceOf(s.NodeClaims[i].ProviderID)] = true
	}
	nodes := nodesByInstance(s.Nodes)
	for _, in := range candidates {
		switch n := nodes[in.ID]; {
		case claims[in.ID]: // adopted with its NodeClaim
		case n != nil:
			h.adopt(ctx, adoptNode(in, n, s, func(name string) bool { return f.byClaim[name] != nil }, h.Now()), rep)
		default:
			orphans = append(orphans, in)
		}
	}
	return orphans, true
}

func nodesByInstance(nodes []snapshot.Node) map[string]*snapshot.Node {
	out := make(map[string]*snapshot.Node, len(nodes))
	for i := range nodes {
		if id := instanceOf(nodes[i].ProviderID); id != "" {
			out[id] = &nodes[i]
		}
	}
	return out
}

// strangers looks at NodeClaims without a record. Those with an instance are adopted;
// those that nothing stands behind are let go of.
func (h *Housekeeping) strangers(ctx context.Context, f *found, rep *HousekeepingReport) error {
	unknown := map[string]*api.Meta{}
	for i := range f.claims {
		m := &f.claims[i]
		if r := f.byClaim[m.Name]; r == nil || r.UID != "" && r.UID != m.Version.UID {
			unknown[m.Version.UID] = m
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	if !f.instancesWhole {
		return nil // what stands behind them is not known
	}
	s, err := h.Cluster.Some(ctx, "NodeClaim", "Node", "NodePool")
	if err == nil {
		err = whole(s)
	}
	if err != nil {
		rep.Incomplete = append(rep.Incomplete, "read nodeclaims and nodes: "+err.Error())
		return nil
	}
	nodes := nodesByInstance(s.Nodes)
	instances := map[string]*launch.Described{}
	for i := range f.instances {
		instances[f.instances[i].ID] = &f.instances[i]
	}
	var adopted []lifecycle.Record
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		m := unknown[c.UID]
		if m == nil || !Ours(c.ClassRef) || f.byClaim[c.Name] != nil {
			continue
		}
		switch what := stranger(c, m, h.Now()); what {
		case strangerAdopt:
			id := instanceOf(c.ProviderID)
			adopted = append(adopted, h.adopted(ctx, c, nodes[id], instances[id]))
		case strangerDrop:
			h.drop(ctx, c, rep)
		case strangerTell:
			h.tell(ctx, c, rep)
		}
	}
	h.adoptAll(ctx, adopted, rep)
	if len(rep.Adopted) > 0 {
		if f.records, err = h.Memory.Records(ctx); err != nil {
			return err
		}
		f.index()
	}
	return nil
}

// What is done about a NodeClaim without a record.
type strangerMove int

const (
	strangerLeave strangerMove = iota
	strangerAdopt
	strangerDrop
	strangerTell
)

// creationAnnotation is on every NodeClaim that Kerf made.
const creationAnnotation = "kerf.sh/creation"

// stranger says what is done about a NodeClaim without a record. One with an instance is a
// node like any other. One without has none to come: if Kerf made it, its record was closed
// before the object was let go of; if Karpenter did, it stopped in between.
func stranger(c *snapshot.NodeClaim, m *api.Meta, now time.Time) strangerMove {
	old := age(c.Created, now) >= orphanAge
	switch {
	case c.ProviderID != "":
		return strangerAdopt
	case !c.Deleting.IsZero():
		if slices.Contains(m.Finalizers, lifecycle.Finalizer) {
			return strangerDrop
		}
		return strangerLeave
	case m.Annotations[creationAnnotation] != "":
		if old {
			return strangerDrop
		}
		return strangerLeave
	case c.Labels["karpenter.sh/nodepool"] != "":
		if old {
			return strangerDrop
		}
		return strangerLeave
	}
	return strangerTell
}

// drop deletes a NodeClaim that nothing stands behind, and lets go of it.
func (h *Housekeeping) drop(ctx context.Context, c *snapshot.NodeClaim, rep *HousekeepingReport) {
	if c.Deleting.IsZero() {
		if err := h.Cluster.Delete(ctx, "NodeClaim", "", c.Name, c.UID); err != nil {
			rep.problem("delete nodeclaim "+c.Name, err)
			return
		}
	}
	if err := h.Cluster.RemoveFinalizer(ctx, "NodeClaim", c.Name, c.UID, lifecycle.Finalizer); err != nil {
		rep.problem("release nodeclaim "+c.Name, err)
		return
	}
	rep.Released = append(rep.Released, c.Name)
}

// tell says at a NodeClaim that nobody launches it.
func (h *Housekeeping) tell(ctx context.Context, c *snapshot.NodeClaim, rep *HousekeepingReport) {
	if !h.told.fresh(c.UID, h.Now()) {
		return
	}
	_, err := h.Cluster.Emit(ctx, api.Event{
		Object: api.Reference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: c.Name, UID: c.UID},
		Key:    "NotLaunched", Reason: "NotLaunched", Action: "Housekeeping", Warning: true, Time: h.Now(),
		Note:       "Kerf launches nodes of NodePools, and no NodeClaims that were made by hand: delete it, or give a NodePool replicas",
		Controller: "kerf.sh/housekeeping", Instance: h.Instance,
	})
	if err != nil {
		h.told.forget(c.UID)
		rep.problem("write an Event", err)
	}
}

// usedTemplates is when templates were used last, by name.
type usedTemplates struct {
	At   time.Time            `json:"at"`
	Used map[string]time.Time `json:"used,omitempty"`
}

// pools has the statuses of NodePools brought up to date when their nodes have changed.
func (h *Housekeeping) pools(ctx context.Context, f *found, rep *HousekeepingReport) {
	if h.Pools == nil {
		return
	}
	var nodes []string
	for i := range f.records {
		if r := &f.records[i]; r.Phase.Live() {
			nodes = append(nodes, r.NodePool+" "+r.Claim+" "+string(r.Phase))
		}
	}
	slices.Sort(nodes)
	now := strings.Join(nodes, "\n")
	if now == h.nodes {
		return
	}
	if err := h.Pools(ctx); err != nil {
		rep.problem("ask for the statuses of NodePools", err)
		return
	}
	h.nodes = now
}

// templates deletes launch templates that nobody has needed for an hour.
func (h *Housekeeping) templates(ctx context.Context, f *found, rep *HousekeepingReport) {
	v, note, err := readNote[usedTemplates](ctx, h.Memory, templateNote)
	if err != nil {
		rep.problem("read which templates were used", err)
		return
	}
	now := h.Now()
	if age(v.At, now) < templatesEvery {
		return
	}
	named := map[string]bool{}
	used := map[string]time.Time{}
	for i := range f.attempts {
		a := &f.attempts[i]
		// While its outcome is not known it may be sent again; while a node of it lives,
		// the next one is likely to be of the same kind.
		needed := a.State != lifecycle.Settled
		for _, c := range a.Claims {
			r := f.byClaim[c]
			needed = needed || r != nil && r.Attempt == a.ID && r.Phase.Live()
		}
		for _, t := range a.Templates {
			named[t] = named[t] || needed
			used[t] = maxTime(used[t], a.Created)
		}
	}
	stored, err := h.Executor.Cloud.Templates(ctx, h.ClusterName)
	if err != nil {
		rep.Incomplete = append(rep.Incomplete, "list launch templates: "+err.Error())
		return
	}
	for _, s := range stored {
		if t := maxTime(used[s.Name], v.Used[s.Name]); !t.IsZero() {
			used[s.Name] = t
		}
	}
	note.Until = now.Add(7 * 24 * time.Hour)
	if err := saveNote(ctx, h.Memory, note, usedTemplates{At: now, Used: used}); err != nil {
		rep.problem("remember which templates were used", ignoreChanged(err))
		return // somebody else is at it
	}
	unused := launch.Unused(h.ClusterName, stored, named, used, now)
	if len(unused) == 0 {
		return
	}
	rep.Templates, err = h.Executor.Cloud.DeleteTemplates(ctx, unused)
	rep.problem("delete launch templates", err)
	h.Executor.Cloud.Forget(rep.Templates...)
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// String is one line, for logs.
func (r *HousekeepingReport) String() string {
	if r.Refused != "" {
		return r.Refused
	}
	return fmt.Sprintf("adopted %d, released %d, due %d, orphans %d, ended %d, templates deleted %d, corrections %d, incomplete %d, problems %d",
		len(r.Adopted), len(r.Released), len(r.Due), len(r.Orphans), len(r.Ended), len(r.Templates), len(r.Corrections), len(r.Incomplete), len(r.Problems))
}
