package sim

import (
	"context"
	"slices"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// pushy deletes what it is told to evict.
type pushy struct{ handler.Cluster }

func (m pushy) Evict(ctx context.Context, p api.PodName, grace *int64) (bool, error) {
	second := int64(1)
	return m.DeletePod(ctx, p, &second)
}

// inconsiderate does not see what pods say of themselves.
type inconsiderate struct{ handler.Cluster }

func (m inconsiderate) PodsOn(ctx context.Context, node string) ([]snapshot.Pod, error) {
	pods, err := m.Cluster.PodsOn(ctx, node)
	for i := range pods {
		pods[i].Annotations = nil
	}
	return pods, err
}

// changed has a Memory show records as something makes them.
type changed struct {
	handler.Memory
	show func(*lifecycle.Record)
}

func (m changed) Records(ctx context.Context) ([]lifecycle.Record, error) {
	list, err := m.Memory.Records(ctx)
	for i := range list {
		m.show(&list[i])
	}
	return list, err
}

func (m changed) Record(ctx context.Context, claim string) (lifecycle.Record, bool, error) {
	r, ok, err := m.Memory.Record(ctx, claim)
	if ok {
		m.show(&r)
	}
	return r, ok, err
}

func shown(show func(*lifecycle.Record)) func() *Mutant {
	return func() *Mutant {
		return &Mutant{Memory: func(m handler.Memory) handler.Memory { return changed{m, show} }}
	}
}

// impatient has every node that goes be late already.
func impatient(r *lifecycle.Record) {
	if r.Phase == lifecycle.Draining {
		r.Deadline = r.DeletingSince.Add(time.Second)
	}
}

// rash does not wait for what a plan has for the pods of a node.
func rash(r *lifecycle.Record) {
	if r.Doomed != nil {
		r.Relief = &lifecycle.Relief{At: r.Doomed.At}
	}
}

// oblivious does not know which nodes EC2 takes.
func oblivious(r *lifecycle.Record) { r.Doomed = nil }

// swallowing says that a notice is written down, and does not write it.
type swallowing struct{ handler.Memory }

func (m swallowing) Save(ctx context.Context, cs ...lifecycle.Change) ([]lifecycle.Record, error) {
	if len(cs) == 1 && cs[0].Was.Doomed == nil && cs[0].Next.Doomed != nil {
		return []lifecycle.Record{cs[0].Next}, nil
	}
	return m.Memory.Save(ctx, cs...)
}

// stranging takes every instance for somebody else's.
type stranging struct{ handler.Memory }

func (m stranging) ClaimOf(context.Context, string) (string, error) { return "", nil }

// amnesic plans without the nodes that are on their way.
type amnesic struct{ handler.Memory }

func (m amnesic) Remember(ctx context.Context) (lifecycle.Remembered, error) {
	k, err := m.Memory.Remember(ctx)
	k.Records = slices.DeleteFunc(k.Records, func(r lifecycle.Record) bool { return r.Phase.Before(lifecycle.Registered) })
	return k, err
}

// blindly shows a cluster without NodeClaims that are on their way.
type blindly struct{ handler.Cluster }

func (m blindly) Read(ctx context.Context, now time.Time) (s *snapshot.Snapshot, w []plan.Warning, err error) {
	s, w, err = m.Cluster.Read(ctx, now)
	if s != nil {
		s.NodeClaims = slices.DeleteFunc(s.NodeClaims, func(c snapshot.NodeClaim) bool { return c.NodeName == "" })
	}
	return s, w, err
}

// overzealous ends instances that drain at once.
func overzealous(r *lifecycle.Record) {
	if r.Phase == lifecycle.Draining {
		r.Phase = lifecycle.Terminating
	}
}

var noticeMutants = []mutation{
	{"pods are deleted and not evicted", []string{"ForcedTooEarly"}, func() *Mutant { return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return pushy{c} }} }},
	{"do-not-disrupt is not seen", []string{"DoNotDisrupt"}, func() *Mutant {
		return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return inconsiderate{c} }}
	}},
	{"every drain is late", []string{"ForcedTooEarly", "EndedWithPods"}, shown(impatient)},
	{"a drain does not look at its pods", []string{"EndedWithPods"}, shown(overzealous)},
	{"drains do not wait for replacements", []string{"ReplacementFirst"}, shown(rash)},
	{"notices are forgotten", []string{"HandledOnce"}, shown(oblivious)},
	{"notices are not written down", []string{"NoticeLost"}, func() *Mutant { return &Mutant{Memory: func(m handler.Memory) handler.Memory { return swallowing{m} }} }},
	{"no instance is found in the ledger", []string{"NoticeLost"}, func() *Mutant { return &Mutant{Memory: func(m handler.Memory) handler.Memory { return stranging{m} }} }},
	{"what is on its way is forgotten", []string{"MadeTwice"}, func() *Mutant {
		return &Mutant{Memory: func(m handler.Memory) handler.Memory { return amnesic{m} }, Cluster: func(c handler.Cluster) handler.Cluster { return blindly{c} }}
	}},
}
