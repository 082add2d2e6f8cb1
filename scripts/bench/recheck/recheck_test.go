package recheck_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/bound"
	"kerf.sh/kerf/scripts/bench/market"
	"kerf.sh/kerf/scripts/bench/recheck"
)

// world is a small workload, its plan and what the independent side knows of it.
type world struct {
	pods   []snapshot.Pod
	plan   *plan.Plan
	view   market.View
	demand bound.Vector
	ind    recheck.Independent
}

func newWorld(t *testing.T) world {
	t.Helper()
	m, err := market.New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	w := workload.Named(workload.MixedWeb, 100)
	s := workload.Snapshot(w, true, 16)
	out := world{pods: s.Pods, plan: provision.Plan(s, m.Catalog, provision.Options{}), view: m.View(market.Variant{Spot: true, CapVCPU: 16})}
	out.demand = recheck.Demand(s.Pods)
	var needs []bound.Vector
	for _, s := range workload.Shapes(w) {
		needs = append(needs, bound.Vector{s.CPUMilli, s.MemoryMiB << 20, 1})
	}
	columns := bound.Tighten(out.view.Columns, needs)
	lp, err := bound.LP(columns, out.demand)
	if err != nil {
		t.Fatal(err)
	}
	capped, err := bound.LP(bound.Cap(columns, out.demand), out.demand)
	if err != nil {
		t.Fatal(err)
	}
	best := bound.Whole(columns, out.demand, out.plan.Summary.LaunchPrice, 100_000)
	out.ind = recheck.Independent{Columns: bound.Cap(columns, out.demand), Low: lp.Total, High: capped.Primal, Best: best.Total}
	if len(out.plan.Launches) < 2 {
		t.Fatalf("%d launches; the mutations below need two", len(out.plan.Launches))
	}
	return out
}

func TestAPlanOfThePlannerHasNoFaults(t *testing.T) {
	w := newWorld(t)
	if f := recheck.Plan(w.pods, w.plan, w.view); len(f.List) > 0 {
		t.Errorf("plan: %s", strings.Join(f.List, "\n"))
	}
	if f := recheck.Bounds(w.plan, w.demand, w.ind); len(f.List) > 0 {
		t.Errorf("bounds: %s", strings.Join(f.List, "\n"))
	}
}

// Every way to spoil a plan is found, and named.
func TestSpoiledPlansAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*plan.Plan)
		want  string
	}{
		{"a pod is forgotten", func(p *plan.Plan) { p.Launches[0].Pods = p.Launches[0].Pods[1:] }, "nowhere in the plan"},
		{"a pod comes twice", func(p *plan.Plan) {
			p.Launches[0].Pods = append(p.Launches[0].Pods, p.Launches[1].Pods[0])
		}, "is in"},
		{"a pod is made up", func(p *plan.Plan) { p.Launches[0].Pods = append(p.Launches[0].Pods, "default/nobody") }, "no pod of the workload"},
		{"a launch is too full", func(p *plan.Plan) {
			for _, l := range p.Launches[1:] {
				p.Launches[0].Pods = append(p.Launches[0].Pods, l.Pods...)
			}
			p.Launches = p.Launches[:1]
		}, "has room for"},
		{"an option is too small", func(p *plan.Plan) {
			o := p.Launches[0].Options[0]
			o.InstanceType, o.Zone, o.CapacityType = "c6g.medium", "us-east-1a", "on-demand"
			o.Price = 34_000
			p.Launches[0].Options = append(p.Launches[0].Options, o)
		}, "option c6g.medium has room for"},
		{"an option is not allowed", func(p *plan.Plan) { p.Launches[0].Options[0].InstanceType = "t3.medium" }, "does not allow"},
		{"a capped pool buys a large node", func(p *plan.Plan) { p.Launches[0].Options[0].InstanceType = "m6g.16xlarge" }, "does not allow"},
		{"a price is wrong", func(p *plan.Plan) { p.Launches[0].Options[1].Price++ }, "the plan says"},
		{"an option comes twice", func(p *plan.Plan) {
			p.Launches[0].Options = append(p.Launches[0].Options, p.Launches[0].Options[0])
		}, "comes twice"},
		{"the choice is no option", func(p *plan.Plan) { p.Launches[0].Options = p.Launches[0].Options[1:] }, "not among its options"},
		{"the worst price is wrong", func(p *plan.Plan) { p.Launches[0].Worst-- }, "dearest option"},
		{"the sum is wrong", func(p *plan.Plan) { p.Summary.LaunchPrice-- }, "summary says"},
		{"a launch is empty", func(p *plan.Plan) {
			p.Launches = append(p.Launches, plan.Launch{Name: "empty", Chosen: p.Launches[0].Chosen, Options: p.Launches[0].Options, Worst: p.Launches[0].Worst})
		}, "has no pod"},
		{"a pod goes to a node that is not there", func(p *plan.Plan) {
			p.Placements = append(p.Placements, plan.Placement{Pod: p.Launches[0].Pods[0], Node: "ghost"})
		}, "there is no node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			own(w.plan)
			c.spoil(w.plan)
			f := recheck.Plan(w.pods, w.plan, w.view)
			if !slices.ContainsFunc(f.List, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("faults %q; want one that says %q", f.List, c.want)
			}
		})
	}
}

// own unshares what launches may share, so that a mutation meets one of them.
func own(p *plan.Plan) {
	for i := range p.Launches {
		p.Launches[i].Options = slices.Clone(p.Launches[i].Options)
		p.Launches[i].Pods = slices.Clone(p.Launches[i].Pods)
	}
	for i := range p.Bounds {
		p.Bounds[i].Duals = maps.Clone(p.Bounds[i].Duals)
	}
}

func TestSpoiledBoundsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*plan.Plan)
		want  string
	}{
		{"above the price", func(p *plan.Plan) { p.Bounds[0].Total *= 2; p.Summary.LaunchLowerBound *= 2 }, "exceeds its own price"},
		{"sum and parts differ", func(p *plan.Plan) { p.Summary.LaunchLowerBound++ }, "add up to"},
		{"duals too high", func(p *plan.Plan) { p.Bounds[0].Duals["cpu"] *= 1.01 }, "is worth"},
		{"duals too low", func(p *plan.Plan) { p.Bounds[0].Duals["cpu"] *= 0.5 }, "duals prove"},
		{"a negative dual", func(p *plan.Plan) { p.Bounds[0].Duals["pods"] = -1 }, "negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			own(w.plan)
			c.spoil(w.plan)
			f := recheck.Bounds(w.plan, w.demand, w.ind)
			if !slices.ContainsFunc(f.List, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("faults %q; want one that says %q", f.List, c.want)
			}
		})
	}
}

func TestConfirmed(t *testing.T) {
	p := &plan.Plan{Summary: plan.Summary{LaunchLowerBound: 1000}}
	for best, want := range map[snapshot.Price]bool{1500: true, 1000: true, 999: true, 998: false} {
		if got := recheck.Confirmed(p, recheck.Independent{Best: best}); got != want {
			t.Errorf("a bound of 1000 with %d proven is confirmed: %v, want %v", best, got, want)
		}
	}
}

// The view of the market, which reads the pool by itself, agrees with the planner's
// algebra: with pods of all sizes, no option of any plan is refused, and the cheapest
// type for a single pod is the one the planner takes.
func TestViewAgreesWithThePlanner(t *testing.T) {
	m, err := market.New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range market.Variants() {
		view := m.View(v)
		for _, shape := range []workload.Deployment{{CPUMilli: 100, MemoryMiB: 128}, {CPUMilli: 3000, MemoryMiB: 20_000}, {CPUMilli: 20_000, MemoryMiB: 100_000}} {
			shape.Name, shape.Replicas = "one", 1
			s := workload.Snapshot(workload.Workload{Name: "one", N: 1, Deployments: []workload.Deployment{shape}}, v.Spot, v.CapVCPU)
			p := provision.Plan(s, m.Catalog, provision.Options{})
			need := bound.Vector{shape.CPUMilli, shape.MemoryMiB << 20, 1}
			want, err := bound.Equal(view.Columns, need, 1)
			if err != nil {
				t.Fatal(err)
			}
			if p.Summary.LaunchPrice != want {
				t.Errorf("%s, one pod of %d m and %d MiB: the plan costs %d, the cheapest type of the view %d", v, shape.CPUMilli, shape.MemoryMiB, p.Summary.LaunchPrice, want)
			}
			if f := recheck.Plan(s.Pods, p, view); len(f.List) > 0 {
				t.Errorf("%s: %q", v, f.List)
			}
		}
	}
}
