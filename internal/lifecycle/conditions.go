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
	return append(out, r.ending()...)
}

// reasonElapsed is why a node goes that its pods or volumes did not leave in time.
const reasonElapsed = "TerminationGracePeriodElapsed"

// ending are the conditions of a node that is on its way out: its pods leave, then its
// volumes, then its instance ends. One that never had pods has only the last.
func (r Record) ending() []snapshot.Condition {
	if r.Phase != Draining && r.Phase != Terminating {
		return nil
	}
	var out []snapshot.Condition
	if drained := (snapshot.Condition{Type: "Drained", Status: "Unknown", Reason: "Draining", Message: text(r.Blocked, r.Message), Since: r.DeletingSince}); !r.RegisteredAt.IsZero() {
		if !r.DrainedAt.IsZero() {
			drained.Status, drained.Reason, drained.Message, drained.Since = "True", "Drained", "", r.DrainedAt
		}
		out = append(out, drained)
	}
	volumes := snapshot.Condition{Type: "VolumesDetached", Status: "Unknown", Reason: "AwaitingVolumeDetachment", Message: r.Message, Since: r.DrainedAt}
	switch {
	case r.RegisteredAt.IsZero():
	case !r.DetachedAt.IsZero():
		volumes.Status, volumes.Reason, volumes.Message, volumes.Since = "True", "VolumesDetached", "", r.DetachedAt
		out = append(out, volumes)
	case r.Phase == Terminating && r.Reason == reasonElapsed:
		volumes.Status, volumes.Reason, volumes.Since = "False", reasonElapsed, r.Since
		out = append(out, volumes)
	case !r.DrainedAt.IsZero():
		out = append(out, volumes)
	}
	if r.Phase == Terminating {
		out = append(out, snapshot.Condition{Type: "InstanceTerminating", Status: "True", Reason: "InstanceTerminating", Since: r.DeletingSince})
	}
	return out
}
