package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/plan/page"
	"kerf.sh/kerf/internal/snapshot"
)

// demo is the plan that package plan's transcripts render.
func demo(t *testing.T) *plan.Plan {
	t.Helper()
	var p *plan.Plan
	datadriven.RunTest(t, filepath.Join("..", "testdata", "transcripts", "demo.txt"), func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "plan" && p == nil {
			raw, err := yaml.YAMLToJSON([]byte(d.Input))
			if err != nil {
				t.Fatal(err)
			}
			p = &plan.Plan{}
			if err := json.Unmarshal(raw, p); err != nil {
				t.Fatal(err)
			}
		}
		return d.Expected
	})
	return p
}

func html(t *testing.T, p *plan.Plan) string {
	t.Helper()
	b, err := page.HTML(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPageShowsThePlan(t *testing.T) {
	got := html(t, demo(t))
	for _, want := range []string{
		"<h1>Plan for cluster shop-prod</h1>", "4 March 2026, 12:00:00 UTC", "24 pods pending", "plan 3f9a1c2b7d60",
		"<b>$0.3264</b>", "<b>$0.9232</b>", "<b>$0.5968</b>", "<b>1.1 %</b>", "less than $0.5901", "$674 a month", "<b>5 pods</b>",
		`<span class="n">3 &times;</span> m7g.xlarge`, "shop/web x 3 (1 CPU 3Gi)", "m7gd.xlarge", "<details>", `class="chosen"`,
		"general-x7k2p", "on its way", "ip-10-0-2-9.ec2.internal", "price unknown",
		"NoInstanceTypeFits", "TaintNotTolerated", "136.23 too little", "LimitReached", "What to do: Raise the limit",
		"shop/cache x 2 (100m 1Gi)", "NodePoolInvalid", "SchedulingGated", "ClassNotResolved", "PriceUnknown", "18.90 cores", "only 1 type of the pool",
		"EC2 types and on-demand prices",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if !bytes.Equal([]byte(got), []byte(html(t, demo(t)))) {
		t.Error("two pages of one plan differ")
	}
}

// outside finds what would make a browser ask somebody, or run something.
var outside = regexp.MustCompile(`(?i)<(script|link|img|iframe|object|embed|video|audio|base|form|svg|image|use)\b|\b(src|href|srcset|action|poster|background|on[a-z]+)\s*=|url\(|@import|https?:|javascript:|"data:`)

func TestPageAsksNobody(t *testing.T) {
	p := demo(t)
	p.Explained = &plan.Explanation{Object: "pod/a/b", Lines: []plan.Line{{Text: "x", Children: []plan.Line{{Text: "y"}}}}}
	for _, got := range []string{html(t, demo(t)), html(t, p), html(t, &plan.Plan{})} {
		if m := outside.FindString(got); m != "" {
			t.Errorf("the page holds %q", m)
		}
		if !strings.Contains(got, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
			t.Error("no content security policy")
		}
	}
	for _, bad := range []string{`<script>`, `<img src="x">`, `style="background:url(x)"`, `<a href = "y">`, `<p onclick="z">`} {
		if !outside.MatchString(bad) {
			t.Errorf("the check does not see %s", bad)
		}
	}
}

// TestNamesAreText: whatever stands in a file, the page has the same elements and
// attributes as with a plain name.
func TestNamesAreText(t *testing.T) {
	shape := func(name string) string {
		got := html(t, everywhere(name))
		// What is left of the page without its text: the tags.
		return strings.Join(regexp.MustCompile(`<[^>]*>`).FindAllString(strings.ReplaceAll(got, "plain", ""), -1), "\n")
	}
	want := shape("plain")
	for _, evil := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style><script>x</script>`,
		`}}{{.}}{{`, `--><b>`, `javascript:alert(1)`, `expression(alert(1))`, "\x00<b>", `&lt;b&gt;<b`,
	} {
		got := shape(evil)
		// Attribute values may hold the escaped name; tags and attribute names may not change.
		if a, b := names(want), names(got); a != b {
			t.Errorf("%q changes the page:\n%s\nwant\n%s", evil, b, a)
		}
		if page := html(t, everywhere(evil)); strings.Contains(page, "<script") || strings.Contains(page, "<img") {
			t.Errorf("%q is on the page as it is", evil)
		}
	}
}

// names strips attribute values from tags.
func names(tags string) string {
	return regexp.MustCompile(`="[^"]*"`).ReplaceAllString(tags, "")
}

// everywhere is a plan that shows a name wherever a name can be shown.
func everywhere(n string) *plan.Plan {
	use := snapshot.Resources{CPU: 1000, Extended: map[string]int64{n: 1}}
	offer := plan.Offer{InstanceType: n, Zone: n, CapacityType: n, Price: 5, ReservationID: n}
	return &plan.Plan{
		ID: n, Cluster: n, Region: n, Incomplete: []string{n}, Catalogue: plan.CatalogueInfo{Region: n, Date: n, Source: n},
		Summary:    plan.Summary{PendingPods: 3, Launches: 1, Placed: 1, Unschedulable: 1, LaunchPrice: 5, LaunchPriceWorst: 6, LaunchLowerBound: 4, PriceAfter: 5},
		Bounds:     []plan.Bound{{Pools: []string{n}, Demand: map[string]float64{n: 1}, Duals: map[string]float64{n: 1}}},
		Launches:   []plan.Launch{{Name: n, NodePool: n, Pods: []string{n}, Chosen: offer, Options: []plan.Offer{offer}, Allocatable: use, Requests: use, Limited: n, Relaxed: []string{n}}},
		Placements: []plan.Placement{{Pod: n, Node: "node"}},
		Displaced:  []plan.Displaced{{Pod: n, From: n, To: n}},
		Nodes:      []plan.NodeUse{{Name: "node", NodePool: n, InstanceType: n, Zone: n, CapacityType: n, Allocatable: use}, {Name: n, InstanceType: n, Zone: n, CapacityType: n, Allocatable: use}},
		Verdicts:   []plan.Verdict{{Object: "pod/" + n, Code: plan.Code(n), Detail: n, Pools: []plan.PoolVerdict{{NodePool: n, Code: plan.Code(n), Detail: n + n}}}, {Object: n, Code: plan.Code(n), Detail: n}, {Object: "pod/" + n, Code: plan.Finished, Detail: n}},
		Warnings:   []plan.Warning{{Object: n, Code: plan.Code(n), Detail: n}},
	}
}

// TestBarsAddUp: the parts of a bar never exceed its width, also on nodes that
// hold more than they have.
func TestBarsAddUp(t *testing.T) {
	p := &plan.Plan{Nodes: []plan.NodeUse{
		{Name: "over", Used: snapshot.Resources{CPU: 3000, Memory: 5, Pods: 9}, Daemons: snapshot.Resources{CPU: 2500}, Added: snapshot.Resources{CPU: 100}, Allocatable: snapshot.Resources{CPU: 2000, Memory: 1, Pods: 4}},
		{Name: "negative", Used: snapshot.Resources{CPU: 1}, Allocatable: snapshot.Resources{CPU: -5, Memory: 7}},
		{Name: "third", Used: snapshot.Resources{CPU: 1, Memory: 1}, Allocatable: snapshot.Resources{CPU: 3, Memory: 3, Pods: 3}},
	}}
	got := html(t, p)
	fills := regexp.MustCompile(`class="fill[^>]*>(.*?)</div>`).FindAllStringSubmatch(got, -1)
	if len(fills) != 9 {
		t.Fatalf("%d bars, want 9", len(fills))
	}
	width := regexp.MustCompile(`width:([0-9.]+)%`)
	for _, f := range fills {
		sum := 0.0
		for _, w := range width.FindAllStringSubmatch(f[1], -1) {
			var v float64
			if _, err := fmt.Sscan(w[1], &v); err != nil {
				t.Fatal(err)
			}
			sum += v
		}
		if sum > 100.001 {
			t.Errorf("a bar is %.2f %% full: %s", sum, f[1])
		}
	}
	if !strings.Contains(got, `class="fill over"`) {
		t.Error("an overcommitted node is not marked")
	}
	if strings.Contains(got, "ZgotmplZ") {
		t.Error("the template refuses one of our own values")
	}
}

// TestLargePagesStaySmall: five thousand nodes that are all different, and as many
// launches, still fit in an answer of Lambda, and every node is counted.
func TestLargePagesStaySmall(t *testing.T) {
	p := &plan.Plan{Complete: true}
	var options []plan.Offer
	for i := range 60 {
		options = append(options, plan.Offer{InstanceType: fmt.Sprintf("m%d.large", i), Zone: "us-east-1a", CapacityType: "spot", Price: int64(i)})
	}
	size := snapshot.Resources{CPU: 4000, Memory: 16 << 30, Pods: 58}
	for i := range 5000 {
		use := snapshot.Resources{CPU: int64(i % 4000), Memory: int64(i) << 20, Pods: int64(i % 58)}
		typ := fmt.Sprintf("m%d.large", i%30)
		offer := plan.Offer{InstanceType: typ, Zone: "us-east-1a", CapacityType: "spot", Price: 50_000}
		p.Launches = append(p.Launches, plan.Launch{Name: fmt.Sprintf("a-%d", i), NodePool: "a", Pods: []string{fmt.Sprintf("ns/p%d", i)}, Requests: use, Allocatable: size, Chosen: offer, Options: options})
		for _, kind := range []string{"quiet", "busy"} {
			p.Nodes = append(p.Nodes, plan.NodeUse{Name: fmt.Sprintf("%s-%d", kind, i), InstanceType: typ, Zone: "us-east-1b", Used: use, Allocatable: size, Price: 1, PriceKnown: true})
		}
		p.Placements = append(p.Placements, plan.Placement{Pod: fmt.Sprintf("ns/q%d", i), Node: fmt.Sprintf("busy-%d", i)})
	}
	got := html(t, p)
	if len(got) > 2<<20 {
		t.Errorf("the page has %d bytes", len(got))
	}
	counted := 0
	for _, m := range regexp.MustCompile(`<span class="n">(\d+) `).FindAllStringSubmatch(got, -1) {
		var n int
		if _, err := fmt.Sscan(m[1], &n); err != nil {
			t.Fatal(err)
		}
		counted += n
	}
	if counted != 15_000 {
		t.Errorf("%d nodes are counted, want 15000", counted)
	}
	// A hundred kinds of launches: all cards, the first options only.
	p.Launches = p.Launches[:100]
	if got := html(t, p); !strings.Contains(got, "and 50 more") || strings.Count(got, "<details") < 100 {
		t.Error("options are not cut")
	}
}

func TestPageShowsWhatIsRemembered(t *testing.T) {
	p := demo(t)
	if strings.Contains(html(t, p), "Remembered") {
		t.Error("nothing is remembered")
	}
	p.Memory = &plan.Memory{Nominated: 2, Shortages: []plan.Shortage{{CapacityType: "<spot>", Code: "MaxSpotInstanceCountExceeded", Until: p.Now, Offers: 7}}}
	got := html(t, p)
	for _, want := range []string{
		"<h2>Remembered</h2>", "<li>2 pods wait for the nodes that they were given before</li>",
		"<li>7 offers are left alone until 12:00:00 (MaxSpotInstanceCountExceeded): all &lt;spot&gt;</li>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
