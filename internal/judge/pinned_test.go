package judge

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// maxOrders is how many orders of the pods are tried before a plan counts as refused.
const maxOrders = 100

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
func judge(truth, known *worldtest.World, seed uint64, p planner, orders int) (*judged, error) {
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
	if out.Verdict, sched, err = Pinned(c, out.plan, nodes, seed, orders); err != nil {
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

// each runs f for the numbers below n, as many at a time as there are processors.
func each(n int, f func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// trial is a drawn world and what became of the plan for it.
type trial struct {
	seed  uint64
	world *worldtest.World
	*guarded
	err error
}

// trials are the worlds of this run, each planned and judged once.
var trials = sync.OnceValue(func() []trial {
	out := make([]trial, *seeds)
	each(len(out), func(i int) {
		t := &out[i]
		t.seed = *from + uint64(i)
		t.world = worldtest.Draw(t.seed)
		t.guarded, t.err = guard(t.world, t.world, t.seed, maxOrders)
	})
	return out
})

// The real scheduler accepts every placement of every plan, and really refuses the pods
// that have none.
func TestPlansHold(t *testing.T) {
	var placed, daemons, orders, asked, failed int
	for _, tr := range trials() {
		if tr.err != nil {
			t.Errorf("seed %d: %v", tr.seed, tr.err)
			continue
		}
		placed += tr.Placed
		daemons += tr.Daemons
		asked += tr.asked
		if tr.Orders > 1 {
			orders++
		}
		if len(tr.judged.bad()) == 0 {
			continue
		}
		failed++
		w, j := tr.world, tr.judged
		if *smallest {
			w, j = shrunk(t, tr)
		}
		t.Errorf("seed %d: kube-scheduler says\n  %s\nof the plan\n%s\nfor\n%s", tr.seed, strings.Join(j.bad(), "\n  "), show(j.plan), w.Text())
	}
	t.Logf("%d clusters from seed %d: %d placements and %d daemonset pods, in other orders than that of names in %d clusters; %d questions about pods without a place; %d clusters fail",
		*seeds, *from, placed, daemons, orders, asked, failed)
}

// shrunk is the smallest world found that shows a failure of the same kind.
func shrunk(t *testing.T, tr trial) (*worldtest.World, *judged) {
	t.Helper()
	kinds := kindsOf(tr.judged.bad())
	w := tr.world.Shrink(func(w *worldtest.World) bool {
		j, err := judge(w, w, tr.seed, kerf, maxOrders)
		return err == nil && slices.ContainsFunc(kindsOf(j.bad()), func(k string) bool { return slices.Contains(kinds, k) })
	})
	j, err := judge(w, w, tr.seed, kerf, maxOrders)
	if err != nil {
		t.Fatalf("seed %d: %v", tr.seed, err)
	}
	return w, j
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
