package interruption

import (
	"slices"
	"strings"
	"time"
)

// The kinds of what EC2 says when it is asked.
const (
	InstanceStatusFailed Kind = "InstanceStatusFailed"
	SystemStatusFailed   Kind = "SystemStatusFailed"
	MaintenanceScheduled Kind = "MaintenanceScheduled"
)

// FailedFor is how long a status check has to fail before it counts (Karpenter: same).
const FailedFor = 2 * time.Minute

// Maintenance are the codes of events for which nodes are replaced (Karpenter: same).
var Maintenance = []string{"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}

// Status is one thing that EC2 says of an instance that is not well: a check that fails, or
// an event that it has planned.
type Status struct {
	Instance string
	// Kind is InstanceStatusFailed, SystemStatusFailed or MaintenanceScheduled.
	Kind Kind
	// Since is from when on the check fails, NotBefore when the event begins at the earliest;
	// zero = it is not said.
	Since, NotBefore time.Time
	// Code and Description are those of the event.
	Code, Description string
}

// Unwell says which instances go for what EC2 says of them, in the order of their ids and
// kinds. One whose check fails is of no use to its pods any more: its deadline is when that
// counts, and nothing is waited for (Karpenter: forceful). What is planned is a notice like
// that of a scheduled change; what is over already is none, although EC2 shows it for a week.
func Unwell(list []Status, now time.Time) []Notice {
	var out []Notice
	for _, s := range list {
		n := Notice{Kind: s.Kind, Instances: []string{s.Instance}, At: now}
		switch s.Kind {
		case InstanceStatusFailed, SystemStatusFailed:
			if s.Since.IsZero() || now.Sub(s.Since) < FailedFor {
				continue
			}
			n.At = s.Since.Add(FailedFor)
			n.Deadline = n.At
		case MaintenanceScheduled:
			if !slices.Contains(Maintenance, s.Code) || over(s.Description) {
				continue
			}
			n.Deadline = s.NotBefore
		default:
			continue
		}
		if instanceID.MatchString(s.Instance) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b Notice) int {
		if c := strings.Compare(a.Instances[0], b.Instances[0]); c != 0 {
			return c
		}
		return strings.Compare(string(a.Kind), string(b.Kind))
	})
	return out
}

// over reports whether an event has taken place or been called off: EC2 says so at the
// beginning of its description.
func over(description string) bool {
	return strings.HasPrefix(description, "[Completed]") || strings.HasPrefix(description, "[Canceled]")
}
