package provision_test

import (
	"strings"
	"testing"

	"kerf.sh/kerf/internal/worldtest"
)

// drawnSeeds is how many drawn worlds the properties are checked on.
const drawnSeeds = 200

// drawnWorld is a world of scenes, as the planner gets it.
func drawnWorld(t testing.TB, w *worldtest.World) world {
	s, _, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return world{s: s, c: w.Catalog}
}

// checkDrawn checks a property on the worlds of worldtest.Draw and prints the smallest
// world that fails.
func checkDrawn(t *testing.T, seeds uint64, p property) {
	t.Helper()
	checkWorlds(t, seeds, worldtest.Draw, p, nil)
}

func checkWorlds(t *testing.T, seeds uint64, draw func(uint64) *worldtest.World, p property, open map[uint64]string) {
	t.Helper()
	failed := 0
	for seed := range seeds {
		w := draw(seed)
		bad := p(drawnWorld(t, w), real)
		if why := open[seed]; why != "" {
			if len(bad) == 0 {
				t.Logf("seed %d passes: it is no longer so that %s", seed, why)
			}
			continue
		}
		if len(bad) == 0 {
			continue
		}
		if failed++; failed > 3 {
			continue
		}
		w = w.Shrink(func(v *worldtest.World) bool { return len(p(drawnWorld(t, v), real)) > 0 })
		t.Errorf("seed %d, shrunk:\n%s\n%s\n%s", seed, strings.Join(p(drawnWorld(t, w), real), "\n"), w.Text(),
			worldtest.Describe(real(drawnWorld(t, w).s, w.Catalog), worldtest.Show{Detail: true}))
	}
	if failed > 0 {
		t.Errorf("%d of %d worlds", failed, seeds)
	}
}

// open are the worlds of TestPropertyDrawnRules that are not planned right yet, and what
// is wrong. Take a world off when the test says that it passes.
var open = map[uint64]string{}

// No rule is broken in worlds where rules meet.
func TestPropertyDrawnRules(t *testing.T) {
	checkWorlds(t, drawnSeeds, worldtest.Draw, rules, open)
}

// The order of the input changes nothing there either.
func TestPropertyDrawnOrder(t *testing.T) { checkDrawn(t, drawnSeeds, order) }

// What a verdict blames there is to blame.
func TestPropertyDrawnBlame(t *testing.T) { checkDrawn(t, drawnSeeds, blame) }
