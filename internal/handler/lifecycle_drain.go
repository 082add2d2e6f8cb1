package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// draining is a node whose pods are to leave now.
type draining struct {
	r    *lifecycle.Record
	plan lifecycle.Drain
	errs []error // of the evictions of the plan
	// why is what keeps its pods, sorted.
	why []string
}

// drain has the pods of nodes that are to go leave, as lifecycle.PlanDrain says: those of
// all nodes beside one another, the ones with the least time first. What a budget refuses is
// asked for again at the next look; looks come less often the longer they are in vain.
func (h *Lifecycle) drain(ctx context.Context, records, all []lifecycle.Record, look *look, rep *LifecycleReport) {
	others := make(map[string]lifecycle.Record, len(all))
	for _, r := range all {
		others[r.Claim] = r
	}
	// Looking may have taken a while, and a pod's grace is counted from now.
	now := h.Now()
	var nodes []draining
	for i := range records {
		r := &records[i]
		x := look.left[r.Claim]
		if r.Phase != lifecycle.Draining || x == nil || len(x.held) == 0 {
			continue
		}
		if ok, why := r.Relieved(others, x.held, now); !ok {
			h.blocked(ctx, &draining{r: r, why: []string{why}}, rep)
			if !r.Deadline.IsZero() {
				rep.moreAt(r.Deadline.Add(-lifecycle.Longest(x.held, now) - lifecycle.ReliefMargin))
			}
			continue
		}
		d := lifecycle.PlanDrain(x.held, r.Deadline, now)
		rep.moreAt(d.Next)
		nodes = append(nodes, draining{r: r, plan: d})
	}
	slices.SortStableFunc(nodes, func(a, b draining) int { return compareDeadlines(a.r.Deadline, b.r.Deadline) })
	h.evict(ctx, nodes, rep)
	for i := range nodes {
		h.evicted(ctx, &nodes[i], rep)
	}
	h.saveBlocked(ctx, nodes, now, rep)
}

// moreAt notes when a drain has more to do.
func (r *LifecycleReport) moreAt(t time.Time) {
	if !t.IsZero() && (r.due.IsZero() || t.Before(r.due)) {
		r.due = t
	}
}

const (
	// blockedAfter is how long a drain is in vain before its NodeClaim says so: most of them
	// are over by then, and each word is a write.
	blockedAfter = 30 * time.Second
	// blockers is how many of those that keep a node are named.
	blockers = 3
)

// saveBlocked has records, and with them the Drained condition of their NodeClaims, say what
// keeps pods from leaving. What it does not come to is said after the next look.
func (h *Lifecycle) saveBlocked(ctx context.Context, nodes []draining, now time.Time, rep *LifecycleReport) {
	var changes []lifecycle.Change
	for i := range nodes {
		n := &nodes[i]
		if text := n.blockers(); text != n.r.Blocked && (text == "" || now.Sub(n.r.DeletingSince) >= blockedAfter) {
			next := *n.r
			next.Blocked = text
			changes = append(changes, lifecycle.Change{Was: *n.r, Next: next})
		}
	}
	for some := range slices.Chunk(changes, 20) {
		if !h.enough(ctx) {
			return
		}
		if _, err := h.Memory.Save(ctx, some...); err != nil && !errors.Is(err, lifecycle.ErrChanged) {
			rep.Problems = append(rep.Problems, "write down what keeps pods from leaving: "+err.Error())
		}
	}
}

// blockers is one line about what keeps the pods of a node, since when.
func (n *draining) blockers() string {
	if len(n.why) == 0 {
		return ""
	}
	names, more := n.why, ""
	if len(names) > blockers {
		names, more = names[:blockers], fmt.Sprintf("; and %d more", len(names)-blockers)
	}
	return "waits since " + n.r.DeletingSince.UTC().Format(time.RFC3339) + ": " + strings.Join(names, "; ") + more
}

// relieving are the records of the nodes that are on their way for the pods of others.
func (h *Lifecycle) relieving(ctx context.Context, of []lifecycle.Record) ([]lifecycle.Record, error) {
	var out []lifecycle.Record
	for i := range of {
		if of[i].Relief == nil {
			continue
		}
		for _, claim := range of[i].Relief.Claims {
			r, ok, err := h.Memory.Record(ctx, claim)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// compareDeadlines orders the earlier one first, and none last.
func compareDeadlines(a, b time.Time) int {
	switch {
	case a.IsZero() && !b.IsZero():
		return 1
	case b.IsZero() && !a.IsZero():
		return -1
	}
	return a.Compare(b)
}

// errLeft is that there was no time for an eviction.
var errLeft = errors.New("no time is left in this run")

// evict asks for the evictions of drains.
func (h *Lifecycle) evict(ctx context.Context, nodes []draining, rep *LifecycleReport) {
	type one struct{ node, eviction int }
	var list []one
	for i := range nodes {
		nodes[i].errs = make([]error, len(nodes[i].plan.Evictions))
		for k := range nodes[i].errs {
			list = append(list, one{i, k})
		}
	}
	h.each(len(list), func(n int) {
		e := &nodes[list[n].node].plan.Evictions[list[n].eviction]
		err := &nodes[list[n].node].errs[list[n].eviction]
		name := api.PodName{Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: e.Pod.UID}
		switch {
		case !h.enough(ctx):
			*err = errLeft
		case e.Force:
			_, *err = h.Cluster.DeletePod(ctx, name, e.Grace)
		default:
			_, *err = h.Cluster.Evict(ctx, name, e.Grace)
		}
	})
	for i := range nodes {
		if slices.Contains(nodes[i].errs, errLeft) {
			rep.Left++
		}
	}
}

// evicted says what came of the evictions of one node.
func (h *Lifecycle) evicted(ctx context.Context, n *draining, rep *LifecycleReport) {
	for i, err := range n.errs {
		e := &n.plan.Evictions[i]
		switch {
		case err == nil:
			if e.Force {
				h.emit(ctx, n.r, lifecycle.Remark{Reason: "Disrupted", Message: fmt.Sprintf("pod %s/%s ends by force: %s", e.Pod.Namespace, e.Pod.Name, e.Why)}, rep)
			}
		case errors.Is(err, api.ErrBlocked):
			n.why = append(n.why, err.Error())
		case !errors.Is(err, errLeft):
			rep.Problems = append(rep.Problems, fmt.Sprintf("nodeclaim %s: %v", n.r.Claim, err))
		}
	}
	for _, p := range n.plan.Held {
		n.why = append(n.why, fmt.Sprintf("pod %s/%s says do-not-disrupt", p.Namespace, p.Name))
	}
	slices.Sort(n.why)
	h.blocked(ctx, n, rep)
}

// blocked says what a drain waits for, where people look: one Event at the NodeClaim.
func (h *Lifecycle) blocked(ctx context.Context, n *draining, rep *LifecycleReport) {
	text := n.blockers()
	if text == "" {
		return
	}
	rep.Blocked++
	h.emit(ctx, n.r, lifecycle.Remark{Reason: "FailedDraining", Message: text}, rep)
}
