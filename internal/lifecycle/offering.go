package lifecycle

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// How long an offer is left alone after EC2 had no capacity for it (Karpenter: 3 minutes,
// always): it doubles with every failure that comes soon after the one before, because
// the offer that fails again was not worth asking.
const (
	ShortageMin = 3 * time.Minute
	ShortageMax = 12 * time.Minute
	// shortageMemory is the calm after which a failure counts as the first again.
	shortageMemory = time.Hour
	// interruptionMemory is how long an interruption counts.
	interruptionMemory = 7 * 24 * time.Hour
	maxInterruptions   = 32
)

// Offer names a type in a zone as a capacity type. For a shortage, "" is whichever: a quota
// of spot instances that is used up is the Offer {CapacityType: "spot"}.
type Offer struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// ReservationID leaves it to one capacity reservation; "" = whichever.
	ReservationID string `json:"reservationId,omitempty"`
}

// Health is what is remembered of an offer.
type Health struct {
	Offer
	// Until is when it may be asked for again after a shortage; zero = at once.
	Until    time.Time `json:"until,omitzero"`
	Code     string    `json:"code,omitempty"` // of the last shortage
	Failed   time.Time `json:"failed,omitzero"`
	Failures int       `json:"failures,omitempty"` // soon after one another
	// Interrupted are the times of interruptions that still count, oldest first.
	Interrupted []time.Time `json:"interrupted,omitempty"`
	Version     int64       `json:"version"`
}

// Available reports whether the offer may be asked for.
func (h Health) Available(now time.Time) bool { return !now.Before(h.Until) }

// Shortage returns the health after EC2 had no capacity. Several reports of one shortage
// count once: a failure while the offer is left alone only tells of calls that were
// already on their way.
func (h Health) Shortage(code string, now time.Time) Health {
	switch {
	case now.Before(h.Until):
		return h
	case h.Failures > 0 && now.Sub(h.Failed) < shortageMemory:
		h.Failures = min(h.Failures+1, 16)
	default:
		h.Failures = 1
	}
	wait := ShortageMin
	for range h.Failures - 1 {
		wait = min(2*wait, ShortageMax)
	}
	h.Code, h.Failed, h.Until = code, now, now.Add(wait)
	return h
}

// Interruption returns the health after an instance of the offer got a notice at a time;
// the same time counts once.
func (h Health) Interruption(at, now time.Time) Health {
	kept := make([]time.Time, 0, len(h.Interrupted)+1)
	placed := false
	for _, t := range h.Interrupted {
		if now.Sub(t) >= interruptionMemory {
			continue
		}
		if !placed && !t.Before(at) {
			placed = true
			if !t.Equal(at) {
				kept = append(kept, at)
			}
		}
		kept = append(kept, t)
	}
	if !placed {
		kept = append(kept, at)
	}
	h.Interrupted = kept[max(0, len(kept)-maxInterruptions):]
	return h
}

// Forget is when nothing of it matters any more.
func (h Health) Forget() time.Time {
	end := h.Until.Add(shortageMemory)
	if n := len(h.Interrupted); n > 0 {
		if t := h.Interrupted[n-1].Add(interruptionMemory); t.After(end) {
			end = t
		}
	}
	return end
}

// Setbacks are what still counts against offers at a time. The snapshot sorts them.
func Setbacks(health []Health, now time.Time) []snapshot.Setback {
	var out []snapshot.Setback
	for i := range health {
		h := &health[i]
		s := snapshot.Setback{InstanceType: h.InstanceType, Zone: h.Zone, CapacityType: h.CapacityType, ReservationID: h.ReservationID}
		for _, at := range h.Interrupted {
			if now.Sub(at) < interruptionMemory {
				s.Interrupted = append(s.Interrupted, at.UTC())
			}
		}
		if h.Failures > 0 && now.Sub(h.Failed) < shortageMemory+ShortageMax {
			s.Failures, s.Failed = h.Failures, h.Failed.UTC()
		}
		if s.Share(now) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Shortages are the offers that are to be left alone at a time. The snapshot sorts them.
func Shortages(health []Health, now time.Time) []snapshot.Shortage {
	var out []snapshot.Shortage
	for i := range health {
		if h := &health[i]; !h.Available(now) {
			out = append(out, snapshot.Shortage{
				InstanceType: h.InstanceType, Zone: h.Zone, CapacityType: h.CapacityType, ReservationID: h.ReservationID,
				Until: h.Until.UTC(), Code: h.Code,
			})
		}
	}
	return out
}
