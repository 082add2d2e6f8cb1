package autoscaler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/plan"
)

// contextKey reads one key of the context into Props.
type contextKey struct {
	key string
	// def and meaning are for people (docs/stack.md).
	def, meaning string
	read         func(p *Props, value any) error
}

// contextKeys are the keys of the CDK context that are not settings of the functions.
var contextKeys = []contextKey{
	{"cluster", "required", "Name of the EKS cluster.",
		word(func(p *Props) *string { return &p.ClusterName })},
	{"architecture", "arm64", "arm64 or amd64: the processor that the functions were built for (`make ... ARCH=`, which sets it).",
		word(func(p *Props) *Architecture { return &p.Architecture })},
	{"planOnly", "false", "true leaves out everything that acts: what remains answers dry-runs.",
		yes(func(p *Props) *bool { return &p.PlanOnly })},
	{"access", "entries", "How the functions get into the cluster. `entries`: the stack makes an access entry for each (the cluster's authentication mode has to be API or API_AND_CONFIG_MAP). `configMap`: it prints lines for ConfigMap aws-auth (output AwsAuthRoles) and the functions do not run yet; deploy with `existing` once the lines are in. `existing`: somebody else lets the roles in.",
		word(func(p *Props) *Access { return &p.Access })},
	{"crds", "apply", "Karpenter's CustomResourceDefinitions. `apply`: those that are missing are made, and those that Kerf made brought up to date. `force`: those of somebody else (Helm, kubectl) are taken over too. `leave`: none is touched. Those of EKS Auto Mode, and those of a Karpenter that runs, never are.",
		word(func(p *Props) *string { return &p.CRDs })},
	{"vpcId", "none", "The cluster's VPC, for functions that run in it: needed unless the cluster's endpoint is open to the world. With `subnetIds` and `clusterSecurityGroupId`.",
		word(func(p *Props) *string { return &p.VPCID })},
	{"subnetIds", "none", "Private subnets of the VPC for the functions, in different zones, separated by commas. They need NAT, or `endpoints`.",
		words(func(p *Props) *[]string { return &p.SubnetIDs })},
	{"clusterSecurityGroupId", "none", "The security group that EKS made for the cluster. It gets a rule that lets the functions in on port 443.",
		word(func(p *Props) *string { return &p.ClusterSecurityGroupID })},
	{"endpoints", "false", "true makes the VPC's endpoints to what the functions use of AWS, for subnets without NAT. IAM and the price list have none: it sets `ISOLATED_VPC`, and a half of catalog reads prices from outside the VPC.",
		yes(func(p *Props) *bool { return &p.Endpoints })},
	{"routeTableIds", "none", "Route tables of the subnets, for `endpoints`, separated by commas.",
		words(func(p *Props) *[]string { return &p.RouteTableIDs })},
	{"nodeRoles", "KarpenterNodeRole-<cluster>", "IAM roles that nodes may have, by name (with its path) or ARN, separated by commas: those that EC2NodeClasses name in `spec.role`, and those of the profiles in `spec.instanceProfile`. With access=entries each gets an access entry of type EC2_LINUX, unless it has one.",
		words(func(p *Props) *[]string { return &p.NodeRoles })},
	{"ssmParameters", "none", "Parameters of the account that EC2NodeClasses take their AMIs from (`amiSelectorTerms[].ssmParameter`), by name, separated by commas. Those of AWS can always be read.",
		words(func(p *Props) *[]string { return &p.SSMParameters })},
	{"tableName", "a new table", "A table that exists and becomes the ledger, after it was restored from a backup.",
		word(func(p *Props) *string { return &p.TableName })},
	{"alarmTopicArn", "none", "SNS topic that alarms tell.",
		word(func(p *Props) *string { return &p.AlarmTopicARN })},
	{"dashboard", "false", "true makes a dashboard of CloudWatch, which costs $3 a month beyond the account's first three.",
		yes(func(p *Props) *bool { return &p.Dashboard })},
	{"consolidationSchedule", "rate(1 minute)", "When the cluster is looked over for what could be cheaper: a schedule like `rate(5 minutes)` or `cron(*/5 8-18 ? * MON-FRI *)` (UTC), or `off`. One pass proposes, the next one acts. For windows in which nodes may be removed, disruption budgets of NodePools are the better place: they count for drift as well.",
		word(func(p *Props) *string { return &p.ConsolidationSchedule })},
	{"sharedConcurrency", "false", "true reserves nothing of the account's concurrency for lifecycle, interruption and consolidation. Accounts with a limit below 116 need it.",
		yes(func(p *Props) *bool { return &p.SharedConcurrency })},
	{"logRetentionDays", "30", "How long logs are kept.",
		whole(func(p *Props) *int { return &p.LogRetentionDays })},
	{"planMemoryMiB", "1769", "Memory of the plan function, 128 to 10240. Lambda gives processor time in proportion: 1769 is one core.",
		whole(func(p *Props) *int { return &p.PlanMemoryMiB })},
	{"planTimeoutSeconds", "60", "The longest that a plan may take, 3 to 900.",
		whole(func(p *Props) *int { return &p.PlanTimeoutSeconds })},
	{"sweepMemoryMiB", "1769", "Memory of the sweep function.",
		whole(func(p *Props) *int { return &p.SweepMemoryMiB })},
	{"lifecycleMemoryMiB", "512", "Memory of the lifecycle function.",
		whole(func(p *Props) *int { return &p.LifecycleMemoryMiB })},
	{"catalogMemoryMiB", "1024", "Memory of the catalog function.",
		whole(func(p *Props) *int { return &p.CatalogMemoryMiB })},
	{"interruptionMemoryMiB", "512", "Memory of the interruption function.",
		whole(func(p *Props) *int { return &p.InterruptionMemoryMiB })},
	{"consolidationMemoryMiB", "1769", "Memory of the consolidation function.",
		whole(func(p *Props) *int { return &p.ConsolidationMemoryMiB })},
}

func word[S ~string](at func(*Props) *S) func(*Props, any) error {
	return func(p *Props, v any) error {
		s, err := text(v)
		*at(p) = S(s)
		return err
	}
}

// words are a list, or text with commas, as -c gives it.
func words(at func(*Props) *[]string) func(*Props, any) error {
	return func(p *Props, v any) error {
		list, ok := v.([]any)
		if !ok {
			s, err := text(v)
			if err != nil {
				return err
			}
			for w := range strings.SplitSeq(s, ",") {
				list = append(list, strings.TrimSpace(w))
			}
		}
		for _, v := range list {
			s, err := text(v)
			if err != nil {
				return err
			}
			*at(p) = append(*at(p), s)
		}
		return nil
	}
}

func whole(at func(*Props) *int) func(*Props, any) error {
	return func(p *Props, v any) (err error) {
		*at(p), err = number(v)
		return err
	}
}

func yes(at func(*Props) *bool) func(*Props, any) error {
	return func(p *Props, v any) error {
		s, err := text(v)
		if err != nil {
			return err
		}
		if s != "true" && s != "false" {
			return fmt.Errorf("want true or false, not %q", s)
		}
		*at(p) = s == "true"
		return nil
	}
}

// FromContext reads Props from CDK context (cdk.json, or -c key=value): the keys of
// Props, and every setting by its own key. Numbers and lists may be text, as -c gives
// them. All mistakes are reported at once, an unknown key with the ones that exist;
// keys of the CDK itself (aws:..., @aws-cdk/...) are left alone.
func FromContext(context map[string]any) (Props, error) {
	settings := map[string]bool{}
	for _, s := range config.Table() {
		settings[s.Key] = s.Key != clusterVariable && s.Scope != config.Made
	}
	p := Props{Settings: map[string]string{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(context)) {
		value := context[key]
		var err error
		i := slices.IndexFunc(contextKeys, func(k contextKey) bool { return k.key == key })
		switch {
		case foreign(key):
		case i >= 0:
			err = contextKeys[i].read(&p, value)
		case settings[key]:
			p.Settings[key], err = text(value)
		default:
			err = unknownKey(key, settings)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("context key %s: %w", key, err))
		}
	}
	return p, errors.Join(errs...)
}

// clusterVariable is the setting that has a context key of its own.
const clusterVariable = "CLUSTER_NAME"

// foreign tells the keys that the CDK and its tools put there.
func foreign(key string) bool {
	for _, prefix := range []string{"aws:", "aws-cdk:", "@aws-cdk/", "cdk-", "availability-zones:", "vpc-provider:"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func unknownKey(key string, settings map[string]bool) error {
	var known []string
	for _, k := range contextKeys {
		known = append(known, k.key)
	}
	for k, ok := range settings {
		if ok {
			known = append(known, k)
		}
	}
	slices.Sort(known[len(contextKeys):])
	if near := plan.Nearest(key, known, 2); len(near) > 0 {
		return fmt.Errorf("not known; did you mean %s?", strings.Join(near, " or "))
	}
	return fmt.Errorf("not known; there are %s", strings.Join(known, ", "))
}

func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("want one value, not %T", v)
}

func number(v any) (int, error) {
	s, err := text(v)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("want a whole number, not %q", s)
	}
	if n == 0 {
		return 0, errors.New("0 is not possible")
	}
	return n, nil
}
