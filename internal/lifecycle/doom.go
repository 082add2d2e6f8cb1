package lifecycle

import "time"

// Doom marks a record whose instance EC2 will take. Notices may come several times and in
// any order: the first reason stays, the earliest deadline holds. changed is false when the
// notice says nothing new, or comes when the node is on its way out with no less time.
func (r Record) Doom(d Doom, now time.Time) (next Record, changed bool) {
	if r.Phase == Terminating || r.Phase == Closed {
		return r, false
	}
	if r.Doomed != nil {
		was := *r.Doomed
		if d.Deadline.IsZero() || !was.Deadline.IsZero() && !d.Deadline.Before(was.Deadline) {
			return r, false
		}
		was.Deadline = d.Deadline
		r.Doomed = &was
	} else {
		r.Doomed = &d
	}
	if t := r.Doomed.Deadline; !t.IsZero() && (r.Deadline.IsZero() || t.Before(r.Deadline)) {
		r.Deadline = t
	}
	r.NextAt = now
	return r, true
}
