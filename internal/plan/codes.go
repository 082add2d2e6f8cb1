package plan

// Kind says what a code is about.
type Kind string

// Kinds of codes.
const (
	KindNotPlanned Kind = "not planned" // the pod is left alone, on purpose
	KindCannotRun  Kind = "cannot run"  // the pod has no place, or a pool refuses it
	KindWarning    Kind = "warning"     // stops nothing
	KindRefused    Kind = "refused"     // no plan was made
	KindStays      Kind = "stays"       // the node stays where it is
)

// CodeInfo is one row of the reference of reasons.
type CodeInfo struct {
	Code    Code
	Kind    Kind
	Meaning string // one sentence
	Do      string // what to do about it; one sentence
}

// Info returns the row of a code; one that is not in the table gets an empty row.
func Info(c Code) CodeInfo {
	for _, r := range codeRows {
		if r.Code == c {
			return r
		}
	}
	return CodeInfo{Code: c}
}

// Codes returns the reference of reasons, by kind, then in the order of reading.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codeRows...) }

var codeRows = []CodeInfo{
	{SchedulingGated, KindNotPlanned, "The pod has scheduling gates, so the scheduler does not look at it yet.",
		"Nothing; it is planned once its gates are gone."},
	{Finished, KindNotPlanned, "The pod has succeeded or failed and will not run again.",
		"Nothing."},
	{DaemonSetPod, KindNotPlanned, "The pod belongs to a DaemonSet: it goes where its node is, and never causes one.",
		"Nothing; what it needs is part of every new node."},
	{MirrorPod, KindNotPlanned, "The pod is the image of a static pod that a kubelet runs by itself.",
		"Nothing."},
	{BeingDeleted, KindNotPlanned, "The pod is being deleted.",
		"Nothing."},
	{NominatedElsewhere, KindNotPlanned, "The scheduler has promised the pod room on a node by preempting other pods there, which are going.",
		"Nothing; it is planned again should the promise lapse."},
	{ResourceClaims, KindNotPlanned, "The pod uses resource claims (DRA), which Kerf cannot plan for yet.",
		"Ask for devices as extended resources, or run the pod in a pool that another autoscaler looks after."},
	{NotUnschedulable, KindNotPlanned, "The pod has no node, but the scheduler gives another reason than Unschedulable.",
		"Read the pod's PodScheduled condition; the cause is not a missing node."},
	{EvictionBlocked, KindNotPlanned, "The pod's node is being deleted, but the pod may not be moved: do-not-disrupt, or a PodDisruptionBudget that never allows it.",
		"Take the annotation away, or change the budget that the detail names; more than one budget on a pod always blocks."},

	{NoNodePool, KindCannotRun, "There is no NodePool that could launch a node.",
		"Create a NodePool with its EC2NodeClass."},
	{NodePoolNotReady, KindCannotRun, "The NodePool's status says that it is not ready.",
		"Read the conditions of the NodePool and mend what they name."},
	{NodePoolInvalid, KindCannotRun, "The NodePool's spec contradicts itself or holds a value that is not allowed.",
		"Correct the field that the detail names."},
	{NodePoolDeleting, KindCannotRun, "The NodePool is being deleted and launches nothing any more.",
		"Let another pool take its pods."},
	{NodePoolStatic, KindCannotRun, "The NodePool has a fixed number of nodes (spec.replicas), so pods never cause a launch in it.",
		"Raise spec.replicas, or let a pool without replicas take the pod."},
	{NodeClassNotFound, KindCannotRun, "The EC2NodeClass that the NodePool refers to is not there.",
		"Create it, or correct spec.template.spec.nodeClassRef.name; with saved files, include the class."},
	{NodeClassNotReady, KindCannotRun, "The EC2NodeClass's status says that it is not ready.",
		"Read the conditions of the EC2NodeClass: subnets, security groups, AMI or role could not be resolved."},
	{NodeClassInvalid, KindCannotRun, "The EC2NodeClass holds a value that leaves no usable node.",
		"Correct the field that the detail names."},
	{ForeignNodeClass, KindCannotRun, "The NodePool's class belongs to another provider (EKS Auto Mode, for one), so Kerf leaves the pool alone.",
		"Nothing, or point the pool at an EC2NodeClass of the group karpenter.k8s.aws."},
	{TaintNotTolerated, KindCannotRun, "The NodePool's nodes carry a taint that the pod does not tolerate.",
		"Add the toleration to the pod, or use a pool without the taint."},
	{RequirementConflict, KindCannotRun, "What the pod asks of a node's labels and what the NodePool allows exclude each other.",
		"Compare the two values in the detail and change one of them."},
	{NoInstanceTypeFits, KindCannotRun, "No instance type that the NodePool and the pod allow is large enough, daemonset pods included.",
		"Ask for less, or allow larger types; the detail names the nearest type and what is missing."},
	{NoOffering, KindCannotRun, "Types fit, but none is offered in a zone and capacity type that are allowed and available.",
		"Allow more zones, capacity types or instance types."},
	{InsufficientCapacity, KindCannotRun, "EC2 lately had no capacity for the offers that would do, so they are left alone until the time that the detail names.",
		"Nothing: they are asked for again then. Allow more zones, capacity types or instance types to wait less."},
	{LimitReached, KindCannotRun, "A node for the pod would exceed what is left of the NodePool's limits.",
		"Raise the limit, or free capacity of that pool."},
	{HostPortTaken, KindCannotRun, "The host port that the pod wants is taken on every new node by a daemonset pod.",
		"Change the host port of one of them."},
	{MinValuesUnmet, KindCannotRun, "Too few different values are left for a requirement with minValues.",
		"Widen the requirement, lower minValues, or set MIN_VALUES_POLICY=BestEffort."},
	{MatchFieldsUsed, KindCannotRun, "The pod's node affinity uses matchFields, which names a node that exists; a new node can never match.",
		"Use matchExpressions on labels."},
	{InvalidSelector, KindCannotRun, "A selector or affinity term of the pod is not valid.",
		"Correct the term that the detail names."},
	{VolumeProblem, KindCannotRun, "A volume of the pod cannot be resolved: claim, class or volume is missing or contradicts the rest.",
		"Mend the object that the detail names."},
	{VolumeTopology, KindCannotRun, "A volume of the pod can be used in one zone or on one node alone, and the NodePool launches nothing there.",
		"Allow the zone in the NodePool; a volume on one node's own disk needs that node."},
	{VolumeLimit, KindCannotRun, "The pod has more volumes of a CSI driver than a node of any allowed type can attach.",
		"Allow types that attach more (the detail says how many the largest does), or use fewer volumes."},
	{VolumeInUse, KindCannotRun, "A claim of the pod is for one pod at a time (ReadWriteOncePod), and another pod has it.",
		"Wait for that pod to go, or use a claim with another access mode."},
	{TopologySpreadUnmet, KindCannotRun, "A topologySpreadConstraint leaves no domain where one more pod may go.",
		"Make the domain with the fewest pods usable (zones and capacity types of the NodePools), raise maxSkew, or make it ScheduleAnyway."},
	{PodAffinityUnmet, KindCannotRun, "No node can be where the pods are that podAffinity looks for.",
		"Look at the pods that it selects: they do not run, or their domain has no room and no offer."},
	{PodAntiAffinityUnmet, KindCannotRun, "Every domain that the pod may use has a pod that podAntiAffinity keeps apart from it.",
		"Allow more domains, run fewer such pods, or make the rule a preference."},
	{RefusesNodePools, KindCannotRun, "The pod demands a node that belongs to no NodePool (karpenter.sh/nodepool DoesNotExist).",
		"Nothing, if it is to run on other nodes only; else drop the requirement."},
	{Unschedulable, KindCannotRun, "Every NodePool refuses the pod, for different reasons.",
		"Begin with the first pool of the list: it is the nearest."},
	{StepLimit, KindCannotRun, "The search ended at its work budget before the pod was placed.",
		"Raise KERF_WORK, or plan fewer pods at once."},
	{NotSupported, KindCannotRun, "It needs something that Kerf does not do yet.",
		"Leave out what the detail names."},

	{ClassNotResolved, KindWarning, "The EC2NodeClass comes without a status (a manifest), so its AMI alias and all zones of the table were assumed.",
		"Nothing for a dry run; with the live object the real subnets and images count."},
	{SchedulerIgnored, KindWarning, "The pod names a scheduler of its own; it is planned as if the default one would place it.",
		"Check that this scheduler obeys the same rules."},
	{CatalogueOfOther, KindWarning, "There is no table of that region, so another region's types, zones and prices were used.",
		"Give a table of the region with --catalog; prices differ between regions by up to a third and more."},
	{FewOptions, KindWarning, "A launch has few offers to choose from, so it is more likely to find no capacity.",
		"Allow more instance types, zones or capacity types in the NodePool."},
	{UnknownZone, KindWarning, "A zone that is named somewhere has no offer and no node.",
		"Correct the zone, or remove it."},
	{UnknownInstance, KindWarning, "An instance type that is named somewhere is not in the table.",
		"Correct the name, or give a newer table with --catalog."},
	{EmulatedAdmission, KindWarning, "The object was read from a manifest, so defaults that the API server would have set were applied.",
		"Nothing, unless an admission webhook of yours changes pods too."},
	{DuplicateObject, KindWarning, "The same object was given more than once: of the objects that were read the first counts, of --what-if the last.",
		"Remove the others."},
	{PreferenceRelaxed, KindWarning, "A preference of a pod could not be kept and was dropped.",
		"Nothing, or make it a requirement if the pod must not run otherwise."},
	{RuleNotYetApplied, KindWarning, "A rule that the pod or the pool states is not applied yet.",
		"Check by hand that the plan keeps it."},
	{PriceUnknown, KindWarning, "A node's price is not in the table; it counts as nothing in the totals.",
		"Give its type with --catalog."},
	{PriceOld, KindWarning, "Prices could not be read from AWS for a long time; those of then are used.",
		"See what the function catalog logs: a permission may be missing, or AWS throttles."},
	{FactsNotRead, KindWarning, "Types, prices or commitments of the region could not be asked of AWS; those of the table are used, or none.",
		"Mend what the detail names: a permission that is missing, or AWS throttles; plan again."},
	{IncompleteReading, KindWarning, "Something could not be read, so the plan is made on less than the whole cluster.",
		"Mend what the detail names and plan again; until then nothing is removed."},
	{LedgerNotRead, KindWarning, "What the functions remember could not be read, so nodes on their way, nominations, shortages and learned sizes are left out.",
		"Mend what the detail names: the table's name, its region, or the permission to read it."},
	{LedgerInRecovery, KindWarning, "The ledger is new, or was restored: it does not know all nodes yet.",
		"Nothing; the functions fill it again, and launch nothing until then."},
	{FeatureOff, KindWarning, "An object uses a feature whose gate is off, so it changes nothing.",
		"Set the gate in FEATURE_GATES that the detail names, or leave the object as it is."},
	{ReservationUnknown, KindWarning, "The EC2NodeClass selects a capacity reservation, but nothing says how many of its instances are left, so it is not used.",
		"Give the reservation with its count in a catalogue file (--catalog)."},
	{OverlayConflict, KindWarning, "Two NodeOverlays of the same weight set the same thing, so the second is not applied.",
		"Give them different weights, or requirements that do not overlap."},
	{OverlayInvalid, KindWarning, "A NodeOverlay selects or sets something that an overlay cannot, so it is not applied.",
		"Correct the field that the detail names."},
	{PriceOverlaid, KindWarning, "Prices of this plan are those of a NodeOverlay, not those of the catalogue.",
		"Nothing; the JSON gives the listed price beside each overlaid one."},
	{BufferUnresolved, KindWarning, "Nothing says what a unit of the CapacityBuffer asks for, so no room is kept for it.",
		"Give the PodTemplate or the workload that the detail names, or correct the reference."},
	{UndeclaredStartupTaint, KindWarning, "A node that is starting carries a taint which its NodePool does not declare, so the pods that it was launched for cannot run there yet.",
		"If the taint goes by itself, list it under spec.template.spec.startupTaints; else add it to spec.template.spec.taints."},

	{InvalidRequest, KindRefused, "The request is not valid: a mode, format, setting or object that does not exist.",
		"Correct what the message names."},
	{InvalidInput, KindRefused, "The objects or the catalogue cannot be read.",
		"Correct the file, document and field that the message names."},
	{AnswerTooLarge, KindRefused, "The answer is larger than Lambda returns.",
		"Ask for one object with explain, or use the command line."},

	{NodeUnmanaged, KindStays, "The node has no NodeClaim: nobody launched it for a NodePool.",
		"Nothing; Kerf leaves nodes alone that it does not know."},
	{NodeNotInitialized, KindStays, "The node is not initialized: it is not Ready, carries startup taints, or lacks a resource.",
		"Nothing; look at the NodeClaim's condition Initialized if it stays so."},
	{NodeGoing, KindStays, "The node is on its way out already.",
		"Nothing."},
	{NodeNominated, KindStays, "A pod was promised this node and is about to run on it.",
		"Nothing; the promise lapses when the pod runs, goes, or does not come."},
	{NodeDoNotDisrupt, KindStays, "The node carries karpenter.sh/do-not-disrupt.",
		"Take the annotation away when the node may go."},
	{NodePoolGone, KindStays, "The NodePool of the node is not there, so nothing says what may be done to it.",
		"Delete the node, or bring the NodePool back."},
	{PodDoNotDisrupt, KindStays, "A pod on the node carries karpenter.sh/do-not-disrupt.",
		"Let the pod finish, or take the annotation away."},
	{PolicyForbids, KindStays, "The NodePool's disruption settings exclude the node from consolidation.",
		"Change spec.disruption of the NodePool if it should take part."},
	{ConsolidateAfterWaits, KindStays, "Pods came or went lately, and consolidateAfter has not passed since.",
		"Nothing, or shorten spec.disruption.consolidateAfter."},
	{BudgetExhausted, KindStays, "The NodePool's disruption budget allows no more nodes now.",
		"Wait, or widen spec.disruption.budgets."},
	{NothingCheaper, KindStays, "No cheaper set of nodes can take the node's pods.",
		"Nothing; the detail names the best alternative."},
	{PodsWouldNotFit, KindStays, "The node's pods have no other place: the rule that blocks them is named.",
		"Relax the rule that the detail names, if the node should be removable."},
	{SavingTooSmall, KindStays, "There is a cheaper way, but it saves less than the least that is worth a move.",
		"Lower KERF_MIN_SAVING if it should count."},
	{ScoreTooLow, KindStays, "The saving is too small for the disruption under the policy Balanced.",
		"Use WhenEmptyOrUnderutilized if every saving should count."},
	{CoolingDown, KindStays, "Pods of the node were moved lately, or moving them would undo a move.",
		"Nothing; the detail says until when."},
	{ReceivesPods, KindStays, "The node takes pods of nodes that go.",
		"Nothing."},
	{NodeRepairBlocked, KindStays, "The node is ill, but so are more than a fifth of its NodePool's: replacing them would not help.",
		"Look for what they have in common: a network, an image, a zone."},
	{MovesLater, KindStays, "Other nodes come first; a later pass goes on with this one.",
		"Nothing."},
}
