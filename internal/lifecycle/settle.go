package lifecycle

import (
	"fmt"
	"maps"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Known is what an instance is, by the catalogue: it replaces what was reserved for all
// that it might have become. The zero Known leaves that as it is.
type Known struct {
	Capacity, Allocatable snapshot.Resources
	Price                 snapshot.Price
	// ImageID is the image that such an instance boots, for outcomes that do not say.
	ImageID string
	// Labels are those that follow from the type and the offer; the NodeClaim and its Node
	// get them beside what they have.
	Labels map[string]string
}

// Settle brings the outcome of an attempt to a record: with an instance it is Launched,
// without one it is Intended again. nil means that the record has its outcome already, or
// is not the attempt's. orphan means that the instance is nobody's, because the record
// has another: it is to be terminated. A record that is already to go keeps its phase and
// learns which instance has to go with it.
func (r Record) Settle(a Attempt, in Instance, k Known, now time.Time) (next *Record, orphan bool) {
	if r.Attempt != a.ID {
		return nil, in.ID != "" && r.Instance.ID != in.ID
	}
	if r.Instance.ID != "" {
		return nil, in.ID != "" && r.Instance.ID != in.ID
	}
	if in.ID == "" {
		r.Attempt = ""
		if r.Phase == Launching {
			r.Phase = Intended
			r.Reason, r.Message = "LaunchFailed", failure(a)
		}
		r.NextAt = now
		return &r, false
	}
	if in.LaunchedAt.IsZero() {
		in.LaunchedAt = a.Created
	}
	if in.Price == 0 {
		in.Price = k.Price
	}
	if in.ImageID == "" {
		in.ImageID = k.ImageID
	}
	r.Instance = in
	r.LaunchedAt = now
	if !k.Capacity.IsZero() {
		r.Reserved = UsageOf(k.Capacity, in.Price)
		r.Capacity, r.Allocatable = k.Capacity, k.Allocatable
	}
	if len(k.Labels) > 0 {
		labels := maps.Clone(k.Labels)
		maps.Copy(labels, r.Spec.Labels)
		r.Spec.Labels = labels
	}
	if r.Phase == Launching {
		r.Phase, r.Reason, r.Message = Launched, ReasonNodeNotFound, "the instance runs, its Node has not been seen"
	}
	r.NextAt = now
	return &r, false
}

// failure is the first error of an attempt, with how many there were.
func failure(a Attempt) string {
	if a.Outcome == nil || len(a.Outcome.Errors) == 0 {
		return "EC2 gave no instance and no reason"
	}
	e := a.Outcome.Errors[0]
	text := e.Code
	if e.InstanceType != "" {
		text += " for " + e.InstanceType + " in " + e.Zone + " (" + e.CapacityType + ")"
	}
	if n := len(a.Outcome.Errors); n > 1 {
		text += fmt.Sprintf(", and %d more", n-1)
	}
	return text
}
