package ledger

import "kerf.sh/kerf/internal/lifecycle"

// The words of the ledger are lifecycle's, so that who uses a ledger need not know this
// package.
type (
	Mode        = lifecycle.Mode
	Meta        = lifecycle.Meta
	Lease       = lifecycle.Lease
	LeaseState  = lifecycle.LeaseState
	BusyError   = lifecycle.BusyError
	Begun       = lifecycle.Begun
	Settled     = lifecycle.Settlement
	Limits      = lifecycle.Limits
	LimitError  = lifecycle.LimitError
	Counted     = lifecycle.Counted
	Correction  = lifecycle.Correction
	Remembered  = lifecycle.Remembered
	Part        = lifecycle.Part
	ExistsError = lifecycle.ExistsError
	Change      = lifecycle.Change
)

// Modes, and the errors that say why nothing was written.
const (
	Normal   = lifecycle.Normal
	Recovery = lifecycle.Recovery
)

var (
	ErrLostLease = lifecycle.ErrLostLease
	ErrRecovery  = lifecycle.ErrRecovery
	ErrChanged   = lifecycle.ErrChanged
)
