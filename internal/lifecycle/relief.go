package lifecycle

import (
	"fmt"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

const (
	// ReliefWait is how long the drain of a doomed node waits for a plan for its pods: a
	// sweep is asked for at once, and takes seconds.
	ReliefWait = 20 * time.Second
	// ReliefMargin is what is left to the end of a node besides the longest grace period of
	// its pods when its drain begins at the latest.
	ReliefMargin = 15 * time.Second
)

// Relief is what a plan has for the pods of a node that EC2 takes: their drain begins when
// they have somewhere to go.
type Relief struct {
	At time.Time `json:"at"` // of the plan
	// Claims are nodes on their way for them; those that are there already are not named.
	Claims []string `json:"claims,omitempty"`
	// Missing counts pods that the plan has no place for.
	Missing int `json:"missing,omitempty"`
}

// Relieved reports whether the pods of a doomed node may be evicted, and why not. others are
// the records of the nodes that its relief names. Without a deadline there is no end to
// wait for; with one, nobody waits past the time that the pods need to end.
func (r Record) Relieved(others map[string]Record, pods []snapshot.Pod, now time.Time) (ok bool, why string) {
	d := r.Doomed
	if d == nil {
		return true, ""
	}
	if !r.Deadline.IsZero() && !now.Before(r.Deadline.Add(-Longest(pods, now)-ReliefMargin)) {
		return true, ""
	}
	if r.Relief == nil {
		if since := r.dueSince(); now.Sub(since) < ReliefWait {
			return false, "waits for a plan for its pods"
		}
		return true, ""
	}
	for _, claim := range r.Relief.Claims {
		o, there := others[claim]
		if there && o.Phase.Live() && o.Phase.Before(Initialized) {
			return false, fmt.Sprintf("waits for node %s, which is %s, to take its pods", claim, o.Phase)
		}
	}
	return true, ""
}

// dueSince is when a doomed node was first to go.
func (r Record) dueSince() time.Time {
	if !r.DeletingSince.IsZero() {
		return r.DeletingSince
	}
	return r.Doomed.At
}
