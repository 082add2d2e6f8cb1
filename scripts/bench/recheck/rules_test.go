package recheck_test

import (
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/market"
	"kerf.sh/kerf/scripts/bench/recheck"
)

// swap exchanges a pod of one launch with one of another.
func swap(p *plan.Plan, a, i, b, k int) {
	x, y := &p.Launches[a], &p.Launches[b]
	x.Pods[i], y.Pods[k] = y.Pods[k], x.Pods[i]
}

func TestRulesBetweenPods(t *testing.T) {
	m, err := market.New(catalog.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kind, want string }{
		{workload.AntiAffinity, "which keep apart"},
		{workload.Hostname, "the skew is"},
		{workload.Zonal, "in zones"},
	} {
		w := workload.Named(c.kind, 300)
		s := workload.Snapshot(w, true, 16)
		p := provision.Plan(s, m.Catalog, provision.Options{})
		if f := recheck.Rules(s.Pods, p); len(f.List) > 0 {
			t.Errorf("%s: %v", c.kind, f.List)
			continue
		}
		// Exchange pods of two nodes until a rule breaks.
		broken := ""
	search:
		for a := range p.Launches {
			for b := range a {
				for i := range p.Launches[a].Pods {
					for k := range p.Launches[b].Pods {
						swap(p, a, i, b, k)
						f := recheck.Rules(s.Pods, p)
						swap(p, a, i, b, k)
						for _, line := range f.List {
							if strings.Contains(line, c.want) {
								broken = line
								break search
							}
						}
					}
				}
			}
		}
		if broken == "" {
			t.Errorf("%s: no exchange of pods was found to break a rule", c.kind)
		}
		if c.kind == workload.Zonal {
			other := p.Launches[0].Chosen
			other.Zone = "elsewhere"
			p.Launches[0].Options = append(slices.Clone(p.Launches[0].Options), other)
			if f := recheck.Rules(s.Pods, p); len(f.List) == 0 || !strings.Contains(f.List[0], "may come up in") {
				t.Errorf("options in two zones: %v", f.List)
			}
		}
	}
}
