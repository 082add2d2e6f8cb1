package lifecycle

import (
	"slices"
	"strings"
	"time"
)

// State is how far an attempt has come.
type State string

const (
	// Calling: the request is stored and may have been sent; its outcome is not known.
	Calling State = "Launching"
	// Answered: the outcome is stored; the records may not all have it yet.
	Answered State = "Answered"
	// Settled: every record has its outcome. Settled attempts are kept for a while.
	Settled State = "Settled"
)

// The times of an attempt.
const (
	// CallTimeout is what a call that launches may take; it is not retried past it.
	CallTimeout = 60 * time.Second
	// Grace is how long after notAfter a call is still treated as on its way: clocks
	// differ, and EC2 may act on what it took late.
	Grace = 60 * time.Second
	// ReplayAge is the age from which a stored request is never sent again: the token may
	// be forgotten, and then it would be another launch.
	ReplayAge = 10 * time.Minute
	// LookFor is how long tags are looked up before what they showed counts as all:
	// what EC2 shows lags behind what it did.
	LookFor = 5 * time.Minute
	// MinLooks is how many look-ups that takes at least.
	MinLooks = 3
	// LookEvery is the time between two look-ups.
	LookEvery = 30 * time.Second
)

// Attempt is one call that launches nodes. It is stored, with the bytes of its request,
// before the call; what is sent again is what is stored, never a new request under the
// same token.
type Attempt struct {
	// ID is the token of the call and a tag on all that it makes.
	ID string `json:"id"`
	// Claims are the nodes wanted, in order; sorted instance ids pair with them.
	Claims   []string `json:"claims"`
	NodePool string   `json:"nodePool,omitempty"`
	PlanID   string   `json:"planId,omitempty"`
	Fence    int64    `json:"fence"`
	// Request is the request as it is sent, without its authorisation.
	Request []byte `json:"request"`
	// Templates are the launch templates that the request names, sorted.
	Templates []string `json:"templates,omitempty"`
	State     State    `json:"state"`
	// Created is when it was stored; NotAfter is the end of the time in which the call
	// may be made.
	Created  time.Time `json:"created"`
	NotAfter time.Time `json:"notAfter"`
	// Looks counts complete look-ups by tag that did not show an instance for every claim,
	// from FirstLook on; Seen is what they showed together.
	Looks     int        `json:"looks,omitempty"`
	FirstLook time.Time  `json:"firstLook,omitzero"`
	LastLook  time.Time  `json:"lastLook,omitzero"`
	Seen      []Instance `json:"seen,omitempty"`
	Outcome   *Outcome   `json:"outcome,omitempty"`
	Version   int64      `json:"version"`
}

// Outcome is what became of an attempt.
type Outcome struct {
	// Instances by id. Fewer than claims: the rest got none.
	Instances []Instance `json:"instances,omitempty"`
	// Errors are those of single offers.
	Errors []OfferError `json:"errors,omitempty"`
	// Source is how it is known.
	Source Source    `json:"source"`
	At     time.Time `json:"at"`
}

// Source is how an outcome is known.
type Source string

const (
	FromAnswer Source = "Answer" // the call was answered
	FromReplay Source = "Replay" // the stored request was sent again
	FromTags   Source = "Tags"   // instances were found by their tag, or none in LookFor
)

// OfferError is what EC2 said of one offer.
type OfferError struct {
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	Code         string `json:"code"`
	Message      string `json:"message,omitempty"`
}

// Pair gives every claim its instance: ids sorted, claims in order, so that whoever pairs
// them gets the same pairs. extra are instances beyond the claims: they are nobody's and
// are to be terminated.
func (a Attempt) Pair(instances []Instance) (owned map[string]Instance, extra []Instance) {
	sorted := slices.SortedFunc(slices.Values(instances), func(x, y Instance) int { return strings.Compare(x.ID, y.ID) })
	sorted = slices.CompactFunc(sorted, func(x, y Instance) bool { return x.ID == y.ID })
	owned = make(map[string]Instance, len(a.Claims))
	for i, in := range sorted {
		if i < len(a.Claims) {
			owned[a.Claims[i]] = in
		} else {
			extra = append(extra, in)
		}
	}
	return owned, extra
}

// Move is what may be done about an attempt whose outcome is not known.
type Move string

const (
	MoveWait   Move = "Wait"   // not before At
	MoveReplay Move = "Replay" // send the stored request again
	MoveLook   Move = "Look"   // look for instances by tag
	MoveGiveUp Move = "GiveUp" // what was seen is all there is: the other claims are free again
	MoveSettle Move = "Settle" // the outcome is known: bring it to the records
	MoveNone   Move = "None"   // nothing is left to do
)

// Resolution is the next move about an attempt.
type Resolution struct {
	Move Move
	// At is when the move is due, for Wait, or when to come back after a look.
	At time.Time
	// Why is one line for logs.
	Why string
}

// Resolve says what may be done about an attempt. wanted: a claim of it is still wanted,
// and no recovery is going on. A call that may be under way is left alone until Grace
// after its end; then its stored request is sent again if it is young and wanted, and
// otherwise its instances are looked for by tag, several times over LookFor. It is the
// same question for whoever asks: the holder, the next holder, a lifecycle step.
func (a Attempt) Resolve(wanted bool, now time.Time) Resolution {
	switch a.State {
	case Answered:
		return Resolution{MoveSettle, now, "the outcome is stored"}
	case Settled:
		return Resolution{MoveNone, now, "settled"}
	}
	free := a.NotAfter.Add(Grace)
	switch {
	case now.Before(free):
		return Resolution{MoveWait, free, "the call may be under way"}
	case wanted && a.Looks == 0 && now.Sub(a.Created) < ReplayAge:
		return Resolution{MoveReplay, now, "the stored request gives the same answer"}
	case a.Looks >= MinLooks && a.LastLook.Sub(a.FirstLook) >= LookFor:
		return Resolution{MoveGiveUp, now, "look-ups by tag over five minutes showed no more"}
	case !a.LastLook.IsZero() && now.Before(a.LastLook.Add(LookEvery)):
		return Resolution{MoveWait, a.LastLook.Add(LookEvery), "the next look-up by tag"}
	default:
		return Resolution{MoveLook, now, "find out by tag what it made"}
	}
}

// Looked returns the attempt after a complete look-up by tag. Once there is an instance
// for every claim the outcome is known. Before that, what EC2 shows may be a part: a claim
// that was freed too early would be launched twice.
func (a Attempt) Looked(instances []Instance, now time.Time) Attempt {
	seen := slices.Clone(a.Seen)
	for _, in := range instances {
		if !slices.ContainsFunc(seen, func(o Instance) bool { return o.ID == in.ID }) {
			seen = append(seen, in)
		}
	}
	slices.SortFunc(seen, func(x, y Instance) int { return strings.Compare(x.ID, y.ID) })
	a.Seen = seen
	if len(seen) > 0 && len(seen) >= len(a.Claims) {
		return a.Answer(Outcome{Instances: seen, Source: FromTags, At: now})
	}
	if a.Looks == 0 {
		a.FirstLook = now
	}
	a.Looks++
	a.LastLook = now
	return a
}

// Answer returns the attempt with its outcome. The first outcome stays.
func (a Attempt) Answer(o Outcome) Attempt {
	if a.Outcome != nil {
		return a
	}
	o.Instances = slices.SortedFunc(slices.Values(o.Instances), func(x, y Instance) int { return strings.Compare(x.ID, y.ID) })
	a.Outcome, a.State = &o, Answered
	return a
}

// GiveUp returns the attempt with what was seen of it as its outcome, often nothing.
func (a Attempt) GiveUp(now time.Time) Attempt {
	return a.Answer(Outcome{Instances: a.Seen, Source: FromTags, At: now})
}
