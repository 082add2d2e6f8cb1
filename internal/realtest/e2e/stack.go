package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// templateFile is the CloudFormation template that the stack's own tests keep: how the
// functions are deployed is read from it.
const templateFile = "../../../infra/autoscaler/testdata/template.json"

// stack is what the template deploys.
type stack struct {
	functions map[string]deployment // by the name of their folder
	ticks     queueOf
	work      queueOf
	notices   queueOf
	rules     map[string]string // patterns of the events that go to notices, by name
}

// deployment is a function as it is deployed.
type deployment struct {
	timeout  time.Duration
	memoryMB int
	// batch and concurrency are those of its event source; reserved is the most that run at
	// a time, 0 = any number.
	batch, concurrency, reserved int
	actions                      []string // what its role may do: "ec2:CreateFleet"
}

type queueOf struct {
	visibility, retention time.Duration
	maxReceive            int
}

// resource is a resource of the template, as far as it matters here.
type resource struct {
	Type       string
	Properties struct {
		Timeout, MemorySize, BatchSize, ReservedConcurrentExecutions int
		ScalingConfig                                                struct{ MaximumConcurrency int }
		FunctionName, Role, EventSourceArn                           any
		EventPattern                                                 json.RawMessage
		Targets                                                      []struct{ Arn any }
		VisibilityTimeout, MessageRetentionPeriod                    int
		RedrivePolicy                                                struct{ MaxReceiveCount int }
		Policies                                                     []struct {
			PolicyDocument struct {
				Statement []struct {
					Effect string
					Action any
				}
			}
		}
	}
}

// readStack reads the template. What it needs and does not find is an error.
func readStack(file string) (*stack, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var t struct{ Resources map[string]resource }
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	s := &stack{functions: map[string]deployment{}, rules: map[string]string{}}
	for id, r := range t.Resources {
		switch r.Type {
		case "AWS::Lambda::Function":
			if name := folder(id); name != "" {
				if s.functions[name], err = deploymentOf(id, r, t.Resources); err != nil {
					return nil, fmt.Errorf("read %s: %w", file, err)
				}
			}
		case "AWS::SQS::Queue":
			q := queueOf{seconds(r.Properties.VisibilityTimeout), seconds(r.Properties.MessageRetentionPeriod), r.Properties.RedrivePolicy.MaxReceiveCount}
			if strings.HasPrefix(id, "KerfTicks") {
				s.ticks = q
			} else if strings.HasPrefix(id, "KerfWork") {
				s.work = q
			} else if strings.HasPrefix(id, "KerfNotices") {
				s.notices = q
			}
		case "AWS::Events::Rule":
			if len(r.Properties.Targets) != 1 || !strings.HasPrefix(named(r.Properties.Targets[0].Arn), "KerfNotices") {
				return nil, fmt.Errorf("read %s: rule %s goes elsewhere than to the notices alone", file, id)
			}
			s.rules[id] = string(r.Properties.EventPattern)
		}
	}
	if len(s.functions) != len(programs) || s.ticks.visibility == 0 || s.work.visibility == 0 || s.notices.visibility == 0 || len(s.rules) == 0 {
		return nil, fmt.Errorf("read %s: functions %v, queues %+v, %+v and %+v, rules %v: something is missing", file, s.functions, s.ticks, s.work, s.notices, s.rules)
	}
	return s, nil
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// folder is the function that a logical id is about, "" for none of those that are run.
func folder(id string) string {
	for _, p := range programs {
		if strings.HasPrefix(strings.ToLower(id), "kerf"+p) {
			return p
		}
	}
	return ""
}

func deploymentOf(id string, r resource, all map[string]resource) (deployment, error) {
	d := deployment{timeout: seconds(r.Properties.Timeout), memoryMB: r.Properties.MemorySize, reserved: r.Properties.ReservedConcurrentExecutions}
	role, ok := all[named(r.Properties.Role)]
	if !ok {
		return d, fmt.Errorf("%s has no role", id)
	}
	for _, p := range role.Properties.Policies {
		for _, st := range p.PolicyDocument.Statement {
			if st.Effect != "Allow" {
				return d, fmt.Errorf("the role of %s has a statement that is no Allow", id)
			}
			switch a := st.Action.(type) {
			case string:
				d.actions = append(d.actions, a)
			case []any:
				for _, one := range a {
					d.actions = append(d.actions, fmt.Sprint(one))
				}
			}
		}
	}
	slices.Sort(d.actions)
	d.actions = slices.Compact(d.actions)
	for _, m := range all {
		if m.Type == "AWS::Lambda::EventSourceMapping" && named(m.Properties.FunctionName) == id {
			d.batch, d.concurrency = m.Properties.BatchSize, m.Properties.ScalingConfig.MaximumConcurrency
		}
	}
	return d, nil
}

// named is the logical id in {"Ref": id} and {"Fn::GetAtt": [id, ...]}.
func named(v any) string {
	m, _ := v.(map[string]any)
	if ref, ok := m["Ref"].(string); ok {
		return ref
	}
	if list, ok := m["Fn::GetAtt"].([]any); ok && len(list) > 0 {
		return fmt.Sprint(list[0])
	}
	return ""
}

// may reports whether a function's role allows an action of a service. What allows one call
// of a batch allows the batch; who calls a function needs the permission by another name.
func (s *stack) may(function, service, action string) bool {
	if service == "sts" && action == "GetCallerIdentity" {
		return true // needs no permission
	}
	return slices.Contains(s.functions[function].actions, service+":"+strings.TrimSuffix(action, "Batch"))
}
