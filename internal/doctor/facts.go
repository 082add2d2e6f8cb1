package doctor

import "time"

// Facts are what was found out about a cluster, its account and the stack.
type Facts struct {
	Now     time.Time `json:"now"`
	Cluster string    `json:"cluster"`
	Region  string    `json:"region"`
	// Who looked, as an ARN; "" = not known.
	Who string `json:"who,omitempty"`
	// Inside: the one who looked runs as one of the functions, where they run.
	Inside bool `json:"inside,omitempty"`
	// Unseen are the looks that brought nothing, and why.
	Unseen map[Look]Unseen `json:"unseen,omitempty"`

	EKS         *EKS         `json:"eks,omitempty"` // nil = there is no such cluster
	API         *API         `json:"api,omitempty"`
	Definitions []Definition `json:"definitions,omitempty"`
	// Karpenter is who holds Karpenter's lease and renewed it within a minute; "" = nobody.
	Karpenter   string       `json:"karpenter,omitempty"`
	Stack       *Stack       `json:"stack,omitempty"` // nil = not deployed
	Ledger      *Ledger      `json:"ledger,omitempty"`
	Concurrency *Concurrency `json:"concurrency,omitempty"`

	Pools   []Pool   `json:"pools,omitempty"`
	Classes []Class  `json:"classes,omitempty"`
	Subnets []Subnet `json:"subnets,omitempty"` // of the region
	Groups  []Group  `json:"groups,omitempty"`  // security groups of the cluster's VPC
	Roles   []Role   `json:"roles,omitempty"`   // that classes name
	Quotas  []Quota  `json:"quotas,omitempty"`

	Pending   *Pending   `json:"pending,omitempty"`
	Instances []Instance `json:"instances,omitempty"` // of the cluster, that pools made
	Nodes     []Node     `json:"nodes,omitempty"`     // of pools
}

// Look is something that can be looked at.
type Look string

// The looks.
const (
	LookCluster     Look = "cluster"
	LookAPI         Look = "api"
	LookDefinitions Look = "definitions"
	LookKarpenter   Look = "karpenter"
	LookStack       Look = "stack"
	LookFunctions   Look = "functions"
	LookTriggers    Look = "triggers"
	LookSchedules   Look = "schedules"
	LookRules       Look = "rules"
	LookQueues      Look = "queues"
	LookAlarms      Look = "alarms"
	LookLedger      Look = "ledger"
	LookConcurrency Look = "concurrency"
	LookObjects     Look = "objects"
	LookSubnets     Look = "subnets"
	LookGroups      Look = "groups"
	LookImages      Look = "images"
	LookProfiles    Look = "profiles"
	LookRoles       Look = "roles"
	LookPassRole    Look = "passRole"
	LookNodeMay     Look = "nodeMay"
	LookEntries     Look = "entries"
	LookAwsAuth     Look = "awsAuth"
	LookQuotas      Look = "quotas"
	LookInstances   Look = "instances"
	LookStatus      Look = "status"
	LookConsole     Look = "console"
	LookRoutes      Look = "routes"
)

// Unseen says why a look brought nothing.
type Unseen struct {
	// Permission is the one that is missing: an IAM action, or verb and resource of
	// Kubernetes; "" = it is not about a permission.
	Permission string `json:"permission,omitempty"`
	// Why is the reason as whoever was asked gave it.
	Why string `json:"why,omitempty"`
}

// EKS is the cluster as EKS describes it.
type EKS struct {
	Status        string   `json:"status"` // ACTIVE, UPDATING, ...
	Version       string   `json:"version"`
	AuthMode      string   `json:"authMode,omitempty"` // API, API_AND_CONFIG_MAP, CONFIG_MAP
	Endpoint      string   `json:"endpoint,omitempty"`
	Public        bool     `json:"public,omitempty"`
	PublicCIDRs   []string `json:"publicCidrs,omitempty"`
	Private       bool     `json:"private,omitempty"`
	AutoMode      bool     `json:"autoMode,omitempty"`
	VPC           string   `json:"vpc,omitempty"`
	SecurityGroup string   `json:"securityGroup,omitempty"`
}

// What is wrong with the way to the API server.
const (
	Unreachable  = "Unreachable"
	Unauthorized = "Unauthorized"
	Forbidden    = "Forbidden"
)

// API is what came of asking the API server.
type API struct {
	// Problem is "" when it answers; else Unreachable, Unauthorized or Forbidden.
	Problem string `json:"problem,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Definition is a CustomResourceDefinition; one that is not there serves nothing.
type Definition struct {
	Name        string   `json:"name"`
	Served      []string `json:"served,omitempty"`
	Established bool     `json:"established,omitempty"`
}

// Stack is what was deployed.
type Stack struct {
	Name      string     `json:"name"`
	Status    string     `json:"status"` // of CloudFormation
	Reason    string     `json:"reason,omitempty"`
	Functions []Function `json:"functions,omitempty"`
	Triggers  []Trigger  `json:"triggers,omitempty"`
	Schedules []Schedule `json:"schedules,omitempty"`
	Rules     []Rule     `json:"rules,omitempty"`
	Queues    []Queue    `json:"queues,omitempty"`
	Alarms    []Alarm    `json:"alarms,omitempty"`
}

// Function is a Lambda function of the stack: sweep, lifecycle, ...
type Function struct {
	Name   string `json:"name"`
	ID     string `json:"id"`              // as Lambda names it
	State  string `json:"state,omitempty"` // Active, Pending, Inactive, Failed
	Update string `json:"update,omitempty"`
	Reason string `json:"reason,omitempty"`
	Role   string `json:"role,omitempty"` // ARN
	VPC    string `json:"vpc,omitempty"`
	Logs   string `json:"logs,omitempty"` // its log group
	// Entry are the groups of its access entry; nil = it has none. Mapped: aws-auth lets it in.
	Entry  []string `json:"entry,omitempty"`
	Mapped bool     `json:"mapped,omitempty"`
	// Reserved is its reserved concurrency; nil = none.
	Reserved *int `json:"reserved,omitempty"`
}

// Trigger is what lets a queue start a function.
type Trigger struct {
	Function string `json:"function"`
	ID       string `json:"id,omitempty"`
	State    string `json:"state,omitempty"` // Enabled, Disabled, ...; "" = not there
	Last     string `json:"last,omitempty"`  // last result, where Lambda keeps one
}

// Schedule is one of EventBridge Scheduler's.
type Schedule struct {
	Name  string `json:"name"` // Minute, Consolidate, ...
	ID    string `json:"id,omitempty"`
	State string `json:"state,omitempty"` // ENABLED, DISABLED; "" = not there
}

// Rule is a rule of EventBridge.
type Rule struct {
	Name    string   `json:"name"` // SpotInterruptionRule, ...
	ID      string   `json:"id,omitempty"`
	ARN     string   `json:"arn,omitempty"`
	State   string   `json:"state,omitempty"`
	Targets []string `json:"targets,omitempty"` // ARNs
}

// Queue is a queue of the stack: Ticks, Work, Notices, DeadWork, DeadNotices.
type Queue struct {
	Name    string `json:"name"`
	URL     string `json:"url,omitempty"`
	ARN     string `json:"arn,omitempty"`
	Waiting int    `json:"waiting,omitempty"`
	// Senders are the ARNs that its policy lets send, as far as it names sources.
	Senders []string `json:"senders,omitempty"`
}

// Alarm is an alarm of the stack: NoTick, SweepErrors, ...
type Alarm struct {
	Name   string    `json:"name"`
	State  string    `json:"state"` // OK, ALARM, INSUFFICIENT_DATA
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Text is what it is about.
	Text string `json:"text,omitempty"`
}

// Ledger is what the functions remember.
type Ledger struct {
	Table   string `json:"table"`
	Missing bool   `json:"missing,omitempty"` // it holds nothing
	Cluster string `json:"cluster,omitempty"`
	// Recovery says since when nothing is launched, and why; "" = normal.
	Recovery string `json:"recovery,omitempty"`
	// Attempts are launches whose outcome had errors, the latest first.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Failures are nodes that never became useful.
	Failures []Failure `json:"failures,omitempty"`
	// Short are offers that are left alone for lack of capacity; ShortAll the capacity types
	// of which all offers are.
	Short    int      `json:"short,omitempty"`
	ShortAll []string `json:"shortAll,omitempty"`
}

// Attempt is a launch, as far as EC2 refused it.
type Attempt struct {
	Pool string    `json:"pool"`
	At   time.Time `json:"at"`
	Got  int       `json:"got,omitempty"` // instances all the same
	// Errors by code, the commonest first.
	Errors []CodeCount `json:"errors"`
}

// CodeCount is an error and how often it came.
type CodeCount struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Count   int    `json:"count"`
}

// Failure is why a node never became useful.
type Failure struct {
	Claim   string    `json:"claim"`
	Pool    string    `json:"pool,omitempty"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Concurrency is the account's, in the region.
type Concurrency struct {
	Limit      int `json:"limit"`
	Unreserved int `json:"unreserved"`
}

// Pool is a NodePool.
type Pool struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"` // of its class: karpenter.k8s.aws is ours
	Class string `json:"class,omitempty"`
	// Ready is True, False or Unknown; "" = nothing is said.
	Ready    string `json:"ready,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
	Deleting bool   `json:"deleting,omitempty"`
}

// Class is an EC2NodeClass.
type Class struct {
	Name       string      `json:"name"`
	Deleting   bool        `json:"deleting,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Generation, and the one that was resolved last; 0 = none was.
	Generation int64 `json:"generation,omitempty"`
	Resolved   int64 `json:"resolved,omitempty"`

	SubnetTerms []Term `json:"subnetTerms,omitempty"`
	GroupTerms  []Term `json:"groupTerms,omitempty"`
	// Images is how many its selectors find; ImageTerms are those, for people. -1 = not
	// looked at.
	Images       int      `json:"images"`
	ImageTerms   []string `json:"imageTerms,omitempty"`
	ImageProblem string   `json:"imageProblem,omitempty"`

	Role    string `json:"role,omitempty"`    // spec.role
	Profile string `json:"profile,omitempty"` // spec.instanceProfile
	// ProfileRoles are the roles in that profile; nil = there is no such profile.
	ProfileRoles []string `json:"profileRoles,omitempty"`
}

// Condition is a condition of an object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Term selects subnets or security groups.
type Term struct {
	ID   string            `json:"id,omitempty"`
	Name string            `json:"name,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
}

// Subnet is a subnet.
type Subnet struct {
	ID   string            `json:"id"`
	Zone string            `json:"zone"`
	VPC  string            `json:"vpc,omitempty"`
	Free int64             `json:"free"` // addresses
	Tags map[string]string `json:"tags,omitempty"`
}

// Group is a security group.
type Group struct {
	ID   string            `json:"id"`
	Name string            `json:"name,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
}

// Role is an IAM role that nodes of classes get.
type Role struct {
	Name    string   `json:"name"`
	ARN     string   `json:"arn,omitempty"`
	Missing bool     `json:"missing,omitempty"`
	Classes []string `json:"classes,omitempty"`
	// Trusts are the services that may take it.
	Trusts []string `json:"trusts,omitempty"`
	// Pass is IAM's decision on whether the sweep function may hand it to EC2: allowed,
	// implicitDeny, explicitDeny; "" = not looked at.
	Pass string `json:"pass,omitempty"`
	// Denied are actions that a node needs and its role may not do.
	Denied []string `json:"denied,omitempty"`
	// Entry is the type of its access entry; "" = none. Mapped: aws-auth lets it in.
	Entry  string `json:"entry,omitempty"`
	Mapped bool   `json:"mapped,omitempty"`
}

// Quota is one of EC2's on vCPUs.
type Quota struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Kind  string `json:"kind"` // on-demand, spot
	Limit int    `json:"limit"`
	Used  int    `json:"used"`
	// Wanted: a pool may launch what it is about.
	Wanted bool `json:"wanted,omitempty"`
}

// Pending is what a plan says about the pods without a node.
type Pending struct {
	Pods     int `json:"pods"`
	Placed   int `json:"placed,omitempty"`   // on nodes that are there or coming
	Launched int `json:"launched,omitempty"` // on nodes that would be launched
	Nodes    int `json:"nodes,omitempty"`    // so many
	// Reasons are those of the others, the commonest first.
	Reasons []Reason `json:"reasons,omitempty"`
	// Incomplete says on what the plan was not made.
	Incomplete []string `json:"incomplete,omitempty"`
	// OldestSeconds is for how long the oldest of them has waited.
	OldestSeconds int `json:"oldestSeconds,omitempty"`
}

// Reason is why pods get no node.
type Reason struct {
	Code   string `json:"code"`
	Pods   int    `json:"pods"`
	Pod    string `json:"pod"` // one of them
	Detail string `json:"detail,omitempty"`
}

// Instance is an instance of a pool.
type Instance struct {
	ID       string    `json:"id"`
	Type     string    `json:"type,omitempty"`
	State    string    `json:"state"`
	Subnet   string    `json:"subnet,omitempty"`
	Pool     string    `json:"pool,omitempty"`
	Claim    string    `json:"claim,omitempty"`
	Profile  string    `json:"profile,omitempty"` // name
	Role     string    `json:"role,omitempty"`    // of the profile, by name
	Launched time.Time `json:"launched,omitzero"`
	Node     string    `json:"node,omitempty"` // "" = it has not joined
	// Status is what EC2's status checks say: ok, initializing, impaired, ...
	Status string `json:"status,omitempty"`
	// Route is where the default route of its subnet leads: nat, internet, other, or none; "" =
	// not looked at. Public: it has a public address.
	Route  string `json:"route,omitempty"`
	Public bool   `json:"public,omitempty"`
	// Console are the telling lines of its console (Telling).
	Console []string `json:"console,omitempty"`
}

// Node is a Node of a pool.
type Node struct {
	Name        string    `json:"name"`
	Pool        string    `json:"pool,omitempty"`
	Ready       string    `json:"ready"` // True, False, Unknown
	Reason      string    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	Since       time.Time `json:"since,omitzero"` // of Ready
	Created     time.Time `json:"created,omitzero"`
	Registered  bool      `json:"registered,omitempty"`
	Initialized bool      `json:"initialized,omitempty"`
	Deleting    bool      `json:"deleting,omitempty"`
	// Startup are taints that somebody has to take off before the node counts: the pool's
	// startup taints that are still there, and those of an uninitialized node.
	Startup []string `json:"startup,omitempty"`
}
