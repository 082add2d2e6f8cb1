package checkup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/doctor"
)

// parts says which resources of the stack are what: by the end of their ids, which is the
// same wherever the construct is used.
var parts = map[string]*regexp.Regexp{
	"AWS::Lambda::Function":           regexp.MustCompile(`(Sweep|Lifecycle|Catalog|Interruption|Consolidation)Function[0-9A-F]{8}$`),
	"AWS::Lambda::EventSourceMapping": regexp.MustCompile(`(Sweep|Lifecycle|Interruption)FunctionTrigger[0-9A-F]{8}$`),
	"AWS::Scheduler::Schedule":        regexp.MustCompile(`(Minute|Consolidate|CatalogRefresh|PriceRefresh)Schedule[0-9A-F]{8}$`),
	"AWS::Events::Rule":               regexp.MustCompile(`(SpotInterruptionRule|RebalanceRule|InstanceStateChangeRule|ScheduledChangeRule|CapacityReservationInterruptionRule)[0-9A-F]{8}$`),
	"AWS::SQS::Queue":                 regexp.MustCompile(`(Ticks|DeadWork|Work|DeadNotices|Notices)[0-9A-F]{8}$`),
	"AWS::CloudWatch::Alarm":          regexp.MustCompile(`Alarms(\w+?)[0-9A-F]{8}$`),
	"AWS::DynamoDB::Table":            regexp.MustCompile(`(Ledger)[0-9A-F]{8}$`),
}

// must are parts that are reported as missing where the stack has none.
var must = map[string][]string{
	"AWS::Lambda::EventSourceMapping": {"sweep", "lifecycle", "interruption"},
	"AWS::Scheduler::Schedule":        {"Minute", "Consolidate", "CatalogRefresh"},
	"AWS::Events::Rule":               {"SpotInterruptionRule", "RebalanceRule", "InstanceStateChangeRule", "ScheduledChangeRule", "CapacityReservationInterruptionRule"},
}

// FindStack fills Stack and Concurrency. table is the name of the ledger's table, "" when the
// stack has none of its own.
func (c *Checkup) FindStack(ctx context.Context, f *doctor.Facts) (table string) {
	found := map[string]map[string]string{} // by type and name, the physical id
	ok := c.look(ctx, f, doctor.LookStack, func(ctx context.Context) error {
		out, err := c.Stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &c.Stack})
		if e := awserr.From(err); e != nil && strings.Contains(e.Message, "does not exist") {
			return nil
		}
		if err != nil {
			return err
		}
		if len(out.Stacks) == 0 {
			return nil
		}
		s := out.Stacks[0]
		f.Stack = &doctor.Stack{Name: aws.ToString(s.StackName), Status: string(s.StackStatus), Reason: aws.ToString(s.StackStatusReason)}
		for _, o := range s.Outputs { // one that was restored is not of the stack
			if aws.ToString(o.OutputKey) == "TableName" {
				table = aws.ToString(o.OutputValue)
			}
		}
		return c.resources(ctx, found)
	})
	if !ok {
		f.Stack = nil
		for _, l := range []doctor.Look{doctor.LookFunctions, doctor.LookTriggers, doctor.LookSchedules, doctor.LookRules, doctor.LookQueues, doctor.LookAlarms} {
			Note(f, l, doctor.Unseen{Why: "the stack could not be looked at"})
		}
	}
	c.concurrency(ctx, f)
	if f.Stack == nil {
		return table
	}
	c.functions(ctx, f, found["AWS::Lambda::Function"])
	if _, acts := found["AWS::Lambda::Function"]["Sweep"]; acts {
		c.starts(ctx, f, found)
		c.queues(ctx, f, found["AWS::SQS::Queue"])
		c.alarms(ctx, f, found["AWS::CloudWatch::Alarm"])
	}
	if table == "" {
		table = found["AWS::DynamoDB::Table"]["Ledger"]
	}
	return table
}

// resources finds the parts of the stack.
func (c *Checkup) resources(ctx context.Context, found map[string]map[string]string) error {
	in := &cloudformation.ListStackResourcesInput{StackName: &c.Stack}
	for {
		page, err := c.Stacks.ListStackResources(ctx, in)
		if err != nil {
			return err
		}
		for _, r := range page.StackResourceSummaries {
			typ := aws.ToString(r.ResourceType)
			re := parts[typ]
			if re == nil || aws.ToString(r.PhysicalResourceId) == "" {
				continue
			}
			if m := re.FindStringSubmatch(aws.ToString(r.LogicalResourceId)); m != nil {
				if found[typ] == nil {
					found[typ] = map[string]string{}
				}
				found[typ][m[1]] = aws.ToString(r.PhysicalResourceId)
			}
		}
		if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
			return nil
		}
	}
}

// sorted are the names in a set of parts.
func sorted(parts map[string]string) []string {
	var out []string
	for n := range parts {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (c *Checkup) concurrency(ctx context.Context, f *doctor.Facts) {
	c.look(ctx, f, doctor.LookConcurrency, func(ctx context.Context) error {
		out, err := c.Functions.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
		if err != nil {
			return err
		}
		if out.AccountLimit == nil {
			return errors.New("an answer without limits")
		}
		f.Concurrency = &doctor.Concurrency{Limit: int(out.AccountLimit.ConcurrentExecutions), Unreserved: int(aws.ToInt32(out.AccountLimit.UnreservedConcurrentExecutions))}
		return nil
	})
}

func (c *Checkup) functions(ctx context.Context, f *doctor.Facts, found map[string]string) {
	for _, name := range sorted(found) {
		fn := doctor.Function{Name: strings.ToLower(name), ID: found[name]}
		c.look(ctx, f, doctor.LookFunctions, func(ctx context.Context) error {
			out, err := c.Functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &fn.ID})
			if err != nil {
				return err
			}
			fn.State, fn.Update, fn.Role = string(out.State), string(out.LastUpdateStatus), aws.ToString(out.Role)
			fn.Reason = aws.ToString(out.StateReason)
			if fn.Reason == "" {
				fn.Reason = aws.ToString(out.LastUpdateStatusReason)
			}
			if out.VpcConfig != nil {
				fn.VPC = aws.ToString(out.VpcConfig.VpcId)
			}
			if out.LoggingConfig != nil {
				fn.Logs = aws.ToString(out.LoggingConfig.LogGroup)
			}
			kept, err := c.Functions.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &fn.ID})
			if err != nil {
				return err
			}
			if kept.ReservedConcurrentExecutions != nil {
				n := int(*kept.ReservedConcurrentExecutions)
				fn.Reserved = &n
			}
			return nil
		})
		f.Stack.Functions = append(f.Stack.Functions, fn)
	}
}

// starts looks at triggers, schedules and rules.
func (c *Checkup) starts(ctx context.Context, f *doctor.Facts, found map[string]map[string]string) {
	const mapping, schedule, rule = "AWS::Lambda::EventSourceMapping", "AWS::Scheduler::Schedule", "AWS::Events::Rule"
	for _, name := range must[mapping] {
		t := doctor.Trigger{Function: name, ID: found[mapping][strings.ToUpper(name[:1])+name[1:]]}
		if t.ID != "" {
			c.look(ctx, f, doctor.LookTriggers, func(ctx context.Context) error {
				out, err := c.Functions.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &t.ID})
				if gone(err) {
					return nil
				}
				if err != nil {
					return err
				}
				t.State, t.Last = aws.ToString(out.State), aws.ToString(out.LastProcessingResult)
				return nil
			})
		}
		f.Stack.Triggers = append(f.Stack.Triggers, t)
	}
	for _, name := range must[schedule] {
		s := doctor.Schedule{Name: name, ID: found[schedule][name]}
		if s.ID != "" {
			c.look(ctx, f, doctor.LookSchedules, func(ctx context.Context) error {
				out, err := c.Schedules.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &s.ID})
				if gone(err) {
					return nil
				}
				if err != nil {
					return err
				}
				s.State = string(out.State)
				return nil
			})
		}
		f.Stack.Schedules = append(f.Stack.Schedules, s)
	}
	for _, name := range must[rule] {
		r := doctor.Rule{Name: name, ID: found[rule][name]}
		if r.ID != "" {
			c.look(ctx, f, doctor.LookRules, func(ctx context.Context) error { return c.rule(ctx, &r) })
		}
		f.Stack.Rules = append(f.Stack.Rules, r)
	}
}

// gone reports whether something is not there any more.
func gone(err error) bool {
	e := awserr.From(err)
	return e != nil && (e.Kind == awserr.NotFound || strings.HasPrefix(e.Code, "ResourceNotFound"))
}

func (c *Checkup) rule(ctx context.Context, r *doctor.Rule) error {
	out, err := c.Rules.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &r.ID})
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	targets, err := c.Rules.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &r.ID})
	if err != nil {
		return err
	}
	r.State, r.ARN = string(out.State), aws.ToString(out.Arn)
	for _, t := range targets.Targets {
		r.Targets = append(r.Targets, aws.ToString(t.Arn))
	}
	slices.Sort(r.Targets)
	return nil
}

func (c *Checkup) queues(ctx context.Context, f *doctor.Facts, found map[string]string) {
	for _, name := range sorted(found) {
		q := doctor.Queue{Name: name, URL: found[name]}
		c.look(ctx, f, doctor.LookQueues, func(ctx context.Context) error {
			out, err := c.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.URL, AttributeNames: []types.QueueAttributeName{
				types.QueueAttributeNameQueueArn, types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNamePolicy,
			}})
			if err != nil {
				return err
			}
			q.ARN = out.Attributes["QueueArn"]
			if q.Waiting, err = strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"]); err != nil {
				return fmt.Errorf("read the number of messages: %w", err)
			}
			q.Senders, err = senders(out.Attributes["Policy"])
			return err
		})
		f.Stack.Queues = append(f.Stack.Queues, q)
	}
}

func (c *Checkup) alarms(ctx context.Context, f *doctor.Facts, found map[string]string) {
	if len(found) == 0 {
		return
	}
	names := map[string]string{}
	in := &cloudwatch.DescribeAlarmsInput{MaxRecords: aws.Int32(100)}
	for _, n := range sorted(found) {
		names[found[n]] = n
		in.AlarmNames = append(in.AlarmNames, found[n])
	}
	c.look(ctx, f, doctor.LookAlarms, func(ctx context.Context) error {
		out, err := c.Alarms.DescribeAlarms(ctx, in)
		if err != nil {
			return err
		}
		for _, a := range out.MetricAlarms {
			_, text, _ := strings.Cut(aws.ToString(a.AlarmDescription), ": ")
			f.Stack.Alarms = append(f.Stack.Alarms, doctor.Alarm{Name: names[aws.ToString(a.AlarmName)], State: string(a.StateValue),
				Since: aws.ToTime(a.StateUpdatedTimestamp), Reason: aws.ToString(a.StateReason), Text: text})
		}
		slices.SortFunc(f.Stack.Alarms, func(a, b doctor.Alarm) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
}

// senders are the sources that a policy names which lets somebody send.
func senders(policy string) ([]string, error) {
	if policy == "" {
		return nil, nil
	}
	var p struct {
		Statement []struct {
			Effect    string
			Action    texts
			Condition map[string]map[string]texts
		}
	}
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return nil, fmt.Errorf("read the policy of a queue: %w", err)
	}
	var out []string
	for _, s := range p.Statement {
		if s.Effect != "Allow" || !slices.ContainsFunc(s.Action, func(a string) bool { return strings.EqualFold(a, "sqs:SendMessage") || a == "sqs:*" || a == "*" }) {
			continue
		}
		for _, keys := range s.Condition {
			for k, v := range keys {
				if strings.EqualFold(k, "aws:SourceArn") {
					out = append(out, v...)
				}
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// texts is one text, or some.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

// services are those that a trust policy lets take a role. IAM gives it URL-encoded.
func services(trust string) ([]string, error) {
	text, err := url.QueryUnescape(trust)
	if err != nil {
		return nil, fmt.Errorf("read a trust policy: %w", err)
	}
	var p struct {
		Statement []struct {
			Effect    string
			Principal json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("read a trust policy: %w", err)
	}
	var out []string
	for _, s := range p.Statement {
		var who struct{ Service texts }
		if s.Effect == "Allow" && json.Unmarshal(s.Principal, &who) == nil {
			out = append(out, who.Service...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
