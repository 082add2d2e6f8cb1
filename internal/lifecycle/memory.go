package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// This file has the words in which the ledger is spoken of by those who use it: they do
// not know how it is kept.

// Meta says which table this is.
type Meta struct {
	Table   string    `json:"table"`
	Schema  int       `json:"schema"`
	Cluster string    `json:"cluster"`
	Mode    Mode      `json:"mode"`
	Since   time.Time `json:"since"` // of the mode
	Why     string    `json:"why,omitempty"`
}

// Mode says what the table may be used for.
type Mode string

// Lease is the right to plan. It is lost when somebody else takes it after its expiry, or
// when a recovery begins; then nothing that is written with it is applied.
type Lease struct {
	Owner   string
	Token   int64 // grows with every holder
	Expires time.Time
	Slot    int64 // the last slot that was done when it was taken
	Mode    Mode
	Table   string
}

// BusyError says who plans.
type BusyError struct {
	Owner   string
	Expires time.Time
	Slot    int64 // the last slot that was done
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the planner's lease is held by %s until %s", e.Owner, e.Expires.UTC().Format(time.RFC3339))
}

// LeaseState is the lease as it stands, for ticks and reports.
type LeaseState struct {
	Owner   string // "" = nobody
	Token   int64
	Expires time.Time
	Rerun   bool
	Slot    int64
	Mode    Mode
}

const (
	// Normal: everything.
	Normal Mode = "normal"
	// Recovery: the table is new, or was restored, and does not know all nodes: nothing is
	// launched or disrupted until records were rebuilt.
	Recovery Mode = "recovery"
)

var (
	// ErrLostLease: the lease is somebody else's, or has expired.
	ErrLostLease = errors.New("the planner's lease is lost")
	// ErrRecovery: the table is in recovery mode, or has to be.
	ErrRecovery = errors.New("the ledger is in recovery: nothing is launched or disrupted")
	// ErrChanged: a row is not as it was read: read again and decide again.
	ErrChanged = errors.New("it was changed by somebody else")
)

// Begun is an attempt that may be called now, and its records.
type Begun struct {
	Attempt Attempt
	Records []Record // in the order of its claims
}

// Settlement is what an attempt brought.
type Settlement struct {
	// Records are the claims' records as they are now.
	Records []Record
	// Extra are instances of the attempt that no record owns: they are to be terminated.
	Extra []Instance
}

// Limits are those of NodePools as they stand, by name of the pool: by resource, in the
// units of Usage. What is not named is not limited.
type Limits map[string]map[string]int64

// LimitError says that a commit would exceed a limit; nothing of it was applied.
type LimitError struct {
	NodePool, Resource string
	Used, Asked, Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("nodepool %s: limit of %s: %d used and %d asked for, %d allowed", e.NodePool, e.Resource, e.Used, e.Asked, e.Limit)
}

// Counted is what a pool uses by its counters, with the version of them.
type Counted struct {
	Version int64
	Usage   Usage
}

// Correction is a pool whose counters were not what its records add up to.
type Correction struct {
	NodePool  string
	Was, Made Usage
}

// Remembered is the ledger as a plan needs it.
type Remembered struct {
	Records     []Record
	Attempts    []Attempt
	Nominations []snapshot.Nomination
	Health      []Health // offers about which something is remembered
	Learned     []Learned
	Usage       map[string]Usage // by pool
}

// Into puts what is remembered into a snapshot: nodes without an object, nodes that are
// going, nominations (Remember), offers that are short at s.Now, and sizes that nodes turned
// out to have. What the snapshot remembered before is replaced. NodeClasses have to be
// resolved by then, for sizes are those of their images. The snapshot is still to be
// normalized; saved and read, it gives the same plan without the ledger.
func (m Remembered) Into(s *snapshot.Snapshot) {
	Remember(s, m.Records, s.Now)
	s.Shortages, s.Setbacks = Shortages(m.Health, s.Now), Setbacks(m.Health, s.Now)
	s.Learned = append(LearnedSizes(m.Learned, s.NodeClasses, s.Now), joinedSizes(m.Records, s.Nodes)...)
}

// Unavailable are the offers that are not to be asked for at a time, sorted.
func (m Remembered) Unavailable(now time.Time) []Offer {
	var out []Offer
	for _, h := range m.Health {
		if !h.Available(now) {
			out = append(out, h.Offer)
		}
	}
	return out
}

// Part is a named piece of the catalogue: the types and prices of a region, or a resolved
// NodeClass.
type Part struct {
	Name string // does not contain "#"
	Data []byte
	// Generation is that of the object it was made from; a class counts as resolved when it
	// is the generation that it has now.
	Generation int64
	At         time.Time // when it was stored
}

// ExistsError says that a claim of a commit is there already.
type ExistsError struct{ Claim string }

func (e *ExistsError) Error() string { return "a record of claim " + e.Claim + " exists" }

// Change is a record as it was read and as it is to be.
type Change struct{ Was, Next Record }

// Note is a small thing that passes tell one another under a name: which step a chain of
// messages is at, what was in vain, what was seen once. It is written over the version that
// was read (0 = there was none); ErrChanged means that somebody else was quicker.
type Note struct {
	Name    string
	Data    []byte // nil = there is none
	Version int64
	// Until is when it is forgotten, zero = never.
	Until time.Time
}
