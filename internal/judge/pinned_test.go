package judge

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
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

// planner is provision.Plan, or one that is broken.
type planner func(*snapshot.Snapshot, *catalog.Catalog) *plan.Plan

func kerf(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
	return provision.Plan(s, c, provision.Options{})
}

// judged is what kube-scheduler says of a plan.
type judged struct {
	plan *plan.Plan
	Verdict
	// missed are pods that it would have taken; asked counts the questions about them.
	missed []string
	asked  int
}

// bad lists all that is wrong.
func (j *judged) bad() []string {
	return append(j.Refused[:len(j.Refused):len(j.Refused)], j.missed...)
}

// judge plans a world, or what the planner is made to know of it, and asks the
// scheduler about the plan in the world as it is. Equal arguments give equal answers.
func judge(truth, known *worldtest.World, seed uint64, p planner) (*judged, error) {
	ks, _, err := known.Snapshot()
	if err != nil {
		return nil, err
	}
	out := &judged{plan: p(ks, known.Catalog)}
	s, _, err := truth.Snapshot()
	if err != nil {
		return nil, err
	}
	c, err := Read(truth.Manifests(), s, truth.Catalog)
	if err != nil {
		return nil, err
	}
	// Even seeds launch what the plan prefers, odd ones any of its options.
	var r *rand.Rand
	if seed%2 == 1 {
		r = rand.New(rand.NewPCG(seed, 3))
	}
	nodes, err := c.Launched(out.plan, r)
	if err != nil {
		return nil, err
	}
	var sched *Scheduler
	if out.Verdict, sched, err = Pinned(c, out.plan, nodes, seed); err != nil {
		return nil, err
	}
	defer sched.Stop()
	if len(out.Refused) == 0 {
		if r != nil {
			nodes = nil // larger than what the plan counts on, perhaps
		}
		out.missed, out.asked = c.Missed(sched, out.plan, nodes)
	}
	return out, nil
}

// The real scheduler accepts every placement of every plan, and really refuses the pods
// that have none.
func TestPlansHold(t *testing.T) {
	var placed, daemons, orders, asked, failed int
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		w := worldtest.Draw(seed)
		j, err := judge(w, w, seed, kerf)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		placed += j.Placed
		daemons += j.Daemons
		asked += j.asked
		if j.Orders > 1 {
			orders++
		}
		if len(j.bad()) == 0 {
			continue
		}
		failed++
		if *smallest {
			kinds := kindsOf(j.bad())
			w = w.Shrink(func(w *worldtest.World) bool {
				j, err := judge(w, w, seed, kerf)
				return err == nil && slices.ContainsFunc(kindsOf(j.bad()), func(k string) bool { return slices.Contains(kinds, k) })
			})
			if j, err = judge(w, w, seed, kerf); err != nil {
				t.Errorf("seed %d: %v", seed, err)
				continue
			}
		}
		t.Errorf("seed %d: kube-scheduler says\n  %s\nof the plan\n%s\nfor\n%s", seed, strings.Join(j.bad(), "\n  "), show(j.plan), w.Text())
	}
	t.Logf("%d clusters: %d placements and %d daemonset pods, in another order than that of names in %d clusters; %d questions about pods without a place; %d clusters fail",
		*seeds, placed, daemons, orders, asked, failed)
}

// kindsOf are the complaints without names: a reason of the scheduler, or the code of a
// verdict that it does not agree with.
func kindsOf(bad []string) []string {
	var out []string
	for _, b := range bad {
		if _, code, ok := strings.Cut(b, " ("); ok && strings.Contains(b, " could run on ") {
			code, _, _ = strings.Cut(code, ")")
			out = append(out, code)
		} else if _, why, ok := strings.Cut(b, ": "); ok {
			out = append(out, why)
		}
	}
	return out
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
		for _, pv := range v.Pools {
			fmt.Fprintf(&b, "    %s: %s %s\n", pv.NodePool, pv.Code, pv.Detail)
		}
	}
	return b.String()
}
