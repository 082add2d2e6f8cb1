package provision_test

import (
	"slices"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// Most rules are met by chance in a world where they do not matter. Here each of them
// does, in at least bindingWorlds of the drawn worlds: a planner that does not know the
// rule, and is right in all else, breaks it there. (All of them bind in at least ten of
// the 200 worlds: the judge with the real scheduler counts them; to stop at three takes
// a third of the time.)
const bindingWorlds = 3

func TestEveryRuleBinds(t *testing.T) {
	bound := map[worldtest.Rule]int{}
	for seed := range uint64(drawnSeeds) {
		w := worldtest.Draw(seed)
		orig := drawnWorld(t, w)
		if len(rules(orig, real)) > 0 {
			continue // TestPropertyDrawnRules says so
		}
		for _, r := range w.Rules() {
			if bound[r] < bindingWorlds && !r.NotYet() && len(rules(orig, unaware(t, w, r))) > 0 {
				bound[r]++
			}
		}
		if done(bound) {
			break
		}
	}
	for _, r := range worldtest.Scenes() {
		if !r.NotYet() && bound[r] < bindingWorlds {
			t.Errorf("rule %s binds in %d of %d worlds", r, bound[r], drawnSeeds)
		}
	}
}

func done(bound map[worldtest.Rule]int) bool {
	return !slices.ContainsFunc(worldtest.Scenes(), func(r worldtest.Rule) bool { return !r.NotYet() && bound[r] < bindingWorlds })
}

// A planner that does not know one rule is caught, rule by rule, in a small world about
// that rule.
func TestRuleMutants(t *testing.T) {
	const worlds = 12
	for _, r := range worldtest.Scenes() {
		if r.NotYet() {
			continue
		}
		t.Run(string(r), func(t *testing.T) {
			for seed := range uint64(worlds) {
				w := worldtest.DrawOne(seed, r)
				orig := drawnWorld(t, w)
				if len(rules(orig, real)) == 0 && len(rules(orig, unaware(t, w, r))) > 0 {
					return
				}
			}
			t.Errorf("not caught in %d worlds", worlds)
		})
	}
}

// unaware is a planner that plans the world without a rule.
func unaware(t testing.TB, w *worldtest.World, r worldtest.Rule) planner {
	o := drawnWorld(t, w.Without(r))
	p := real(o.s, o.c)
	return func(*snapshot.Snapshot, *catalog.Catalog) *plan.Plan { return p }
}
