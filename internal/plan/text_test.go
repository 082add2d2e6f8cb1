package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// evil are names that no API server would take, but that a file may hold.
var evil = "x\x1b[2J\x07\r\n\u202eevil\u2028end\x00"

func TestTextIsHarmlessOnATerminal(t *testing.T) {
	p := &plan.Plan{
		Cluster: evil, Region: evil, Incomplete: []string{evil}, Catalogue: plan.CatalogueInfo{Region: evil, Source: evil},
		Summary:    plan.Summary{PendingPods: 3, Launches: 1, Placed: 1, Unschedulable: 1},
		Launches:   []plan.Launch{{Name: evil, NodePool: evil, Pods: []string{evil}, Chosen: plan.Offer{InstanceType: evil, Zone: evil, CapacityType: evil}, Limited: evil, Relaxed: []string{evil}, Allocatable: snapshot.Resources{Extended: map[string]int64{evil: 1}}, Requests: snapshot.Resources{Extended: map[string]int64{evil: 1}}}},
		Placements: []plan.Placement{{Pod: evil, Node: evil}},
		Nodes:      []plan.NodeUse{{Name: evil, NodePool: evil, InstanceType: evil, Allocatable: snapshot.Resources{CPU: 1}}},
		Verdicts:   []plan.Verdict{{Object: "pod/" + evil, Code: plan.LimitReached, Detail: evil, Pools: []plan.PoolVerdict{{NodePool: evil, Code: plan.LimitReached, Detail: evil + "1"}}}, {Object: evil, Detail: evil}, {Object: "pod/" + evil, Code: plan.Finished}},
		Warnings:   []plan.Warning{{Object: evil, Detail: evil}},
	}
	explained := *p
	explained.Explained = &plan.Explanation{Object: evil, Lines: []plan.Line{{Text: evil, Children: []plan.Line{{Text: evil}}}}}
	for _, p := range []*plan.Plan{p, &explained} {
		text := plan.Text(p, plan.TextOptions{})
		if !strings.Contains(text, "evil") {
			t.Fatal("the names are not there at all")
		}
		for i, r := range text {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028') {
				t.Fatalf("%U at %d of\n%q", r, i, text)
			}
		}
	}
}

func TestColorOnlyPaints(t *testing.T) {
	plain, color := plan.Text(fullPlan(), plan.TextOptions{}), plan.Text(fullPlan(), plan.TextOptions{Color: true})
	if strings.Contains(plain, "\x1b") || !strings.Contains(color, "\x1b[1m") {
		t.Error("colour is not as asked")
	}
	var b strings.Builder
	for i := 0; i < len(color); i++ {
		if color[i] == '\x1b' {
			i += strings.IndexByte(color[i:], 'm')
			continue
		}
		b.WriteByte(color[i])
	}
	if diff := cmp.Diff(plain, b.String()); diff != "" {
		t.Errorf("colour changes the text\n%s", diff)
	}
}

// TestTextStaysWithinItsWidth: lines longer than the width hold a name that alone
// is to blame.
func TestTextStaysWithinItsWidth(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,12}`)
	sentence := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 1, 40).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(72, 160).Draw(t, "width")
		p := fullPlan()
		p.Verdicts[0].Detail, p.Verdicts[0].Pools[0].Detail = sentence.Draw(t, "detail"), sentence.Draw(t, "pool")
		p.Warnings[0].Detail, p.Launches[0].Limited = sentence.Draw(t, "warning"), sentence.Draw(t, "limited")
		p.Incomplete, p.Complete = []string{sentence.Draw(t, "incomplete")}, false
		for i := range rapid.IntRange(0, 60).Draw(t, "pods") {
			p.Launches[0].Pods = append(p.Launches[0].Pods, fmt.Sprintf("ns/%s-%d", word.Draw(t, "pod"), i))
		}
		for _, l := range strings.Split(plan.Text(p, plan.TextOptions{Width: width}), "\n") {
			if n := utf8.RuneCountInString(l); n > width {
				t.Fatalf("%d columns instead of %d: %s", n, width, l)
			}
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"KERF_WORK", "KERF_COST_PER_NODE", "RESERVED_ENIS"}
	for _, tc := range []struct {
		word string
		want []string
	}{
		{"KERF_WRK", []string{"KERF_WORK"}}, {"kerf_work", []string{"KERF_WORK"}}, {"ENIS", []string{"RESERVED_ENIS"}},
		{"COST_PER_NODE", []string{"KERF_COST_PER_NODE"}}, {"quite different", nil}, {"", nil},
	} {
		if diff := cmp.Diff(tc.want, plan.Nearest(tc.word, known, 2)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", tc.word, diff)
		}
	}
	if got := plan.Nearest("ab", []string{"ac", "aa", "aa", "ad"}, 2); !cmp.Equal(got, []string{"aa", "ac"}) {
		t.Errorf("ties are not by name, or twice the same: %v", got)
	}
}

func TestDescribe(t *testing.T) {
	owner := func(kind, name string) *snapshot.Owner { return &snapshot.Owner{Kind: kind, Name: name} }
	req := snapshot.Resources{CPU: 100, Pods: 1}
	pod := func(name, node string, o *snapshot.Owner, labels map[string]string) snapshot.Pod {
		return snapshot.Pod{Namespace: "ns", Name: name, NodeName: node, Owner: o, Labels: labels, Spec: snapshot.PodSpec{Requests: req}}
	}
	s := &snapshot.Snapshot{Pods: []snapshot.Pod{
		pod("agent-1", "n", owner("DaemonSet", "agent"), nil),
		pod("db-0", "", owner("StatefulSet", "db"), nil),
		pod("run-12", "", nil, nil),
		pod("single", "", nil, nil),
		pod("there", "n", nil, nil),
		pod("web-5d4f8c7b9d-x2x2x", "", owner("ReplicaSet", "web-5d4f8c7b9d"), map[string]string{"pod-template-hash": "5d4f8c7b9d"}),
		pod("old-wn4fxdg2x-abcde", "", owner("ReplicaSet", "old-wn4fxdg2x"), nil),
		pod("plain-set-abcde", "", owner("ReplicaSet", "plain-set"), nil),
	}}
	p := &plan.Plan{
		Launches:   []plan.Launch{{Pods: []string{"ns/db-0", "ns/run-12", "ns/web-5d4f8c7b9d-x2x2x", "ns/old-wn4fxdg2x-abcde", "ns/plain-set-abcde"}}},
		Placements: []plan.Placement{{Pod: "ns/single", Node: "n"}},
		Nodes:      []plan.NodeUse{{Name: "n"}, {Name: "other"}},
	}
	plan.Describe(p, s)
	plan.Describe(p, s) // twice is as once
	got := map[string]string{}
	for _, u := range p.Pods {
		got[u.Ref] = u.Workload
	}
	want := map[string]string{"ns/db-0": "ns/db", "ns/run-12": "ns/run-*", "ns/single": "ns/single", "ns/web-5d4f8c7b9d-x2x2x": "ns/web", "ns/old-wn4fxdg2x-abcde": "ns/old", "ns/plain-set-abcde": "ns/plain-set"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workloads (-want +got)\n%s", diff)
	}
	if len(p.Pods) != len(want) {
		t.Errorf("%d pods are described, want %d", len(p.Pods), len(want))
	}
	if p.Nodes[0].Daemons.CPU != 100 || !p.Nodes[1].Daemons.IsZero() {
		t.Errorf("daemonset shares: %+v", p.Nodes)
	}
}

// TestGroups: a dozen sizes of one workload are told apart, more are one group with
// a range; every pod is in one group.
func TestGroups(t *testing.T) {
	labels := func(sizes int) (out []string) {
		p := &plan.Plan{}
		var refs []string
		for i := range 30 {
			ref := fmt.Sprintf("ns/p-%02d", i)
			refs = append(refs, ref)
			p.Pods = append(p.Pods, plan.PodUse{Ref: ref, Workload: "ns/p-*", Requests: snapshot.Resources{CPU: int64(100 * (1 + i%sizes)), Memory: 1 << 30, Pods: 1}})
		}
		for _, g := range p.Lookup().Groups(append(refs, "ns/unknown")) {
			out = append(out, strings.TrimSpace(g.Label()+" "+g.Ask()))
		}
		return out
	}
	if diff := cmp.Diff([]string{"ns/p-* x 15 100m 1Gi", "ns/p-* x 15 200m 1Gi", "ns/unknown"}, labels(2)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ns/p-* x 30 100m to 3 CPU, 1Gi", "ns/unknown"}, labels(30)); diff != "" {
		t.Error(diff)
	}
}

// TestLaunchesThatDifferAreNotOneGroup: equal sums and equal ranges do not make two
// launches the same.
func TestLaunchesThatDifferAreNotOneGroup(t *testing.T) {
	p := &plan.Plan{}
	for l := range 2 {
		launch := plan.Launch{Name: fmt.Sprintf("a-%d", l), NodePool: "a"}
		for i := range 20 {
			ref := fmt.Sprintf("ns/p-%d-%02d", l, i)
			launch.Pods = append(launch.Pods, ref)
			p.Pods = append(p.Pods, plan.PodUse{Ref: ref, Workload: "ns/p", Requests: snapshot.Resources{CPU: int64(100 + 10*i), Pods: 1}})
		}
		p.Launches = append(p.Launches, launch)
	}
	if got := p.LaunchGroups(p.Lookup()); len(got) != 2 {
		t.Errorf("%d groups, want 2", len(got))
	}
}

func TestPricesNameWhatIsKnown(t *testing.T) {
	p := &plan.Plan{}
	p.Catalogue.Source = "catalogue file"
	if text := plan.Text(p, plan.TextOptions{}); !strings.Contains(text, "Prices: catalogue file\n") {
		t.Error(text)
	}
}
