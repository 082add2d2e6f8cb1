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
	// NominationMost is how long renewing helps once the node could take the pod: a pod that
	// is not bound by then is planned anew, or it would wait for ever.
	NominationMost = 5 * time.Minute
)

// NominatedUntil is when the nomination of a pod to the node ends: while the node is on its
// way, NominationGrace after its last stage; then NominationHold after it was initialized,
// or after the nomination was renewed, for NominationMost together.
func (r Record) NominatedUntil(p Pod) time.Time {
	renewed := p.At.Add(NominationHold)
	if r.InitializedAt.IsZero() {
		return later(renewed, later(r.Created, r.LaunchedAt, r.RegisteredAt).Add(NominationGrace))
	}
	until := later(renewed, r.InitializedAt.Add(NominationHold))
	if most := later(r.InitializedAt, p.Since).Add(NominationMost); until.After(most) {
		return most
	}
	return until
}

func later(t time.Time, more ...time.Time) time.Time {
	for _, o := range more {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// Nominate gives the node pods that it is to take, beside those that it has. A pod that is
// named again is renewed.
func (r Record) Nominate(pods []Pod, now time.Time) Record {
	out := slices.Clone(r.Nominated)
	for _, p := range pods {
		i := slices.IndexFunc(out, func(o Pod) bool { return o.Namespace == p.Namespace && o.Name == p.Name && o.UID == p.UID })
		if i < 0 {
			p.Since, p.At = now, now
			out = append(out, p)
			continue
		}
		out[i].At = now
	}
	r.Nominated = out
	return r
}

// Renominate keeps the nominations of pods that still wait, and renews them when half of
// their time is over; those that were bound or deleted, and nominations that have ended, are
// dropped, so that a node which nobody needs any more is known as such. changed is false when nothing has to be saved.
func (r Record) Renominate(waits func(Pod) bool, now time.Time) (next Record, changed bool) {
	var kept []Pod
	for _, p := range r.Nominated {
		if !waits(p) || !now.Before(r.NominatedUntil(p)) {
			changed = true
			continue
		}
		if now.Sub(p.At) >= NominationHold/2 && !r.InitializedAt.IsZero() {
			p.At, changed = now, true
		}
		kept = append(kept, p)
	}
	r.Nominated = kept
	return r, changed
}

// Nominations are those of all records that hold at a time, sorted by pod. Nodes that are
// on their way out hold none. Of several nodes that a pod was meant for it waits for the one
// that was chosen last: the plan that chose it did not find its room on the others.
func Nominations(records []Record, now time.Time) []snapshot.Nomination {
	type nomination struct {
		snapshot.Nomination
		since time.Time
	}
	var all []nomination
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
				all = append(all, nomination{snapshot.Nomination{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: node, Until: until.UTC()}, p.Since})
			}
		}
	}
	slices.SortFunc(all, func(a, b nomination) int {
		return cmp.Or(
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.UID, b.UID),
			b.since.Compare(a.since), b.Until.Compare(a.Until), cmp.Compare(a.Node, b.Node),
		)
	})
	var out []snapshot.Nomination
	for i := range all {
		if o := &all[i].Nomination; i == 0 || o.Namespace != all[i-1].Namespace || o.Pod != all[i-1].Pod || o.UID != all[i-1].UID {
			out = append(out, *o)
		}
	}
	return out
}
