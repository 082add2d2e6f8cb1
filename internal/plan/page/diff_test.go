package page_test

import (
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/plan/page"
)

// compared is a plan with a comparison that has something of everything.
func compared() *plan.Plan {
	offer := plan.Offer{InstanceType: "m7g.xlarge", Zone: "us-east-1a", CapacityType: "spot", Price: 65_000}
	return &plan.Plan{
		Cluster: "shop<prod>", Now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), Complete: true,
		Warnings: []plan.Warning{{Object: "a", Code: plan.FewOptions, Detail: "of the plan"}},
		Diff: &plan.Diff{
			Changes:  []plan.Change{{Object: "nodepool/<spot>", Kind: plan.Added}, {Object: "node/ip-1", Kind: plan.Going, With: []string{"nodeclaim/general-x"}}},
			Before:   plan.Side{Summary: plan.Summary{PriceAfter: 300_000, LaunchPrice: 200_000, Launches: 1, Unschedulable: 3}},
			After:    plan.Side{Going: 1, GoingPrice: 100_000, Summary: plan.Summary{PriceAfter: 230_000, LaunchPrice: 130_000, Launches: 2, Unschedulable: 1}},
			Launches: []plan.LaunchDiff{{NodePool: "spot", Offer: offer, After: 2}},
			Nodes: []plan.NodeDiff{
				{Kind: plan.Going, Node: plan.NodeUse{Name: "ip-1", InstanceType: "m6g.large", Price: 100_000, PriceKnown: true}, Sign: -1},
				{Kind: plan.Going, Node: plan.NodeUse{Name: "ip-2"}, Blockers: []string{"shop/db-0"}},
			},
			Pods: []plan.PodDiff{
				{Pod: "shop/web-1", Workload: "shop/web", Change: plan.BecomesSchedulable, Before: plan.Fate{State: plan.CannotRun, Code: plan.LimitReached, Telling: plan.LimitReached, Detail: "limit <cpu>"},
					After: plan.Fate{State: plan.NewNode, NodePool: "spot", Offer: offer}},
				{Pod: "shop/db-0", Workload: "shop/db", Change: plan.Blocked, Before: plan.Fate{State: plan.Running, Node: "ip-2"}, After: plan.Fate{State: plan.NotPlanned, Code: plan.EvictionBlocked, Detail: "why"}},
			},
			Warnings: []plan.Warning{{Object: "b", Code: plan.DuplicateObject, Detail: "of the overlay"}},
		},
	}
}

func TestPageShowsTheComparison(t *testing.T) {
	both := []string{
		"nodepool/&lt;spot&gt; added", "node/ip-1 going with nodeclaim/general-x", "It costs $0.1700 less per hour", "<td class=\"num\">$0.3000</td>", "-$0.1700",
		"1 pod becomes schedulable", "1 pod may not leave its node", "limit &lt;cpu&gt;", "LimitReached &rarr; new m7g.xlarge spot in us-east-1a, pool spot", "0 → 2",
		"&#43;$0.1300", "it stays as long as these pods may not be moved: shop/db-0", "price unknown", "of the overlay",
	}
	for _, tc := range []struct {
		write      func(*plan.Plan) ([]byte, error)
		has, hasNo []string
	}{
		{page.HTML, []string{"<h1>Plan for cluster shop&lt;prod&gt;</h1>", "of the plan", "after this plan"}, nil},
		{page.DiffHTML, []string{"<h1>What would change in cluster shop&lt;prod&gt;</h1>"}, []string{"of the plan", "after this plan"}},
	} {
		p := compared()
		p.Warnings = append(p.Warnings, p.Diff.Warnings...)
		out, err := tc.write(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(both, tc.has...) {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is missing", want)
			}
		}
		for _, no := range tc.hasNo {
			if strings.Contains(string(out), no) {
				t.Errorf("%q should not be there", no)
			}
		}
		if a, b := strings.Count(string(out), "<section"), strings.Count(string(out), "</section>"); a != b {
			t.Errorf("%d sections are opened and %d closed", a, b)
		}
	}
}

func TestPageExplainsBothSides(t *testing.T) {
	p := compared()
	p.Explained = &plan.Explanation{Object: "pod/shop/web-1", Lines: []plan.Line{{Text: "the new way"}}}
	p.Diff.Explained = &plan.Explanation{Object: "pod/shop/web-1", Lines: []plan.Line{{Text: "the old way"}}}
	out, err := page.HTML(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the new way", "the old way", "<small>as it is</small>", "<small>what if</small>", "nodepool/&lt;spot&gt; added"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestEmptyComparison(t *testing.T) {
	p := &plan.Plan{Complete: true}
	p.Diff = plan.Compare(p, p)
	out, err := page.DiffHTML(p)
	if err != nil || !strings.Contains(string(out), "Nothing differs") || strings.Contains(string(out), "as it is") {
		t.Errorf("%v\n%s", err, out)
	}
}
