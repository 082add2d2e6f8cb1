package autoscaler

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// queues adds the queues: encrypted with SQS's own keys, over TLS only.
func (a *Autoscaler) queues() {
	queue := func(id string, p awssqs.QueueProps) awssqs.Queue {
		p.Encryption = awssqs.QueueEncryption_SQS_MANAGED
		p.EnforceSSL = jsii.Bool(true)
		return awssqs.NewQueue(a.Construct, &id, &p)
	}
	a.Ticks = queue("Ticks", awssqs.QueueProps{RetentionPeriod: seconds(tickRetention), VisibilityTimeout: seconds(tickVisibility)})
	a.DeadWork = queue("DeadWork", awssqs.QueueProps{RetentionPeriod: seconds(deadRetention)})
	a.Work = queue("Work", awssqs.QueueProps{
		VisibilityTimeout: seconds(workVisibility),
		DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: a.DeadWork, MaxReceiveCount: jsii.Number(workReceives)},
	})
	a.DeadNotices = queue("DeadNotices", awssqs.QueueProps{RetentionPeriod: seconds(deadRetention)})
	a.Notices = queue("Notices", awssqs.QueueProps{
		RetentionPeriod: seconds(noticeRetention), VisibilityTimeout: seconds(noticeVisibility),
		DeadLetterQueue: &awssqs.DeadLetterQueue{Queue: a.DeadNotices, MaxReceiveCount: jsii.Number(noticeReceives)},
	})
}

// notices are the events that AWS has about instances, by the names that Karpenter's rules
// have. They say which instance it is, and not of which cluster: the function finds out.
var notices = []struct{ id, source, detailType, description string }{
	{"SpotInterruptionRule", "aws.ec2", "EC2 Spot Instance Interruption Warning", "EC2 takes a spot instance back in two minutes"},
	{"RebalanceRule", "aws.ec2", "EC2 Instance Rebalance Recommendation", "a spot instance is likelier to be taken back"},
	{"InstanceStateChangeRule", "aws.ec2", "EC2 Instance State-change Notification", "an instance was stopped or terminated"},
	{"ScheduledChangeRule", "aws.health", "AWS Health Event", "AWS plans to do something with instances"},
	{"CapacityReservationInterruptionRule", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", "an instance loses its place in a reservation"},
}

// rules bring the notices of the region to their queue. They filter by kind and nothing
// else: a rule that looks for more misses what AWS words anew.
func (a *Autoscaler) rules() {
	a.ruleARNs = make([]*string, len(notices))
	for i, n := range notices {
		rule := awsevents.NewCfnRule(a.Construct, &n.id, &awsevents.CfnRuleProps{
			Description:  jsii.String("Kerf: " + n.description),
			EventPattern: map[string]any{"source": []string{n.source}, "detail-type": []string{n.detailType}},
			Targets: []any{&awsevents.CfnRule_TargetProperty{
				Id: jsii.String("Notices"), Arn: a.Notices.QueueArn(),
				// The queue's own policy lets the rule in. What it does not get by then is too late.
				RetryPolicy: &awsevents.CfnRule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(noticeRetention), MaximumRetryAttempts: jsii.Number(185)},
			}},
		})
		a.ruleARNs[i] = rule.AttrArn()
	}
	a.Notices.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("AllowRules"), Actions: jsii.Strings("sqs:SendMessage"), Resources: &[]*string{a.Notices.QueueArn()},
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("events.amazonaws.com"), nil)},
		Conditions: &map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": a.ruleARNs}},
	}))
}

// trigger lets a queue start a function, with an answer that names what failed.
func (a *Autoscaler) trigger(fn Function, q awssqs.Queue, batch, concurrency int) {
	awslambda.NewEventSourceMapping(fn.Lambda, jsii.String("Trigger"), &awslambda.EventSourceMappingProps{
		Target: fn.Lambda, EventSourceArn: q.QueueArn(),
		BatchSize: jsii.Number(batch), MaxConcurrency: jsii.Number(concurrency), ReportBatchItemFailures: jsii.Bool(true),
	}).Node().AddDependency(a.ready)
}

// minuteTick is what the schedule sends (internal/lifecycle reads it): the time that the
// minute began takes the place of the placeholder.
const minuteTick = `{"kind":"minute","sent":"<aws.scheduler.scheduled-time>"}`

// schedules adds what starts by itself.
func (a *Autoscaler) schedules(props Props) {
	schedule := func(id, description, expression string, maxAge int, target, action, input string) {
		scope := constructs.NewConstruct(a.Construct, &id)
		role := awsiam.NewRole(scope, jsii.String("Role"), &awsiam.RoleProps{
			Description: jsii.String("Kerf schedule: " + description),
			// Nobody else's schedule may borrow the role.
			AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
				Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Stack_Of(a.Construct).Account()}},
			}),
			InlinePolicies: &map[string]awsiam.PolicyDocument{
				"target": policy{"target", []statement{{actions: []string{action}, resources: []string{target}}}}.document(),
			},
		})
		made := awsscheduler.NewCfnSchedule(scope, jsii.String("Schedule"), &awsscheduler.CfnScheduleProps{
			Description:        &description,
			ScheduleExpression: &expression,
			FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
			Target: &awsscheduler.CfnSchedule_TargetProperty{
				Arn: &target, RoleArn: role.RoleArn(), Input: &input,
				RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(maxAge), MaximumRetryAttempts: jsii.Number(10)},
			},
		})
		made.Node().AddDependency(a.ready)
	}
	// Cron and not rate: a rate counts from when the stack was made, and a tick is the start
	// of a minute.
	schedule("Minute", "a tick for each minute", "cron(* * * * ? *)", 60, *a.Ticks.QueueArn(), "sqs:SendMessage", minuteTick)
	if props.ConsolidationSchedule != Off {
		schedule("Consolidate", "a pass that makes the cluster cheaper", props.ConsolidationSchedule, 60, *a.Consolidation.Lambda.FunctionArn(), "lambda:InvokeFunction", "{}")
	}
	if a.Prices != nil {
		schedule("PriceRefresh", "types and prices anew", "rate(5 minutes)", 300, *a.Prices.Lambda.FunctionArn(), "lambda:InvokeFunction", `{"only":"prices"}`)
	}
	schedule("CatalogRefresh", "types, prices and NodeClasses anew", "rate(5 minutes)", 300, *a.Catalog.Lambda.FunctionArn(), "lambda:InvokeFunction", "{}")
}
