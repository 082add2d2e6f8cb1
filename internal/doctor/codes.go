package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Code names a finding. Codes are never reworded.
type Code string

// The codes, in the order of the way.
const (
	NotSeen Code = "NotSeen"

	ClusterMissing   Code = "ClusterMissing"
	ClusterNotUsable Code = "ClusterNotUsable"
	VersionTooOld    Code = "VersionTooOld"
	VersionNew       Code = "VersionNew"
	AutoModeOn       Code = "AutoModeOn"

	APIUnreachable Code = "APIUnreachable"
	APINotLetIn    Code = "APINotLetIn"
	APIForbidden   Code = "APIForbidden"

	DefinitionMissing Code = "DefinitionMissing"
	DefinitionOld     Code = "DefinitionOld"

	KarpenterRuns Code = "KarpenterRuns"

	StackMissing         Code = "StackMissing"
	StackFailed          Code = "StackFailed"
	StackChanging        Code = "StackChanging"
	FunctionMissing      Code = "FunctionMissing"
	FunctionFailed       Code = "FunctionFailed"
	FunctionStopped      Code = "FunctionStopped"
	FunctionOutsideVPC   Code = "FunctionOutsideVPC"
	FunctionNotLetIn     Code = "FunctionNotLetIn"
	TriggerMissing       Code = "TriggerMissing"
	TriggerDisabled      Code = "TriggerDisabled"
	ScheduleMissing      Code = "ScheduleMissing"
	ScheduleDisabled     Code = "ScheduleDisabled"
	ConcurrencySmall     Code = "ConcurrencySmall"
	ConcurrencyExhausted Code = "ConcurrencyExhausted"

	LedgerMissing    Code = "LedgerMissing"
	LedgerOfOther    Code = "LedgerOfOther"
	LedgerInRecovery Code = "LedgerInRecovery"
	NoSweep          Code = "NoSweep"
	StepsDied        Code = "StepsDied"
	AlarmRings       Code = "AlarmRings"

	NoNodePool       Code = "NoNodePool"
	NodePoolNotReady Code = "NodePoolNotReady"
	NodePoolOfOther  Code = "NodePoolOfOther"
	NodePoolDeleting Code = "NodePoolDeleting"
	ClassMissing     Code = "ClassMissing"

	NoSubnets        Code = "NoSubnets"
	SubnetTermEmpty  Code = "SubnetTermEmpty"
	SubnetElsewhere  Code = "SubnetElsewhere"
	NoSecurityGroups Code = "NoSecurityGroups"
	GroupTermEmpty   Code = "GroupTermEmpty"
	NoImages         Code = "NoImages"
	ClassNotReady    Code = "ClassNotReady"
	ClassNotResolved Code = "ClassNotResolved"
	ClassDeleting    Code = "ClassDeleting"

	ProfileMissing   Code = "ProfileMissing"
	ProfileEmpty     Code = "ProfileEmpty"
	RoleMissing      Code = "RoleMissing"
	RoleNotTrusted   Code = "RoleNotTrusted"
	PassRoleDenied   Code = "PassRoleDenied"
	NodeMayTooLittle Code = "NodeMayTooLittle"

	NoAccessEntry    Code = "NoAccessEntry"
	WrongAccessEntry Code = "WrongAccessEntry"

	SubnetsFull Code = "SubnetsFull"
	SubnetFull  Code = "SubnetFull"
	SubnetLow   Code = "SubnetLow"

	QuotaUsedUp Code = "QuotaUsedUp"
	QuotaLow    Code = "QuotaLow"

	NoPlace Code = "NoPlace"
	Waiting Code = "Waiting"

	LaunchDenied    Code = "LaunchDenied"
	LaunchRefused   Code = "LaunchRefused"
	SpotRoleMissing Code = "SpotRoleMissing"
	NoCapacity      Code = "NoCapacity"

	NotJoined   Code = "NotJoined"
	JoinTakes   Code = "JoinTakes"
	NeverUseful Code = "NeverUseful"

	NodeNotReady       Code = "NodeNotReady"
	StartupTaintStays  Code = "StartupTaintStays"
	NodeNotInitialized Code = "NodeNotInitialized"

	RuleMissing  Code = "RuleMissing"
	RuleDisabled Code = "RuleDisabled"
	RuleNoTarget Code = "RuleNoTarget"
	QueueRefuses Code = "QueueRefuses"
	NoticesDied  Code = "NoticesDied"
)

// meanings are the codes for people: what it means, and what to do.
var meanings = []struct {
	code          Code
	meaning, todo string
}{
	{NotSeen, "Something could not be looked at.", "Give the permission that it names, or look from where it can be reached; other steps are not touched by it."},
	{ClusterMissing, "EKS knows no cluster of that name in that region and account.", "Check name, region and credentials."},
	{ClusterNotUsable, "The cluster is being made or deleted, or failed.", "Wait, or look at the cluster in EKS."},
	{VersionTooOld, "The version of Kubernetes is older than 1.29.", "Upgrade, one minor version after the other."},
	{VersionNew, "The version of Kubernetes is newer than those that were tested.", "Nothing, as long as all works; look for a newer version of Kerf."},
	{AutoModeOn, "EKS Auto Mode is on. Its NodePools and NodeClaims do not exist for Kerf.", "Nothing. Pods that both could take are taken by whoever is first: keep them apart with taints."},
	{APIUnreachable, "The API server cannot be reached from where the doctor runs.", "Run it in the cluster's VPC, or ask the plan function, which does."},
	{APINotLetIn, "The API server does not know the identity that looks.", "Make an access entry for it, or a line in aws-auth. The other functions have identities of their own."},
	{APIForbidden, "The identity that looks may not read something.", "Put it into group kerf:plan, or give it the verb that is named."},
	{DefinitionMissing, "One of Karpenter's definitions is not there.", "Have bootstrap set the cluster up again."},
	{DefinitionOld, "A definition does not serve v1.", "Bring it to Karpenter 1.0 or newer."},
	{KarpenterRuns, "Karpenter is alive. Kerf changes nothing as long as it is.", "Scale its Deployment to 0, or leave it in charge ([adoption.md](adoption.md))."},
	{StackMissing, "Kerf is not deployed for this cluster.", "`make deploy`."},
	{StackFailed, "The stack could not be made or changed.", "Read its events: the resource that failed says why."},
	{StackChanging, "The stack is being changed.", "Wait for its end."},
	{FunctionMissing, "A function is not in the stack.", "Deploy without `planOnly`."},
	{FunctionFailed, "Lambda cannot run a function.", "The reason is Lambda's; deploy again once it is gone."},
	{FunctionStopped, "A function's reserved concurrency is 0: somebody stopped it.", "Take the limit away to start it."},
	{FunctionOutsideVPC, "The API server's endpoint is not open to the world, and the functions run outside its VPC.", "Deploy with `vpcId`, `subnetIds` and `clusterSecurityGroupId`."},
	{FunctionNotLetIn, "The cluster does not let a function in.", "Make its access entry, or put the lines of output AwsAuthRoles into aws-auth."},
	{TriggerMissing, "No queue starts a function.", "The stack was deployed with `access=configMap`: deploy again with `access=existing` once the lines are in aws-auth."},
	{TriggerDisabled, "A queue does not start its function.", "Enable the event source mapping."},
	{ScheduleMissing, "The schedule of the minute ticks is not there.", "Deploy again."},
	{ScheduleDisabled, "The schedule of the minute ticks is off.", "Enable it, or deploy again."},
	{ConcurrencySmall, "The account's limit of concurrent functions is small: Kerf shares it with all other functions of the region.", "Ask for more, and deploy with `sharedConcurrency` until then."},
	{ConcurrencyExhausted, "Nothing of the account's concurrency is left for functions without a reservation.", "Ask for more, or reserve less elsewhere."},
	{LedgerMissing, "The table holds no ledger: no function has written to it.", "See whether sweeps come; the table is that of the stack's output TableName."},
	{LedgerOfOther, "The table is that of another cluster.", "Deploy with the right `tableName`."},
	{LedgerInRecovery, "Nothing is launched until records were made of what is there.", "It ends by itself when Karpenter is stopped and everything can be read; the log of the lifecycle function says what it waits for."},
	{NoSweep, "No sweep came to its end for three minutes.", "The log of the sweep function says why; an empty log means that no tick comes."},
	{StepsDied, "Steps of nodes failed for good and are in the dead-letter queue.", "Read them, mend the cause, and move them back."},
	{AlarmRings, "An alarm of the stack rings.", "It says what it is about."},
	{NoNodePool, "There is no NodePool that Kerf launches for.", "Apply one ([install.md](install.md))."},
	{NodePoolNotReady, "A NodePool is not ready.", "Its condition says why; mostly its class is not."},
	{NodePoolOfOther, "NodePools whose class is of another group are somebody else's.", "Nothing."},
	{NodePoolDeleting, "A NodePool is being deleted: nothing is launched for it.", "Nothing, or make it anew."},
	{ClassMissing, "A NodePool names an EC2NodeClass that is not there.", "Make the class, or name another."},
	{NoSubnets, "No selector of a class matches a subnet.", "Tag the subnets, or change the selector."},
	{SubnetTermEmpty, "One selector of several matches no subnet.", "Take it away, or tag what it should find."},
	{SubnetElsewhere, "A class selects subnets outside the cluster's VPC.", "Select by tags that only the cluster's subnets have."},
	{NoSecurityGroups, "No selector of a class matches a security group.", "Tag the groups, or change the selector."},
	{GroupTermEmpty, "One selector of several matches no security group.", "Take it away, or tag what it should find."},
	{NoImages, "No selector of a class finds an image.", "Check alias, owner and architecture."},
	{ClassNotReady, "A class is not ready for another reason.", "Its condition says which field is to blame."},
	{ClassNotResolved, "A class was not resolved since it was changed.", "It is, every five minutes and when pods wait; ask catalog to do it now."},
	{ClassDeleting, "A class is being deleted: nothing is launched with it.", "Nothing, or make it anew."},
	{ProfileMissing, "A class names an instance profile that is not there.", "Make it, or name spec.role instead."},
	{ProfileEmpty, "An instance profile holds no role.", "Add the nodes' role to it."},
	{RoleMissing, "A class names a role that is not there.", "Make it, or correct the name."},
	{RoleNotTrusted, "EC2 may not take the role: its trust policy does not name the service.", "Add ec2.amazonaws.com to the trust policy."},
	{PassRoleDenied, "The functions may not hand the role to instances.", "Deploy with the role in `nodeRoles`; where a policy denies it explicitly (a boundary, an organisation), change that."},
	{NodeMayTooLittle, "The role of nodes lacks what every node needs.", "Attach the policies that it names."},
	{NoAccessEntry, "The cluster does not let nodes with the role in: they start, and never join.", "Make an access entry of type EC2_LINUX, or a line in aws-auth."},
	{WrongAccessEntry, "The role has an access entry of a type that nodes cannot use.", "Delete it and make one of type EC2_LINUX."},
	{SubnetsFull, "All subnets of a class have no free address.", "Add subnets, or free addresses."},
	{SubnetFull, "A subnet has no free address. Others are used instead.", "Add a subnet in its zone."},
	{SubnetLow, "A subnet has few free addresses left.", "Add a subnet in its zone, before it is full."},
	{QuotaUsedUp, "The account's quota of vCPUs is used up.", "Ask for more."},
	{QuotaLow, "The quota of vCPUs is nearly used up.", "Ask for more, before it is."},
	{NoPlace, "The plan has no place for pods.", "[reasons.md](reasons.md) says what the code means; `--explain` shows one pod in full."},
	{Waiting, "The plan has a place for all pods, and they wait all the same.", "The steps after this one say what for; a sweep comes every few seconds."},
	{LaunchDenied, "EC2 denied a launch.", "Give the permission that the message names."},
	{LaunchRefused, "EC2 refused a launch.", "The message names what it does not take."},
	{SpotRoleMissing, "The account has no service-linked role for spot.", "Make it."},
	{NoCapacity, "EC2 had no capacity for what was asked.", "Allow more types, zones or capacity types; Kerf tries again by itself."},
	{NotJoined, "An instance runs, and its node never joined.", "The likely cause comes with it."},
	{JoinTakes, "Instances are young and on their way.", "Wait: a node joins within two minutes."},
	{NeverUseful, "A node never became useful and was given up.", "The reason is that of its NodeClaim."},
	{NodeNotReady, "A node joined and is not ready.", "Its condition says what it lacks."},
	{StartupTaintStays, "A taint that somebody should take off is still on a node.", "See whether the agent that takes it off runs there."},
	{NodeNotInitialized, "A node is ready and not initialized yet.", "A resource that it should report is missing: see whether its device plugin runs there."},
	{RuleMissing, "A rule of EventBridge is not there: such notices do not come.", "Deploy again."},
	{RuleDisabled, "A rule of EventBridge is off.", "Enable it."},
	{RuleNoTarget, "A rule does not lead to the queue of notices.", "Deploy again."},
	{QueueRefuses, "The queue of notices does not let a rule in.", "Deploy again."},
	{NoticesDied, "Notices could not be read, or not be acted on.", "Read them; the log of the interruption function says why."},
}

// Codes are all codes, in the order of the way.
func Codes() []Code {
	out := make([]Code, len(meanings))
	for i, m := range meanings {
		out[i] = m.code
	}
	return out
}

// Markdown is the reference of the steps and codes.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# The doctor

<!-- Generated from internal/doctor by go run ./scripts/docs. Do not edit. -->

` + "`make doctor CLUSTER=name`" + ` walks the way from a pending pod to a ready node and names the first step that is broken, with what
shows it and the command that mends it. It changes nothing. It runs with your AWS credentials; the plan function does the same with its own:
` + "`make invoke CLUSTER=name EVENT=events/plan/doctor.json`" + `.

`)
	b.WriteString("Mark and exit status: `ok`; `!` it works, and may not for long or not for all; `?` it could not be looked at, with the permission that is missing; `X` pods do not get past\nthis. The program ends with 0 when nothing is broken, 1 when something is, 3 when nothing is that could be looked at, 2 when it could not begin.\n\n")
	b.WriteString("| | step | looks at |\n|---|---|---|\n")
	for i, s := range steps {
		var looks []string
		for _, l := range s.looks {
			looks = append(looks, whats[l])
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", i+1, s.title, strings.Join(looks, "; "))
	}
	b.WriteString("\nWhat it needs, all of it reading; each may be missing. The plan function's role has all of them.\n\n| look | permission |\n|---|---|\n")
	for _, l := range Looks() {
		fmt.Fprintf(&b, "| %s | %s |\n", whats[l], strings.Join(Permissions[l], ", "))
	}
	b.WriteString("\n| code | meaning | what to do |\n|---|---|---|\n")
	for _, m := range meanings {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.code, m.meaning, m.todo)
	}
	return b.String()
}

// Looks are all looks, in the order in which steps need them.
func Looks() []Look {
	var out []Look
	for _, s := range steps {
		for _, l := range s.looks {
			if !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// whats says what a look looks at.
var whats = map[Look]string{
	LookCluster:     "the cluster in EKS",
	LookAPI:         "the API server",
	LookDefinitions: "Karpenter's definitions",
	LookKarpenter:   "Karpenter's lease",
	LookStack:       "the stack",
	LookFunctions:   "its functions",
	LookTriggers:    "what starts them",
	LookSchedules:   "its schedules",
	LookConcurrency: "the account's concurrency",
	LookLedger:      "the ledger",
	LookQueues:      "its queues",
	LookAlarms:      "its alarms",
	LookObjects:     "NodePools, classes, nodes and pods",
	LookSubnets:     "subnets",
	LookGroups:      "security groups",
	LookImages:      "images",
	LookProfiles:    "instance profiles",
	LookRoles:       "roles of nodes",
	LookPassRole:    "whether they may be handed on",
	LookNodeMay:     "what they may do",
	LookEntries:     "access entries",
	LookAwsAuth:     "ConfigMap aws-auth",
	LookQuotas:      "quotas of vCPUs",
	LookInstances:   "instances",
	LookStatus:      "their status checks",
	LookConsole:     "their consoles",
	LookRoutes:      "routes of their subnets",
	LookRules:       "rules of EventBridge",
}

// Permissions are what the looks need: actions of IAM, and where they begin with a verb and
// a space, of Kubernetes.
var Permissions = map[Look][]string{
	LookCluster:     {"eks:DescribeCluster"},
	LookAPI:         {"get customresourcedefinitions"},
	LookDefinitions: {"get customresourcedefinitions"},
	LookKarpenter:   {"list leases"},
	LookStack:       {"cloudformation:DescribeStacks", "cloudformation:ListStackResources"},
	LookFunctions:   {"lambda:GetFunctionConfiguration", "lambda:GetFunctionConcurrency"},
	LookTriggers:    {"lambda:GetEventSourceMapping"},
	LookSchedules:   {"scheduler:GetSchedule"},
	LookConcurrency: {"lambda:GetAccountSettings"},
	LookLedger:      {"dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query"},
	LookQueues:      {"sqs:GetQueueAttributes"},
	LookAlarms:      {"cloudwatch:DescribeAlarms"},
	LookObjects:     {"list nodepools, ec2nodeclasses, nodeclaims, nodes, pods, and what else a plan is made on"},
	LookSubnets:     {"ec2:DescribeSubnets"},
	LookGroups:      {"ec2:DescribeSecurityGroups"},
	LookImages:      {"ec2:DescribeImages", "ssm:GetParameter"},
	LookProfiles:    {"iam:GetInstanceProfile"},
	LookRoles:       {"iam:GetRole"},
	LookPassRole:    {"iam:SimulatePrincipalPolicy"},
	LookNodeMay:     {"iam:SimulatePrincipalPolicy"},
	LookEntries:     {"eks:DescribeAccessEntry"},
	LookAwsAuth:     {"get configmaps aws-auth"},
	LookQuotas:      {"servicequotas:GetServiceQuota", "ec2:DescribeInstances"},
	LookInstances:   {"ec2:DescribeInstances"},
	LookStatus:      {"ec2:DescribeInstanceStatus"},
	LookConsole:     {"ec2:GetConsoleOutput"},
	LookRoutes:      {"ec2:DescribeRouteTables", "ec2:DescribeInstances"},
	LookRules:       {"events:DescribeRule", "events:ListTargetsByRule"},
}
