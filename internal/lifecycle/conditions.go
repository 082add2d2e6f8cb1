package lifecycle

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Conditions are those of the record's NodeClaim, as Karpenter's users know them, in the
// order of the stages.
func (r Record) Conditions() []snapshot.Condition {
	stage := func(typ string, at time.Time, phase Phase) snapshot.Condition {
		c := snapshot.Condition{Type: typ, Status: "Unknown", Reason: text(r.Reason, "AwaitingReconciliation"), Message: r.Message, Since: r.Created}
		switch {
		case !at.IsZero():
			c = snapshot.Condition{Type: typ, Status: "True", Reason: typ, Since: at}
		case r.Phase != phase && r.Phase.Before(phase):
			c.Reason, c.Message = "AwaitingReconciliation", "the stage before is not over"
		}
		return c
	}
	launched := stage("Launched", r.LaunchedAt, Intended)
	registered := stage("Registered", r.RegisteredAt, Launched)
	if r.Phase == Launched && !r.LaunchedAt.IsZero() {
		registered.Since = r.LaunchedAt
	}
	if r.Reason == ReasonMultipleNodes && r.RegisteredAt.IsZero() {
		registered.Status = "False"
	}
	initialized := stage("Initialized", r.InitializedAt, Registered)
	if r.Phase == Registered && !r.RegisteredAt.IsZero() {
		initialized.Since = r.RegisteredAt
	}
	out := []snapshot.Condition{launched, registered, initialized, {}}
	ready := snapshot.Condition{Type: "Ready", Status: "True", Reason: "Ready", Since: r.InitializedAt}
	for _, c := range out[:3] {
		if c.Status != "True" {
			ready = snapshot.Condition{Type: "Ready", Status: c.Status, Reason: c.Reason, Message: c.Type + ": " + c.Message, Since: c.Since}
			break
		}
	}
	out[3] = ready
	switch r.Phase {
	case Draining:
		out = append(out, snapshot.Condition{Type: "Drained", Status: "Unknown", Reason: "Draining", Message: r.Message, Since: r.DeletingSince})
	case Terminating:
		out = append(out, snapshot.Condition{Type: "InstanceTerminating", Status: "True", Reason: "InstanceTerminating", Since: r.DeletingSince})
	}
	return out
}
