package autoscaler

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/telemetry/report"
)

// TestAlarms: few, on what is there to be measured.
func TestAlarms(t *testing.T) {
	tm := demo(t)
	alarms := tm.all("AWS::CloudWatch::Alarm")
	if len(alarms) > 8 {
		t.Errorf("%d alarms are billed, want 8 at most", len(alarms))
	}
	rows := map[string]report.Row{}
	for _, r := range report.Table() {
		rows[string(r.Metric)] = r
	}
	for _, a := range alarms {
		if _, ok := a.Properties["AlarmActions"]; ok {
			t.Errorf("%s tells somebody that nobody named", a.id)
		}
		if a.Properties["Namespace"] != report.Namespace {
			continue
		}
		_, ok := rows[a.Properties["MetricName"].(string)]
		var dims []string
		for _, d := range a.Properties["Dimensions"].([]any) {
			m := d.(map[string]any)
			dims = append(dims, m["Name"].(string))
			if m["Name"] == report.DimensionCluster && m["Value"] != "prod" {
				t.Errorf("%s is about cluster %v", a.id, m["Value"])
			}
		}
		if !ok || !slices.Equal(dims, []string{report.DimensionCluster}) {
			t.Errorf("%s: no function reports %v by %v", a.id, a.Properties["MetricName"], dims)
		}
	}
	tick := tm.find(t, "AWS::CloudWatch::Alarm", "KerfAlarmsNoTick").Properties
	got := []any{tick["MetricName"], tick["Statistic"], tick["Period"], tick["EvaluationPeriods"], tick["ComparisonOperator"], tick["Threshold"], tick["TreatMissingData"]}
	if d := cmp.Diff([]any{"TickSuccess", "Sum", 60., 3., "LessThanThreshold", 1., "breaching"}, got); d != "" {
		t.Errorf("three minutes without a sweep: %s", d)
	}
	died := tm.find(t, "AWS::CloudWatch::Alarm", "KerfAlarmsWorkDied")
	if died.Properties["MetricName"] != "ApproximateNumberOfMessagesVisible" || died.Properties["Threshold"] != 1. || target(died.Properties["Dimensions"].([]any)[0].(map[string]any)["Value"]) != tm.queue(t, "DeadWork").id {
		t.Errorf("dead letters: %v", died.Properties)
	}
	for alarm, queue := range map[string]string{"NoticesDied": "DeadNotices", "NoticesWait": "Notices", "WorkWaits": "Work"} {
		a := tm.find(t, "AWS::CloudWatch::Alarm", "KerfAlarms"+alarm).Properties
		metric, threshold := "ApproximateNumberOfMessagesVisible", 1.
		switch queue {
		case "Notices":
			metric, threshold = "ApproximateAgeOfOldestMessage", 60.
		case "Work":
			metric, threshold = "ApproximateAgeOfOldestMessage", 900.
		}
		if a["MetricName"] != metric || a["Threshold"] != threshold || target(a["Dimensions"].([]any)[0].(map[string]any)["Value"]) != tm.queue(t, queue).id {
			t.Errorf("%s: %v", alarm, a)
		}
	}
	all := []string{"Sweep", "Lifecycle", "Catalog", "Interruption"}
	for alarm, tt := range map[string]struct {
		metric string
		of     []string
	}{"Errors": {"Errors", append(all, "Consolidation")}, "Throttled": {"Throttles", all}} {
		a := tm.find(t, "AWS::CloudWatch::Alarm", "KerfAlarms"+alarm).Properties
		var got, want []string
		sum := ""
		for _, m := range a["Metrics"].([]any) {
			m := m.(map[string]any)
			if e, ok := m["Expression"].(string); ok {
				sum = e
				continue
			}
			metric := m["MetricStat"].(map[string]any)["Metric"].(map[string]any)
			if metric["MetricName"] != tt.metric || m["ReturnData"] != false {
				t.Errorf("%s: %v", alarm, m)
			}
			got = append(got, target(metric["Dimensions"].([]any)[0].(map[string]any)["Value"]))
		}
		for _, f := range tt.of {
			want = append(want, tm.function(t, f).id)
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" || strings.Count(sum, "+") != len(want)-1 {
			t.Errorf("%s of %s: %s", alarm, sum, d)
		}
	}
	props := demoProps()
	props.AlarmTopicARN = "arn:aws:sns:us-east-1:123456789012:pager"
	for _, a := range made(t, props).all("AWS::CloudWatch::Alarm") {
		for _, key := range []string{"AlarmActions", "OKActions"} {
			if d := cmp.Diff([]any{props.AlarmTopicARN}, a.Properties[key]); d != "" {
				t.Errorf("%s %s: %s", a.id, key, d)
			}
		}
	}
}

// TestDashboard: none unless it is asked for; on it is what somebody measures.
func TestDashboard(t *testing.T) {
	if n := len(demo(t).all("AWS::CloudWatch::Dashboard")); n > 0 {
		t.Errorf("%d dashboards that nobody asked for", n)
	}
	props := demoProps()
	props.Dashboard, props.ConsolidationSchedule = true, Off
	tm := made(t, props)
	body := list(tm.find(t, "AWS::CloudWatch::Dashboard", "Kerf").Properties["DashboardBody"])[0]
	var board struct {
		Widgets []struct{ Properties struct{ Metrics [][]any } }
	}
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, w := range board.Widgets {
		for _, m := range w.Properties.Metrics {
			if len(m) < 4 {
				t.Errorf("%v is about nobody", m)
			}
			seen[m[0].(string)+" "+m[1].(string)] = true
		}
	}
	for _, r := range report.Table() {
		if seen[report.Namespace+" "+string(r.Metric)] == r.Optional {
			t.Errorf("%s is not on it, or should not be", r.Metric)
		}
	}
	for _, m := range []string{"AWS/Lambda Errors", "AWS/Lambda Throttles", "AWS/SQS ApproximateAgeOfOldestMessage", "AWS/DynamoDB ConsumedWriteCapacityUnits"} {
		if !seen[m] {
			t.Errorf("%s is not on it", m)
		}
	}
	if strings.Contains(body, "Ref") || strings.Contains(body, "Token[") {
		t.Error("something on it is not known")
	}
	for _, s := range tm.all("AWS::Scheduler::Schedule") {
		if strings.HasPrefix(s.id, "KerfConsolidate") {
			t.Error("a schedule that was turned off")
		}
	}
	props.Dashboard, props.ConsolidationSchedule = false, "cron(*/5 8-18 ? * MON-FRI *)"
	if got := made(t, props).find(t, "AWS::Scheduler::Schedule", "KerfConsolidate").Properties["ScheduleExpression"]; got != props.ConsolidationSchedule {
		t.Errorf("schedule %v", got)
	}
}
