package plan

// Code is a reason. Codes are CamelCase and are never reworded once released.
type Code string

// Codes of pods that are not planned at all.
const (
	SchedulingGated    Code = "SchedulingGated"
	Finished           Code = "Finished"
	DaemonSetPod       Code = "DaemonSetPod"
	MirrorPod          Code = "MirrorPod"
	BeingDeleted       Code = "BeingDeleted"
	NominatedElsewhere Code = "NominatedElsewhere"
	ResourceClaims     Code = "ResourceClaims"
	NotUnschedulable   Code = "NotUnschedulable" // PodScheduled has another reason
	EvictionBlocked    Code = "EvictionBlocked"  // its node is going, but it may not be moved
)

// Codes of pods that cannot run, and of the pools that refuse them.
const (
	NoNodePool           Code = "NoNodePool"
	NodePoolNotReady     Code = "NodePoolNotReady"
	NodePoolInvalid      Code = "NodePoolInvalid"
	NodePoolDeleting     Code = "NodePoolDeleting"
	NodePoolStatic       Code = "NodePoolStatic"
	NodeClassNotFound    Code = "NodeClassNotFound"
	NodeClassNotReady    Code = "NodeClassNotReady"
	NodeClassInvalid     Code = "NodeClassInvalid"
	ForeignNodeClass     Code = "ForeignNodeClass"
	TaintNotTolerated    Code = "TaintNotTolerated"
	RequirementConflict  Code = "RequirementConflict"
	NoInstanceTypeFits   Code = "NoInstanceTypeFits"
	NoOffering           Code = "NoOffering"
	InsufficientCapacity Code = "InsufficientCapacity" // what would do is short at EC2
	LimitReached         Code = "LimitReached"
	HostPortTaken        Code = "HostPortTaken"
	MinValuesUnmet       Code = "MinValuesUnmet"
	MatchFieldsUsed      Code = "MatchFieldsUsed"
	InvalidSelector      Code = "InvalidSelector"
	VolumeProblem        Code = "VolumeProblem"
	VolumeTopology       Code = "VolumeTopology"
	VolumeLimit          Code = "VolumeLimit"
	VolumeInUse          Code = "VolumeInUse"
	TopologySpreadUnmet  Code = "TopologySpreadUnmet"
	PodAffinityUnmet     Code = "PodAffinityUnmet"
	PodAntiAffinityUnmet Code = "PodAntiAffinityUnmet"
	RefusesNodePools     Code = "RefusesNodePools" // karpenter.sh/nodepool DoesNotExist
	Unschedulable        Code = "Unschedulable"    // several pools, several reasons
	StepLimit            Code = "StepLimit"
	NotSupported         Code = "NotSupported"
)

// Codes of warnings.
const (
	ClassNotResolved  Code = "ClassNotResolved"
	SchedulerIgnored  Code = "SchedulerIgnored"
	CatalogueOfOther  Code = "CatalogueOfOtherRegion"
	FewOptions        Code = "FewOptions"
	UnknownZone       Code = "UnknownZone"
	UnknownInstance   Code = "UnknownInstanceType"
	EmulatedAdmission Code = "EmulatedAdmission"
	DuplicateObject   Code = "DuplicateObject"
	PreferenceRelaxed Code = "PreferenceRelaxed"
	RuleNotYetApplied Code = "RuleNotYetApplied"
	PriceUnknown      Code = "PriceUnknown"
	PriceOld          Code = "PriceOld"
	FactsNotRead      Code = "FactsNotRead"
	IncompleteReading Code = "IncompleteReading"
	LedgerNotRead     Code = "LedgerNotRead"
	LedgerInRecovery  Code = "LedgerInRecovery"

	UndeclaredStartupTaint Code = "UndeclaredStartupTaint"
	FeatureOff             Code = "FeatureOff"
	BufferUnresolved       Code = "BufferUnresolved"
	OverlayConflict        Code = "OverlayConflict"
	OverlayInvalid         Code = "OverlayInvalid"
	PriceOverlaid          Code = "PriceOverlaid"
	ReservationUnknown     Code = "ReservationUnknown"
)

// Codes of requests that get no plan.
const (
	InvalidRequest Code = "InvalidRequest"
	InvalidInput   Code = "InvalidInput"
	AnswerTooLarge Code = "AnswerTooLarge"
)

// Codes of nodes that stay, and of moves that wait.
const (
	NodeUnmanaged         Code = "NodeUnmanaged"
	NodeNotInitialized    Code = "NodeNotInitialized"
	NodeGoing             Code = "NodeGoing"
	NodeNominated         Code = "NodeNominated"
	NodeDoNotDisrupt      Code = "NodeDoNotDisrupt"
	NodePoolGone          Code = "NodePoolGone"
	PodDoNotDisrupt       Code = "PodDoNotDisrupt"
	PolicyForbids         Code = "PolicyForbids"
	ConsolidateAfterWaits Code = "ConsolidateAfterWaits"
	BudgetExhausted       Code = "BudgetExhausted"
	NothingCheaper        Code = "NothingCheaper"
	PodsWouldNotFit       Code = "PodsWouldNotFit"
	SavingTooSmall        Code = "SavingTooSmall"
	ScoreTooLow           Code = "ScoreTooLow"
	CoolingDown           Code = "CoolingDown"
	ReceivesPods          Code = "ReceivesPods"
	MovesLater            Code = "MovesLater"
	NodeRepairBlocked     Code = "NodeRepairBlocked"
)
