package lifecycle

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Notice tells others of a decision about nodes: what goes and why, when it is decided and
// when it is done. It is told once, as a rule, and may be lost when a pass is cut off: the
// decision log has what was decided.
type Notice struct {
	At      time.Time
	Cluster string
	// Command names the decision: notices of one command belong together.
	Command string
	// Phase is that of the command, or Held for a move that waits for a person.
	Phase  CommandPhase
	Reason string
	Pools  []string
	Nodes  []string
	// Detail says what was found, Why why it was taken back or is held.
	Detail, Why string
	// Saving is what it saves an hour; Price what the cluster costs now.
	Saving, Price snapshot.Price
}

// Held is the phase of a notice about a move that waits for a person.
const Held CommandPhase = "Held"
