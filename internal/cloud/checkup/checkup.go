package checkup

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/doctor"
)

// The calls, by the client that makes them; the SDK's clients have them.
type (
	// Stacks needs cloudformation:DescribeStacks and cloudformation:ListStackResources.
	Stacks interface {
		DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error)
		ListStackResources(context.Context, *cloudformation.ListStackResourcesInput, ...func(*cloudformation.Options)) (*cloudformation.ListStackResourcesOutput, error)
	}
	// Functions needs lambda:GetFunctionConfiguration, lambda:GetFunctionConcurrency,
	// lambda:GetEventSourceMapping and lambda:GetAccountSettings.
	Functions interface {
		GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error)
		GetFunctionConcurrency(context.Context, *lambda.GetFunctionConcurrencyInput, ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error)
		GetEventSourceMapping(context.Context, *lambda.GetEventSourceMappingInput, ...func(*lambda.Options)) (*lambda.GetEventSourceMappingOutput, error)
		GetAccountSettings(context.Context, *lambda.GetAccountSettingsInput, ...func(*lambda.Options)) (*lambda.GetAccountSettingsOutput, error)
	}
	// Schedules needs scheduler:GetSchedule.
	Schedules interface {
		GetSchedule(context.Context, *scheduler.GetScheduleInput, ...func(*scheduler.Options)) (*scheduler.GetScheduleOutput, error)
	}
	// Rules needs events:DescribeRule and events:ListTargetsByRule.
	Rules interface {
		DescribeRule(context.Context, *eventbridge.DescribeRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error)
		ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput, ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
	}
	// Queues needs sqs:GetQueueAttributes.
	Queues interface {
		GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	}
	// Alarms needs cloudwatch:DescribeAlarms.
	Alarms interface {
		DescribeAlarms(context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error)
	}
	// Identities needs iam:GetRole, iam:GetInstanceProfile and iam:SimulatePrincipalPolicy.
	Identities interface {
		GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
		GetInstanceProfile(context.Context, *iam.GetInstanceProfileInput, ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error)
		SimulatePrincipalPolicy(context.Context, *iam.SimulatePrincipalPolicyInput, ...func(*iam.Options)) (*iam.SimulatePrincipalPolicyOutput, error)
	}
	// Cluster needs eks:DescribeCluster and eks:DescribeAccessEntry.
	Cluster interface {
		DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
		DescribeAccessEntry(context.Context, *eks.DescribeAccessEntryInput, ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error)
	}
	// EC2 needs ec2:DescribeSubnets, ec2:DescribeSecurityGroups, ec2:DescribeInstances,
	// ec2:DescribeInstanceStatus, ec2:DescribeRouteTables and ec2:GetConsoleOutput.
	EC2 interface {
		DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
		DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
		DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
		DescribeInstanceStatus(context.Context, *ec2.DescribeInstanceStatusInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error)
		DescribeRouteTables(context.Context, *ec2.DescribeRouteTablesInput, ...func(*ec2.Options)) (*ec2.DescribeRouteTablesOutput, error)
		GetConsoleOutput(context.Context, *ec2.GetConsoleOutputInput, ...func(*ec2.Options)) (*ec2.GetConsoleOutputOutput, error)
	}
	// Quotas needs servicequotas:GetServiceQuota.
	Quotas interface {
		GetServiceQuota(context.Context, *servicequotas.GetServiceQuotaInput, ...func(*servicequotas.Options)) (*servicequotas.GetServiceQuotaOutput, error)
	}
	// Caller needs no permission.
	Caller interface {
		GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)
	}
)

// Checkup asks AWS about one cluster. It fills Facts, whose Cluster and Region are set.
type Checkup struct {
	Stacks     Stacks
	Functions  Functions
	Schedules  Schedules
	Rules      Rules
	Queues     Queues
	Alarms     Alarms
	Identities Identities
	Cluster    Cluster
	EC2        EC2
	Quotas     Quotas
	Caller     Caller
	// Stack is the name of the stack; Timeout bounds one look.
	Stack   string
	Timeout time.Duration
	// Mapped are the roles that ConfigMap aws-auth lets in, by group.
	Mapped map[string][]string
}

// look runs one look within its time. An error that it ends with is why it brought nothing.
func (c *Checkup) look(ctx context.Context, f *doctor.Facts, l doctor.Look, do func(ctx context.Context) error) (ok bool) {
	if f.Unseen[l].Why == tooLate {
		return false // what cannot be reached is not waited for again
	}
	ctx, done := context.WithTimeout(ctx, c.Timeout)
	defer done()
	err := do(ctx)
	if err == nil {
		return true
	}
	u := Unseen(err)
	if u.Permission == "" && awserr.Is(err, awserr.Unauthorized) && len(doctor.Permissions[l]) == 1 {
		u.Permission = doctor.Permissions[l][0]
	}
	Note(f, l, u)
	return false
}

// Note writes down that a look brought nothing; the first reason stays.
func Note(f *doctor.Facts, l doctor.Look, u doctor.Unseen) {
	if f.Unseen == nil {
		f.Unseen = map[doctor.Look]doctor.Unseen{}
	}
	if _, ok := f.Unseen[l]; !ok {
		f.Unseen[l] = u
	}
}

// tooLate is why nothing came of what cannot be reached.
const tooLate = "no answer in time: it cannot be reached from here"

// Unseen is an error of AWS as a reason.
func Unseen(err error) doctor.Unseen {
	if errors.Is(err, context.DeadlineExceeded) {
		return doctor.Unseen{Why: tooLate}
	}
	e := awserr.From(err)
	if e.Kind != awserr.Unauthorized {
		return doctor.Unseen{Why: short(err)}
	}
	why := e.Code
	if e.Resource != "" {
		why += " on " + e.Resource
	}
	return doctor.Unseen{Permission: e.Permission, Why: why}
}

// short is what an error says beside which call it was and how often it was tried.
func short(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	text := err.Error()
	if _, cause, ok := strings.Cut(text, "request send failed, "); ok {
		return cause
	}
	return text
}

// Who finds out as whom it is asked. It is no harm when that is not known.
func (c *Checkup) Who(ctx context.Context, f *doctor.Facts) {
	ctx, done := context.WithTimeout(ctx, c.Timeout)
	defer done()
	if out, err := c.Caller.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}); err == nil {
		f.Who = aws.ToString(out.Arn)
	}
}

// FindCluster fills EKS.
func (c *Checkup) FindCluster(ctx context.Context, f *doctor.Facts) {
	c.look(ctx, f, doctor.LookCluster, func(ctx context.Context) error {
		out, err := c.Cluster.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &f.Cluster})
		if awserr.From(err) != nil && awserr.From(err).Code == "ResourceNotFoundException" {
			return nil
		}
		if err != nil {
			return err
		}
		if out.Cluster == nil {
			return errors.New("an answer without a cluster")
		}
		in := out.Cluster
		f.EKS = &doctor.EKS{Status: string(in.Status), Version: aws.ToString(in.Version), Endpoint: aws.ToString(in.Endpoint)}
		if v := in.ResourcesVpcConfig; v != nil {
			f.EKS.Public, f.EKS.Private, f.EKS.PublicCIDRs = v.EndpointPublicAccess, v.EndpointPrivateAccess, v.PublicAccessCidrs
			f.EKS.VPC, f.EKS.SecurityGroup = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId)
		}
		if a := in.AccessConfig; a != nil {
			f.EKS.AuthMode = string(a.AuthenticationMode)
		}
		if m := in.ComputeConfig; m != nil {
			f.EKS.AutoMode = aws.ToBool(m.Enabled)
		}
		return nil
	})
}
