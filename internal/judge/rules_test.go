package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/worldtest"
)

// binding says how a rule shows in a world: by what a planner that does not know it
// would do.
type binding int

const (
	free       binding = iota // the same plan
	differs                   // another plan, which is as good as the right one
	breaksRule                // a plan that the rules of package worldtest do not allow
	misses                    // pods without a place that kube-scheduler would take
	refused                   // a plan that kube-scheduler does not carry out
	bindings
)

func (b binding) String() string {
	return []string{"same plan", "other plan", "broken rule", "missed pods", "refused"}[b]
}

// bound finds out how a rule shows in a world whose right plan is given, and gives an
// example of what goes wrong without it.
func bound(w *worldtest.World, right *guarded, rule worldtest.Rule, seed uint64) (binding, string) {
	wrong, err := guard(w, w.Without(rule), seed, 3)
	switch {
	case err != nil:
		// The plan speaks of what is not there: a pool, a node or a pod.
		return refused, err.Error()
	case len(wrong.Refused) > 0:
		return refused, wrong.Refused[0]
	case len(wrong.missed) > 0:
		return misses, wrong.missed[0]
	case len(wrong.broken) > 0:
		return breaksRule, wrong.broken[0]
	case !slices.Equal(outline(right.plan), outline(wrong.plan)):
		return differs, ""
	}
	return free, ""
}

// guarded is judged, and held against the rules of package worldtest as well.
type guarded struct {
	*judged
	broken []string
}

func (g *guarded) bad() []string { return slices.Concat(g.judged.bad(), g.broken) }

func guard(truth, known *worldtest.World, seed uint64, orders int) (*guarded, error) {
	j, err := judge(truth, known, seed, kerf, orders)
	if err != nil {
		return nil, err
	}
	g := &guarded{judged: j}
	if len(j.bad()) == 0 {
		s, _, err := truth.Snapshot()
		if err != nil {
			return nil, err
		}
		g.broken = worldtest.Check(s, truth.Catalog, j.plan)
	}
	return g, nil
}

// outline is what a plan does, without its explanations.
func outline(p *plan.Plan) []string {
	out := strings.Split(show(p), "\n")
	return slices.DeleteFunc(out, func(l string) bool { return strings.Contains(l, "pod/") || strings.HasPrefix(l, "    ") })
}

// Every rule matters in many of the drawn worlds: a planner that does not know it makes
// a plan that cannot be carried out, misses pods, or breaks a rule of Karpenter's. The
// table says how often; in the last columns the plan would have been as good.
func TestRulesBind(t *testing.T) {
	const least = 10
	counts := map[worldtest.Rule]*[bindings]int{}
	for _, r := range worldtest.Scenes() {
		counts[r] = &[bindings]int{}
	}
	all := trials()
	found := make([]map[worldtest.Rule]binding, len(all))
	each(len(all), func(i int) {
		tr := &all[i]
		if tr.err != nil || len(tr.bad()) > 0 {
			return // TestPlansHold says so
		}
		found[i] = map[worldtest.Rule]binding{}
		for _, r := range tr.world.Rules() {
			found[i][r], _ = bound(tr.world, tr.guarded, r, tr.seed)
		}
	})
	for _, bs := range found {
		for r, b := range bs {
			if counts[r] != nil {
				counts[r][b]++
			}
		}
	}
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tab, "worlds\t")
	for b := refused; b >= free; b-- {
		fmt.Fprintf(tab, "%s\t", b)
	}
	fmt.Fprintln(tab, "  rule that is not known")
	for _, r := range worldtest.Scenes() {
		c := counts[r]
		sum := 0
		for _, n := range c {
			sum += n
		}
		fmt.Fprintf(tab, "%d\t", sum)
		for b := refused; b >= free; b-- {
			fmt.Fprintf(tab, "%d\t", c[b])
		}
		fmt.Fprintf(tab, "  %s\n", r)
		if bind := sum - c[free] - c[differs]; bind < least && *seeds >= 200 {
			t.Errorf("rule %s binds in %d of %d worlds, want %d", r, bind, *seeds, least)
		}
	}
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters\n%s", *seeds, table.String())
}

// A planner that does not know one rule is found out, for every rule: by kube-scheduler
// where it can, else by the rules of package worldtest.
func TestMutants(t *testing.T) {
	const tries = 40
	rules := worldtest.Scenes()
	type find struct {
		binding
		example string
	}
	found := make([]find, len(rules))
	each(len(rules), func(i int) {
		f := &found[i]
		for seed := uint64(0); seed < tries && f.binding != refused; seed++ {
			w := worldtest.DrawOne(seed, rules[i])
			right, err := guard(w, w, seed, maxOrders)
			if err != nil || len(right.bad()) > 0 {
				continue
			}
			if b, why := bound(w, right, rules[i], seed); b > f.binding {
				*f = find{b, fmt.Sprintf("seed %d: %s: %s", seed, b, why)}
			}
		}
	})
	by := map[binding]int{}
	for i, f := range found {
		by[f.binding]++
		if f.binding <= differs {
			t.Errorf("a planner that knows nothing of %s is not found out in %d worlds", rules[i], tries)
		} else {
			t.Logf("%s: %s", rules[i], f.example)
		}
	}
	t.Logf("of %d planners that lack a rule, kube-scheduler refuses plans of %d and would take pods that %d leave; package worldtest finds out %d more",
		len(rules), by[refused], by[misses], by[breaksRule])
}
