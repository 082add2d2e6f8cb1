package provision

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
)

// unplaced writes the verdicts: pods that are no candidates, pods that rules
// refuse, and pods that no pool can host. Pods of one class share a reason.
func (pl *planner) unplaced() {
	pl.out.Verdicts = append(pl.out.Verdicts, pl.w.Skipped...)
	pl.out.Verdicts = append(pl.out.Verdicts, pl.w.Refused...)
	pl.out.Verdicts = append(pl.out.Verdicts, pl.w.Missing...)
	for i := range pl.r.Unplaced {
		u := &pl.r.Unplaced[i]
		v := pl.verdict(u.Class, u.Limits)
		for _, k := range pl.take(u.Class, u.Count) {
			v.Object = "pod/" + pl.ref(k)
			pl.out.Verdicts = append(pl.out.Verdicts, v)
		}
	}
	slices.SortFunc(pl.out.Verdicts, func(a, b plan.Verdict) int { return strings.Compare(a.Object, b.Object) })
}

// verdict is the reason for a class that was not placed, Object left out: the
// code that its pools have in common, and the nearest miss.
func (pl *planner) verdict(class int, hits []packing.LimitHit) plan.Verdict {
	if code, detail := pl.w.Refusal(class); code != "" {
		return plan.Verdict{Code: code, Detail: detail}
	}
	reasons := pl.w.Explain(class, pl.w.Hits(class, hits), pl.r.Exhausted)
	if len(reasons) == 0 {
		detail := "there is no NodePool, and no existing node can host the pod"
		if left := pl.poolsLeftOut(); left != "" {
			detail += " (left out of the reading: " + left + ")"
		}
		return plan.Verdict{Code: plan.NoNodePool, Detail: detail}
	}
	v := plan.Verdict{Code: reasons[0].Code, Pools: make([]plan.PoolVerdict, len(reasons))}
	for i := range reasons {
		v.Pools[i] = reasons[i].PoolVerdict
		if reasons[i].Code != v.Code {
			v.Code = plan.Unschedulable
		}
	}
	if reasons[0].Code == plan.InsufficientCapacity {
		v.Code = plan.InsufficientCapacity // the others are no matter: the pod will have its node
	}
	v.Detail = reasons[0].Detail
	if len(reasons) > 1 {
		v.Detail = fmt.Sprintf("nearest of %d NodePools is %s: %s", len(reasons), reasons[0].NodePool, reasons[0].Detail)
	}
	return v
}

// poolsLeftOut names the NodePools that the reading found and left out.
func (pl *planner) poolsLeftOut() string {
	var names []string
	for _, m := range pl.s.Remarks {
		if name, ok := strings.CutPrefix(m.Object, "nodepool/"); ok && m.Code == string(plan.IncompleteReading) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// reasons says why each pool takes no more pods of one class.
func (pl *planner) reasons(class int) []scheduling.Reason {
	for i := range pl.r.Unplaced {
		if u := &pl.r.Unplaced[i]; u.Class == class {
			return pl.w.Explain(class, pl.w.Hits(class, u.Limits), pl.r.Exhausted)
		}
	}
	return pl.w.Explain(class, pl.w.Hits(class, nil), pl.r.Exhausted)
}
