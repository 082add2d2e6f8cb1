package disruption

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// AnnotationTimeZone is the time zone of a NodePool's budget schedules (ours; Karpenter's
// are in UTC).
const AnnotationTimeZone = "kerf.sh/budget-time-zone"

// allowance is how many nodes of a pool may go for a reason.
type allowance struct {
	left int
	why  string // what limits it, for verdicts
}

// unlimited is more nodes than any pool has.
const unlimited = math.MaxInt32

// allowed is how many nodes of a pool may be disrupted for a reason now: the least of its
// budgets that are active and name the reason, less the nodes that are down already
// (Karpenter: GetAllowedDisruptionsByReason).
func (x *search) allowed(pool *snapshot.NodePool, reason plan.MoveReason) allowance {
	key := pool.Name + "\x00" + string(reason)
	if a, ok := x.allowances[key]; ok {
		return a.less(x.spent[pool.Name])
	}
	total, down := 0, 0
	for _, n := range x.nodes {
		if n.pool != pool || n.claim == nil {
			continue
		}
		if n.initialized && !conditionTrue(n.claim.Conditions, "InstanceTerminating") {
			total++
		}
		if n.down && (n.initialized || !n.node.Deleting.IsZero() || !n.claim.Deleting.IsZero()) {
			down++
		}
	}
	out := allowance{left: unlimited}
	for i := range pool.Disruption.Budgets {
		b := &pool.Disruption.Budgets[i]
		if err := unreadable(pool, b, x.s.Now); err != nil {
			out = allowance{0, fmt.Sprintf("a budget of NodePool %s cannot be read, so nothing of it may go: %v", pool.Name, err)}
			break
		}
		if len(b.Reasons) > 0 && !slices.Contains(b.Reasons, string(reason)) {
			continue
		}
		n, why := budgetNodes(pool, b, total, x.s.Now)
		if n < out.left {
			out = allowance{n, why}
		}
	}
	if out.left != unlimited && down > 0 {
		out.left = max(0, out.left-down)
		out.why += fmt.Sprintf(", and %s down already", plan.Count(down, "node is"))
		if down > 1 {
			out.why = strings.Replace(out.why, "node iss", "nodes are", 1)
		}
	}
	x.allowances[key] = out
	return out.less(x.spent[pool.Name])
}

// spend takes nodes from what is allowed: a node that goes is down for every reason.
func (x *search) spend(pool *snapshot.NodePool, n int) { x.spent[pool.Name] += n }

// less is what is left after so many nodes.
func (a allowance) less(n int) allowance {
	if a.left != unlimited {
		a.left = max(0, a.left-n)
	}
	return a
}

// budgetNodes is how many nodes a budget allows of total, unlimited while it is not active.
func budgetNodes(pool *snapshot.NodePool, b *snapshot.Budget, total int, now time.Time) (int, string) {
	if b.Schedule != "" || b.Duration != "" {
		active, err := budgetActive(pool, b, now)
		if err != nil {
			return 0, fmt.Sprintf("a budget of NodePool %s cannot be read, so it allows nothing: %v", pool.Name, err)
		}
		if !active {
			return unlimited, ""
		}
	}
	why := fmt.Sprintf("NodePool %s allows %s of %s", pool.Name, b.Nodes, plan.Count(total, "node"))
	if b.Schedule != "" {
		why += fmt.Sprintf(" (schedule %q for %s)", b.Schedule, b.Duration)
	}
	if share, ok := strings.CutSuffix(b.Nodes, "%"); ok {
		v, err := strconv.Atoi(share)
		if err != nil || v < 0 || v > 100 {
			return 0, fmt.Sprintf("NodePool %s: budget %q is no share", pool.Name, b.Nodes)
		}
		return (v*total + 99) / 100, why
	}
	v, err := strconv.Atoi(b.Nodes)
	if err != nil || v < 0 {
		return 0, fmt.Sprintf("NodePool %s: budget %q is no number", pool.Name, b.Nodes)
	}
	return v, why
}

// unreadable says what is wrong with the schedule of a budget, whichever reasons it is for:
// the whole pool may lose nothing then (Karpenter: same).
func unreadable(pool *snapshot.NodePool, b *snapshot.Budget, now time.Time) error {
	if b.Schedule == "" && b.Duration == "" {
		return nil
	}
	_, err := budgetActive(pool, b, now)
	return err
}

// budgetActive reports whether a schedule has begun within its duration (Karpenter: the next
// hit after now - duration is not after now).
func budgetActive(pool *snapshot.NodePool, b *snapshot.Budget, now time.Time) (bool, error) {
	if b.Schedule == "" || b.Duration == "" {
		return false, fmt.Errorf("schedule %q and duration %q go together", b.Schedule, b.Duration)
	}
	d, err := time.ParseDuration(b.Duration)
	if err != nil || d < 0 {
		return false, fmt.Errorf("duration %q: want one like 8h or 90m", b.Duration)
	}
	sched, err := parseSchedule(b.Schedule)
	if err != nil {
		return false, err
	}
	zone := time.UTC
	if name := pool.Annotations[AnnotationTimeZone]; name != "" {
		if zone, err = time.LoadLocation(name); err != nil {
			return false, fmt.Errorf("annotation %s: %q is no time zone", AnnotationTimeZone, name)
		}
	}
	next, ok := sched.next(now.Add(-d).In(zone))
	return ok && !next.After(now), nil
}
