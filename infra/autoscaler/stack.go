package autoscaler

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// StackName is the CloudFormation stack of a cluster: "kerf-" and the cluster's name.
// Stacks have no underscores; a name that has some gets dashes, and six digits of
// its hash so that "a_b" and "a-b" stay two stacks.
func StackName(cluster string) string {
	if !strings.Contains(cluster, "_") {
		return "kerf-" + cluster
	}
	sum := sha256.Sum256([]byte(cluster))
	return "kerf-" + strings.ReplaceAll(cluster, "_", "-") + "-" + hex.EncodeToString(sum[:3])
}

// NewStack is the stack of one cluster: the construct, and outputs that say how to
// use what it made.
func NewStack(scope constructs.Construct, props Props) (awscdk.Stack, error) {
	props = props.withDefaults()
	if err := props.validate(); err != nil {
		return nil, err
	}
	name := StackName(props.ClusterName)
	stack := awscdk.NewStack(scope, &name, &awscdk.StackProps{
		StackName:   &name,
		Description: jsii.String("Kerf for EKS cluster " + props.ClusterName),
		Tags:        &map[string]*string{"kerf.sh/cluster": jsii.String(props.ClusterName)},
	})
	a, err := New(stack, "Kerf", props)
	if err != nil {
		return nil, err
	}
	output := func(id, description string, value *string) {
		awscdk.NewCfnOutput(stack, &id, &awscdk.CfnOutputProps{Value: value, Description: &description})
	}
	output("PlanFunctionName", "The function that answers dry-runs", a.Plan.Lambda.FunctionName())
	output("PlanInvoke", "How to call it: request.json is {\"objects\": [...], \"format\": \"text\"}", awscdk.Fn_Join(jsii.String(""), &[]*string{
		jsii.String("aws lambda invoke --region "), stack.Region(),
		jsii.String(" --function-name "), a.Plan.Lambda.FunctionName(),
		jsii.String(" --cli-binary-format raw-in-base64-out --payload file://request.json answer.json"),
	}))
	output("PlanLogGroup", "Where it logs", a.Plan.Logs.LogGroupName())
	if props.PlanOnly {
		return stack, nil
	}
	for _, f := range []struct {
		name string
		fn   *Function
	}{{"Sweep", a.Sweep}, {"Lifecycle", a.Lifecycle}, {"Catalog", a.Catalog}, {"Interruption", a.Interruption}, {"Consolidation", a.Consolidation}, {"Bootstrap", a.Bootstrap}} {
		output(f.name+"FunctionName", "The function "+f.name, f.fn.Lambda.FunctionName())
		output(f.name+"LogGroup", "Where it logs", f.fn.Logs.LogGroupName())
		output(f.name+"RoleArn", "Its role, which the cluster has to let in", f.fn.Role.RoleArn())
	}
	output("SweepInvoke", "How to ask for a sweep now", awscdk.Fn_Join(jsii.String(""), &[]*string{
		jsii.String("aws lambda invoke --region "), stack.Region(),
		jsii.String(" --function-name "), a.Sweep.Lambda.FunctionName(), jsii.String(" answer.json"),
	}))
	output("TableName", "The ledger; it stays when the stack goes", a.Table.TableName())
	output("TickQueueUrl", "The queue of sweeps", a.Ticks.QueueUrl())
	output("WorkQueueUrl", "The queue of steps", a.Work.QueueUrl())
	output("WorkDeadLettersUrl", "The steps that failed for good", a.DeadWork.QueueUrl())
	output("NoticeQueueUrl", "The queue of what AWS says about instances", a.Notices.QueueUrl())
	output("NoticeDeadLettersUrl", "What of that could not be read, or not be acted on", a.DeadNotices.QueueUrl())
	if a.Prices != nil {
		output("PricesFunctionName", "The half of catalog outside the VPC", a.Prices.Lambda.FunctionName())
		output("PricesLogGroup", "Where it logs", a.Prices.Logs.LogGroupName())
	}
	if props.Access == AccessConfigMap {
		output("AwsAuthRoles", "Lines for mapRoles in ConfigMap kube-system/aws-auth; then deploy with access=existing", a.awsAuth(props))
	}
	return stack, nil
}

// retention translates days into the CDK's names. Days are one of RetentionDays.
func retention(days int) awslogs.RetentionDays {
	names := map[int]awslogs.RetentionDays{
		1: awslogs.RetentionDays_ONE_DAY, 3: awslogs.RetentionDays_THREE_DAYS, 5: awslogs.RetentionDays_FIVE_DAYS,
		7: awslogs.RetentionDays_ONE_WEEK, 14: awslogs.RetentionDays_TWO_WEEKS, 30: awslogs.RetentionDays_ONE_MONTH,
		60: awslogs.RetentionDays_TWO_MONTHS, 90: awslogs.RetentionDays_THREE_MONTHS, 120: awslogs.RetentionDays_FOUR_MONTHS,
		150: awslogs.RetentionDays_FIVE_MONTHS, 180: awslogs.RetentionDays_SIX_MONTHS, 365: awslogs.RetentionDays_ONE_YEAR,
		400: awslogs.RetentionDays_THIRTEEN_MONTHS, 545: awslogs.RetentionDays_EIGHTEEN_MONTHS, 731: awslogs.RetentionDays_TWO_YEARS,
		1096: awslogs.RetentionDays_THREE_YEARS, 1827: awslogs.RetentionDays_FIVE_YEARS, 2192: awslogs.RetentionDays_SIX_YEARS,
		2557: awslogs.RetentionDays_SEVEN_YEARS, 2922: awslogs.RetentionDays_EIGHT_YEARS, 3288: awslogs.RetentionDays_NINE_YEARS,
		3653: awslogs.RetentionDays_TEN_YEARS,
	}
	name, ok := names[days]
	if !ok {
		panic(fmt.Sprintf("autoscaler: retention of %d days passed validation and has no name", days))
	}
	return name
}
