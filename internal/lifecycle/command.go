package lifecycle

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// CommandPhase is how far a command has come.
type CommandPhase string

const (
	Proposed   CommandPhase = "Proposed"   // a pass found it; the next one has to find it again
	Tainted    CommandPhase = "Tainted"    // no new pods come; eligibility is checked once more
	Replacing  CommandPhase = "Replacing"  // replacements are launched, candidates stay
	Removing   CommandPhase = "Removing"   // candidates drain and go
	Done       CommandPhase = "Done"       // nothing is left to do
	RolledBack CommandPhase = "RolledBack" // candidates stay; replacements stay or go as empty
)

// Command removes nodes for a reason, and brings replacements first.
type Command struct {
	ID string `json:"id"`
	// Reason is that of the move: Empty, Underutilized, Drifted, Expired, Unhealthy, ...
	Reason       string   `json:"reason"`
	Detail       string   `json:"detail,omitempty"`       // more about the reason
	Candidates   []string `json:"candidates"`             // claims
	Nodes        []string `json:"nodes,omitempty"`        // of the candidates, in their order
	Pools        []string `json:"pools,omitempty"`        // NodePools of the candidates
	Replacements []string `json:"replacements,omitempty"` // claims
	// Targets are nodes that get pods of the candidates: they are left in peace for a while.
	Targets []string `json:"targets,omitempty"`
	// Adds: a replacement is wanted before the candidates go.
	Adds bool `json:"adds,omitempty"`
	// Confirmed: a person has let a mass removal go.
	Confirmed bool           `json:"confirmed,omitempty"`
	Phase     CommandPhase   `json:"phase"`
	PlanID    string         `json:"planId,omitempty"`
	Fence     int64          `json:"fence,omitempty"`
	Saving    snapshot.Price `json:"saving,omitempty"`
	// Inputs is a hash of what the decision was made on: the next pass repeats the
	// decision, and goes on if it is the same.
	Inputs string `json:"inputs,omitempty"`
	Why    string `json:"why,omitempty"` // of a roll-back
	// Failed counts how often in a row the replacement could not be had: the next try waits
	// longer each time.
	Failed  int       `json:"failed,omitempty"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	NextAt  time.Time `json:"nextAt,omitzero"`
	Version int64     `json:"version"`
}

// Over reports whether the command needs nothing more.
func (c Command) Over() bool { return c.Phase == Done || c.Phase == RolledBack }
