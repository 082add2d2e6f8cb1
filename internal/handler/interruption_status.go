package handler

import (
	"context"
	"fmt"

	"kerf.sh/kerf/internal/interruption"
	"kerf.sh/kerf/internal/lifecycle"
)

// unwell asks EC2 which instances are not well, and acts on those of ours: no event tells of
// a status check that fails, and that of a maintenance may be lost (Karpenter: the instance
// status poller, once a minute).
func (h *Housekeeping) unwell(ctx context.Context, f *found, rep *HousekeepingReport) {
	if h.Statuses == nil || h.Notices == nil || len(f.byInstance) == 0 {
		return // of an instance that nobody knows yet nothing could be done
	}
	list, err := h.Statuses(ctx)
	if err != nil {
		rep.Incomplete = append(rep.Incomplete, "ask EC2 which instances are not well: "+err.Error())
		return
	}
	now := h.Now()
	notices := interruption.Unwell(list, now)
	for i := range notices {
		n := &notices[i]
		r := f.byInstance[n.Instances[0]]
		if r == nil {
			continue // the region has other instances than ours
		}
		if _, news := r.Doom(lifecycle.Doom{Reason: string(n.Kind), At: n.At, Deadline: n.Deadline}, now); !news {
			continue
		}
		told := InterruptionReport{Kind: n.Kind, Instance: r.Instance.ID, Deadline: n.Deadline}
		if err := h.Notices.act(ctx, n, r, now, &told); err != nil {
			rep.problem(fmt.Sprintf("%s of instance %s", n.Kind, r.Instance.ID), err)
			continue
		}
		rep.Due = append(rep.Due, r.Claim)
		rep.Unwell = append(rep.Unwell, r.Instance.ID+" "+string(n.Kind))
		for _, p := range told.Problems {
			rep.Problems = append(rep.Problems, string(n.Kind)+" of instance "+r.Instance.ID+": "+p)
		}
	}
}
