package autoscaler

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"kerf.sh/kerf/internal/telemetry/report"
)

// dashboard shows what the functions measure, and what AWS measures of them. It adds no
// metric.
func (a *Autoscaler) dashboard(props Props) {
	const minute, minutes = 60, 300
	ours := func(m report.Metric, statistic string, more ...string) awscloudwatch.IMetric {
		dimensions := map[string]*string{report.DimensionCluster: &props.ClusterName}
		for i := 0; i+1 < len(more); i += 2 {
			dimensions[more[i]] = &more[i+1]
		}
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String(report.Namespace), MetricName: jsii.String(string(m)), Statistic: &statistic, Period: seconds(minute), DimensionsMap: &dimensions,
		})
	}
	graph := func(title string, left ...awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: &title, Left: &left, Width: jsii.Number(8), Height: jsii.Number(6)})
	}
	var errors, throttles, times []awscloudwatch.IMetric
	for _, m := range a.members() {
		label := jsii.String(m.name)
		errors = append(errors, m.fn.Lambda.MetricErrors(&awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: seconds(minutes), Label: label}))
		throttles = append(throttles, m.fn.Lambda.MetricThrottles(&awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: seconds(minutes), Label: label}))
		times = append(times, m.fn.Lambda.MetricDuration(&awscloudwatch.MetricOptions{Statistic: jsii.String("p95"), Period: seconds(minutes), Label: label}))
	}
	var depth, age []awscloudwatch.IMetric
	for _, q := range []struct {
		name  string
		queue awssqs.Queue
	}{{"ticks", a.Ticks}, {"work", a.Work}, {"notices", a.Notices}, {"dead work", a.DeadWork}, {"dead notices", a.DeadNotices}} {
		options := &awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: seconds(minute), Label: jsii.String(q.name)}
		depth = append(depth, q.queue.MetricApproximateNumberOfMessagesVisible(options))
		age = append(age, q.queue.MetricApproximateAgeOfOldestMessage(options))
	}
	table := func(metric string) awscloudwatch.IMetric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/DynamoDB"), MetricName: &metric, Statistic: jsii.String("Sum"), Period: seconds(minutes), DimensionsMap: &map[string]*string{"TableName": a.Table.TableName()},
		})
	}
	awscloudwatch.NewDashboard(a.Construct, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DefaultInterval: seconds(3 * 3600),
		Widgets: &[]*[]awscloudwatch.IWidget{
			{graph("Pods that wait", ours(report.PendingPods, "Maximum"), ours(report.Unschedulable, "Maximum")), graph("For how long the oldest waits", ours(report.OldestPendingSeconds, "Maximum")), graph("Sweeps that came to their end", ours(report.TickSuccess, "Sum"))},
			{graph("Nodes launched, and on their way", ours(report.Launched, "Sum"), ours(report.InFlight, "Maximum")), graph("What did not come about, or was not begun", ours(report.Failures, "Sum"), ours(report.Left, "Sum")),
				graph("How long a pass takes", ours(report.PassSeconds, "p95", report.DimensionFunction, "sweep"))},
			{graph("Errors of functions", errors...), graph("Throttles of functions", throttles...), graph("How long functions take, p95", times...)},
			{graph("Messages that wait", depth...), graph("Age of the oldest message", age...), graph("Requests to the ledger", table("ConsumedReadCapacityUnits"), table("ConsumedWriteCapacityUnits"))},
		},
	})
}
