package plan

import "kerf.sh/kerf/internal/snapshot"

// MoveReason is why nodes go.
type MoveReason string

// Reasons of moves.
const (
	MoveEmpty         MoveReason = "Empty"
	MoveUnderutilized MoveReason = "Underutilized"
	MoveDrifted       MoveReason = "Drifted"
	MoveExpired       MoveReason = "Expired"
	MoveUnhealthy     MoveReason = "Unhealthy"
	MoveOrphaned      MoveReason = "Orphaned"
	MoveInterrupted   MoveReason = "Interrupted"
	MoveScaledDown    MoveReason = "ScaledDown"
)

// Move removes nodes, and may bring others in their place.
type Move struct {
	ID     string
	Reason MoveReason
	// Detail says more about the reason: which drift, how much cheaper.
	Detail string
	Remove []string // nodes, by name
	Add    []Launch
	// Placements are where the pods of the removed nodes go.
	Placements []Placement
	// Saving is what the removed nodes cost less what is added, micro-dollars per hour.
	Saving snapshot.Price
	// Cost is what moving the pods costs, in millionths of an average pod's eviction.
	Cost int64
	// Held says why the move is not carried out ("MassRemoval"), "" when nothing holds it.
	Held string
	// Blockers are what stands in the way of a move that has to come.
	Blockers []string
}

// Savings says what a cluster costs, and what it would after the moves of a plan.
type Savings struct {
	// Now is the price of all nodes, After that after all moves that are not held, Floor
	// that of a cluster packed anew: no plan under the same rules is cheaper.
	Now, After, Floor snapshot.Price
	// Considered counts the nodes that were looked at, Left those that the work budget left
	// for the next pass.
	Considered, Left int
}
