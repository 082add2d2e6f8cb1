package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

const (
	// NominationGrace is how long a node may take from one stage to the next before the pods
	// that it was made for are planned anew: Karpenter's registration timeout.
	NominationGrace = RegisterTimeout
	// NominationHold is how long a nomination holds at least from when it was made or
	// renewed, and from when the node could first take the pod. It is more than two sweeps.
	NominationHold = time.Minute
)

// NominatedUntil is when the nomination of a pod to the node ends: while the node is on its
// way, NominationGrace after its last stage; then NominationHold after it was initialized,
// or after the nomination was renewed.
func (r Record) NominatedUntil(p Pod) time.Time {
	until := p.At.Add(NominationHold)
	var own time.Time
	switch {
	case !r.InitializedAt.IsZero():
		own = r.InitializedAt.Add(NominationHold)
	default:
		last := r.Created
		for _, t := range []time.Time{r.LaunchedAt, r.RegisteredAt} {
			if t.After(last) {
				last = t
			}
		}
		own = last.Add(NominationGrace)
	}
	if own.After(until) {
		return own
	}
	return until
}

// Nominations are those of all records that hold at a time, sorted by pod. Nodes that are
// on their way out hold none.
func Nominations(records []Record, now time.Time) []snapshot.Nomination {
	var out []snapshot.Nomination
	for i := range records {
		r := &records[i]
		if !r.Phase.Live() || r.Doomed != nil {
			continue
		}
		node := r.Claim
		if r.Node != "" {
			node = r.Node
		}
		for _, p := range r.Nominated {
			if until := r.NominatedUntil(p); now.Before(until) {
				out = append(out, snapshot.Nomination{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: node, Until: until})
			}
		}
	}
	sortNominations(out)
	return out
}

// sortNominations orders by pod, then by what holds longest, then by node.
func sortNominations(list []snapshot.Nomination) {
	slices.SortFunc(list, func(a, b snapshot.Nomination) int {
		return cmp.Or(
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.UID, b.UID),
			b.Until.Compare(a.Until), cmp.Compare(a.Node, b.Node),
		)
	})
}
