package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

const (
	// StuckAfter is how long past its own end a pod no longer holds a drain: its kubelet does
	// not answer (Karpenter: same).
	StuckAfter = time.Minute
	// defaultGrace is the grace period of pods that name none (Kubernetes: same).
	defaultGrace = 30 * time.Second
)

// Eviction asks for one pod to leave. Grace is in seconds, nil = the pod's own. By force
// means past its PodDisruptionBudgets: the node's time is over before the pod's would be.
type Eviction struct {
	Pod   Pod
	Grace *int64
	Force bool
	// Why is one line for Events, of forced ones.
	Why string
}

// Drain is what is to be done about the pods of a node that is to go.
type Drain struct {
	// Evictions in the order of names.
	Evictions []Eviction
	// Waiting are the pods that hold the node, Leaving those of them that are on their way out.
	Waiting, Leaving []Pod
	// Held are pods that may not be evicted before the deadline, because they say so.
	Held []Pod
	// Next is when more is to be done whatever happens, zero = nothing is due.
	Next time.Time
}

// drainGroup orders the pods of a drain: each group leaves before the next is touched
// (Karpenter: non-critical, non-critical daemon, critical, critical daemon).
func drainGroup(p *snapshot.Pod) int {
	g := 0
	if p.Daemon() {
		g = 1
	}
	if p.Spec.PriorityClass == "system-cluster-critical" || p.Spec.PriorityClass == "system-node-critical" {
		g += 2
	}
	return g
}

// PlanDrain says which pods of a node are to leave now. Pods that have finished, that
// tolerate the taint of nodes that go, static pods, and those that are stuck do not hold the
// node. With a deadline every pod gets as much of its grace period as there is time for,
// at least a second: budgets, do-not-disrupt and the order of groups do not count any more
// then (Karpenter: terminationGracePeriod).
func PlanDrain(pods []snapshot.Pod, deadline, now time.Time) Drain {
	var out Drain
	var hold []*snapshot.Pod
	for i := range pods {
		if p := &pods[i]; Holds(p, now) {
			hold = append(hold, p)
		}
	}
	slices.SortFunc(hold, func(a, b *snapshot.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	group := 4
	for _, p := range hold {
		group = min(group, drainGroup(p))
	}
	for _, p := range hold {
		ref := Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
		out.Waiting = append(out.Waiting, ref)
		if !p.Deleting.IsZero() {
			out.Leaving = append(out.Leaving, ref)
		}
		if e, at := forced(p, ref, deadline, now); e != nil {
			out.Evictions = append(out.Evictions, *e)
			continue
		} else if !at.IsZero() && (out.Next.IsZero() || at.Before(out.Next)) {
			out.Next = at
		}
		switch {
		case !p.Deleting.IsZero():
		case p.Held(now):
			out.Held = append(out.Held, ref)
		case drainGroup(p) == group:
			out.Evictions = append(out.Evictions, Eviction{Pod: ref})
		}
	}
	return out
}

// Holds reports whether a drain waits for a pod.
func Holds(p *snapshot.Pod, now time.Time) bool {
	if p.Terminal() || !p.Deleting.IsZero() && now.Sub(p.Deleting) > StuckAfter {
		return false
	}
	return !p.Stays()
}

// forced is the eviction of a pod that has no more time than its grace period before the
// deadline, or when it will be.
func forced(p *snapshot.Pod, ref Pod, deadline, now time.Time) (*Eviction, time.Time) {
	if deadline.IsZero() {
		return nil, time.Time{}
	}
	grace := defaultGrace
	if g := p.Spec.TerminationGrace; g != nil {
		grace = time.Duration(max(*g, 0)) * time.Second
	}
	if at := deadline.Add(-grace); now.Before(at) {
		if p.Deleting.After(deadline) {
			at = now
		}
		if now.Before(at) {
			return nil, at
		}
	}
	if !p.Deleting.IsZero() && !p.Deleting.After(deadline) {
		return nil, time.Time{} // it ends in time by itself
	}
	left := max(1, int64(deadline.Sub(now)/time.Second))
	return &Eviction{Pod: ref, Grace: &left, Force: true, Why: "the node ends at " + deadline.UTC().Format(time.TimeOnly) + " UTC, whatever is left on it"}, time.Time{}
}

// Longest is the longest grace period among pods that hold a node: what its drain needs at
// least.
func Longest(pods []snapshot.Pod, now time.Time) time.Duration {
	var out time.Duration
	for i := range pods {
		p := &pods[i]
		if !Holds(p, now) {
			continue
		}
		grace := defaultGrace
		if g := p.Spec.TerminationGrace; g != nil {
			grace = time.Duration(max(*g, 0)) * time.Second
		}
		out = max(out, grace)
	}
	return out
}
