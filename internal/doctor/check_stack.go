package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// The functions that a node needs, and those that a cluster does without for a while.
var (
	needed = []string{"sweep", "lifecycle", "catalog"}
	wanted = []string{"interruption", "consolidation"}
	// reserved is what the stack reserves for a function (infra/autoscaler).
	reserved = map[string]int{"lifecycle": 10, "interruption": 5, "consolidation": 1}
)

func (w *walk) stack() {
	if !w.seen(LookStack) {
		return
	}
	s := w.f.Stack
	if s == nil {
		w.say(Broken, StackMissing, "cluster/"+w.f.Cluster, "there is no stack for it in "+w.f.Region, w.make("deploy"))
		return
	}
	object := "stack/" + s.Name
	why := ""
	if s.Reason != "" {
		why = ": " + s.Reason
	}
	events := w.aws("cloudformation describe-stack-events --stack-name %s --output text --query \"StackEvents[?contains(ResourceStatus,'FAILED')].[LogicalResourceId,ResourceStatusReason]\"", s.Name)
	switch {
	case s.Status == "CREATE_COMPLETE" || s.Status == "UPDATE_COMPLETE" || s.Status == "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS":
	case s.Status == "UPDATE_ROLLBACK_COMPLETE":
		w.say(Doubtful, StackFailed, object, "the last change failed and was taken back"+why, events)
	case strings.HasSuffix(s.Status, "IN_PROGRESS") && !strings.Contains(s.Status, "ROLLBACK"):
		w.say(Doubtful, StackChanging, object, "it is "+s.Status, w.aws("cloudformation describe-stacks --stack-name %s --query 'Stacks[0].StackStatus'", s.Name))
	default:
		w.say(Broken, StackFailed, object, "it is "+s.Status+why, events)
		return // what is missing of it is no wonder
	}
	for _, name := range needed {
		w.function(name, Broken)
	}
	for _, name := range wanted {
		w.function(name, Doubtful)
	}
	w.starts(s)
	if c := w.f.Concurrency; c != nil && w.seen(LookConcurrency) {
		w.concurrency(c)
	}
}

// more asks for more of a quota.
func (w *walk) more(service, quota string, value int) string {
	return w.aws("service-quotas request-service-quota-increase --service-code %s --quota-code %s --desired-value %d", service, quota, value)
}

func (w *walk) concurrency(c *Concurrency) {
	ask := w.more("lambda", "L-B99A9384", 1000)
	switch {
	case c.Unreserved <= 0:
		w.say(Broken, ConcurrencyExhausted, "account", fmt.Sprintf("all of its %d concurrent functions are reserved: sweep and catalog get none", c.Limit), ask)
	case c.Limit < 116:
		w.say(Doubtful, ConcurrencySmall, "account", fmt.Sprintf("it may run %s at a time in this region, %d of them unreserved, and shares them with Kerf", count(c.Limit, "function"), c.Unreserved),
			ask, w.context("sharedConcurrency=true"))
	}
}

func (w *walk) function(name string, status Status) {
	s := w.f.Stack
	fn, object := s.function(name), "function/"+name
	if fn == nil {
		w.say(status, FunctionMissing, object, "stack "+s.Name+" has none", w.make("deploy"))
		return
	}
	if w.seen(LookFunctions) {
		switch {
		case fn.State == "Failed" || fn.Update == "Failed":
			w.say(status, FunctionFailed, object, "Lambda says: "+fn.Reason, w.make("deploy"))
		case fn.Reserved != nil && *fn.Reserved == 0:
			start := w.aws("lambda delete-function-concurrency --function-name %s", fn.ID)
			if n := reserved[name]; n > 0 {
				start = w.aws("lambda put-function-concurrency --function-name %s --reserved-concurrent-executions %d", fn.ID, n)
			}
			w.say(status, FunctionStopped, object, "its reserved concurrency is 0: somebody stopped it", start)
		}
		if e := w.f.EKS; e != nil && fn.VPC == "" && !e.world() {
			w.say(status, FunctionOutsideVPC, object, "it runs outside a VPC, and the API server cannot be reached from there: "+e.where(),
				w.context("vpcId="+e.VPC, "clusterSecurityGroupId="+e.SecurityGroup, "subnetIds=PRIVATE,SUBNETS"))
		}
	}
	if fn.Role != "" && w.knowsAccess() && !fn.Mapped {
		switch {
		case fn.Entry == nil:
			w.say(status, FunctionNotLetIn, object, "neither an access entry nor aws-auth lets "+fn.Role+" in", w.letIn(fn.Role, name))
		case !slices.Contains(fn.Entry, "kerf:"+name):
			w.say(status, FunctionNotLetIn, object, "the access entry of "+fn.Role+" does not put it into group kerf:"+name,
				w.aws("eks update-access-entry --cluster-name %s --principal-arn %s --kubernetes-groups kerf:%s", w.f.Cluster, fn.Role, name))
		}
	}
}

// knowsAccess reports whether enough was seen to say that somebody is not let in.
func (w *walk) knowsAccess() bool {
	e := w.f.EKS
	if e == nil {
		return false
	}
	return (e.AuthMode == "CONFIG_MAP" || w.seen(LookEntries)) && (e.AuthMode == "API" || w.seen(LookAwsAuth))
}

// starts looks at what starts functions.
func (w *walk) starts(s *Stack) {
	if w.seen(LookTriggers) {
		for _, t := range s.Triggers {
			object := "function/" + t.Function
			status := Broken
			if slices.Contains(wanted, t.Function) {
				status = Doubtful
			}
			switch t.State {
			case "Enabled", "Enabling", "Creating", "Updating":
			case "":
				w.say(status, TriggerMissing, object, "no queue starts it", w.context("access=existing"))
			default:
				detail := "its event source mapping is " + t.State
				if t.Last != "" {
					detail += ": " + t.Last
				}
				w.say(status, TriggerDisabled, object, detail, w.aws("lambda update-event-source-mapping --uuid %s --enabled", t.ID))
			}
		}
	}
	if !w.seen(LookSchedules) {
		return
	}
	for _, c := range s.Schedules {
		object, status := "schedule/"+c.Name, Doubtful
		if c.Name == "Minute" || c.Name == "CatalogRefresh" {
			status = Broken
		}
		switch c.State {
		case "ENABLED":
		case "":
			w.say(status, ScheduleMissing, object, "it is not there", w.make("deploy"))
		default:
			w.say(status, ScheduleDisabled, object, "it is "+c.State+": nothing comes of it", w.enable(c))
		}
	}
}

// enable turns a schedule on: Scheduler wants it whole again.
func (w *walk) enable(c Schedule) string {
	region := ""
	if w.f.Region != "" {
		region = " --region " + w.f.Region
	}
	return "aws scheduler update-schedule" + region + " --cli-input-json \"$(aws scheduler get-schedule" + region + " --name " + c.ID +
		" | jq 'del(.Arn,.CreationDate,.LastModificationDate) | .State=\"ENABLED\"')\""
}

func (w *walk) interruption() {
	s := w.f.Stack
	if s == nil {
		return
	}
	notices := s.queue("Notices")
	if w.seen(LookRules) {
		for _, r := range s.Rules {
			w.rule(r, notices)
		}
	}
	if !w.seen(LookQueues) {
		return
	}
	if q := s.queue("DeadNotices"); q != nil && q.Waiting > 0 {
		w.say(Doubtful, NoticesDied, "queue/DeadNotices", count(q.Waiting, "notice")+" could not be read, or not be acted on",
			w.aws("sqs receive-message --queue-url %s --visibility-timeout 0", q.URL), w.logs("interruption"))
	}
}

func (w *walk) rule(r Rule, notices *Queue) {
	object := "rule/" + r.Name
	switch {
	case r.State == "":
		w.say(Broken, RuleMissing, object, "it is not there", w.make("deploy"))
	case r.State != "ENABLED":
		w.say(Broken, RuleDisabled, object, "it is "+r.State, w.aws("events enable-rule --name %s", r.ID))
	case notices != nil && notices.ARN != "" && !slices.Contains(r.Targets, notices.ARN):
		to := "nothing"
		if len(r.Targets) > 0 {
			to = strings.Join(r.Targets, ", ")
		}
		w.say(Broken, RuleNoTarget, object, "it leads to "+to+", and not to the queue of notices",
			w.aws("events put-targets --rule %s --targets Id=Notices,Arn=%s", r.ID, notices.ARN))
	case notices != nil && w.seen(LookQueues) && !slices.Contains(notices.Senders, r.ARN):
		w.say(Broken, QueueRefuses, object, "the policy of the queue of notices does not let it in", w.make("deploy"))
	}
}
