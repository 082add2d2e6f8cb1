package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// blindTo is a planner that plans another world than the one it is asked about.
func blindTo(change func(*snapshot.Snapshot)) planner {
	return func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
		o := *s
		o.Pods, o.Nodes, o.NodePools = slices.Clone(s.Pods), slices.Clone(s.Nodes), slices.Clone(s.NodePools)
		change(&o)
		return real(&o, c)
	}
}

// tampered is a planner whose plans are changed afterwards.
func tampered(change func(*plan.Plan)) planner {
	return func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
		p := real(s, c)
		change(p)
		return p
	}
}

func eachPod(f func(*snapshot.Pod)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for i := range s.Pods {
			f(&s.Pods[i])
		}
	}
}

func eachPool(f func(*snapshot.NodePool)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for i := range s.NodePools {
			f(&s.NodePools[i])
		}
	}
}

func eachLaunch(f func(*plan.Launch)) planner {
	return tampered(func(p *plan.Plan) {
		p.Launches = slices.Clone(p.Launches)
		for i := range p.Launches {
			p.Launches[i].Options = slices.Clone(p.Launches[i].Options)
			f(&p.Launches[i])
		}
	})
}

// onePodANode is a planner that never shares a new node.
func onePodANode(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
	p := real(s, c)
	var out []plan.Launch
	p.Summary.LaunchPrice, p.Summary.LaunchPriceWorst = 0, 0
	for _, l := range p.Launches {
		for i, ref := range l.Pods {
			one := l
			one.Name, one.Pods = fmt.Sprintf("%s-%d", l.Name, i), []string{ref}
			out = append(out, one)
			p.Summary.LaunchPrice += l.Chosen.Price
			p.Summary.LaunchPriceWorst += l.Worst
		}
	}
	p.Launches, p.Summary.Launches = out, len(out)
	return p
}

// dearest moves every choice to the last option.
func dearest(l *plan.Launch) { l.Chosen = l.Options[len(l.Options)-1] }

// Every property is failed by a planner that is wrong in the way it guards against,
// within a few hundred worlds.
func TestMutantsAreCaught(t *testing.T) {
	for _, m := range []struct {
		name   string
		guard  property
		worlds *rapid.Generator[world]
		mutant planner
	}{
		{"forgets a pod", rules, variedWorlds, tampered(func(p *plan.Plan) {
			if len(p.Launches) > 0 {
				p.Launches[0].Pods = p.Launches[0].Pods[1:]
			}
		})},
		{"has a pod twice", rules, variedWorlds, tampered(func(p *plan.Plan) {
			if len(p.Launches) > 0 {
				p.Verdicts = append(p.Verdicts, plan.Verdict{Object: "pod/" + p.Launches[0].Pods[0], Code: plan.StepLimit})
			}
		})},
		{"swaps two pods", rules, variedWorlds, tampered(func(p *plan.Plan) {
			if n := len(p.Launches); n > 1 {
				a, b := &p.Launches[0], &p.Launches[n-1]
				a.Pods, b.Pods = b.Pods, a.Pods
			}
		})},
		{"ignores selectors", rules, variedWorlds, blindTo(eachPod(func(p *snapshot.Pod) { p.Spec.NodeSelector = nil }))},
		{"ignores affinity", rules, variedWorlds, blindTo(eachPod(func(p *snapshot.Pod) { p.Spec.Required = nil }))},
		{"ignores host ports", rules, portWorlds, blindTo(eachPod(func(p *snapshot.Pod) { p.Spec.HostPorts = nil }))},
		{"ignores memory", rules, variedWorlds, blindTo(eachPod(func(p *snapshot.Pod) { p.Spec.Requests.Memory = 0 }))},
		{"ignores pod slots", rules, variedWorlds, blindTo(eachPod(func(p *snapshot.Pod) { p.Spec.Requests.Pods = 0 }))},
		{"ignores bound pods", rules, variedWorlds, blindTo(eachPod(func(p *snapshot.Pod) {
			if p.NodeName != "" {
				p.Phase = "Succeeded"
			}
		}))},
		{"ignores taints of pools", rules, variedWorlds, blindTo(eachPool(func(p *snapshot.NodePool) { p.Taints = nil }))},
		{"ignores taints of nodes", rules, variedWorlds, blindTo(func(s *snapshot.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Taints = nil
			}
		})},
		{"ignores requirements", rules, variedWorlds, blindTo(eachPool(func(p *snapshot.NodePool) { p.Requirements = nil }))},
		{"ignores limits", rules, variedWorlds, blindTo(eachPool(func(p *snapshot.NodePool) { p.Limits = nil }))},
		{"ignores weights", rules, variedWorlds, blindTo(eachPool(func(p *snapshot.NodePool) { p.Weight = 0 }))},
		{"turns weights round", rules, variedWorlds, blindTo(eachPool(func(p *snapshot.NodePool) { p.Weight = 100 - p.Weight }))},
		{"ignores daemonsets", rules, variedWorlds, blindTo(func(s *snapshot.Snapshot) { s.DaemonSets = nil })},
		{"sees too many daemonsets", rules, variedWorlds, blindTo(func(s *snapshot.Snapshot) {
			s.DaemonSets = append(s.DaemonSets, snapshot.DaemonSet{Name: "ghost", Template: snapshot.PodTemplate{
				Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 900, Pods: 1}, Tolerations: []snapshot.Toleration{{Operator: "Exists"}}}}})
		})},
		{"invents a price", rules, variedWorlds, eachLaunch(func(l *plan.Launch) { l.Chosen.Price--; l.Options[0].Price-- })},
		{"chooses the dearest option", rules, variedWorlds, eachLaunch(dearest)},
		{"hides the worst option", rules, variedWorlds, eachLaunch(func(l *plan.Launch) { l.Worst = l.Chosen.Price })},
		{"turns options round", rules, variedWorlds, eachLaunch(func(l *plan.Launch) { slices.Reverse(l.Options) })},
		{"has no options", rules, variedWorlds, eachLaunch(func(l *plan.Launch) { l.Options = nil })},
		{"has an option twice", rules, variedWorlds, eachLaunch(func(l *plan.Launch) { l.Options = append(l.Options[:1:1], l.Options...) })},
		{"offers another zone", rules, variedWorlds, eachLaunch(func(l *plan.Launch) {
			for i := range l.Options {
				l.Options[i].Zone = "z-a"
			}
		})},
		{"refuses everything", rules, variedWorlds, tampered(func(p *plan.Plan) {
			for _, l := range p.Launches {
				for _, ref := range l.Pods {
					p.Verdicts = append(p.Verdicts, plan.Verdict{Object: "pod/" + ref, Code: plan.Unschedulable})
				}
			}
			p.Launches, p.Summary.Launches, p.Summary.LaunchPrice, p.Summary.LaunchPriceWorst = nil, 0, 0, 0
		})},
		{"claims too high a bound", rules, variedWorlds, tampered(func(p *plan.Plan) { p.Summary.LaunchLowerBound = p.Summary.LaunchPrice + 1 })},
		{"ignores existing nodes", existingFirst, variedWorlds, blindTo(func(s *snapshot.Snapshot) { s.Nodes = nil })},
		{"depends on the order", order, variedWorlds, func() planner {
			last := 0
			return func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
				p := real(s, c)
				last++
				p.ID = fmt.Sprint(last)
				return p
			}
		}()},
		{"never shares a node", cheapest, smallWorlds, onePodANode},
		{"buys on-demand only", cheapest, smallWorlds, blindTo(eachPool(func(p *snapshot.NodePool) {
			p.Requirements = append(slices.Clone(p.Requirements), in("karpenter.sh/capacity-type", "on-demand"))
		}))},
		{"uses the first pool only", cheapest, smallWorlds, blindTo(func(s *snapshot.Snapshot) { s.NodePools = s.NodePools[:1] })},
		{"is put off by other pools", unrelatedPool, portWorlds, func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
			o := *s
			o.NodePools = s.NodePools[len(s.NodePools)-1:]
			return real(&o, c)
		}},
		{"is put off by large types", largerType, portWorlds, func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
			o := *c
			o.Types = c.Types[len(c.Types)-1:]
			return real(s, &o)
		}},
		{"always blames a taint", blame, variedWorlds, blames(plan.TaintNotTolerated, "taint x is not tolerated")},
		{"always blames the limit", blame, variedWorlds, blames(plan.LimitReached, "limit cpu is reached")},
		{"always blames memory", blame, variedWorlds, blames(plan.NoInstanceTypeFits, "too little memory")},
		{"blames nothing", blame, variedWorlds, blames(plan.NoOffering, "it cannot be")},
	} {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			for i := range 400 {
				w := m.worlds.Example(i)
				if len(m.guard(w, m.mutant)) > 0 && len(m.guard(w, real)) == 0 {
					return
				}
			}
			t.Errorf("a planner that %s is not caught", m.name)
		})
	}
}

// blames is a planner that gives one reason for everything.
func blames(code plan.Code, detail string) planner {
	return tampered(func(p *plan.Plan) {
		for i := range p.Verdicts {
			pools := slices.Clone(p.Verdicts[i].Pools)
			for k := range pools {
				pools[k].Code, pools[k].Detail = code, detail
			}
			p.Verdicts[i].Pools = pools
		}
	})
}

// A witness world shows up a planner that wastes, and one that gives up.
func TestWitnessCatchesWaste(t *testing.T) {
	w := newWitness(1, 20)
	if len(places(w, onePodANode)) == 0 {
		t.Error("one pod a node is not caught")
	}
	if len(places(w, blindTo(func(s *snapshot.Snapshot) { s.NodePools = s.NodePools[:2] }))) == 0 {
		t.Error("a planner that knows two of the pools only is not caught")
	}
}

// Solvers that are wrong about bounds or prices are caught.
func TestSolverMutantsAreCaught(t *testing.T) {
	change := func(f func(*packing.Result)) solver {
		return func(p *packing.Problem) *packing.Result {
			r := packing.Solve(p)
			f(r)
			return r
		}
	}
	for _, m := range []struct {
		name   string
		guard  func(*packing.Problem, solver) []string
		mutant solver
	}{
		{"raises the bound by 5 %", lowerBound, change(func(r *packing.Result) {
			for i := range r.Bounds {
				r.Bounds[i].Total += r.Bounds[i].Total / 20
			}
		})},
		{"raises the duals by 5 %", lowerBound, change(func(r *packing.Result) {
			for i := range r.Bounds {
				for k := range r.Bounds[i].Duals {
					r.Bounds[i].Duals[k] *= 1.05
				}
			}
		})},
		{"proves less than it claims", lowerBound, change(func(r *packing.Result) {
			for i := range r.Bounds {
				clear(r.Bounds[i].Duals)
			}
		})},
		{"leaves pods out of the bound", lowerBound, change(func(r *packing.Result) { r.Bounds = nil })},
		{"rounds prices down", lowerBound, change(func(r *packing.Result) { r.Price -= r.Price / 20 })},
		{"packs one class at a time", leastPrice, func(p *packing.Problem) *packing.Result {
			sum := &packing.Result{}
			for c := range p.Classes {
				one := *p
				one.Classes = slices.Clone(p.Classes)
				for k := range one.Classes {
					if k != c {
						one.Classes[k].Count = 0
					}
				}
				sum.Price += packing.Solve(&one).Price
			}
			return sum
		}},
	} {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			for seed := range uint64(500) {
				p := smallProblem(seed)
				if len(m.guard(p, m.mutant)) > 0 && len(m.guard(p, packing.Solve)) == 0 {
					return
				}
			}
			t.Errorf("a solver that %s is not caught", m.name)
		})
	}
}

// The judge itself: plans of a world worked out by hand, right and wrong.
func TestJudge(t *testing.T) {
	w := worldtest.NewWorld()
	if err := w.Exec("catalog only=c5.large\npool general limits=nodes:2\npod p count=2 cpu=1900m"); err != nil {
		t.Fatal(err)
	}
	s, _, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if bad := worldtest.Check(s, w.Catalog, real(s, w.Catalog)); len(bad) > 0 {
		t.Errorf("a right plan is called wrong:\n%s", strings.Join(bad, "\n"))
	}
	p := real(s, w.Catalog)
	s.NodePools[0].Limits = map[string]int64{"nodes": 1}
	if bad := worldtest.Check(s, w.Catalog, p); !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, "limit nodes") }) {
		t.Errorf("two nodes with a limit of one are not caught: %v", bad)
	}
}
