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
	ours := func(r report.Row) awscloudwatch.IMetric {
		dimensions := map[string]*string{report.DimensionCluster: &props.ClusterName}
		statistic := "Sum" // of what happened; of what is so, the most
		switch r.Metric {
		case report.OldestPendingSeconds, report.PendingPods, report.Unschedulable, report.InFlight:
			statistic = "Maximum"
		}
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String(report.Namespace), MetricName: jsii.String(string(r.Metric)), Statistic: &statistic, Period: seconds(minute), DimensionsMap: &dimensions,
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
	var rows []*[]awscloudwatch.IWidget
	add := func(w awscloudwatch.IWidget) {
		if n := len(rows); n == 0 || len(*rows[n-1]) == 3 {
			rows = append(rows, &[]awscloudwatch.IWidget{})
		}
		last := rows[len(rows)-1]
		*last = append(*last, w)
	}
	for _, r := range report.Table() {
		if !r.Optional {
			add(graph(string(r.Metric), ours(r)))
		}
	}
	for _, w := range []awscloudwatch.IWidget{
		graph("Errors of functions", errors...), graph("Throttles of functions", throttles...), graph("How long functions take, p95", times...),
		graph("Messages that wait", depth...), graph("Age of the oldest message", age...), graph("Requests to the ledger", table("ConsumedReadCapacityUnits"), table("ConsumedWriteCapacityUnits")),
	} {
		add(w)
	}
	awscloudwatch.NewDashboard(a.Construct, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DefaultInterval: seconds(3 * 3600),
		Widgets:         &rows,
	})
}
