package autoscaler

import (
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/config"
)

// Architecture is the processor that the functions run on.
type Architecture string

// The architectures of Lambda.
const (
	ARM64 Architecture = "arm64"
	AMD64 Architecture = "amd64"
)

// Props are what a person may choose. The zero value of every field but ClusterName
// stands for its default.
type Props struct {
	// ClusterName is the EKS cluster. Required.
	ClusterName string
	// CodeDir holds one folder per function with its bootstrap, as `make build`
	// leaves them. Default: "../build", which is right for the app in infra.
	CodeDir string
	// Architecture the functions were built for. Default: ARM64.
	Architecture Architecture
	// LogRetentionDays is how long logs are kept: one of RetentionDays. Default: 30.
	LogRetentionDays int
	// PlanMemoryMiB is the memory of the plan function, 128 to 10240. Lambda gives
	// processor time in proportion: 1769 MiB is one core. Default: 1769.
	PlanMemoryMiB int
	// PlanTimeoutSeconds is the longest a plan may take, 3 to 900. Default: 60.
	PlanTimeoutSeconds int
	// PlanOnly leaves out everything that acts: what remains answers dry-runs.
	PlanOnly bool
	// SweepMemoryMiB, LifecycleMemoryMiB and CatalogMemoryMiB are the memory of the functions
	// that act, 128 to 10240. Default: 1769, 512 and 1024.
	SweepMemoryMiB, LifecycleMemoryMiB, CatalogMemoryMiB int
	// InterruptionMemoryMiB and ConsolidationMemoryMiB are that of two more. Default: 512 and
	// 1769.
	InterruptionMemoryMiB, ConsolidationMemoryMiB int
	// NodeRoles are the IAM roles that nodes may have, by name (with its path) or ARN: those
	// that EC2NodeClasses name in spec.role, and those of the profiles in
	// spec.instanceProfile. Default: KarpenterNodeRole-<cluster>.
	NodeRoles []string
	// SSMParameters are parameters of the account that EC2NodeClasses take their AMIs from
	// (amiSelectorTerms[].ssmParameter), by name. Those of AWS can always be read.
	SSMParameters []string
	// TableName is a table that exists and becomes the ledger, after it was restored from a
	// backup. Default: the stack makes one.
	TableName string
	// AlarmTopicARN is the SNS topic that alarms tell. Default: they tell nobody.
	AlarmTopicARN string
	// Dashboard adds a dashboard of CloudWatch: the metrics of the functions, and of what they
	// run on.
	Dashboard bool
	// ConsolidationSchedule is when the cluster is looked over for what could be cheaper: an
	// expression of EventBridge Scheduler, or Off. Default: every minute. A pass proposes and
	// the next one acts, so that two of them are needed for a change.
	ConsolidationSchedule string
	// SharedConcurrency reserves nothing of the account's concurrency for lifecycle,
	// interruption and consolidation. Accounts with a limit below 116 need it.
	SharedConcurrency bool
	// Access is how the functions get into the cluster. Default: AccessEntries.
	Access Access
	// CRDs is what is done about Karpenter's definitions: one of CRDModes. Default: apply.
	CRDs string
	// VPCID, SubnetIDs and ClusterSecurityGroupID put the functions into the cluster's VPC, all
	// three or none: the VPC, private subnets of it in different zones, and the security group
	// that EKS made for the cluster, which is told to let them in.
	VPCID                  string
	SubnetIDs              []string
	ClusterSecurityGroupID string
	// Endpoints makes the VPC's endpoints to what the functions use of AWS, for subnets without
	// NAT; RouteTableIDs are the route tables of the subnets.
	Endpoints     bool
	RouteTableIDs []string
	// Settings are what the functions can be told, by the keys of docs/config.md.
	Settings map[string]string
}

// Access is a way into the cluster.
type Access string

// The ways.
const (
	// AccessEntries makes an access entry for each function.
	AccessEntries Access = "entries"
	// AccessConfigMap makes functions that do not run yet, and lines for ConfigMap aws-auth
	// (output AwsAuthRoles). Once they are in it, AccessExisting makes the functions run.
	AccessConfigMap Access = "configMap"
	// AccessExisting relies on somebody else: the roles are let in already.
	AccessExisting Access = "existing"
)

// CRDModes are what can be done about Karpenter's definitions: make and update what is
// Kerf's, take over what is somebody else's too, or nothing.
var CRDModes = []string{"apply", "force", "leave"}

// Off is a schedule that never comes.
const Off = "off"

// RetentionDays are the retentions that CloudWatch Logs knows.
var RetentionDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

var (
	roleName  = regexp.MustCompile(`^([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$`)
	roleARN   = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$`)
	topicARN  = regexp.MustCompile(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$`)
	parameter = regexp.MustCompile(`^/?[a-zA-Z0-9_.-]+(/[a-zA-Z0-9_.-]+)*$`)
	tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	// The two forms that Scheduler repeats; it looks closer itself.
	scheduleRate = regexp.MustCompile(`^rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\)$`)
	scheduleCron = regexp.MustCompile(`^cron\([0-9A-Z*?/,#L W-]+\)$`)
	ec2ID        = regexp.MustCompile(`^[a-z]+-[0-9a-f]{8,17}$`)
)

// clusterName is what EKS accepts.
var clusterName = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)

func (p Props) withDefaults() Props {
	if p.CodeDir == "" {
		p.CodeDir = filepath.Join("..", "build")
	}
	if p.Architecture == "" {
		p.Architecture = ARM64
	}
	if p.LogRetentionDays == 0 {
		p.LogRetentionDays = 30
	}
	if p.PlanMemoryMiB == 0 {
		p.PlanMemoryMiB = 1769
	}
	if p.PlanTimeoutSeconds == 0 {
		p.PlanTimeoutSeconds = 60
	}
	if p.SweepMemoryMiB == 0 {
		p.SweepMemoryMiB = 1769
	}
	if p.LifecycleMemoryMiB == 0 {
		p.LifecycleMemoryMiB = 512
	}
	if p.CatalogMemoryMiB == 0 {
		p.CatalogMemoryMiB = 1024
	}
	if p.InterruptionMemoryMiB == 0 {
		p.InterruptionMemoryMiB = 512
	}
	if p.ConsolidationMemoryMiB == 0 {
		p.ConsolidationMemoryMiB = 1769
	}
	if p.Access == "" {
		p.Access = AccessEntries
	}
	if p.ConsolidationSchedule == "" {
		p.ConsolidationSchedule = "rate(1 minute)"
	}
	if p.CRDs == "" {
		p.CRDs = CRDModes[0]
	}
	if len(p.NodeRoles) == 0 {
		p.NodeRoles = []string{"KarpenterNodeRole-" + p.ClusterName}
	}
	return p
}

// Check reports everything that is wrong with props at once, as New would.
func (p Props) Check() error { return p.withDefaults().validate() }

// validate reports everything that is wrong at once. p has its defaults.
func (p Props) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case p.ClusterName == "":
		bad("cluster: the name of the EKS cluster is missing (make synth CLUSTER=name, or -c cluster=name)")
	case !clusterName.MatchString(p.ClusterName):
		bad("cluster: %q is no name of an EKS cluster: letters, digits, - and _, at most 100, first a letter or digit", p.ClusterName)
	}
	if p.Architecture != ARM64 && p.Architecture != AMD64 {
		bad("architecture: %q is not known; want %s or %s", p.Architecture, ARM64, AMD64)
	}
	if !slices.Contains(RetentionDays, p.LogRetentionDays) {
		bad("logRetentionDays: CloudWatch Logs does not know %d; want one of %s", p.LogRetentionDays, joinInts(RetentionDays))
	}
	for _, m := range []struct {
		key string
		mib int
	}{{"planMemoryMiB", p.PlanMemoryMiB}, {"sweepMemoryMiB", p.SweepMemoryMiB}, {"lifecycleMemoryMiB", p.LifecycleMemoryMiB}, {"catalogMemoryMiB", p.CatalogMemoryMiB},
		{"interruptionMemoryMiB", p.InterruptionMemoryMiB}, {"consolidationMemoryMiB", p.ConsolidationMemoryMiB}} {
		if m.mib < 128 || m.mib > 10240 {
			bad("%s: %d is out of range; Lambda takes 128 to 10240", m.key, m.mib)
		}
	}
	if p.PlanTimeoutSeconds < 3 || p.PlanTimeoutSeconds > 900 {
		bad("planTimeoutSeconds: %d is out of range; want 3 to 900", p.PlanTimeoutSeconds)
	}
	for _, r := range p.NodeRoles {
		if !roleName.MatchString(r) && !roleARN.MatchString(r) {
			bad("nodeRoles: %q is neither the name of a role nor its ARN; wildcards are not taken", r)
		}
	}
	for _, n := range p.SSMParameters {
		if !parameter.MatchString(n) {
			bad("ssmParameters: %q is no name of a parameter; wildcards are not taken", n)
		}
	}
	if p.TableName != "" && !tableName.MatchString(p.TableName) {
		bad("tableName: %q is no name of a DynamoDB table", p.TableName)
	}
	if p.AlarmTopicARN != "" && !topicARN.MatchString(p.AlarmTopicARN) {
		bad("alarmTopicArn: %q is no ARN of an SNS topic", p.AlarmTopicARN)
	}
	if !slices.Contains([]Access{AccessEntries, AccessConfigMap, AccessExisting}, p.Access) {
		bad("access: %q is not known; want %s, %s or %s", p.Access, AccessEntries, AccessConfigMap, AccessExisting)
	}
	if !slices.Contains(CRDModes, p.CRDs) {
		bad("crds: %q is not known; want %s", p.CRDs, strings.Join(CRDModes, ", "))
	}
	if p.ConsolidationSchedule != Off && !scheduleRate.MatchString(p.ConsolidationSchedule) && !scheduleCron.MatchString(p.ConsolidationSchedule) {
		bad("consolidationSchedule: %q is no schedule; want %s, like rate(5 minutes), or like cron(*/5 8-18 ? * MON-FRI *), whose hours are those of UTC", p.ConsolidationSchedule, Off)
	}
	errs = append(errs, p.checkNetwork()...)
	if err := p.checkSettings(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, fn := range p.functions() {
		if err := p.checkCode(fn); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkNetwork asks for all of a VPC or nothing.
func (p Props) checkNetwork() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !p.inVPC() {
		if p.Endpoints || len(p.RouteTableIDs) > 0 {
			bad("endpoints: they belong to a VPC; give vpcId, subnetIds and clusterSecurityGroupId too")
		}
		return errs
	}
	ids := func(key, prefix string, values []string) {
		if len(values) == 0 || values[0] == "" {
			bad("%s: it is missing; functions in a VPC need vpcId, subnetIds and clusterSecurityGroupId", key)
			return
		}
		for _, v := range values {
			if !strings.HasPrefix(v, prefix) || !ec2ID.MatchString(v) {
				bad("%s: %q is none; want %s0123456789abcdef0", key, v, prefix)
			}
		}
	}
	ids("vpcId", "vpc-", []string{p.VPCID})
	ids("subnetIds", "subnet-", p.SubnetIDs)
	ids("clusterSecurityGroupId", "sg-", []string{p.ClusterSecurityGroupID})
	switch {
	case p.Endpoints && len(p.RouteTableIDs) == 0:
		bad("routeTableIds: they are missing; the endpoints of DynamoDB and S3 go into the route tables of the subnets")
	case p.Endpoints:
		ids("routeTableIds", "rtb-", p.RouteTableIDs)
	case len(p.RouteTableIDs) > 0:
		bad("routeTableIds: they are for endpoints=true")
	}
	return errs
}

// inVPC reports whether the functions run in a VPC.
func (p Props) inVPC() bool {
	return p.VPCID != "" || len(p.SubnetIDs) > 0 || p.ClusterSecurityGroupID != ""
}

// runs reports whether the functions are let in, and so may be started.
func (p Props) runs() bool { return p.Access != AccessConfigMap }

// functions are those that the stack holds.
func (p Props) functions() []string {
	if p.PlanOnly {
		return []string{"plan"}
	}
	return []string{"plan", "sweep", "lifecycle", "catalog", "interruption", "consolidation", "bootstrap"}
}

// checkSettings asks the functions' own table, so that a mistake shows here and not
// in the log of a function that does not start.
func (p Props) checkSettings() error {
	var pairs []config.Pair
	for _, k := range slices.Sorted(maps.Keys(p.Settings)) {
		pairs = append(pairs, config.Pair{Key: k, Value: p.Settings[k], From: "context"})
	}
	if _, err := config.Deploy(config.Default(), pairs); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// checkCode looks whether a function was built, and for the right processor: Lambda
// would only say "exec format error", in a log, later.
func (p Props) checkCode(fn string) error {
	file := filepath.Join(p.CodeDir, fn, "bootstrap")
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("code of function %s: %w; build it with: make build ARCH=%s", fn, err, p.Architecture)
	}
	defer f.Close()
	want := map[Architecture]elf.Machine{ARM64: elf.EM_AARCH64, AMD64: elf.EM_X86_64}[p.Architecture]
	if f.Machine != want {
		return fmt.Errorf("code of function %s: %s was built for %s and the function runs on %s; build it with: make build ARCH=%s",
			fn, file, f.Machine, p.Architecture, p.Architecture)
	}
	return nil
}

func joinInts(ns []int) string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ", ")
}
