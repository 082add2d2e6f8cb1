package judge

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

var (
	seeds    = flag.Int("seeds", 200, "how many clusters are drawn")
	from     = flag.Uint64("from", 0, "the seed of the first one")
	smallest = flag.Bool("smallest", false, "look for the smallest world that shows a failure")
)

// planner is provision.Plan, or one that knows less.
type planner func(*snapshot.Snapshot, *catalog.Catalog) *plan.Plan

func kerf(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
	return provision.Plan(s, c, provision.Options{})
}

// pinned is what the scheduler has against the plan that was made for a world, when
// it judges by the rules of another one (the true one).
func pinned(truth, known *worldtest.World, seed uint64, plan planner) ([]string, *plan.Plan, error) {
	ks, _, err := known.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	p := plan(ks, known.Catalog)
	refused, err := verdict(truth, p, seed)
	return refused, p, err
}

func verdict(truth *worldtest.World, p *plan.Plan, seed uint64) ([]string, error) {
	s, _, err := truth.Snapshot()
	if err != nil {
		return nil, err
	}
	c, err := Read(truth.Manifests(), s, truth.Catalog)
	if err != nil {
		return nil, err
	}
	// Even seeds get what the plan prefers, odd ones any of its options.
	var r *rand.Rand
	if seed%2 == 1 {
		r = rand.New(rand.NewPCG(seed, 3))
	}
	nodes, err := c.Launched(p, r)
	if err != nil {
		return nil, err
	}
	v, err := Pinned(c, p, nodes, seed)
	return v.Refused, err
}

// The real scheduler accepts every placement of every plan.
func TestPlansHold(t *testing.T) {
	pods, failed := 0, 0
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		w := worldtest.Draw(seed)
		refused, p, err := pinned(w, w, seed, kerf)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		pods += p.Summary.PendingPods
		if len(refused) == 0 {
			continue
		}
		failed++
		if *smallest {
			w = w.Shrink(func(w *worldtest.World) bool {
				refused, _, err := pinned(w, w, seed, kerf)
				return err == nil && len(refused) > 0
			})
			refused, p, _ = pinned(w, w, seed, kerf)
		}
		t.Errorf("seed %d: kube-scheduler refuses\n  %s\nof the plan\n%s\nfor\n%s", seed, strings.Join(refused, "\n  "), show(p), w.Text())
	}
	t.Logf("%d clusters, %d pending pods; the plans of %d clusters hold", *seeds, pods, *seeds-failed)
}

// show lists where a plan puts pods.
func show(p *plan.Plan) string {
	var b strings.Builder
	for _, l := range p.Launches {
		fmt.Fprintf(&b, "  %s (%s %s %s): %s\n", l.Name, l.Chosen.InstanceType, l.Chosen.Zone, l.Chosen.CapacityType, strings.Join(l.Pods, " "))
	}
	for _, pl := range p.Placements {
		fmt.Fprintf(&b, "  %s: %s\n", pl.Node, pl.Pod)
	}
	for _, d := range p.Displaced {
		fmt.Fprintf(&b, "  %s: %s, from %s\n", d.To, d.Pod, d.From)
	}
	for _, v := range p.Verdicts {
		fmt.Fprintf(&b, "  %s: %s %s\n", v.Object, v.Code, v.Detail)
	}
	return b.String()
}
