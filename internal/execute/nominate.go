package execute

import (
	"context"
	"errors"
	"slices"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Nominate writes down which pods a plan puts on nodes that are on their way, so that the
// next pass does not launch for them again and each node opens for its own pods. Nodes
// that are open already need no such note: kube-scheduler sees them.
func (x *Executor) Nominate(ctx context.Context, p *plan.Plan, s *snapshot.Snapshot, records []lifecycle.Record) error {
	byNode := map[string]int{}
	for i := range records {
		r := &records[i]
		if !r.Phase.Live() || r.Phase == lifecycle.Initialized {
			continue
		}
		byNode[r.Claim] = i
		if r.Node != "" {
			byNode[r.Node] = i
		}
	}
	pods := make(map[string]*snapshot.Pod, len(s.Pods))
	for i := range s.Pods {
		pods[s.Pods[i].Ref()] = &s.Pods[i]
	}
	given := map[int][]lifecycle.Pod{}
	for _, pl := range p.Placements {
		i, ok := byNode[pl.Node]
		pod := pods[pl.Pod]
		if !ok || pod == nil || slices.ContainsFunc(records[i].Nominated, func(o lifecycle.Pod) bool { return o.UID == pod.UID }) {
			continue
		}
		given[i] = append(given[i], lifecycle.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})
	}
	var errs []error
	for i := range records {
		list := given[i]
		if len(list) == 0 {
			continue
		}
		errs = append(errs, x.nominate(ctx, records[i], list))
	}
	return errors.Join(errs...)
}

func (x *Executor) nominate(ctx context.Context, r lifecycle.Record, pods []lifecycle.Pod) error {
	for try := 0; ; try++ {
		next := r.Nominate(pods, x.Now())
		_, err := x.Memory.Save(ctx, lifecycle.Change{Was: r, Next: next})
		if !errors.Is(err, lifecycle.ErrChanged) || try == 3 {
			return err
		}
		now, ok, err := x.Memory.Record(ctx, r.Claim)
		if err != nil || !ok || !now.Phase.Live() {
			return err
		}
		r = now
	}
}
