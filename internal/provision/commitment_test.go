package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// priced is the fixture at other prices: of a type on-demand and as spot, in micro-dollars.
func priced(prices map[string][2]int64, commitments ...catalog.Commitment) *catalog.Catalog {
	c := *worldtest.Fixture()
	c.Commitments = commitments
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		p, ok := prices[c.Types[i].Name]
		if !ok {
			continue
		}
		o := slices.Clone(c.Types[i].Offerings)
		for k := range o {
			if o[k].CapacityType == catalog.OnDemand {
				o[k].Price = p[0]
			} else {
				o[k].Price = p[1]
			}
		}
		c.Types[i].Offerings = o
	}
	return &c
}

// TestUnusedCommitmentBeatsSpotS31 is S-31: on-demand that an unused Savings Plan covers at 0.40
// is chosen over spot at 0.55, for as long as hours are left and no longer.
func TestUnusedCommitmentBeatsSpotS31(t *testing.T) {
	prices := map[string][2]int64{"m5.large": {600_000, 550_000}}
	for _, tt := range []struct {
		name        string
		commitments []catalog.Commitment
		want        string
	}{
		{"none", nil, "spot 550000, spot 550000, spot 550000"},
		{"for one", []catalog.Commitment{{ID: "sp-1", Scope: "m5.large", Price: 400_000, Remaining: 799_999}}, "on-demand 400000 sp-1, spot 550000, spot 550000"},
		{"for all of a family, by vCPU", []catalog.Commitment{{ID: "ri-1", Scope: "m5", Price: 200_000, Remaining: 800_000}}, "on-demand 400000 ri-1, on-demand 400000 ri-1, spot 550000"},
		{"for everything", []catalog.Commitment{{Scope: "all", Price: 200_000, Remaining: 9_000_000}}, "on-demand 400000 all, on-demand 400000 all, on-demand 400000 all"},
		{"of another family", []catalog.Commitment{{ID: "sp-1", Scope: "c5", Price: 1, Remaining: 9_000_000}}, "spot 550000, spot 550000, spot 550000"},
		{"used up", []catalog.Commitment{{ID: "sp-1", Scope: "m5.large", Price: 400_000}}, "spot 550000, spot 550000, spot 550000"},
		{"dearer than spot", []catalog.Commitment{{ID: "sp-1", Scope: "m5.large", Price: 560_000, Remaining: 9_000_000}}, "spot 550000, spot 550000, spot 550000"},
		{"two, the cheaper first", []catalog.Commitment{{ID: "sp-1", Scope: "m5.large", Price: 400_000, Remaining: 400_000}, {ID: "ri-1", Scope: "m5.large", Price: 300_000, Remaining: 600_000}},
			"on-demand 300000 ri-1, on-demand 300000 ri-1, spot 550000"},
		{"what is shared is used once", []catalog.Commitment{{ID: "sp-1", Scope: "m5.large", Price: 400_000, Remaining: 400_000}, {ID: "sp-1", Scope: "c5.large", Price: 100_000, Remaining: 400_000}},
			"on-demand 400000 sp-1, spot 550000, spot 550000"},
	} {
		s := newSnapshot([]snapshot.NodePool{newPool("a", 0, "m5.large")}, newPod("p1", 1900, 100), newPod("p2", 1900, 100), newPod("p3", 1900, 100))
		p := provision.Plan(s, priced(prices, tt.commitments...), provision.Options{})
		var got []string
		committed := snapshot.Price(0)
		for i := range p.Launches {
			c := &p.Launches[i].Chosen
			one := fmt.Sprintf("%s %d", c.CapacityType, c.Price)
			if c.Commitment != "" {
				one += " " + c.Commitment
				committed += c.Price
				if c.ListPrice != 600_000 {
					t.Errorf("%s: list price %d", tt.name, c.ListPrice)
				}
			}
			got = append(got, one)
		}
		slices.Sort(got)
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
		if committed > 0 {
			text := fmt.Sprint(provision.Plan(s, priced(prices, tt.commitments...), provision.Options{Explain: "pod/" + p.Launches[0].Pods[0]}).Explained)
			options := plan.Options(&p.Launches[0])
			if c := p.Launches[0].Chosen.Commitment; c != "" && (!strings.Contains(text, "under commitment "+c) || !strings.Contains(options, "under commitment "+c+"; list price $0.6000")) {
				t.Errorf("%s: nothing says why: %s, %s", tt.name, text, options)
			}
		}
		if p.Summary.Committed != committed {
			t.Errorf("%s: committed %d, want %d", tt.name, p.Summary.Committed, committed)
		}
	}
}

// TestCommitmentsAreNotOverdrawn: whatever is committed, no plan uses more of it than is left,
// every option of a covered node is covered by the same one, limits hold, no pod is lost,
// and no plan costs more than the one without.
func TestCommitmentsAreNotOverdrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var commitments []catalog.Commitment
		left := map[string]int64{}
		for i := range rapid.IntRange(1, 3).Draw(t, "commitments") {
			m := catalog.Commitment{
				ID: fmt.Sprint("c", i), Scope: rapid.SampledFrom([]string{"all", "m5", "c5", "m5.large", "c5.xlarge"}).Draw(t, "scope"),
				Price: rapid.Int64Range(1, 60_000).Draw(t, "price"), Remaining: rapid.Int64Range(0, 400_000).Draw(t, "remaining"),
			}
			left[m.ID] = m.Remaining
			commitments = append(commitments, m)
		}
		pool := newPool("a", 0, "c5.large", "c5.xlarge", "m5.large", "m5.xlarge")
		var pods []snapshot.Pod
		for i := range rapid.IntRange(1, 25).Draw(t, "pods") {
			pods = append(pods, newPod(fmt.Sprintf("p%02d", i), rapid.Int64Range(1, 18).Draw(t, "cpu")*100, rapid.Int64Range(1, 30).Draw(t, "memory")*100))
		}
		s := newSnapshot([]snapshot.NodePool{pool}, pods...)
		plain := provision.Plan(s, priced(nil), provision.Options{})
		p := provision.Plan(s, priced(nil, commitments...), provision.Options{})
		seen := map[string]bool{}
		for i := range p.Launches {
			l := &p.Launches[i]
			for _, pod := range l.Pods {
				if seen[pod] {
					t.Fatalf("%s is launched for twice", pod)
				}
				seen[pod] = true
			}
			id := l.Chosen.Commitment
			if id == "" {
				continue
			}
			if left[id] -= l.Chosen.Price; left[id] < 0 {
				t.Fatalf("commitment %s is overdrawn by %d", id, -left[id])
			}
			if slices.ContainsFunc(l.Options, func(o plan.Offer) bool { return o.Commitment != id || o.Price > l.Chosen.Price }) {
				t.Fatalf("options %+v of a node under %s at %d", l.Options, id, l.Chosen.Price)
			}
		}
		if len(seen) != len(pods) {
			t.Fatalf("%d of %d pods have a launch", len(seen), len(pods))
		}
		if p.Summary.LaunchLowerBound > p.Summary.LaunchPrice {
			t.Fatalf("bound %d above the price %d", p.Summary.LaunchLowerBound, p.Summary.LaunchPrice)
		}
		// The search is no exact one, and what is left is packed apart from what is covered.
		if p.Summary.LaunchPrice > plain.Summary.LaunchPrice*103/100 {
			t.Fatalf("%d an hour with commitments, %d without", p.Summary.LaunchPrice, plain.Summary.LaunchPrice)
		}
	})
}
