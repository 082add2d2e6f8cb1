package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/interruption"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// Housekeeping looks once a minute for what no message tells: things that people did,
// things that got lost, things that nobody needs any more.
type Housekeeping struct {
	Memory   Memory
	Cluster  Cluster
	Executor *execute.Executor
	// Lifecycle looks after what is found.
	Lifecycle *Lifecycle
	// Cluster's name, as instances and templates are tagged with it.
	ClusterName string
	// Facts are the catalogue, for nodes that were there before Kerf and instances that nobody
	// remembers; nil, or an error: their price and size are not known.
	Facts func(ctx context.Context) (*Facts, error)
	Now   func() time.Time
	// Statuses are the instances of the region that are not well by EC2, and Notices acts on
	// what follows from that; nil = nobody asks.
	Statuses func(ctx context.Context) ([]interruption.Status, error)
	Notices  *Interruption
	// Pools asks for the statuses of NodePools, whose nodes are others than in the round
	// before; nil = nobody is asked.
	Pools func(ctx context.Context) error
	// Instance tells this function apart in Events.
	Instance string

	told told
	// nodes is which nodes NodePools had in the last round.
	nodes string
}

// HousekeepingReport is what one round came to.
type HousekeepingReport struct {
	// Refused says why nothing was done.
	Refused string `json:"refused,omitempty"`
	// Adopted are claims that got a record, Released NodeClaims that were let go of because
	// nothing stands behind them.
	Adopted  []string `json:"adopted,omitempty"`
	Released []string `json:"released,omitempty"`
	// Due are claims that something happened to; somebody looks after them now.
	Due []string `json:"due,omitempty"`
	// Unwell are instances that EC2 says are not well, with what is the matter: they go.
	Unwell []string `json:"unwell,omitempty"`
	// Orphans are instances that nobody owns, Ended those of them that were terminated.
	Orphans []string `json:"orphans,omitempty"`
	Ended   []string `json:"ended,omitempty"`
	// Templates are launch templates that were deleted.
	Templates []string `json:"templates,omitempty"`
	// Corrections are usages of pools that were not what the records add up to.
	Corrections []lifecycle.Correction `json:"corrections,omitempty"`
	// Incomplete names what could not be read: nothing was concluded from its absence.
	Incomplete []string `json:"incomplete,omitempty"`
	Problems   []string `json:"problems,omitempty"`
	// Going: there are nodes that go, whose pods may need others.
	Going bool `json:"-"`
}

func (r *HousekeepingReport) problem(what string, err error) {
	if err != nil {
		r.Problems = append(r.Problems, what+": "+err.Error())
	}
}

// found is what a round reads, in the order in which it is safe to conclude from: what
// exists first, then what is known of it.
type found struct {
	claims    []api.Meta
	nodes     []api.Meta
	instances []launch.Described
	attempts  []lifecycle.Attempt
	counted   map[string]lifecycle.Counted
	records   []lifecycle.Record

	claimsWhole, nodesWhole, instancesWhole bool

	byClaim    map[string]*lifecycle.Record
	byInstance map[string]*lifecycle.Record
}

// Run is one round. Everything in it may be done twice, and by several at once. The error
// is one of the ledger, or says that the cluster does not accept who we are.
func (h *Housekeeping) Run(ctx context.Context) (rep HousekeepingReport, err error) {
	meta, err := h.Memory.Open(ctx)
	if err != nil {
		return rep, fmt.Errorf("housekeeping: %w", err)
	}
	if meta.Mode != lifecycle.Normal {
		return h.Recover(ctx)
	}
	err = Guard(ctx, h.Cluster, h.Now())
	var karpenter *KarpenterError
	if errors.As(err, &karpenter) {
		rep.Refused = karpenter.Error()
		return rep, nil
	}
	if err != nil {
		return rep, fmt.Errorf("housekeeping: %w", err)
	}
	f, err := h.read(ctx, &rep)
	if err != nil {
		return rep, fmt.Errorf("housekeeping: %w", err)
	}
	if err := h.strangers(ctx, f, &rep); err != nil {
		return rep, fmt.Errorf("housekeeping: %w", err)
	}
	h.orphans(ctx, f, &rep)
	h.renominate(ctx, f, &rep)
	flying := h.due(ctx, f, &rep)
	h.unwell(ctx, f, &rep)
	h.openNodes(ctx, f, &rep)
	h.templates(ctx, f, &rep)
	h.pools(ctx, f, &rep)
	h.recount(ctx, f, &rep)
	rep.Going = slices.ContainsFunc(f.records, going)
	switch {
	case len(rep.Due)+len(rep.Adopted) > 0:
		err = h.Lifecycle.Kick(ctx)
	case flying:
		err = h.Lifecycle.Ensure(ctx)
	}
	if err != nil {
		return rep, fmt.Errorf("housekeeping: %w", err)
	}
	return rep, nil
}

// read reads what exists before what is known of it: an object whose record is not found
// then has none.
func (h *Housekeeping) read(ctx context.Context, rep *HousekeepingReport) (*found, error) {
	f := &found{byClaim: map[string]*lifecycle.Record{}, byInstance: map[string]*lifecycle.Record{}}
	var err error
	incomplete := func(what string, err error) bool {
		if err != nil {
			rep.Incomplete = append(rep.Incomplete, what+": "+err.Error())
		}
		return err == nil
	}
	f.claims, err = h.Cluster.Metadata(ctx, "NodeClaim")
	if f.claimsWhole = incomplete("list nodeclaims", err); errors.Is(err, api.ErrUnauthorized) {
		return nil, err
	}
	f.nodes, err = h.Cluster.Metadata(ctx, "Node")
	f.nodesWhole = incomplete("list nodes", err)
	f.instances, err = h.Executor.Cloud.List(ctx, h.ClusterName)
	f.instancesWhole = incomplete("list instances", err)
	if f.attempts, err = h.Memory.Attempts(ctx); err != nil {
		return nil, err
	}
	if f.counted, err = h.Memory.Counted(ctx); err != nil { // before the records, for recount
		return nil, err
	}
	if f.records, err = h.Memory.Records(ctx); err != nil {
		return nil, err
	}
	f.index()
	// Lists that show nothing of much that is known are not believed.
	live := 0
	for i := range f.records {
		if r := &f.records[i]; r.Phase.Live() && r.Node != "" && r.UID != "" {
			live++
		}
	}
	for _, x := range []struct {
		what  string
		n     int
		whole *bool
	}{{"nodeclaims", len(f.claims), &f.claimsWhole}, {"nodes", len(f.nodes), &f.nodesWhole}, {"instances", len(f.instances), &f.instancesWhole}} {
		if x.n == 0 && *x.whole && live >= implausible {
			*x.whole = false
			rep.Incomplete = append(rep.Incomplete, fmt.Sprintf("list %s: none are shown, and %d are known: that is not believed", x.what, live))
		}
	}
	return f, nil
}

func (f *found) index() {
	clear(f.byClaim)
	clear(f.byInstance)
	for i := range f.records {
		r := &f.records[i]
		f.byClaim[r.Claim] = r
		if r.Instance.ID != "" {
			f.byInstance[r.Instance.ID] = r
		}
	}
}

// going reports whether pods of a node have to find another one.
func going(r lifecycle.Record) bool {
	return r.Node != "" && (r.Doomed != nil || r.Phase == lifecycle.Draining)
}

// recount makes the counters of pools what the records add up to.
func (h *Housekeeping) recount(ctx context.Context, f *found, rep *HousekeepingReport) {
	if len(rep.Adopted) > 0 {
		return // what was adopted is counted, and was not when the counters were read
	}
	var err error
	rep.Corrections, err = h.Memory.Recount(ctx, f.counted, f.records)
	rep.problem("recount what pools use", err)
}

// due finds nodes that something happened to, and reports whether anything is in flight that
// somebody has to look after.
func (h *Housekeeping) due(ctx context.Context, f *found, rep *HousekeepingReport) (flying bool) {
	now := h.Now()
	claims := map[string]*api.Meta{}
	for i := range f.claims {
		claims[f.claims[i].Name] = &f.claims[i]
	}
	nodes := map[string]*api.Meta{}
	for i := range f.nodes {
		nodes[f.nodes[i].Name] = &f.nodes[i]
	}
	there := map[string]bool{}
	for i := range f.instances {
		there[f.instances[i].ID] = !f.instances[i].Gone()
	}
	for i := range f.attempts {
		flying = flying || f.attempts[i].State != lifecycle.Settled
	}
	var mark []lifecycle.Change
	for i := range f.records {
		r := &f.records[i]
		if r.Phase != lifecycle.Initialized {
			flying = true
			continue
		}
		o, n := claims[r.Claim], nodes[r.Node]
		switch {
		case r.UID == "":
			flying = true
		case f.claimsWhole && (o == nil || o.Version.UID != r.UID), o != nil && o.Version.UID == r.UID && !o.Deleting.IsZero():
			// Who looks after nodes lists the NodeClaims too, and sees it.
			flying = true
			rep.Due = append(rep.Due, r.Claim)
		case n != nil && !n.Deleting.IsZero(), f.nodesWhole && n == nil && r.Node != "",
			f.instancesWhole && !there[r.Instance.ID] && age(r.LaunchedAt, now) >= lifecycle.InstanceGrace:
			rep.Due = append(rep.Due, r.Claim)
			next := *r
			next.NextAt = now
			mark = append(mark, lifecycle.Change{Was: *r, Next: next})
		case !r.NextAt.IsZero() && !now.Before(r.NextAt):
			flying = true
		}
	}
	h.save(ctx, mark, rep)
	return flying || len(mark) > 0
}

// save writes records, several in one transaction. One that somebody else was quicker with
// is looked at again in the next round.
func (h *Housekeeping) save(ctx context.Context, changes []lifecycle.Change, rep *HousekeepingReport) (saved []lifecycle.Record) {
	for some := range slices.Chunk(changes, 20) {
		out, err := h.Memory.Save(ctx, some...)
		if err == nil {
			saved = append(saved, out...)
			continue
		}
		for _, c := range some {
			out, err := h.Memory.Save(ctx, c)
			if err != nil {
				if !errors.Is(err, lifecycle.ErrChanged) {
					rep.problem("save nodeclaim "+c.Next.Claim, err)
				}
				continue
			}
			saved = append(saved, out...)
		}
	}
	return saved
}

// renominate drops the nominations of pods that wait no more, so that a node which nobody
// needs is known as such, and renews those of pods that do.
func (h *Housekeeping) renominate(ctx context.Context, f *found, rep *HousekeepingReport) {
	if !slices.ContainsFunc(f.records, func(r lifecycle.Record) bool { return len(r.Nominated) > 0 }) {
		return
	}
	pods, err := h.Cluster.PendingPods(ctx)
	if err != nil {
		rep.Incomplete = append(rep.Incomplete, "list pending pods: "+err.Error())
		return
	}
	waiting := map[string]bool{}
	for i := range pods {
		if pods[i].Deleting.IsZero() {
			waiting[pods[i].UID] = true
		}
	}
	var changes []lifecycle.Change
	for i := range f.records {
		r := &f.records[i]
		if len(r.Nominated) == 0 || !r.Phase.Live() {
			continue
		}
		next, changed := r.Renominate(func(p lifecycle.Pod) bool { return waiting[p.UID] }, h.Now())
		if changed && h.denominate(ctx, r.Nominated, next.Nominated, waiting, rep) {
			changes = append(changes, lifecycle.Change{Was: *r, Next: next})
		}
	}
	saved := h.save(ctx, changes, rep)
	for i := range saved {
		*f.byClaim[saved[i].Claim] = saved[i]
	}
}

// denominate takes nominations back that have ended while their pods still wait: what a pod
// says of itself has no end, and would keep it from being planned anew. It reports whether
// all were.
func (h *Housekeeping) denominate(ctx context.Context, had, kept []lifecycle.Pod, waiting map[string]bool, rep *HousekeepingReport) bool {
	for _, p := range had {
		if !waiting[p.UID] || slices.ContainsFunc(kept, func(k lifecycle.Pod) bool { return k.UID == p.UID }) {
			continue
		}
		if _, err := h.Cluster.Nominate(ctx, api.PodName{Namespace: p.Namespace, Name: p.Name, UID: p.UID}, ""); err != nil {
			rep.problem("take the nomination of pod "+p.Namespace+"/"+p.Name+" back", err)
			return false
		}
	}
	return true
}

// openedLate is how long after it was shut a Node counts as forgotten.
const openedLate = 15 * time.Minute

// openNodes lifts cordons of ours that nobody will lift any more: a function may have been
// cut off between two writes, or the table lost.
func (h *Housekeeping) openNodes(ctx context.Context, f *found, rep *HousekeepingReport) {
	open := map[string]*lifecycle.Record{}
	for i := range f.records {
		if r := &f.records[i]; r.Node != "" {
			open[r.Node] = r
		}
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		since, ok := n.Annotations[openingAnnotation]
		if !ok || !n.Deleting.IsZero() {
			continue
		}
		r := open[n.Name]
		at, err := time.Parse(time.RFC3339, since)
		if r != nil && r.Phase == lifecycle.Registered && err == nil && age(at, h.Now()) < openedLate {
			continue
		}
		if r != nil && !r.Phase.Live() || r == nil && err == nil && age(at, h.Now()) < shutAtMost {
			continue // it goes, or its record is about to know it
		}
		_, err = h.Lifecycle.Cluster.ChangeNode(ctx, n.Name, n.Version.UID, uncordoned())
		rep.problem("open node "+n.Name, err)
	}
}
