package lifecycle

import "time"

// Cancel closes a record of which nothing was asked of EC2 yet. ok is false for all
// others: what an attempt under way brings is known only when it is over.
func (r Record) Cancel(why string, now time.Time) (next Record, ok bool) {
	if r.Phase != Intended || r.Attempt != "" {
		return r, false
	}
	r.Phase, r.Reason, r.Message = Closed, ReasonCancelled, why
	r.ClosedAt, r.NextAt = now, time.Time{}
	return r, true
}
