package handler

import (
	"context"
	"errors"
	"slices"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
)

// relieve writes down, for every node that EC2 takes, what the plan has for its pods: the
// drain waits for that, as long as it can. claims are what the launches of the plan became.
func (h *Sweep) relieve(ctx context.Context, w *reading, p *plan.Plan, claims map[string]string) error {
	going := map[string]*lifecycle.Record{}
	coming := map[string]string{} // by the name that a plan uses
	for i := range w.known.Records {
		r := &w.known.Records[i]
		switch {
		case r.Doomed != nil && r.Node != "" && r.Phase.Before(lifecycle.Terminating):
			going[r.Node] = r
		case r.Phase.Live() && r.Phase.Before(lifecycle.Initialized):
			coming[r.Claim] = r.Claim
			if r.Node != "" {
				coming[r.Node] = r.Claim
			}
		}
	}
	if len(going) == 0 {
		return nil
	}
	relief := map[string]*lifecycle.Relief{}
	for node := range going {
		relief[node] = &lifecycle.Relief{At: h.Now()}
	}
	for _, d := range p.Displaced {
		x := relief[d.From]
		if x == nil {
			continue
		}
		claim := claims[d.To]
		if claim == "" {
			claim = coming[d.To]
		}
		if launched := slices.ContainsFunc(p.Launches, func(l plan.Launch) bool { return l.Name == d.To }); launched && claim == "" {
			x.Missing++ // it could not be launched
		}
		if claim != "" && !slices.Contains(x.Claims, claim) {
			x.Claims = append(x.Claims, claim)
		}
	}
	nodeOf := map[string]string{}
	for i := range w.snap.Pods {
		nodeOf["pod/"+w.snap.Pods[i].Ref()] = w.snap.Pods[i].NodeName
	}
	for i := range p.Verdicts {
		if x := relief[nodeOf[p.Verdicts[i].Object]]; x != nil {
			x.Missing++
		}
	}
	var errs []error
	for _, node := range sortedKeys(relief) {
		slices.Sort(relief[node].Claims)
		errs = append(errs, h.saveRelief(ctx, *going[node], relief[node]))
	}
	return errors.Join(errs...)
}

func (h *Sweep) saveRelief(ctx context.Context, r lifecycle.Record, x *lifecycle.Relief) error {
	for try := 0; ; try++ {
		if r.Doomed == nil || r.Relief != nil && slices.Equal(r.Relief.Claims, x.Claims) && r.Relief.Missing == x.Missing {
			return nil
		}
		next := r
		next.Relief = x
		_, err := h.Memory.Save(ctx, lifecycle.Change{Was: r, Next: next})
		if !errors.Is(err, lifecycle.ErrChanged) || try == 3 {
			return err
		}
		now, ok, err := h.Memory.Record(ctx, r.Claim)
		if err != nil || !ok {
			return err
		}
		r = now
	}
}
