package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// The mutants: each breaks one thing that an invariant rests on, and the world has to
// notice.

// freshToken gives a request another token when it is sent again.
type freshToken struct {
	execute.Cloud
	sent map[string]int
}

func (m freshToken) Create(ctx context.Context, stored []byte) (*launch.Outcome, error) {
	r, err := launch.Decode(stored)
	if err != nil {
		return nil, err
	}
	if m.sent[r.Token]++; m.sent[r.Token] > 1 {
		r.Token += "-" + strconv.Itoa(m.sent[r.Token])
		if stored, err = r.Encode(); err != nil {
			return nil, err
		}
	}
	return m.Cloud.Create(ctx, stored)
}

// noLimits commits whatever the limits say.
type noLimits struct{ handler.Memory }

func (m noLimits) Commit(ctx context.Context, l lifecycle.Lease, rs []lifecycle.Record, _ lifecycle.Limits) ([]lifecycle.Record, error) {
	return m.Memory.Commit(ctx, l, rs, nil)
}

func (m noLimits) Begin(ctx context.Context, l lifecycle.Lease, a lifecycle.Attempt, rs []lifecycle.Record, u map[string]lifecycle.Usage, _ lifecycle.Limits) (lifecycle.Begun, error) {
	return m.Memory.Begin(ctx, l, a, rs, u, nil)
}

// blindLimits plans as if nothing were used, too.
type blindLimits struct{ handler.Cluster }

func (m blindLimits) Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	s, w, err := m.Cluster.Read(ctx, now)
	if s != nil {
		s.NodePools = slices.Clone(s.NodePools)
		for i := range s.NodePools {
			s.NodePools[i].Limits = nil
		}
	}
	return s, w, err
}

// unfenced drops the check of the lease from transactions.
type unfenced struct{ ledger.Table }

func (m unfenced) Transact(ctx context.Context, token string, ws []ledger.Write) error {
	kept := slices.DeleteFunc(slices.Clone(ws), func(w ledger.Write) bool { return w.Key.PK == "LEASE" && w.Put == nil && len(w.Set) == 0 })
	if len(kept) == 0 {
		return nil
	}
	return m.Table.Transact(ctx, token, kept)
}

// noFinalizer creates NodeClaims and registers Nodes that nothing keeps: here it takes the
// finalizers off at once.
type noFinalizer struct{ handler.Cluster }

func (m noFinalizer) PatchStatus(ctx context.Context, kind, name, uid string, s api.Status) (bool, error) {
	if kind == "NodeClaim" {
		if err := m.Cluster.RemoveFinalizer(ctx, kind, name, uid, finalizer); err != nil {
			return false, err
		}
	}
	return m.Cluster.PatchStatus(ctx, kind, name, uid, s)
}

// unsettled never brings outcomes to records.
type unsettled struct{ handler.Memory }

func (m unsettled) Settle(_ context.Context, a lifecycle.Attempt, _ func(string, lifecycle.Instance) lifecycle.Known) (lifecycle.Settlement, error) {
	return lifecycle.Settlement{}, nil
}

// hasty believes that an instance has ended when it is told to.
type hasty struct{ execute.Cloud }

func (m hasty) Describe(ctx context.Context, ids []string) ([]launch.Described, []string, error) {
	found, missing, err := m.Cloud.Describe(ctx, ids)
	for i := range found {
		if found[i].State == "shutting-down" {
			found[i].State = "terminated"
		}
	}
	return found, missing, err
}

// unwritten asks EC2 before anything is written down.
type unwritten struct{ ledger.Table }

func (m unwritten) Transact(ctx context.Context, token string, ws []ledger.Write) error {
	kept := slices.DeleteFunc(slices.Clone(ws), func(w ledger.Write) bool { return w.Key.PK == "ATTEMPTS" })
	return m.Table.Transact(ctx, token, kept)
}

// empty says that no pod is on a node.
type empty struct{ handler.Cluster }

func (m empty) PodsOn(context.Context, string) ([]snapshot.Pod, error) { return nil, nil }

// talkative makes every Event another one.
type talkative struct {
	handler.Cluster
	n *int
}

func (m talkative) Emit(ctx context.Context, e api.Event) (bool, error) {
	*m.n++
	e.Key += strconv.Itoa(*m.n)
	return m.Cluster.Emit(ctx, e)
}

// deaf never terminates anything, so that what fails leaks.
type deaf struct{ execute.Cloud }

func (m deaf) Terminate(_ context.Context, ids []string) ([]string, []string, error) {
	return ids, nil, nil
}

// forgetful loses an instance of each answer.
type forgetful struct{ execute.Cloud }

func (m forgetful) Create(ctx context.Context, stored []byte) (*launch.Outcome, error) {
	out, err := m.Cloud.Create(ctx, stored)
	if err == nil && len(out.Instances) > 0 {
		out.Instances = out.Instances[:len(out.Instances)-1]
	}
	return out, err
}

// costly asks for more than an idle tick needs.
type costly struct{ handler.Cluster }

func (m costly) PendingPods(ctx context.Context) ([]snapshot.Pod, error) {
	if _, err := m.Cluster.Nodes(ctx, ""); err != nil {
		return nil, err
	}
	return m.Cluster.PendingPods(ctx)
}

// forgetPod keeps a snapshot without one of its pods.
func forgetPod(s *snapshot.Snapshot) *snapshot.Snapshot {
	out := s.Fork()
	out.Pods = slices.DeleteFunc(out.Pods, func(p snapshot.Pod) bool { return p.Name == s.Pods[0].Name })
	return out
}

// sleepy is a script that freezes the first planner which is about to commit for longer than
// its lease: another one takes that meanwhile.
func sleepy() func(bound) (trouble, bool) {
	done := false
	return func(b bound) (trouble, bool) {
		if done || b.Op != "TransactWriteItems" || !strings.HasPrefix(b.Proc, "sweep") || !strings.Contains(b.Object, "NODES/") {
			return trouble{}, false
		}
		done = true
		return trouble{what: freezeBefore, wait: 5 * time.Minute}, true
	}
}

// liar never says that a NodeClaim is Ready.
type liar struct{ handler.Cluster }

func (m liar) PatchStatus(ctx context.Context, kind, name, uid string, s api.Status) (bool, error) {
	s.Conditions = slices.Clone(s.Conditions)
	if kind == "NodeClaim" {
		for i := range s.Conditions {
			if s.Conditions[i].Type == "Ready" {
				s.Conditions[i].Status = "False"
			}
		}
	}
	return m.Cluster.PatchStatus(ctx, kind, name, uid, s)
}

// mutation is a mutant, and what it breaks.
type mutation struct {
	name   string
	breaks []string // one of these invariants
	mutant func() *Mutant
}

var mutants = []mutation{
	{"a retry has another token", []string{"OneIntentOneInstance", "IntentFirst"}, func() *Mutant {
		sent := map[string]int{}
		return &Mutant{Cloud: func(c execute.Cloud) execute.Cloud { return freshToken{c, sent} }}
	}},
	{"limits are not looked at", []string{"Limits"}, func() *Mutant {
		return &Mutant{Memory: func(m handler.Memory) handler.Memory { return noLimits{m} }, Cluster: func(c handler.Cluster) handler.Cluster { return blindLimits{c} }}
	}},
	{"the fence is not checked", []string{"Fence"}, func() *Mutant {
		return &Mutant{Table: func(t ledger.Table) ledger.Table { return unfenced{t} }, Script: sleepy()}
	}},
	{"finalizers are dropped", []string{"ReleasedTooEarly", "ClaimsTell"}, func() *Mutant {
		return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return noFinalizer{c} }}
	}},
	{"outcomes are not settled", []string{"Settles", "PodsRun", "NoLeak"}, func() *Mutant { return &Mutant{Memory: func(m handler.Memory) handler.Memory { return unsettled{m} }} }},
	{"an instance that ends counts as ended", []string{"ReleasedTooEarly", "ClosedLeavesNothing"}, func() *Mutant { return &Mutant{Cloud: func(c execute.Cloud) execute.Cloud { return hasty{c} }} }},
	{"attempts are not written down", []string{"IntentFirst"}, func() *Mutant { return &Mutant{Table: func(t ledger.Table) ledger.Table { return unwritten{t} }} }},
	{"pods on a node are not looked at", []string{"EndedWithPods"}, func() *Mutant { return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return empty{c} }} }},
	{"Events are not told apart", []string{"OneEvent"}, func() *Mutant {
		talked := 0
		return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return talkative{c, &talked} }}
	}},
	{"nothing is ever terminated", []string{"NoLeak", "Settles"}, func() *Mutant { return &Mutant{Cloud: func(c execute.Cloud) execute.Cloud { return deaf{c} }} }},
	{"an instance of each answer is forgotten", []string{"NoLeak", "ClosedLeavesNothing", "EndsAGoodNode", "OneIntentOneInstance"}, func() *Mutant { return &Mutant{Cloud: func(c execute.Cloud) execute.Cloud { return forgetful{c} }} }},
	{"an idle tick looks at nodes", []string{"IdleTick"}, func() *Mutant { return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return costly{c} }} }},
	{"the snapshot that is kept is another", []string{"SamePlan"}, func() *Mutant { return &Mutant{Journal: forgetPod} }},
	{"NodeClaims lie", []string{"ClaimsTell"}, func() *Mutant { return &Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return liar{c} }} }},
}

// TestMutants: what is broken is noticed, and by the invariant that it breaks.
func TestMutants(t *testing.T) {
	for _, m := range slices.Concat(mutants, noticeMutants) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(40) {
				rep := inBubble(t, seed, Options{Mutant: m.mutant()})
				for _, b := range rep.Broken {
					if slices.Contains(m.breaks, b.Invariant) {
						t.Logf("noticed by seed %d: %s", seed, b)
						return
					}
				}
			}
			t.Error("nobody noticed")
		})
	}
}
