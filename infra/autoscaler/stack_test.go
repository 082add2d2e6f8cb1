package autoscaler

import (
	"debug/elf"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/lifecycle"
)

// TestGolden shows every change of the template in review.
func TestGolden(t *testing.T) {
	got := demo(t).text
	file := filepath.Join("testdata", "template.json")
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("the template changed (go test ./autoscaler -rewrite, then read the diff):\n%s", d)
	}
}

// TestResources: nothing is in the stack but what is meant to be; above all no policy or
// function that the CDK adds by itself.
func TestResources(t *testing.T) {
	count := func(tm template) map[string]int {
		out := map[string]int{}
		for _, r := range tm.Resources {
			out[r.Type]++
		}
		return out
	}
	want := map[string]int{
		"AWS::Lambda::Function": 7, "AWS::Logs::LogGroup": 7, "AWS::IAM::Role": 10, "AWS::DynamoDB::Table": 1,
		"AWS::SQS::Queue": 5, "AWS::SQS::QueuePolicy": 5, "AWS::Lambda::EventSourceMapping": 3, "AWS::Lambda::EventInvokeConfig": 2,
		"AWS::Scheduler::Schedule": 3, "AWS::CloudWatch::Alarm": 8, "AWS::Events::Rule": 5,
		"AWS::EKS::AccessEntry": 7, "Custom::KerfCluster": 1,
	}
	if d := cmp.Diff(want, count(demo(t))); d != "" {
		t.Error(d)
	}
	props := demoProps()
	props.PlanOnly = true
	tm := made(t, props)
	if d := cmp.Diff(map[string]int{"AWS::Lambda::Function": 1, "AWS::Logs::LogGroup": 1, "AWS::IAM::Role": 1}, count(tm)); d != "" {
		t.Error(d)
	}
	if got := statements(tm.role(t, "Plan")); len(got) != 1 || !slices.Equal(list(got[0]["Action"]), []string{"logs:CreateLogStream", "logs:PutLogEvents"}) {
		t.Errorf("the plan function alone may do more than log: %v", got)
	}
	if d := cmp.Diff(map[string]any{"CLUSTER_NAME": "prod", "RESERVED_ENIS": "1"}, tm.function(t, "Plan").at("Environment", "Variables")); d != "" {
		t.Errorf("the plan function alone: %s", d)
	}
}

func TestFunctions(t *testing.T) {
	tm := demo(t)
	for _, f := range []struct {
		name            string
		memory, timeout float64
	}{{"Plan", 1769, 60}, {"Sweep", 1769, 300}, {"Lifecycle", 512, 120}, {"Catalog", 1024, 300}, {"Interruption", 512, 20}, {"Consolidation", 1769, 300}, {"Bootstrap", 256, 300}} {
		t.Run(f.name, func(t *testing.T) {
			fn := tm.function(t, f.name)
			group := tm.find(t, "AWS::Logs::LogGroup", "Kerf"+f.name+"Logs")
			for key, want := range map[string]any{
				"Runtime":       "provided.al2023",
				"Handler":       "bootstrap",
				"Architectures": []any{"arm64"},
				"MemorySize":    f.memory,
				"Timeout":       f.timeout,
				"LoggingConfig": map[string]any{"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN", "LogGroup": map[string]any{"Ref": group.id}},
				"Role":          map[string]any{"Fn::GetAtt": []any{tm.role(t, f.name).id, "Arn"}},
			} {
				if d := cmp.Diff(want, fn.Properties[key]); d != "" {
					t.Errorf("%s: %s", key, d)
				}
			}
			if group.Properties["RetentionInDays"] != float64(30) || group.DeletionPolicy != "Delete" {
				t.Errorf("log group: %+v", group)
			}
		})
	}
}

// TestTable: the ledger finds in the table what it counts on, and the table outlives
// accidents.
func TestTable(t *testing.T) {
	tb := demo(t).find(t, "AWS::DynamoDB::Table", "KerfLedger")
	want := map[string]any{
		"BillingMode":                      "PAY_PER_REQUEST",
		"DeletionProtectionEnabled":        true,
		"AttributeDefinitions":             []any{map[string]any{"AttributeName": "pk", "AttributeType": "S"}, map[string]any{"AttributeName": "sk", "AttributeType": "S"}},
		"KeySchema":                        []any{map[string]any{"AttributeName": "pk", "KeyType": "HASH"}, map[string]any{"AttributeName": "sk", "KeyType": "RANGE"}},
		"PointInTimeRecoverySpecification": map[string]any{"PointInTimeRecoveryEnabled": true},
		"SSESpecification":                 map[string]any{"SSEEnabled": false}, // = the key that AWS owns
		"TimeToLiveSpecification":          map[string]any{"AttributeName": ttlAttribute, "Enabled": true},
	}
	if d := cmp.Diff(want, tb.Properties); d != "" {
		t.Error(d)
	}
	if tb.DeletionPolicy != "Retain" {
		t.Errorf("deletion policy %s", tb.DeletionPolicy)
	}
	source, err := os.ReadFile(filepath.Join("..", "..", "internal", "ledger", "value.go"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"attrPK": "pk", "attrSK": "sk", "attrTTL": ttlAttribute} {
		if !regexp.MustCompile(name + `\s*=\s*"` + value + `"`).Match(source) {
			t.Errorf("the ledger's %s is not %q", name, value)
		}
	}
}

// TestRestoredTable: a table that was restored takes the place of the stack's own.
func TestRestoredTable(t *testing.T) {
	props := demoProps()
	props.TableName = "kerf-restored"
	tm := made(t, props)
	if n := len(tm.all("AWS::DynamoDB::Table")); n != 0 {
		t.Errorf("%d tables are made", n)
	}
	for _, f := range functions {
		if got := tm.function(t, f).at("Environment", "Variables", "KERF_TABLE"); got != "kerf-restored" {
			t.Errorf("%s uses table %v", f, got)
		}
		if f == "Bootstrap" {
			continue // it only has to know the name
		}
		if doc, _ := json.Marshal(render(tm.role(t, f).Properties["Policies"])); !strings.Contains(string(doc), `:table/kerf-restored"`) {
			t.Errorf("%s may not use the table: %s", f, doc)
		}
	}
}

// TestQueues: what fits the timeouts of the functions, and what nobody reads on the way.
func TestQueues(t *testing.T) {
	tm := demo(t)
	ticks, work, dead := tm.queue(t, "Ticks"), tm.queue(t, "Work"), tm.queue(t, "DeadWork")
	notices, deadNotices := tm.queue(t, "Notices"), tm.queue(t, "DeadNotices")
	for _, q := range []resource{ticks, work, dead, notices, deadNotices} {
		if q.Properties["SqsManagedSseEnabled"] != true {
			t.Errorf("%s is not encrypted", q.id)
		}
		policies := 0
		for _, p := range tm.all("AWS::SQS::QueuePolicy") {
			if target(p.Properties["Queues"].([]any)[0]) != q.id {
				continue
			}
			policies++
			want := []any{map[string]any{"Effect": "Deny", "Action": "sqs:*", "Principal": map[string]any{"AWS": "*"},
				"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}}, "Resource": map[string]any{"Fn::GetAtt": []any{q.id, "Arn"}}}}
			if q.id == notices.id {
				want = append(want, tm.rulesMaySend(t, q))
			}
			if d := cmp.Diff(want, p.at("PolicyDocument", "Statement")); d != "" {
				t.Errorf("%s: %s", q.id, d)
			}
		}
		if policies != 1 {
			t.Errorf("%s has %d policies", q.id, policies)
		}
	}
	number := func(r resource, key string) float64 { n, _ := r.Properties[key].(float64); return n }
	sweep, lifecycle := number(tm.function(t, "Sweep"), "Timeout"), number(tm.function(t, "Lifecycle"), "Timeout")
	if v := number(ticks, "VisibilityTimeout"); v <= sweep {
		t.Errorf("a tick comes back after %v s, while its sweep of %v s may run", v, sweep)
	}
	if r := number(ticks, "MessageRetentionPeriod"); r != 120 || r >= number(ticks, "VisibilityTimeout") {
		t.Errorf("ticks are kept for %v s: one that failed would come back late", r)
	}
	if _, ok := ticks.Properties["RedrivePolicy"]; ok {
		t.Error("ticks have a dead-letter queue: an old tick is of no use")
	}
	if v := number(work, "VisibilityTimeout"); v < 6*lifecycle {
		t.Errorf("work comes back after %v s, want six times %v s", v, lifecycle)
	}
	// The longest delay of a message is 15 minutes.
	if r, ok := work.Properties["MessageRetentionPeriod"].(float64); ok && r < 3600 {
		t.Errorf("work is kept for %v s", r)
	}
	if target(work.at("RedrivePolicy", "deadLetterTargetArn")) != dead.id || work.at("RedrivePolicy", "maxReceiveCount").(float64) < 5 {
		t.Errorf("dead letters of work: %v", work.Properties["RedrivePolicy"])
	}
	for _, d := range []resource{dead, deadNotices} {
		if r := number(d, "MessageRetentionPeriod"); r != 1209600 {
			t.Errorf("%s: dead letters are kept for %v s, want 14 days", d.id, r)
		}
	}
	// A notice of a function that was cut off comes back in half a minute, and one of an
	// instance that EC2 does not know for three minutes comes back every five seconds.
	if timeout, v := number(tm.function(t, "Interruption"), "Timeout"), number(notices, "VisibilityTimeout"); timeout != 20 || v != 30 {
		t.Errorf("a notice comes back after %v s, its function may run for %v s", v, timeout)
	}
	receives, _ := notices.at("RedrivePolicy", "maxReceiveCount").(float64)
	if target(notices.at("RedrivePolicy", "deadLetterTargetArn")) != deadNotices.id || receives < 180/5+10 {
		t.Errorf("dead letters of notices: %v", notices.Properties["RedrivePolicy"])
	}
	if r := number(notices, "MessageRetentionPeriod"); r < receives*30 {
		t.Errorf("notices are kept for %v s: they are lost before they are dead letters", r)
	}
}

// rulesMaySend is the statement that lets exactly the stack's rules send to a queue.
func (tm template) rulesMaySend(t *testing.T, q resource) any {
	t.Helper()
	var arns []any
	for _, n := range notices {
		arns = append(arns, map[string]any{"Fn::GetAtt": []any{tm.find(t, "AWS::Events::Rule", "Kerf"+n.id).id, "Arn"}})
	}
	return map[string]any{"Sid": "AllowRules", "Effect": "Allow", "Action": "sqs:SendMessage", "Principal": map[string]any{"Service": "events.amazonaws.com"},
		"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": arns}}, "Resource": map[string]any{"Fn::GetAtt": []any{q.id, "Arn"}}}
}

// TestRules: the five kinds of events, whole, and each sample is one of them.
func TestRules(t *testing.T) {
	tm := demo(t)
	kinds := map[string]bool{}
	for _, r := range tm.all("AWS::Events::Rule") {
		pattern, _ := r.Properties["EventPattern"].(map[string]any)
		if len(pattern) != 2 {
			t.Errorf("%s filters further: %v", r.id, pattern)
		}
		kinds[list(pattern["source"])[0]+"/"+list(pattern["detail-type"])[0]] = true
		targets := r.Properties["Targets"].([]any)
		if len(targets) != 1 || target(targets[0].(map[string]any)["Arn"]) != tm.queue(t, "Notices").id {
			t.Errorf("%s: %v", r.id, targets)
		}
		if in := targets[0].(map[string]any); in["Input"] != nil || in["InputPath"] != nil || in["InputTransformer"] != nil {
			t.Errorf("%s: the event does not come as it is: %v", r.id, in)
		}
	}
	want := map[string]bool{
		"aws.ec2/EC2 Spot Instance Interruption Warning": true, "aws.ec2/EC2 Instance Rebalance Recommendation": true, "aws.ec2/EC2 Instance State-change Notification": true,
		"aws.health/AWS Health Event": true, "aws.ec2/EC2 Capacity Reservation Instance Interruption Warning": true,
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
	files, err := filepath.Glob("../../events/interruption/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Source     string
			DetailType string `json:"detail-type"`
			Type       string
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != "Notification" && !kinds[e.Source+"/"+e.DetailType] {
			t.Errorf("%s: no rule brings %s of %s", f, e.DetailType, e.Source)
		}
	}
}

func TestTriggers(t *testing.T) {
	tm := demo(t)
	for _, tr := range []struct {
		queue, function    string
		batch, concurrency float64
	}{{"Ticks", "Sweep", 1, 2}, {"Work", "Lifecycle", 5, 10}, {"Notices", "Interruption", 10, 5}} {
		fn := tm.function(t, tr.function)
		want := map[string]any{
			"BatchSize": tr.batch, "EventSourceArn": map[string]any{"Fn::GetAtt": []any{tm.queue(t, tr.queue).id, "Arn"}},
			"FunctionName": map[string]any{"Ref": fn.id}, "FunctionResponseTypes": []any{"ReportBatchItemFailures"},
			"ScalingConfig": map[string]any{"MaximumConcurrency": tr.concurrency},
		}
		if d := cmp.Diff(want, tm.find(t, "AWS::Lambda::EventSourceMapping", "Kerf"+tr.function).Properties); d != "" {
			t.Error(d)
		}
		// A trigger that may start more than is reserved is throttled, and counts as received.
		if r, ok := fn.Properties["ReservedConcurrentExecutions"].(float64); ok && r < tr.concurrency {
			t.Errorf("%s: %v reserved, %v started", tr.function, r, tr.concurrency)
		}
	}
	reserved := map[string]any{}
	for _, f := range functions {
		if v, ok := tm.function(t, f).Properties["ReservedConcurrentExecutions"]; ok {
			reserved[f] = v
		}
	}
	if d := cmp.Diff(map[string]any{"Lifecycle": 10., "Interruption": 5., "Consolidation": 1.}, reserved); d != "" {
		t.Errorf("reserved: %s", d)
	}
	props := demoProps()
	props.SharedConcurrency = true
	for _, fn := range made(t, props).all("AWS::Lambda::Function") {
		if v, ok := fn.Properties["ReservedConcurrentExecutions"]; ok {
			t.Errorf("%s reserves %v", fn.id, v)
		}
	}
}

// TestLoops: Lambda stops a chain that comes back to a function after 16 hops, unless the
// function allows it. Those that can start themselves over queues allow it, and no others.
func TestLoops(t *testing.T) {
	tm := demo(t)
	starts := map[string][]string{} // function -> functions
	for _, f := range functions {
		for _, st := range statements(tm.role(t, f)) {
			if !slices.Contains(list(st["Action"]), "sqs:SendMessage") {
				continue
			}
			resources, ok := st["Resource"].([]any)
			if !ok {
				resources = []any{st["Resource"]}
			}
			for _, r := range resources {
				for _, m := range tm.all("AWS::Lambda::EventSourceMapping") {
					if target(m.Properties["EventSourceArn"]) == target(r) {
						for _, g := range functions {
							if tm.function(t, g).id == target(m.Properties["FunctionName"]) {
								starts[f] = append(starts[f], g)
							}
						}
					}
				}
			}
		}
	}
	var reaches func(from, to string, seen map[string]bool) bool
	reaches = func(from, to string, seen map[string]bool) bool {
		for _, g := range starts[from] {
			if g == to || !seen[g] && reaches(g, to, set(seen, g)) {
				return true
			}
		}
		return false
	}
	var loops []string
	for _, f := range functions {
		want := any(nil)
		if reaches(f, f, map[string]bool{}) {
			loops, want = append(loops, f), "Allow"
		}
		if got := tm.function(t, f).Properties["RecursiveLoop"]; got != want {
			t.Errorf("%s: RecursiveLoop is %v, want %v", f, got, want)
		}
	}
	if !slices.Equal(loops, []string{"Sweep", "Lifecycle"}) {
		t.Errorf("%v come back to themselves", loops)
	}
}

func set(seen map[string]bool, g string) map[string]bool { seen[g] = true; return seen }

// TestSchedules: the sweep can read what the schedule sends, late or not.
func TestSchedules(t *testing.T) {
	tm := demo(t)
	minute, refresh := tm.find(t, "AWS::Scheduler::Schedule", "KerfMinute"), tm.find(t, "AWS::Scheduler::Schedule", "KerfCatalogRefresh")
	consolidate := tm.find(t, "AWS::Scheduler::Schedule", "KerfConsolidate")
	for _, s := range []struct {
		schedule   resource
		expression string
		target     string
		maxAge     float64
	}{{minute, "cron(* * * * ? *)", tm.queue(t, "Ticks").id, 60}, {refresh, "rate(5 minutes)", tm.function(t, "Catalog").id, 300},
		{consolidate, "rate(1 minute)", tm.function(t, "Consolidation").id, 60}} {
		got := []any{s.schedule.Properties["ScheduleExpression"], s.schedule.at("FlexibleTimeWindow", "Mode"), target(s.schedule.at("Target", "Arn")), s.schedule.at("Target", "RetryPolicy", "MaximumEventAgeInSeconds")}
		if d := cmp.Diff([]any{s.expression, "OFF", s.target, s.maxAge}, got); d != "" {
			t.Errorf("%s: %s", s.schedule.id, d)
		}
	}
	// A pass that could not begin is no reason for two at once, a minute later.
	async := map[string]any{}
	for _, c := range tm.all("AWS::Lambda::EventInvokeConfig") {
		for _, f := range functions {
			if target(c.Properties["FunctionName"]) == tm.function(t, f).id {
				async[f] = []any{c.Properties["MaximumEventAgeInSeconds"], c.Properties["MaximumRetryAttempts"]}
			}
		}
	}
	if d := cmp.Diff(map[string]any{"Catalog": []any{300., 1.}, "Consolidation": []any{60., 0.}}, async); d != "" {
		t.Error(d)
	}
	input := minute.at("Target", "Input").(string)
	at := time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)
	for _, body := range []string{strings.Replace(input, "<aws.scheduler.scheduled-time>", at.Format(time.RFC3339), 1), input} {
		tick, err := lifecycle.DecodeTick(body, at.Add(3*time.Second))
		if err != nil || tick.Kind != lifecycle.TickMinute || tick.Slot != at.Unix() {
			t.Errorf("%s: %+v, %v", body, tick, err)
		}
	}
	if !strings.Contains(input, "<aws.scheduler.scheduled-time>") {
		t.Errorf("%s does not say when", input)
	}
}

// TestChoices: what a person sets arrives in the template.
func TestChoices(t *testing.T) {
	tm := made(t, Props{
		ClusterName: "a_b", CodeDir: builtCode(t, elf.EM_X86_64), Architecture: AMD64,
		LogRetentionDays: 7, PlanMemoryMiB: 512, PlanTimeoutSeconds: 30, SweepMemoryMiB: 3008, LifecycleMemoryMiB: 256, CatalogMemoryMiB: 2048, InterruptionMemoryMiB: 640, ConsolidationMemoryMiB: 3009,
		Settings: map[string]string{"LOG_LEVEL": "debug"},
	})
	for name, memory := range map[string]float64{"Plan": 512, "Sweep": 3008, "Lifecycle": 256, "Catalog": 2048, "Interruption": 640, "Consolidation": 3009} {
		fn := tm.function(t, name)
		got := []any{fn.Properties["Architectures"], fn.Properties["MemorySize"], fn.at("LoggingConfig", "ApplicationLogLevel")}
		if d := cmp.Diff([]any{[]any{"x86_64"}, memory, "DEBUG"}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if got := tm.find(t, "AWS::Logs::LogGroup", "Kerf"+name).Properties["RetentionInDays"]; got != 7. {
			t.Errorf("%s keeps logs for %v days", name, got)
		}
	}
	if got := tm.function(t, "Plan").Properties["Timeout"]; got != 30. {
		t.Error(got)
	}
}

// TestEnvironment: every variable that the stack sets is one that the functions know, and
// every one that they know is set by somebody.
func TestEnvironment(t *testing.T) {
	props := demoProps()
	missing := map[string]bool{}
	for _, s := range config.Table() {
		missing[s.Key] = true
		if s.Scope != config.Made && s.Key != clusterVariable {
			props.Settings[s.Key] = s.Default
		}
	}
	tm := made(t, props)
	points := map[string]string{
		"KERF_TABLE": tm.find(t, "AWS::DynamoDB::Table", "").id, "KERF_TICK_QUEUE": tm.queue(t, "Ticks").id, "KERF_WORK_QUEUE": tm.queue(t, "Work").id,
		"KERF_CATALOG_FUNCTION": tm.function(t, "Catalog").id, "KERF_INTERRUPTION_QUEUE": tm.queue(t, "Notices").id, "KERF_INTERRUPTION_DEAD_LETTERS": tm.queue(t, "DeadNotices").id,
	}
	for name, names := range map[string][]string{
		"Plan": {"KERF_TABLE"}, "Bootstrap": {"KERF_TABLE"}, "Catalog": {"KERF_TABLE"}, "Lifecycle": {"KERF_TABLE", "KERF_TICK_QUEUE", "KERF_WORK_QUEUE"},
		"Consolidation": {"KERF_TABLE", "KERF_TICK_QUEUE", "KERF_WORK_QUEUE"},
		"Interruption":  {"KERF_INTERRUPTION_DEAD_LETTERS", "KERF_INTERRUPTION_QUEUE", "KERF_TABLE", "KERF_TICK_QUEUE", "KERF_WORK_QUEUE"},
		"Sweep":         {"KERF_CATALOG_FUNCTION", "KERF_TABLE", "KERF_TICK_QUEUE", "KERF_WORK_QUEUE"},
	} {
		var environ, got []string
		for k, v := range tm.function(t, name).at("Environment", "Variables").(map[string]any) {
			delete(missing, k)
			if to, ok := points[k]; ok {
				got = append(got, k)
				if target(v) != to {
					t.Errorf("%s: %s is %v, want %s", name, k, v, to)
				}
				v = "https://sqs.us-east-1.amazonaws.com/123456789012/x"
			}
			environ = append(environ, k+"="+v.(string))
		}
		slices.Sort(got)
		if d := cmp.Diff(names, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		c, err := config.Load(environ)
		if err != nil || c.Cluster != "prod" {
			t.Errorf("%s would not start: %v", name, err)
		}
		for _, kv := range environ {
			k, _, _ := strings.Cut(kv, "=")
			if !slices.ContainsFunc(config.Table(), func(s config.Setting) bool { return s.Key == k }) {
				t.Errorf("%s: %s is set and not known", name, k)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("nobody sets %v", slices.Sorted(maps.Keys(missing)))
	}
}

func TestOutputs(t *testing.T) {
	tm := demo(t)
	want := []string{"BootstrapFunctionName", "BootstrapLogGroup", "BootstrapRoleArn", "CatalogFunctionName", "CatalogLogGroup", "CatalogRoleArn", "ConsolidationFunctionName", "ConsolidationLogGroup", "ConsolidationRoleArn",
		"InterruptionFunctionName", "InterruptionLogGroup", "InterruptionRoleArn", "LifecycleFunctionName", "LifecycleLogGroup", "LifecycleRoleArn",
		"NoticeDeadLettersUrl", "NoticeQueueUrl", "PlanFunctionName", "PlanInvoke", "PlanLogGroup", "SweepFunctionName", "SweepInvoke", "SweepLogGroup", "SweepRoleArn",
		"TableName", "TickQueueUrl", "WorkDeadLettersUrl", "WorkQueueUrl"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(tm.Outputs))); d != "" {
		t.Error(d)
	}
	for name, parts := range map[string][]string{
		"PlanInvoke":  {"aws lambda invoke --region ", "AWS::Region", " --function-name ", "KerfPlanFunction", "--payload file://request.json"},
		"SweepInvoke": {"aws lambda invoke --region ", "AWS::Region", " --function-name ", "KerfSweepFunction", " answer.json"},
	} {
		invoke, _ := json.Marshal(tm.Outputs[name].Value)
		for _, part := range parts {
			if !strings.Contains(string(invoke), part) {
				t.Errorf("%s misses %q: %s", name, part, invoke)
			}
		}
	}
}

// TestRefused: a mistake is an error before anything is made.
func TestRefused(t *testing.T) {
	app := awscdk.NewApp(nil)
	if _, err := NewStack(app, Props{}); err == nil {
		t.Error("a stack without a cluster")
	}
	if n := len(*app.Node().Children()); n != 0 {
		t.Errorf("%d things were made all the same", n)
	}
	stack := awscdk.NewStack(app, jsii.String("S"), nil)
	if _, err := New(stack, "Kerf", Props{ClusterName: "prod", CodeDir: t.TempDir()}); err == nil {
		t.Error("a construct without code")
	}
	if n := len(*stack.Node().Children()); n != 0 {
		t.Errorf("%d things were made all the same", n)
	}
}
