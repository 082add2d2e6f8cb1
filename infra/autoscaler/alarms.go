package autoscaler

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"kerf.sh/kerf/internal/telemetry/report"
)

// alarm is what one alarm is about.
type alarm struct {
	id, description string
	metric          awscloudwatch.IMetric
	// It rings when the metric is at or above the threshold in all of so many periods; or,
	// with below, under it.
	threshold, periods int
	below              bool
	// silence rings too: that nothing was measured is the bad news.
	silence bool
}

// alarms adds them. CloudWatch bills each by the month.
func (a *Autoscaler) alarms(props Props) {
	ours := func(m report.Metric, statistic string) awscloudwatch.IMetric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String(report.Namespace), MetricName: jsii.String(string(m)), Statistic: &statistic, Period: seconds(60),
			DimensionsMap: &map[string]*string{report.DimensionCluster: &props.ClusterName},
		})
	}
	all := []alarm{
		{id: "NoTick", metric: ours(report.TickSuccess, "Sum"), threshold: 1, periods: 3, below: true, silence: true,
			description: "No sweep came to its end for 3 minutes: pending pods get no nodes. The log of the sweep function says why; an empty log means that no tick comes."},
		{id: "PodsWait", metric: ours(report.OldestPendingSeconds, "Maximum"), threshold: 600, periods: 5,
			description: "A pod that is to get a node has waited for 10 minutes. Its Events and the plan function's explain say what for."},
		{id: "WorkDied", threshold: 1, periods: 1,
			metric:      a.DeadWork.MetricApproximateNumberOfMessagesVisible(&awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: seconds(300)}),
			description: "Steps of nodes failed for good and are in the dead-letter queue. Housekeeping goes on with the nodes; the log of the lifecycle function says what failed."},
		{id: "NoticesDied", threshold: 1, periods: 1,
			metric:      a.DeadNotices.MetricApproximateNumberOfMessagesVisible(&awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: seconds(300)}),
			description: "Notices about instances could not be read, or not be acted on, and are in the dead-letter queue. The log of the interruption function says why."},
		{id: "NoticesWait", threshold: 60, periods: 1,
			metric:      a.Notices.MetricApproximateAgeOfOldestMessage(&awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: seconds(60)}),
			description: "A notice about an instance waits for a minute, of the two that EC2 gives. The interruption function fails, is throttled or is not started; its log says which."},
		{id: "WorkWaits", threshold: 900, periods: 1,
			metric:      a.Work.MetricApproximateAgeOfOldestMessage(&awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: seconds(300)}),
			description: "A step of a node waits for 15 minutes: nodes do not get ready, or do not go. The lifecycle function fails, is throttled or is not started; its log says which."},
	}
	all = append(all,
		alarm{id: "Errors", threshold: 1, periods: 2, metric: a.sum("errors", a.members(), awslambda.Function.MetricErrors),
			description: "A function ended with an error, or was cut off, in two periods of 5 minutes in a row. The metrics in the alarm say which, its log why."},
		// Consolidation is left out: a pass that takes longer than a minute throttles the next
		// one, and that is as it should be.
		alarm{id: "Throttled", threshold: 1, periods: 2,
			metric:      a.sum("throttles", slices.DeleteFunc(a.members(), func(m member) bool { return m.name == "consolidation" }), awslambda.Function.MetricThrottles),
			description: "Lambda did not start a function for lack of concurrency, in two periods of 5 minutes in a row: others use what the account may have (context key sharedConcurrency)."})
	var topic awssns.ITopic
	if props.AlarmTopicARN != "" {
		topic = awssns.Topic_FromTopicArn(a.Construct, jsii.String("AlarmTopic"), &props.AlarmTopicARN)
	}
	scope := constructs.NewConstruct(a.Construct, jsii.String("Alarms"))
	for _, al := range all {
		operator, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD, awscloudwatch.TreatMissingData_NOT_BREACHING
		if al.below {
			operator = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		}
		if al.silence {
			missing = awscloudwatch.TreatMissingData_BREACHING
		}
		made := awscloudwatch.NewAlarm(scope, &al.id, &awscloudwatch.AlarmProps{
			AlarmDescription: jsii.String("Kerf for " + props.ClusterName + ": " + al.description),
			Metric:           al.metric, Threshold: jsii.Number(al.threshold), EvaluationPeriods: jsii.Number(al.periods),
			ComparisonOperator: operator, TreatMissingData: missing,
		})
		if topic != nil {
			made.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
			made.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
		}
	}
}

// sum adds a metric of functions up, in periods of 5 minutes. CloudWatch bills an alarm on it
// as one on each of them.
func (a *Autoscaler) sum(label string, of []member, metric func(awslambda.Function, *awscloudwatch.MetricOptions) awscloudwatch.Metric) awscloudwatch.IMetric {
	using := map[string]awscloudwatch.IMetric{}
	var names []string
	for _, m := range of {
		if m.name == "plan" {
			continue // a person who asks sees it
		}
		using[m.name] = metric(m.fn.Lambda, &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: seconds(300)})
		names = append(names, m.name)
	}
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(strings.Join(names, " + ")), UsingMetrics: &using, Label: &label, Period: seconds(300),
	})
}
