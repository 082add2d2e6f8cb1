package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// halved is a calm world in which there is half as much to do after some minutes.
func halved(says Disruption) *Profile {
	p := calm(
		Load{After: 12 * time.Second, Kind: "plain", Pods: 14, CPU: 1900, Mem: 1024, Gone: 4 * time.Minute, Left: 5},
		Load{After: 15 * time.Second, Kind: "anti", Pods: 6, CPU: 500, Mem: 512, Gone: 4 * time.Minute, Left: 3},
		Load{After: 18 * time.Second, Kind: "plain", Pods: 4, CPU: 250, Mem: 512, Hold: "true"},
		Load{After: 5 * time.Minute, Over: time.Minute, Kind: "plain", Pods: 5, CPU: 500, Mem: 512},
	)
	p.Trouble, p.Settle, p.Quiet, p.Consolidate = 8*time.Minute, 3*time.Hour, 50*time.Minute, true
	p.Pools[0].Disruption = says
	return p
}

var oneAtATime = []Budget{{Nodes: "1"}}

// misread shows a pool that says something else.
type misread struct {
	handler.Cluster
	says func(*snapshot.Disruption)
}

func (m misread) Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	s, w, err := m.Cluster.Read(ctx, now)
	if s != nil {
		s.NodePools = slices.Clone(s.NodePools)
		for i := range s.NodePools {
			m.says(&s.NodePools[i].Disruption)
		}
	}
	return s, w, err
}

// careless shows pods that say nothing.
type careless struct{ handler.Cluster }

func (m careless) Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	s, w, err := m.Cluster.Read(ctx, now)
	if s != nil {
		s.Pods = slices.Clone(s.Pods)
		for i := range s.Pods {
			s.Pods[i].Annotations = nil
		}
	}
	return s, w, err
}

// headlong begins with what it has just found.
type headlong struct{ handler.Memory }

func (m headlong) SaveCommand(ctx context.Context, l lifecycle.Lease, c lifecycle.Command) (lifecycle.Command, error) {
	if c.Phase == lifecycle.Proposed {
		c.Phase = lifecycle.Tainted
	}
	return m.Memory.SaveCommand(ctx, l, c)
}

// sticky leaves the taints of commands that are taken back.
type sticky struct{ handler.Cluster }

func (m sticky) ChangeNode(ctx context.Context, name, uid string, c api.NodeChange) (bool, error) {
	c.DropTaints = slices.DeleteFunc(slices.Clone(c.DropTaints), func(t snapshot.Taint) bool { return t.Key == snapshot.Disrupted.Key })
	return m.Cluster.ChangeNode(ctx, name, uid, c)
}

// tireless has no rest after a move.
type tireless struct{ handler.Memory }

func (m tireless) Commands(ctx context.Context) ([]lifecycle.Command, error) {
	cs, err := m.Memory.Commands(ctx)
	for i := range cs {
		if cs[i].Over() {
			cs[i].Changed = cs[i].Changed.Add(-24 * time.Hour)
		}
	}
	return cs, err
}

func (m tireless) MovesSince(context.Context, time.Time) ([]lifecycle.WorkloadMove, error) {
	return nil, nil
}

var passMutants = []struct {
	name   string
	says   Disruption
	drawn  bool // in drawn worlds
	breaks []string
	mutant Mutant
}{
	{"budgets are not seen", Disruption{Budgets: oneAtATime}, false, []string{"Budgets"}, misreading(func(d *snapshot.Disruption) { d.Budgets = []snapshot.Budget{{Nodes: "100%"}} })},
	{"consolidateAfter is not seen", Disruption{After: "4m"}, false, []string{"ConsolidateAfter"}, misreading(func(d *snapshot.Disruption) { d.ConsolidateAfter = "0s" })},
	{"Never is not seen", Disruption{After: "Never"}, false, []string{"Policy"}, misreading(func(d *snapshot.Disruption) { d.ConsolidateAfter = "0s" })},
	{"WhenEmpty is not seen", Disruption{Policy: "WhenEmpty"}, false, []string{"Policy"}, misreading(func(d *snapshot.Disruption) { d.ConsolidationPolicy = "WhenEmptyOrUnderutilized" })},
	{"do-not-disrupt is not seen", Disruption{Budgets: oneAtATime}, false, []string{"DoNotDisrupt"}, Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return careless{c} }}},
	{"what is proposed is begun at once", Disruption{}, false, []string{"TwoPhases"}, Mutant{Memory: func(m handler.Memory) handler.Memory { return headlong{m} }}},
	{"taints stay", Disruption{}, true, []string{"CommandsEnd"}, Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return sticky{c} }}},
	{"nothing rests after a move", Disruption{Budgets: oneAtATime}, false, []string{"MovedOnce"}, Mutant{Memory: func(m handler.Memory) handler.Memory { return tireless{m} }}},
}

func misreading(says func(*snapshot.Disruption)) Mutant {
	return Mutant{Cluster: func(c handler.Cluster) handler.Cluster { return misread{c, says} }}
}

// TestPassMutants: a consolidation that is broken is noticed, and by the invariant that it
// breaks; the same world is fine without.
func TestPassMutants(t *testing.T) {
	for _, m := range passMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var profile *Profile
			seeds := uint64(200) // few drawn worlds come to it
			if !m.drawn {
				seeds = 60
				profile = halved(m.says)
				rep := inBubble(t, 1, Options{Profile: profile})
				must(t, "without the mutant", rep)
			}
			for seed := range seeds {
				rep := inBubble(t, seed, Options{Profile: profile, Mutant: &m.mutant})
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

// TestHalved: clusters that have half as much to do become cheaper, and what they cost then is
// little more than what nodes would cost that are bought anew. Of one cluster that says little:
// it has eight nodes, and one more is an eighth.
func TestHalved(t *testing.T) {
	var price, anew snapshot.Price
	for seed := range uint64(12) {
		rep := inBubble(t, seed, Options{Profile: halved(Disruption{Budgets: []Budget{{Nodes: "100%"}}})})
		must(t, "halved", rep)
		s := &rep.Stats
		t.Logf("%d passes, %d moves, price %d, anew %d, last command %s after the load was", s.Passes, s.Moves, s.Price, s.Repacked, s.Acted)
		if s.Moves == 0 {
			t.Errorf("seed %d: no moves", seed)
		}
		price, anew = price+s.Price, anew+s.Repacked
	}
	if price*100 > anew*110 {
		t.Errorf("the nodes cost %d, anew they would cost %d", price, anew)
	}
}
