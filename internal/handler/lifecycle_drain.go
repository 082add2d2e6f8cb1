package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// drain has the pods of nodes that are to go leave, as lifecycle.PlanDrain says. What a
// budget refuses is asked for again at the next look; looks come less often the longer they
// are in vain.
func (h *Lifecycle) drain(ctx context.Context, records, all []lifecycle.Record, look *look, rep *LifecycleReport) {
	others := map[string]lifecycle.Record{}
	for _, r := range all {
		others[r.Claim] = r
	}
	for i := range records {
		r := &records[i]
		x := look.left[r.Claim]
		if r.Phase != lifecycle.Draining || x == nil || len(x.held) == 0 {
			continue
		}
		if !h.enough(ctx) {
			rep.Left++
			continue
		}
		if ok, why := r.Relieved(others, x.held, look.now); !ok {
			h.blocked(ctx, r, []string{why}, rep)
			continue
		}
		h.evict(ctx, r, lifecycle.PlanDrain(x.held, r.Deadline, look.now), rep)
	}
}

// evict asks for the evictions of a drain.
func (h *Lifecycle) evict(ctx context.Context, r *lifecycle.Record, d lifecycle.Drain, rep *LifecycleReport) {
	errs := make([]error, len(d.Evictions))
	h.each(len(d.Evictions), func(i int) {
		e := &d.Evictions[i]
		name := api.PodName{Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: e.Pod.UID}
		if e.Force {
			_, errs[i] = h.Cluster.DeletePod(ctx, name, e.Grace)
			return
		}
		_, errs[i] = h.Cluster.Evict(ctx, name, e.Grace)
	})
	var why []string
	for i, err := range errs {
		switch {
		case err == nil:
			if e := &d.Evictions[i]; e.Force {
				h.emit(ctx, r, lifecycle.Remark{Reason: "Disrupted", Message: fmt.Sprintf("pod %s/%s ends by force: %s", e.Pod.Namespace, e.Pod.Name, e.Why)}, rep)
			}
		case errors.Is(err, api.ErrBlocked):
			why = append(why, err.Error())
		default:
			rep.Problems = append(rep.Problems, fmt.Sprintf("nodeclaim %s: %v", r.Claim, err))
		}
	}
	for _, p := range d.Held {
		why = append(why, fmt.Sprintf("pod %s/%s says do-not-disrupt", p.Namespace, p.Name))
	}
	h.blocked(ctx, r, why, rep)
}

// blocked says what a drain waits for, where people look: one Event at the NodeClaim.
func (h *Lifecycle) blocked(ctx context.Context, r *lifecycle.Record, why []string, rep *LifecycleReport) {
	if len(why) == 0 {
		return
	}
	slices.Sort(why)
	rep.Blocked++
	h.emit(ctx, r, lifecycle.Remark{Reason: "FailedDraining", Message: "waits since " + r.DeletingSince.UTC().Format("15:04:05") + " UTC: " + strings.Join(why, "; ")}, rep)
}
