package examine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	sqtypes "github.com/aws/aws-sdk-go-v2/service/servicequotas/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// fakeAWS is an account with a cluster and its stack. calls are the actions that were asked
// for; deny refuses one, and gone says that nothing is there of a name.
type fakeAWS struct {
	template  map[string]string // resources of the stack, by logical id
	calls     map[string]bool
	deny      string
	gone      map[string]bool
	authMode  ekstypes.AuthenticationMode
	pass      iamtypes.PolicyEvaluationDecisionType
	nodeMay   iamtypes.PolicyEvaluationDecisionType
	instances []ec2types.Instance
	console   string
	now       time.Time
}

const account = "123456789012"

func (a *fakeAWS) call(action, name string) error {
	a.calls[action] = true
	switch {
	case a.deny == action:
		return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User: arn:aws:sts::123456789012:assumed-role/plan/x is not authorized to perform: " + action + " on resource: " + name + " because no identity-based policy allows the action"}
	case a.gone[name]:
		return &smithy.GenericAPIError{Code: "ResourceNotFoundException", Message: name + " does not exist"}
	}
	return nil
}

func (a *fakeAWS) DescribeStacks(_ context.Context, in *cloudformation.DescribeStacksInput, _ ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	if err := a.call("cloudformation:DescribeStacks", *in.StackName); err != nil {
		return nil, err
	}
	return &cloudformation.DescribeStacksOutput{Stacks: []cfntypes.Stack{{
		StackName: in.StackName, StackStatus: cfntypes.StackStatusUpdateComplete,
		Outputs: []cfntypes.Output{{OutputKey: aws.String("TableName"), OutputValue: aws.String("ledger")}},
	}}}, nil
}

// ListStackResources gives one resource on each page.
func (a *fakeAWS) ListStackResources(_ context.Context, in *cloudformation.ListStackResourcesInput, _ ...func(*cloudformation.Options)) (*cloudformation.ListStackResourcesOutput, error) {
	if err := a.call("cloudformation:ListStackResources", *in.StackName); err != nil {
		return nil, err
	}
	var ids []string
	for id := range a.template {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	i := 0
	if in.NextToken != nil {
		fmt.Sscan(*in.NextToken, &i)
	}
	out := &cloudformation.ListStackResourcesOutput{StackResourceSummaries: []cfntypes.StackResourceSummary{{
		LogicalResourceId: aws.String(ids[i]), ResourceType: aws.String(a.template[ids[i]]), PhysicalResourceId: aws.String("p-" + ids[i]),
	}}}
	if i++; i < len(ids) {
		out.NextToken = aws.String(fmt.Sprint(i))
	}
	return out, nil
}

func (a *fakeAWS) GetFunctionConfiguration(_ context.Context, in *lambda.GetFunctionConfigurationInput, _ ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error) {
	if err := a.call("lambda:GetFunctionConfiguration", *in.FunctionName); err != nil {
		return nil, err
	}
	return &lambda.GetFunctionConfigurationOutput{
		State: lambdatypes.StateActive, LastUpdateStatus: lambdatypes.LastUpdateStatusSuccessful, Role: aws.String("arn:aws:iam::" + account + ":role/" + *in.FunctionName),
		LoggingConfig: &lambdatypes.LoggingConfig{LogGroup: aws.String("logs-of-" + *in.FunctionName)},
	}, nil
}

func (a *fakeAWS) GetFunctionConcurrency(_ context.Context, in *lambda.GetFunctionConcurrencyInput, _ ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error) {
	return &lambda.GetFunctionConcurrencyOutput{ReservedConcurrentExecutions: aws.Int32(3)}, a.call("lambda:GetFunctionConcurrency", *in.FunctionName)
}

func (a *fakeAWS) GetEventSourceMapping(_ context.Context, in *lambda.GetEventSourceMappingInput, _ ...func(*lambda.Options)) (*lambda.GetEventSourceMappingOutput, error) {
	return &lambda.GetEventSourceMappingOutput{State: aws.String("Enabled")}, a.call("lambda:GetEventSourceMapping", *in.UUID)
}

func (a *fakeAWS) GetAccountSettings(context.Context, *lambda.GetAccountSettingsInput, ...func(*lambda.Options)) (*lambda.GetAccountSettingsOutput, error) {
	return &lambda.GetAccountSettingsOutput{AccountLimit: &lambdatypes.AccountLimit{ConcurrentExecutions: 1000, UnreservedConcurrentExecutions: aws.Int32(900)}},
		a.call("lambda:GetAccountSettings", "account")
}

func (a *fakeAWS) GetSchedule(_ context.Context, in *scheduler.GetScheduleInput, _ ...func(*scheduler.Options)) (*scheduler.GetScheduleOutput, error) {
	return &scheduler.GetScheduleOutput{State: schedulertypes.ScheduleStateEnabled}, a.call("scheduler:GetSchedule", *in.Name)
}

func (a *fakeAWS) DescribeRule(_ context.Context, in *eventbridge.DescribeRuleInput, _ ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error) {
	return &eventbridge.DescribeRuleOutput{State: ebtypes.RuleStateEnabled, Arn: aws.String("arn-" + *in.Name)}, a.call("events:DescribeRule", *in.Name)
}

func (a *fakeAWS) ListTargetsByRule(_ context.Context, in *eventbridge.ListTargetsByRuleInput, _ ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error) {
	return &eventbridge.ListTargetsByRuleOutput{Targets: []ebtypes.Target{{Arn: aws.String("arn-of-Notices")}}}, a.call("events:ListTargetsByRule", *in.Rule)
}

func (a *fakeAWS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out := map[string]string{"ApproximateNumberOfMessages": "0", "QueueArn": "arn-" + *in.QueueUrl}
	if strings.Contains(*in.QueueUrl, "KerfNotices") {
		out["QueueArn"] = "arn-of-Notices"
		var rules []string
		for id, typ := range a.template {
			if typ == "AWS::Events::Rule" {
				rules = append(rules, "arn-p-"+id)
			}
		}
		policy, err := json.Marshal(map[string]any{"Statement": []any{
			map[string]any{"Effect": "Deny", "Action": "sqs:*", "Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}}},
			map[string]any{"Effect": "Allow", "Action": []string{"sqs:SendMessage"}, "Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": rules}}},
		}})
		if err != nil {
			return nil, err
		}
		out["Policy"] = string(policy)
	}
	return &sqs.GetQueueAttributesOutput{Attributes: out}, a.call("sqs:GetQueueAttributes", *in.QueueUrl)
}

func (a *fakeAWS) DescribeAlarms(_ context.Context, in *cloudwatch.DescribeAlarmsInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error) {
	out := &cloudwatch.DescribeAlarmsOutput{}
	for _, n := range in.AlarmNames {
		state := cwtypes.StateValueOk
		if a.gone["ticks"] && strings.Contains(n, "NoTick") {
			state = cwtypes.StateValueAlarm
		}
		out.MetricAlarms = append(out.MetricAlarms, cwtypes.MetricAlarm{AlarmName: aws.String(n), StateValue: state, AlarmDescription: aws.String("Kerf for prod: text"), StateUpdatedTimestamp: &a.now})
	}
	return out, a.call("cloudwatch:DescribeAlarms", "alarms")
}

func (a *fakeAWS) GetRole(_ context.Context, in *iam.GetRoleInput, _ ...func(*iam.Options)) (*iam.GetRoleOutput, error) {
	if err := a.call("iam:GetRole", *in.RoleName); err != nil {
		if a.gone[*in.RoleName] {
			err = &iamtypes.NoSuchEntityException{}
		}
		return nil, err
	}
	trust := url.QueryEscape(`{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"},{"Effect":"Allow","Principal":"*"}]}`)
	return &iam.GetRoleOutput{Role: &iamtypes.Role{Arn: aws.String("arn:aws:iam::" + account + ":role/" + *in.RoleName), AssumeRolePolicyDocument: &trust}}, nil
}

func (a *fakeAWS) GetInstanceProfile(_ context.Context, in *iam.GetInstanceProfileInput, _ ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error) {
	if err := a.call("iam:GetInstanceProfile", *in.InstanceProfileName); err != nil {
		if a.gone[*in.InstanceProfileName] {
			err = &iamtypes.NoSuchEntityException{}
		}
		return nil, err
	}
	return &iam.GetInstanceProfileOutput{InstanceProfile: &iamtypes.InstanceProfile{Roles: []iamtypes.Role{{RoleName: aws.String("gpu"), Path: aws.String("/teams/")}}}}, nil
}

func (a *fakeAWS) SimulatePrincipalPolicy(_ context.Context, in *iam.SimulatePrincipalPolicyInput, _ ...func(*iam.Options)) (*iam.SimulatePrincipalPolicyOutput, error) {
	out := &iam.SimulatePrincipalPolicyOutput{}
	for _, action := range in.ActionNames {
		d := a.nodeMay
		if action == "iam:PassRole" {
			d = a.pass
			if *in.ContextEntries[0].ContextKeyName != "iam:PassedToService" || len(in.ResourceArns) != 1 || !strings.Contains(*in.PolicySourceArn, "Sweep") {
				return nil, fmt.Errorf("asked about %+v", in)
			}
		}
		out.EvaluationResults = append(out.EvaluationResults, iamtypes.EvaluationResult{EvalActionName: aws.String(action), EvalDecision: d})
	}
	return out, a.call("iam:SimulatePrincipalPolicy", *in.PolicySourceArn)
}

func (a *fakeAWS) DescribeCluster(_ context.Context, in *awseks.DescribeClusterInput, _ ...func(*awseks.Options)) (*awseks.DescribeClusterOutput, error) {
	if err := a.call("eks:DescribeCluster", *in.Name); err != nil {
		return nil, err
	}
	return &awseks.DescribeClusterOutput{Cluster: &ekstypes.Cluster{
		Name: in.Name, Status: ekstypes.ClusterStatusActive, Version: aws.String("1.33"), Endpoint: aws.String("https://x.eks.amazonaws.com"),
		ResourcesVpcConfig: &ekstypes.VpcConfigResponse{EndpointPublicAccess: true, PublicAccessCidrs: []string{"0.0.0.0/0"}, VpcId: aws.String("vpc-1"), ClusterSecurityGroupId: aws.String("sg-1")},
		AccessConfig:       &ekstypes.AccessConfigResponse{AuthenticationMode: a.authMode},
	}}, nil
}

func (a *fakeAWS) DescribeAccessEntry(_ context.Context, in *awseks.DescribeAccessEntryInput, _ ...func(*awseks.Options)) (*awseks.DescribeAccessEntryOutput, error) {
	if err := a.call("eks:DescribeAccessEntry", *in.PrincipalArn); err != nil {
		return nil, err
	}
	e := &ekstypes.AccessEntry{Type: aws.String("EC2_LINUX")}
	for _, f := range []string{"Plan", "Sweep", "Lifecycle", "Catalog", "Interruption", "Consolidation", "Bootstrap"} {
		if strings.Contains(*in.PrincipalArn, f+"Function") {
			e = &ekstypes.AccessEntry{Type: aws.String("STANDARD"), KubernetesGroups: []string{"kerf:" + strings.ToLower(f)}}
		}
	}
	return &awseks.DescribeAccessEntryOutput{AccessEntry: e}, nil
}

func (a *fakeAWS) DescribeSubnets(_ context.Context, in *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	if err := a.call("ec2:DescribeSubnets", "subnets"); err != nil {
		return nil, err
	}
	zone, next := "b", (*string)(nil) // two pages, not sorted
	if in.NextToken != nil {
		zone = "a"
	} else {
		next = aws.String("more")
	}
	return &ec2.DescribeSubnetsOutput{NextToken: next, Subnets: []ec2types.Subnet{{
		SubnetId: aws.String("subnet-" + zone), VpcId: aws.String("vpc-1"), AvailabilityZone: aws.String("us-east-1" + zone), AvailableIpAddressCount: aws.Int32(500),
		Tags: []ec2types.Tag{{Key: aws.String("karpenter.sh/discovery"), Value: aws.String("prod")}},
	}}}, nil
}

func (a *fakeAWS) DescribeSecurityGroups(_ context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	if in.Filters[0].Values[0] != "vpc-1" {
		return nil, fmt.Errorf("asked for %+v", in)
	}
	return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: []ec2types.SecurityGroup{{GroupId: aws.String("sg-1"), GroupName: aws.String("nodes")}}}, a.call("ec2:DescribeSecurityGroups", "groups")
}

func (a *fakeAWS) DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: a.instances}}}, a.call("ec2:DescribeInstances", "instances")
}

func (a *fakeAWS) DescribeInstanceStatus(_ context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	return &ec2.DescribeInstanceStatusOutput{InstanceStatuses: []ec2types.InstanceStatus{{
		InstanceId: aws.String(in.InstanceIds[0]), SystemStatus: &ec2types.InstanceStatusSummary{Status: ec2types.SummaryStatusOk}, InstanceStatus: &ec2types.InstanceStatusSummary{Status: ec2types.SummaryStatusImpaired},
	}}}, a.call("ec2:DescribeInstanceStatus", "status")
}

func (a *fakeAWS) GetConsoleOutput(_ context.Context, in *ec2.GetConsoleOutputInput, _ ...func(*ec2.Options)) (*ec2.GetConsoleOutputOutput, error) {
	if err := a.call("ec2:GetConsoleOutput", *in.InstanceId); err != nil {
		return nil, err
	}
	if aws.ToBool(in.Latest) {
		return nil, &smithy.GenericAPIError{Code: "UnsupportedOperation", Message: "not for this type"}
	}
	return &ec2.GetConsoleOutputOutput{Output: aws.String(base64.StdEncoding.EncodeToString([]byte(a.console)))}, nil
}

// DescribeRouteTables is a VPC whose subnet-b leads to NAT and whose others lead nowhere.
func (a *fakeAWS) DescribeRouteTables(_ context.Context, in *ec2.DescribeRouteTablesInput, _ ...func(*ec2.Options)) (*ec2.DescribeRouteTablesOutput, error) {
	if in.Filters[0].Values[0] != "vpc-1" {
		return nil, fmt.Errorf("asked for %+v", in)
	}
	return &ec2.DescribeRouteTablesOutput{RouteTables: []ec2types.RouteTable{
		{Associations: []ec2types.RouteTableAssociation{{Main: aws.Bool(true)}}, Routes: []ec2types.Route{{DestinationCidrBlock: aws.String("10.0.0.0/16"), GatewayId: aws.String("local")}}},
		{Associations: []ec2types.RouteTableAssociation{{SubnetId: aws.String("subnet-b")}}, Routes: []ec2types.Route{
			{DestinationCidrBlock: aws.String("0.0.0.0/0"), GatewayId: aws.String("igw-1"), State: ec2types.RouteStateBlackhole}, {DestinationCidrBlock: aws.String("0.0.0.0/0"), NatGatewayId: aws.String("nat-1")}}},
	}}, a.call("ec2:DescribeRouteTables", "routes")
}

func (a *fakeAWS) GetServiceQuota(_ context.Context, in *servicequotas.GetServiceQuotaInput, _ ...func(*servicequotas.Options)) (*servicequotas.GetServiceQuotaOutput, error) {
	return &servicequotas.GetServiceQuotaOutput{Quota: &sqtypes.ServiceQuota{Value: aws.Float64(64)}}, a.call("servicequotas:GetServiceQuota", *in.QuotaCode)
}

func (a *fakeAWS) GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error) {
	return &sts.GetCallerIdentityOutput{Arn: aws.String("arn:aws:sts::" + account + ":assumed-role/plan/x")}, nil
}
