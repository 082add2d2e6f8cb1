package provision_test

import (
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// The properties of drawn worlds are failed by planners that are wrong in the way they
// guard against. TestRuleMutants has one for every rule.
func TestDrawnMutantsAreCaught(t *testing.T) {
	about := func(code plan.Code) planner {
		return tampered(func(p *plan.Plan) {
			p.Verdicts = slices.Clone(p.Verdicts)
			for i := range p.Verdicts {
				p.Verdicts[i].Code, p.Verdicts[i].Detail, p.Verdicts[i].Pools = code, "others are in the way", nil
			}
		})
	}
	for _, m := range []struct {
		name   string
		guard  property
		mutant planner
	}{
		{"blames spread for everything", blame, about(plan.TopologySpreadUnmet)},
		{"blames affinity for everything", blame, about(plan.PodAffinityUnmet)},
		{"blames anti-affinity for everything", blame, about(plan.PodAntiAffinityUnmet)},
		{"blames volumes for everything", blame, about(plan.VolumeTopology)},
		{"reads pods in the order given", order, func() planner {
			return func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
				p := real(s, c)
				p.ID = s.Pods[0].Labels["tier"] + p.ID
				for k := range s.Pods[0].Labels { // the order of a map
					p.ID = k + p.ID
				}
				return p
			}
		}()},
	} {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			for seed := range uint64(drawnSeeds) {
				w := drawnWorld(t, worldtest.Draw(seed))
				if len(m.guard(w, m.mutant)) > 0 && len(m.guard(w, real)) == 0 {
					return
				}
			}
			t.Errorf("a planner that %s is not caught", m.name)
		})
	}
}

// Brute force shows up planners that waste nodes, and that give up.
func TestSeatedMutantsAreCaught(t *testing.T) {
	for name, mutant := range map[string]planner{
		"never shares a node": onePodANode,
		"has one zone": blindTo(eachPool(func(p *snapshot.NodePool) {
			p.Requirements = append(slices.Clone(p.Requirements), in("topology.kubernetes.io/zone", "z-a"))
		})),
		"ignores rules about other pods": blindTo(eachPod(func(p *snapshot.Pod) {
			p.Spec.Spread, p.Spec.Affinity, p.Spec.Anti = nil, nil, nil
		})),
	} {
		if len(seatedBy(t, 60, mutant).judge()) == 0 {
			t.Errorf("a planner that %s is not caught", name)
		}
	}
}
