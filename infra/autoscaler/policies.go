package autoscaler

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// policy is a named part of what a role may do.
type policy struct {
	name       string
	statements []statement
}

// statement allows actions on resources, under conditions: operator, key, value.
type statement struct {
	sid        string
	actions    []string
	resources  []string
	conditions map[string]any
}

// document is the policy as IAM takes it.
func (p policy) document() awsiam.PolicyDocument {
	var out []awsiam.PolicyStatement
	for _, s := range p.statements {
		props := &awsiam.PolicyStatementProps{Actions: jsii.Strings(s.actions...), Resources: jsii.Strings(s.resources...)}
		if s.sid != "" {
			props.Sid = &s.sid
		}
		if s.conditions != nil {
			props.Conditions = &s.conditions
		}
		out = append(out, awsiam.NewPolicyStatement(props))
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &out})
}

// grants are the permissions of the functions that act. Statements and their names are
// those of Karpenter's controller, so that whoever has reviewed one has reviewed the other;
// here each function has only its part of them.
type grants struct {
	stack awscdk.Stack
	props Props
	auto  *Autoscaler
}

// plan reads what the others remember, and the cluster; and for the doctor, whatever can be in
// the way of a node. It writes nothing but its log.
func (g grants) plan() []policy {
	a := g.auto
	var functions, queues []string
	for _, fn := range []*Function{a.Sweep, a.Lifecycle, a.Catalog, a.Interruption, a.Consolidation} {
		functions = append(functions, *fn.Lambda.FunctionArn())
	}
	for _, q := range []awssqs.Queue{a.Ticks, a.Work, a.DeadWork, a.Notices, a.DeadNotices} {
		queues = append(queues, *q.QueueArn())
	}
	stack := []statement{
		{sid: "AllowReadingStack", actions: []string{"cloudformation:DescribeStacks", "cloudformation:ListStackResources"}, resources: []string{*g.stack.StackId()}},
		{sid: "AllowReadingFunctions", actions: []string{"lambda:GetFunctionConfiguration", "lambda:GetFunctionConcurrency"}, resources: functions},
		{sid: "AllowReadingTriggers", actions: []string{"lambda:GetEventSourceMapping"}, resources: []string{g.arn("lambda", "event-source-mapping:*")},
			conditions: map[string]any{"ArnEquals": map[string]any{"lambda:FunctionArn": functions}}},
		// Their names are known once they are made, and they are made when the cluster is set up,
		// which waits for this function's access to it.
		{sid: "AllowReadingSchedules", actions: []string{"scheduler:GetSchedule"}, resources: []string{g.arn("scheduler", "schedule/default/*")}},
		{sid: "AllowReadingQueues", actions: []string{"sqs:GetQueueAttributes"}, resources: queues},
		{sid: "AllowReadingAccountState", actions: []string{"lambda:GetAccountSettings", "cloudwatch:DescribeAlarms"}, resources: []string{"*"}, conditions: g.here()},
	}
	if len(a.ruleARNs) > 0 {
		var rules []string
		for _, r := range a.ruleARNs {
			rules = append(rules, *r)
		}
		stack = append(stack, statement{sid: "AllowReadingRules", actions: []string{"events:DescribeRule", "events:ListTargetsByRule"}, resources: rules})
	}
	nodes := []statement{
		{sid: "AllowReadingNetworkAndNodes", actions: []string{"ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstances", "ec2:DescribeRouteTables", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets"},
			resources: []string{"*"}, conditions: g.here()},
		{sid: "AllowReadingConsoles", actions: []string{"ec2:GetConsoleOutput"}, resources: []string{g.arn("ec2", "instance/*")}, conditions: g.owned()},
		{sid: "AllowReadingQuotas", actions: []string{"servicequotas:GetServiceQuota"}, resources: []string{g.arn("servicequotas", "ec2/*")}},
		{sid: "AllowReadingNodeRoles", actions: []string{"iam:GetRole"}, resources: g.nodeRoles()},
		{sid: "AllowAskingIAM", actions: []string{"iam:SimulatePrincipalPolicy"}, resources: append(g.nodeRoles(), *a.Sweep.Role.RoleArn())},
		{sid: "AllowInstanceProfileReadActions", actions: []string{"iam:GetInstanceProfile"}, resources: []string{g.arnGlobal("iam", *g.stack.Account(), "instance-profile/*")}},
		g.readingEntries(),
	}
	return []policy{
		{"ledger", []statement{{sid: "AllowReadingLedger", actions: []string{"dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query"}, resources: []string{*a.Table.TableArn()}}}},
		g.cluster(),
		{"doctor-stack", stack},
		{"doctor-nodes", append(nodes, g.parameters()...)},
	}
}

func (g grants) readingEntries() statement {
	return statement{sid: "AllowReadingAccessEntries", actions: []string{"eks:DescribeAccessEntry"}, resources: []string{g.arn("eks", "access-entry/"+g.props.ClusterName+"/*")}}
}

func (g grants) sweep() []policy {
	return []policy{
		g.ledger(), g.cluster(), g.launching(),
		{"removing", g.removing()},
		{"statuses", []statement{{sid: "AllowReadingInstanceStatus", actions: []string{"ec2:DescribeInstanceStatus"}, resources: []string{"*"}, conditions: g.here()}}},
		{"queues", []statement{consume("AllowTicks", *g.auto.Ticks.QueueArn()), send("AllowSendingTicksAndWork", *g.auto.Ticks.QueueArn(), *g.auto.Work.QueueArn())}},
		{"catalog", []statement{{sid: "AllowCatalogRefresh", actions: []string{"lambda:InvokeFunction"}, resources: []string{*g.auto.Catalog.Lambda.FunctionArn()}}}},
	}
}

func (g grants) lifecycle() []policy {
	return []policy{
		g.ledger(), g.cluster(), g.launching(),
		{"removing", []statement{g.terminating(), g.taggingRegistered()}},
		{"queues", []statement{consume("AllowWork", *g.auto.Work.QueueArn()), send("AllowSendingTicksAndWork", *g.auto.Ticks.QueueArn(), *g.auto.Work.QueueArn())}},
	}
}

// consolidation launches what takes the place of other nodes, and ends what EC2 gave of that
// and nobody needs; nodes are drained and ended by lifecycle.
func (g grants) consolidation() []policy {
	out := []policy{
		g.ledger(), g.cluster(), g.launching(),
		{"removing", []statement{g.terminating()}},
		{"queues", []statement{send("AllowSendingTicksAndWork", *g.auto.Ticks.QueueArn(), *g.auto.Work.QueueArn())}},
	}
	if bus := g.props.Settings["KERF_NOTICE_BUS"]; bus != "" {
		if !strings.HasPrefix(bus, "arn:") {
			bus = g.arn("events", "event-bus/"+bus)
		}
		out = append(out, policy{"notices", []statement{{sid: "AllowTellingOfDecisions", actions: []string{"events:PutEvents"}, resources: []string{bus}}}})
	}
	return out
}

// interruption writes to the ledger and asks EC2 whose an instance is; it launches and ends
// nothing.
func (g grants) interruption() []policy {
	return []policy{
		g.ledger(), g.cluster(),
		{"instances", []statement{{sid: "AllowInstanceReads", actions: []string{"ec2:DescribeInstances"}, resources: []string{"*"}, conditions: g.here()}, g.denials()}},
		{"queues", []statement{
			consume("AllowNotices", *g.auto.Notices.QueueArn()),
			send("AllowSendingTicksAndWork", *g.auto.Ticks.QueueArn(), *g.auto.Work.QueueArn()),
			send("AllowPuttingAside", *g.auto.DeadNotices.QueueArn()),
		}},
	}
}

// bootstrap finds the cluster, and lets the nodes' roles in. What it does in the cluster is
// up to its access entry.
func (g grants) bootstrap() []policy {
	out := []policy{g.cluster()}
	if g.props.Access != AccessEntries {
		return out
	}
	return append(out, policy{"nodes", []statement{
		{sid: "AllowNodeAccessEntries", actions: []string{"eks:CreateAccessEntry"}, resources: []string{g.arn("eks", "cluster/"+g.props.ClusterName)},
			conditions: map[string]any{"StringEquals": map[string]any{"eks:accessEntryType": "EC2_LINUX"}, "ArnEquals": map[string]any{"eks:principalArn": g.nodeRoles()}}},
		g.readingEntries(),
	}})
}

// networking lets Lambda put a function into a VPC.
func networking() policy {
	return policy{"network", []statement{{sid: "AllowNetworkInterfaces", resources: []string{"*"}, actions: []string{
		"ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DeleteNetworkInterface", "ec2:DescribeSubnets",
		"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
	}}}}
}

// catalog launches nothing. It hands roles to profiles, and takes the templates of a class
// along when the class goes.
func (g grants) catalog() []policy {
	templates := statement{sid: "AllowScopedTemplateDeletion", actions: []string{"ec2:DeleteLaunchTemplate"},
		resources: []string{g.arn("ec2", "launch-template/*")}, conditions: g.owned()}
	return []policy{
		g.ledger(), g.cluster(),
		{"discovery", append(g.discovery(), g.reads()...)},
		{"profiles", append(g.profiles(), g.passRole())},
		{"removing", []statement{templates}},
	}
}

// prices reads what is sold, and at what price.
func (g grants) prices() []policy {
	return []policy{g.ledger(), {"prices", []statement{
		{sid: "AllowReadingOffers", actions: []string{"ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeSpotPriceHistory"}, resources: []string{"*"}, conditions: g.here()},
		{sid: "AllowPricingReadActions", actions: []string{"pricing:GetProducts"}, resources: []string{"*"}},
	}}}
}

// ledger reads and writes rows, conditions of transactions included; there is no Scan.
func (g grants) ledger() policy {
	return policy{"ledger", []statement{{sid: "AllowLedger",
		actions: []string{"dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem",
			"dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"},
		resources: []string{*g.auto.Table.TableArn()}}}}
}

// cluster finds the API server. What may be done there is Kubernetes' to say.
func (g grants) cluster() policy {
	return policy{"cluster", []statement{{sid: "AllowAPIServerEndpointDiscovery", actions: []string{"eks:DescribeCluster"},
		resources: []string{g.arn("eks", "cluster/"+g.props.ClusterName)}}}}
}

// launching is what CreateFleet takes. Whatever it makes carries the tags of the cluster and
// a pool, and it takes templates only that carry them.
func (g grants) launching() policy {
	made := []string{"fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request"}
	var ours []string
	for _, m := range made {
		ours = append(ours, g.arn("ec2", m+"/*"))
	}
	asked := func() map[string]any {
		return map[string]any{
			"StringEquals": map[string]any{"aws:RequestTag/" + g.ownedTag(): "owned", "aws:RequestTag/eks:eks-cluster-name": g.props.ClusterName},
			"StringLike":   map[string]any{"aws:RequestTag/karpenter.sh/nodepool": "*"},
		}
	}
	creating := asked()
	creating["StringEquals"].(map[string]any)["ec2:CreateAction"] = []string{"RunInstances", "CreateFleet", "CreateLaunchTemplate"}
	return policy{"launching", append(g.reads(),
		statement{sid: "AllowScopedEC2InstanceAccessActions", actions: []string{"ec2:RunInstances", "ec2:CreateFleet"}, resources: []string{
			// Images and snapshots belong to other accounts too.
			g.arnOf("ec2", "", "image/*"), g.arnOf("ec2", "", "snapshot/*"),
			g.arn("ec2", "security-group/*"), g.arn("ec2", "subnet/*"), g.arn("ec2", "capacity-reservation/*"), g.arn("ec2", "placement-group/*"),
		}},
		statement{sid: "AllowScopedEC2LaunchTemplateAccessActions", actions: []string{"ec2:RunInstances", "ec2:CreateFleet"},
			resources: []string{g.arn("ec2", "launch-template/*")}, conditions: g.owned()},
		statement{sid: "AllowScopedEC2InstanceActionsWithTags", actions: []string{"ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"},
			resources: ours, conditions: asked()},
		statement{sid: "AllowScopedResourceCreationTagging", actions: []string{"ec2:CreateTags"}, resources: ours, conditions: creating},
		g.passRole(),
	)}
}

// passRole hands node roles on, to EC2 alone.
func (g grants) passRole() statement {
	return statement{sid: "AllowPassingInstanceRole", actions: []string{"iam:PassRole"}, resources: g.nodeRoles(),
		conditions: map[string]any{"StringEquals": map[string]any{"iam:PassedToService": []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}}}
}

// reads are what whoever deals with instances and templates looks at.
func (g grants) reads() []statement {
	return []statement{
		{sid: "AllowLaunchReads", actions: []string{"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"}, resources: []string{"*"}, conditions: g.here()},
		g.denials(),
	}
}

// denials: one of EC2's is in code, and the text in it names the permission that is missing.
func (g grants) denials() statement {
	return statement{sid: "AllowReadingDenials", actions: []string{"sts:DecodeAuthorizationMessage"}, resources: []string{"*"}, conditions: g.here()}
}

// terminating ends instances that carry the cluster's tags.
func (g grants) terminating() statement {
	return statement{sid: "AllowScopedTermination", actions: []string{"ec2:TerminateInstances"}, resources: []string{g.arn("ec2", "instance/*")}, conditions: g.owned()}
}

// removing ends what carries the cluster's tags.
func (g grants) removing() []statement {
	return []statement{{sid: "AllowScopedDeletion", actions: []string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"},
		resources: []string{g.arn("ec2", "instance/*"), g.arn("ec2", "launch-template/*")}, conditions: g.owned()}}
}

// taggingRegistered gives instances of the cluster the tags that are known once their node
// has joined, and no others.
func (g grants) taggingRegistered() statement {
	c := g.owned()
	c["StringEqualsIfExists"] = map[string]any{"aws:RequestTag/eks:eks-cluster-name": g.props.ClusterName}
	c["ForAllValues:StringEquals"] = map[string]any{"aws:TagKeys": []string{"eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"}}
	return statement{sid: "AllowScopedResourceTagging", actions: []string{"ec2:CreateTags"}, resources: []string{g.arn("ec2", "instance/*")}, conditions: c}
}

// discovery reads what there is to launch from.
func (g grants) discovery() []statement {
	return append([]statement{
		{sid: "AllowRegionalReadActions", actions: []string{"ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeInstanceTypes", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets"},
			resources: []string{"*"}, conditions: g.here()},
		{sid: "AllowPricingReadActions", actions: []string{"pricing:GetProducts"}, resources: []string{"*"}},
	}, g.parameters()...)
}

// parameters reads those that name images.
func (g grants) parameters() []statement {
	out := []statement{{sid: "AllowSSMReadActions", actions: []string{"ssm:GetParameter"}, resources: []string{g.arnOf("ssm", "", "parameter/aws/service/*")}}}
	var own []string
	for _, name := range g.props.SSMParameters {
		own = append(own, g.arn("ssm", "parameter/"+strings.TrimPrefix(name, "/")))
	}
	if len(own) > 0 {
		out = append(out, statement{sid: "AllowOwnSSMReadActions", actions: []string{"ssm:GetParameter"}, resources: own})
	}
	return out
}

// profiles makes the instance profile of a class that names a role.
func (g grants) profiles() []statement {
	profile := []string{g.arnGlobal("iam", *g.stack.Account(), "instance-profile/*")}
	tags := func(kinds ...string) map[string]any {
		equal, like := map[string]any{}, map[string]any{}
		for _, k := range kinds {
			equal["aws:"+k+"/"+g.ownedTag()] = "owned"
			equal["aws:"+k+"/topology.kubernetes.io/region"] = *g.stack.Region()
			like["aws:"+k+"/karpenter.k8s.aws/ec2nodeclass"] = "*"
			if k == "RequestTag" {
				equal["aws:"+k+"/eks:eks-cluster-name"] = g.props.ClusterName
			}
		}
		return map[string]any{"StringEquals": equal, "StringLike": like}
	}
	return []statement{
		{sid: "AllowScopedInstanceProfileCreationActions", actions: []string{"iam:CreateInstanceProfile"}, resources: profile, conditions: tags("RequestTag")},
		{sid: "AllowScopedInstanceProfileTagActions", actions: []string{"iam:TagInstanceProfile"}, resources: profile, conditions: tags("ResourceTag", "RequestTag")},
		{sid: "AllowScopedInstanceProfileActions", actions: []string{"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"},
			resources: profile, conditions: tags("ResourceTag")},
		{sid: "AllowUnscopedInstanceProfileListAction", actions: []string{"iam:ListInstanceProfiles"}, resources: []string{"*"}},
		{sid: "AllowInstanceProfileReadActions", actions: []string{"iam:GetInstanceProfile"}, resources: profile},
	}
}

// owned is the condition that something carries the tags of the cluster and of a pool.
func (g grants) owned() map[string]any {
	return map[string]any{
		"StringEquals": map[string]any{"aws:ResourceTag/" + g.ownedTag(): "owned"},
		"StringLike":   map[string]any{"aws:ResourceTag/karpenter.sh/nodepool": "*"},
	}
}

// here is the condition that it is this region that is asked.
func (g grants) here() map[string]any {
	return map[string]any{"StringEquals": map[string]any{"aws:RequestedRegion": *g.stack.Region()}}
}

func (g grants) ownedTag() string { return "kubernetes.io/cluster/" + g.props.ClusterName }

// nodeRoles are the roles that nodes may get, as ARNs.
func (g grants) nodeRoles() []string {
	var out []string
	for _, r := range g.props.NodeRoles {
		if !strings.HasPrefix(r, "arn:") {
			r = g.arnGlobal("iam", *g.stack.Account(), "role/"+r)
		}
		out = append(out, r)
	}
	return out
}

// arn is a resource of this region and account.
func (g grants) arn(service, resource string) string {
	return g.arnOf(service, *g.stack.Account(), resource)
}

func (g grants) arnOf(service, account, resource string) string {
	return "arn:" + *g.stack.Partition() + ":" + service + ":" + *g.stack.Region() + ":" + account + ":" + resource
}

// arnGlobal is a resource of a service that has no regions.
func (g grants) arnGlobal(service, account, resource string) string {
	return "arn:" + *g.stack.Partition() + ":" + service + "::" + account + ":" + resource
}

// consume takes messages of a queue, as Lambda does for a function, and says when they
// should come back.
func consume(sid, queue string) statement {
	return statement{sid: sid, actions: []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}, resources: []string{queue}}
}

func send(sid string, queues ...string) statement {
	return statement{sid: sid, actions: []string{"sqs:SendMessage"}, resources: queues}
}
