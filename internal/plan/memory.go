package plan

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Memory is what the functions remember and this plan has heeded.
type Memory struct {
	// Nominated counts the pods that keep a node which the ledger says they were given.
	Nominated int
	// Shortages are those of offers that a NodePool allows, sorted.
	Shortages []Shortage
	// Learned are the types that NodePools allow and whose nodes turned out to have
	// something else than is computed, by type and class.
	Learned []LearnedSize
}

// Shortage are offers that EC2 had no capacity for, and that no node is planned on until
// its end. Fields that are "" stand for whichever.
type Shortage struct {
	InstanceType, Zone, CapacityType, ReservationID string
	Until                                           time.Time
	Code                                            string
	Offers                                          int // how many it leaves out
}

// LearnedSize is a type as nodes of a class turned out to have it.
type LearnedSize struct {
	InstanceType, NodeClass, ImageID string
	Allocatable, Computed            snapshot.Resources
}
