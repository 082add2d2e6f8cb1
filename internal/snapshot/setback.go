package snapshot

import "time"

// Setback is what the ledger remembers of offers that went wrong lately: instances that EC2
// took back, launches that found no capacity. Such offers count as dearer than they are when
// offers are compared, less and less as time goes by; what they cost stays what it is
// (Karpenter remembers neither).
type Setback struct {
	// InstanceType, Zone, CapacityType and ReservationID say which offers; "" = whichever.
	InstanceType  string `json:"instanceType,omitempty"`
	Zone          string `json:"zone,omitempty"`
	CapacityType  string `json:"capacityType,omitempty"`
	ReservationID string `json:"reservationId,omitempty"`
	// Interrupted are the times of notices that still count, oldest first.
	Interrupted []time.Time `json:"interrupted,omitempty"`
	// Failures are launches without capacity, soon after one another, Failed the last one.
	Failures int       `json:"failures,omitempty"`
	Failed   time.Time `json:"failed,omitzero"`
}

// Whole is a share of 1, in the unit of shares: millionths.
const Whole = int64(1_000_000)

// How much dearer an offer counts, in millionths of its price, and after how long half of
// that is forgotten. A spot pool that gave notice is short for hours; what had no capacity
// is asked for again soon, but not before others of about the same price.
const (
	interruptedShare = 150_000
	interruptedHalf  = 12 * time.Hour
	failedShare      = 100_000
	failedHalf       = time.Hour
	failedMost       = 4 // failures that count
	// shareStep is what shares are rounded down to: what changes with every second would make
	// another plan of every pass.
	shareStep = 10_000
)

// Share is how much dearer the offers count at a time, in millionths of their price and whole
// percent: 0 when all is forgotten, Whole at most.
func (s *Setback) Share(now time.Time) int64 {
	sum := int64(0)
	for _, at := range s.Interrupted {
		sum += decayed(interruptedShare, interruptedHalf, now.Sub(at))
	}
	if n := min(s.Failures, failedMost); n > 0 {
		sum += decayed(failedShare*int64(n), failedHalf, now.Sub(s.Failed))
	}
	return min(sum/shareStep*shareStep, Whole)
}

// decayed is what is left of a share after a while: half of it after each half-life, in a
// straight line between.
func decayed(share int64, half, age time.Duration) int64 {
	age = max(age, 0)
	n := int64(age / half)
	if n > 40 {
		return 0
	}
	share >>= n
	return share - (share-share/2)*int64((age%half)/time.Second)/int64(half/time.Second)
}

// Hits reports whether an offer is among those of the setback.
func (s *Setback) Hits(instanceType, zone, capacityType, reservation string) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(s.InstanceType, instanceType) && is(s.Zone, zone) && is(s.CapacityType, capacityType) && is(s.ReservationID, reservation)
}

// Key names the offers of the setback.
func (s *Setback) Key() string {
	return offersKey(s.InstanceType, s.Zone, s.CapacityType, s.ReservationID)
}

// Of is a share of a price, rounded down.
func Of(price Price, share int64) Price {
	return price/Whole*share + price%Whole*share/Whole
}

// Rest is a node that consolidation leaves in peace for a while: a move of it was taken back,
// it has just got pods, or its pods were moved to and fro.
type Rest struct {
	Node string `json:"node"`
	Why  string `json:"why"`
	// TakenBack: a move of it was rolled back, so it does not drift either.
	TakenBack bool `json:"takenBack,omitempty"`
	// Until is when that is over; zero = when what Why names is.
	Until time.Time `json:"until,omitzero"`
}

// Live reports whether the node is still to be left in peace.
func (r *Rest) Live(now time.Time) bool { return r.Until.IsZero() || now.Before(r.Until) }
