package autoscaler

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/doctor"
)

// statements are all that a role's own policies say.
func statements(role resource) []map[string]any {
	var out []map[string]any
	policies, _ := role.Properties["Policies"].([]any)
	for _, p := range policies {
		list, _ := p.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"].([]any)
		for _, s := range list {
			out = append(out, s.(map[string]any))
		}
	}
	return out
}

// functions are those with a role.
var functions = []string{"Plan", "Sweep", "Lifecycle", "Catalog", "Interruption", "Consolidation", "Bootstrap"}

// TestRoles: each function has a role of its own, that only Lambda may take, with nothing
// attached from elsewhere.
func TestRoles(t *testing.T) {
	tm := demo(t)
	for _, role := range tm.all("AWS::IAM::Role") {
		for _, more := range []string{"ManagedPolicyArns", "PermissionsBoundary"} {
			if v, ok := role.Properties[more]; ok {
				t.Errorf("%s: %s: %v", role.id, more, v)
			}
		}
	}
	users := map[string]string{}
	for _, f := range functions {
		role := target(tm.function(t, f).Properties["Role"])
		if other, ok := users[role]; ok {
			t.Errorf("%s and %s share a role", f, other)
		}
		users[role] = f
		trust := []any{map[string]any{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": map[string]any{"Service": "lambda.amazonaws.com"}}}
		if d := cmp.Diff(trust, tm.role(t, f).at("AssumeRolePolicyDocument", "Statement")); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
	for schedule, action := range map[string]string{"Minute": "sqs:SendMessage", "CatalogRefresh": "lambda:InvokeFunction", "Consolidate": "lambda:InvokeFunction"} {
		role := tm.role(t, schedule)
		trust := []any{map[string]any{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": map[string]any{"Service": "scheduler.amazonaws.com"},
			"Condition": map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": map[string]any{"Ref": "AWS::AccountId"}}}}}
		if d := cmp.Diff(trust, role.at("AssumeRolePolicyDocument", "Statement")); d != "" {
			t.Errorf("%s: %s", schedule, d)
		}
		arn := tm.find(t, "AWS::Scheduler::Schedule", "Kerf"+schedule).at("Target", "Arn")
		if d := cmp.Diff([]map[string]any{{"Effect": "Allow", "Action": action, "Resource": arn}}, statements(role)); d != "" {
			t.Errorf("%s: %s", schedule, d)
		}
	}
}

// TestActions is what each function may do, whole. The plan function can change nothing.
func TestActions(t *testing.T) {
	tm := demo(t)
	const logs = "logs:CreateLogStream logs:PutLogEvents"
	const knows = logs + " dynamodb:ConditionCheckItem dynamodb:DeleteItem dynamodb:DescribeTable dynamodb:GetItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem" +
		" eks:DescribeCluster ec2:DescribeInstances sts:DecodeAuthorizationMessage"
	const common = knows + " ec2:DescribeLaunchTemplates iam:PassRole"
	const acts = common + " ec2:CreateFleet ec2:CreateLaunchTemplate ec2:CreateTags ec2:RunInstances ec2:TerminateInstances" +
		" sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage sqs:SendMessage"
	for f, want := range map[string]string{
		"Plan":         logs + " " + strings.Join(looks(), " "),
		"Sweep":        acts + " ec2:DeleteLaunchTemplate lambda:InvokeFunction ec2:DescribeInstanceStatus",
		"Lifecycle":    acts,
		"Interruption": knows + " sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage sqs:SendMessage",
		"Consolidation": knows + " ec2:DescribeLaunchTemplates iam:PassRole ec2:CreateFleet ec2:CreateLaunchTemplate ec2:CreateTags ec2:RunInstances" +
			" ec2:TerminateInstances sqs:SendMessage",
		"Catalog": common + " ec2:DeleteLaunchTemplate ec2:DescribeCapacityReservations ec2:DescribeImages ec2:DescribeInstanceTypeOfferings ec2:DescribeInstanceTypes ec2:DescribePlacementGroups" +
			" ec2:DescribeSecurityGroups ec2:DescribeSpotPriceHistory ec2:DescribeSubnets ssm:GetParameter pricing:GetProducts" +
			" iam:AddRoleToInstanceProfile iam:CreateInstanceProfile iam:DeleteInstanceProfile iam:GetInstanceProfile iam:ListInstanceProfiles" +
			" iam:RemoveRoleFromInstanceProfile iam:TagInstanceProfile",
	} {
		got := map[string]bool{}
		for _, s := range statements(tm.role(t, f)) {
			for _, a := range list(s["Action"]) {
				got[a] = true
			}
		}
		sorted := strings.Fields(want)
		slices.Sort(sorted)
		if d := cmp.Diff(sorted, slices.Sorted(maps.Keys(got))); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
}

// looks are the actions of IAM that the doctor says it needs, which are those of plans too.
func looks() []string {
	seen := map[string]bool{}
	for _, list := range doctor.Permissions {
		for _, p := range list {
			if service, _, ok := strings.Cut(p, ":"); ok && !strings.Contains(service, " ") {
				seen[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// TestPlanChangesNothing: whatever the plan function may do in AWS, it reads; to write is to
// write its own log.
func TestPlanChangesNothing(t *testing.T) {
	for _, props := range []Props{demoProps(), {ClusterName: "prod", CodeDir: codeDir, PlanOnly: true}, {ClusterName: "prod", CodeDir: codeDir, Access: AccessConfigMap}} {
		tm := made(t, props)
		log := tm.find(t, "AWS::Logs::LogGroup", "KerfPlanLogs").id
		for _, s := range statements(tm.role(t, "Plan")) {
			for _, a := range list(s["Action"]) {
				service, verb, _ := strings.Cut(a, ":")
				reads := slices.ContainsFunc([]string{"Get", "Describe", "List", "Query", "Simulate"}, func(p string) bool { return strings.HasPrefix(verb, p) })
				switch {
				case reads && !slices.Contains([]string{"GetSessionToken", "GetFederationToken"}, verb):
				case service == "logs" && target(s["Resource"]) == log:
				default:
					t.Errorf("it may %s: %v", a, s)
				}
			}
		}
	}
}

// unscoped are the statements whose resources are not named and that have no condition,
// with the reason.
var unscoped = map[string]string{
	"AllowScopedEC2InstanceAccessActions":    "what a launch uses and does not make carries other people's tags: images, subnets, groups",
	"AllowSSMReadActions":                    "public parameters of AWS, under one path",
	"AllowPricingReadActions":                "pricing:GetProducts has no resources; list prices are public",
	"AllowUnscopedInstanceProfileListAction": "iam:ListInstanceProfiles is not scoped in Karpenter's policy either; it reads",
	"AllowReadingSchedules":                  "schedules have no tags, and their names are known only once they are made; it reads",
	"AllowReadingQuotas":                     "what EC2 allows the account; it reads",
	"AllowReadingAccessEntries":              "the ids of entries are EKS's; those of this cluster alone",
	"AllowInstanceProfileReadActions":        "a profile that does not exist has no tags that a condition could ask for; it reads",
}

// TestScope: nothing is allowed everywhere and to everything, but what is listed; and no
// statement is wider than it looks.
func TestScope(t *testing.T) {
	tm := demo(t)
	used := map[string]bool{}
	for _, role := range tm.all("AWS::IAM::Role") {
		for _, s := range statements(role) {
			sid, _ := s["Sid"].(string)
			for _, key := range slices.Sorted(maps.Keys(s)) {
				if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource", "Condition"}, key) {
					t.Errorf("%s %s: %s", role.id, sid, key)
				}
			}
			if s["Effect"] != "Allow" || len(list(s["Action"])) == 0 || len(list(s["Resource"])) == 0 {
				t.Errorf("%s: %v", role.id, s)
			}
			for _, a := range list(s["Action"]) {
				if strings.Contains(a, "*") {
					t.Errorf("%s %s: action %s", role.id, sid, a)
				}
			}
			wild := slices.ContainsFunc(list(s["Resource"]), func(r string) bool { return strings.Contains(r, "*") })
			if _, conditional := s["Condition"]; wild && !conditional {
				used[sid] = true
				if unscoped[sid] == "" {
					t.Errorf("%s %s: %v without a condition", role.id, sid, list(s["Resource"]))
				}
			}
		}
	}
	for sid := range unscoped {
		if !used[sid] {
			t.Errorf("%s is listed and no statement is so", sid)
		}
	}
}

// TestNoticeBus: consolidation may send to the bus that is to be told, by name or ARN, and
// to none without.
func TestNoticeBus(t *testing.T) {
	const other = "arn:aws:events:eu-west-1:210987654321:event-bus/ops"
	for bus, want := range map[string]string{"": "", "people": "event-bus/people", other: other} {
		props := demoProps()
		props.Settings["KERF_NOTICE_BUS"] = bus
		tm := made(t, props)
		for _, f := range functions {
			got := ""
			for _, s := range statements(tm.role(t, f)) {
				if slices.Contains(list(s["Action"]), "events:PutEvents") {
					got = strings.Join(list(s["Resource"]), " ")
				}
			}
			if f != "Consolidation" && got != "" || f == "Consolidation" && (!strings.HasSuffix(got, want) || want == "" && got != "") {
				t.Errorf("bus %q: %s may send events to %q", bus, f, got)
			}
		}
	}
}

// TestConditions: what is made carries the cluster's tags, what is changed or ended carries
// them already, and only node roles are handed on.
func TestConditions(t *testing.T) {
	asked := map[string]any{
		"StringEquals": map[string]any{"aws:RequestTag/kubernetes.io/cluster/prod": "owned", "aws:RequestTag/eks:eks-cluster-name": "prod"},
		"StringLike":   map[string]any{"aws:RequestTag/karpenter.sh/nodepool": "*"},
	}
	creating := map[string]any{
		"StringEquals": map[string]any{"aws:RequestTag/kubernetes.io/cluster/prod": "owned", "aws:RequestTag/eks:eks-cluster-name": "prod",
			"ec2:CreateAction": []any{"RunInstances", "CreateFleet", "CreateLaunchTemplate"}},
		"StringLike": asked["StringLike"],
	}
	owned := map[string]any{
		"StringEquals": map[string]any{"aws:ResourceTag/kubernetes.io/cluster/prod": "owned"},
		"StringLike":   map[string]any{"aws:ResourceTag/karpenter.sh/nodepool": "*"},
	}
	tagging := map[string]any{
		"StringEquals": owned["StringEquals"], "StringLike": owned["StringLike"],
		"StringEqualsIfExists":      map[string]any{"aws:RequestTag/eks:eks-cluster-name": "prod"},
		"ForAllValues:StringEquals": map[string]any{"aws:TagKeys": []any{"eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"}},
	}
	region := map[string]any{"Ref": "AWS::Region"}
	profile := func(kinds ...string) map[string]any {
		equal, like := map[string]any{}, map[string]any{}
		for _, k := range kinds {
			equal["aws:"+k+"/kubernetes.io/cluster/prod"], equal["aws:"+k+"/topology.kubernetes.io/region"] = "owned", region
			like["aws:"+k+"/karpenter.k8s.aws/ec2nodeclass"] = "*"
			if k == "RequestTag" {
				equal["aws:RequestTag/eks:eks-cluster-name"] = "prod"
			}
		}
		return map[string]any{"StringEquals": equal, "StringLike": like}
	}
	here := map[string]any{"StringEquals": map[string]any{"aws:RequestedRegion": region}}
	want := map[string]map[string]any{
		"AllowScopedEC2LaunchTemplateAccessActions": owned,
		"AllowScopedEC2InstanceActionsWithTags":     asked,
		"AllowScopedResourceCreationTagging":        creating,
		"AllowScopedResourceTagging":                tagging,
		"AllowScopedDeletion":                       owned,
		"AllowScopedTemplateDeletion":               owned,
		"AllowScopedTermination":                    owned,
		"AllowInstanceReads":                        here,
		"AllowNodeAccessEntries": {"StringEquals": map[string]any{"eks:accessEntryType": "EC2_LINUX"},
			"ArnEquals": map[string]any{"eks:principalArn": []any{"arn:aws-us-gov:iam::123456789012:role/workers", "arn:aws-us-gov:iam::123456789012:role/path/to/gpu", "arn:aws:iam::123456789012:role/other"}}},
		"AllowPassingInstanceRole":                  {"StringEquals": map[string]any{"iam:PassedToService": []any{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}},
		"AllowScopedInstanceProfileCreationActions": profile("RequestTag"),
		"AllowScopedInstanceProfileTagActions":      profile("ResourceTag", "RequestTag"),
		"AllowScopedInstanceProfileActions":         profile("ResourceTag"),
		"AllowLaunchReads":                          here,
		"AllowReadingAccountState":                  here,
		"AllowReadingNetworkAndNodes":               here,
		"AllowReadingInstanceStatus":                here,
		"AllowReadingConsoles":                      owned,
		"AllowReadingDenials":                       here,
		"AllowRegionalReadActions":                  here,
	}
	props := demoProps()
	props.NodeRoles = []string{"workers", "path/to/gpu", "arn:aws:iam::123456789012:role/other"}
	props.SSMParameters = []string{"/golden/ami", "plain"}
	tm := made(t, props)
	seen := map[string]bool{}
	for _, f := range functions {
		for _, s := range statements(tm.role(t, f)) {
			sid, _ := s["Sid"].(string)
			condition, _ := s["Condition"].(map[string]any)
			seen[sid] = true
			if sid == "AllowReadingTriggers" { // those of five functions
				if got := list(condition["ArnEquals"].(map[string]any)["lambda:FunctionArn"]); len(got) != 5 || len(condition) != 1 {
					t.Errorf("%s %s: %v", f, sid, condition)
				}
				continue
			}
			if sid == "AllowNodeAccessEntries" { // what is in it is known once it is deployed
				condition = render(condition).(map[string]any)
			}
			if d := cmp.Diff(want[sid], condition); d != "" {
				t.Errorf("%s %s: %s", f, sid, d)
			}
			if sid == "AllowOwnSSMReadActions" && !slices.Equal(list(s["Resource"]), []string{"arn:aws-us-gov:ssm:ap-southeast-4:123456789012:parameter/golden/ami", "arn:aws-us-gov:ssm:ap-southeast-4:123456789012:parameter/plain"}) {
				t.Errorf("parameters: %v", list(s["Resource"]))
			}
			if sid == "AllowPassingInstanceRole" {
				roles := []string{"arn:aws-us-gov:iam::123456789012:role/workers", "arn:aws-us-gov:iam::123456789012:role/path/to/gpu", "arn:aws:iam::123456789012:role/other"}
				if d := cmp.Diff(roles, list(s["Resource"])); d != "" {
					t.Errorf("%s: %s", f, d)
				}
			}
		}
	}
	for _, sid := range append(slices.Sorted(maps.Keys(want)), "AllowOwnSSMReadActions") {
		if !seen[sid] {
			t.Errorf("nobody has %s", sid)
		}
	}
	for _, s := range statements(demo(t).role(t, "Sweep")) {
		if s["Sid"] == "AllowPassingInstanceRole" && !slices.Equal(list(s["Resource"]), []string{"arn:aws-us-gov:iam::123456789012:role/KarpenterNodeRole-prod"}) {
			t.Errorf("node roles by default: %v", list(s["Resource"]))
		}
	}
}

// TestPolicySizes: IAM takes 6,144 characters in a managed policy and 10,240 in all that is
// written into a role; names are as long as they can be.
func TestPolicySizes(t *testing.T) {
	props := demoProps()
	props.ClusterName = strings.Repeat("c", 100)
	props.NodeRoles = []string{strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("d", 64)}
	tm := made(t, props)
	for _, role := range tm.all("AWS::IAM::Role") {
		sum := 0
		for _, p := range role.Properties["Policies"].([]any) {
			m := p.(map[string]any)
			text, err := json.Marshal(render(m["PolicyDocument"]))
			if err != nil {
				t.Fatal(err)
			}
			sum += len(text)
			if len(text) > 6144 {
				t.Errorf("%s: policy %s has %d characters", role.id, m["PolicyName"], len(text))
			}
		}
		t.Logf("%s: %d characters", role.id, sum)
		if sum > 10_240 {
			t.Errorf("%s: its policies have %d characters", role.id, sum)
		}
	}
}
