package lifecycle

import "time"

// Reasons of a NodeClaim's conditions, as Karpenter's users know them.
const (
	ReasonNodeNotFound       = "NodeNotFound"
	ReasonMultipleNodes      = "MultipleNodesFound"
	ReasonNodeNotReady       = "NodeNotReady"
	ReasonStartupTaints      = "StartupTaintsExist"
	ReasonEphemeralTaints    = "KnownEphemeralTaintsExist"
	ReasonResourceMissing    = "ResourceNotRegistered"
	ReasonLaunchTimeout      = "LaunchTimeout"
	ReasonRegisterTimeout    = "RegistrationTimeout"
	ReasonDeleted            = "Deleted"
	ReasonInstanceGone       = "InstanceGone"
	ReasonInstanceTerminated = "InstanceTerminated"
	ReasonCancelled          = "Cancelled"
)

// Timeouts of the stages (Karpenter: launch 5 minutes, registration 15 minutes; a node
// that never initializes has none, and stays until it expires or a person acts).
const (
	LaunchTimeout   = 5 * time.Minute
	RegisterTimeout = 15 * time.Minute
)
