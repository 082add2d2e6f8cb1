// Package worlds_test holds the worlds of this folder to what their descriptions say
// of them.
package worlds_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

type planned struct {
	snapshot *snapshot.Snapshot
	plan     *plan.Plan
}

// worlds keeps what was read and planned: the tests only look at it.
var worlds = map[string]planned{}

// world reads a folder and plans it, as the plan program does.
func world(t *testing.T, folder string) (*snapshot.Snapshot, *plan.Plan) {
	t.Helper()
	if w, ok := worlds[folder]; ok {
		return w.snapshot, w.plan
	}
	sources, err := kube.Files([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, report, err := kube.Read(sources, kube.Options{
		Cluster: folder, Region: "us-east-1", Now: time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range report.Left {
		t.Errorf("left out: %v", &l)
	}
	w := planned{s, provision.Plan(s, catalog.Default(), provision.Options{})}
	worlds[folder] = w
	return w.snapshot, w.plan
}

// TestWorldsAreSound has every plan judged by rules that share no code with it.
func TestWorldsAreSound(t *testing.T) {
	for _, folder := range []string{"demo", "small"} {
		s, p := world(t, folder)
		for _, line := range worldtest.Check(s, catalog.Default(), p) {
			t.Errorf("%s: %s", folder, line)
		}
	}
}

// expected is a row of the table of pods that get no node.
type expected struct {
	pod  string // namespace/name, or its beginning
	pool string // "" = the pod's own verdict
	code plan.Code
	many int
}

// expectations reads the table from the description: what a person reads is what is
// tested.
func expectations(t *testing.T) []expected {
	t.Helper()
	data, err := os.ReadFile("demo/README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| (four of )?`([^`…]+)(?:…)?` \\| ([^|]+) \\| `(\\w+)` \\|")
	var out []expected
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		e := expected{pod: m[2], pool: m[3], code: plan.Code(m[4]), many: 1}
		if m[1] != "" {
			e.many = 4
		}
		if e.pool == "(the pod)" {
			e.pool = ""
		}
		out = append(out, e)
	}
	if len(out) != 9 {
		t.Fatalf("%d rows were read from demo/README.md, want 9: %+v", len(out), out)
	}
	return out
}

// code is what a verdict says about a pod, by the pool that the row names.
func code(v *plan.Verdict, pool string) plan.Code {
	if pool == "" {
		return v.Code
	}
	for _, p := range v.Pools {
		if p.NodePool == pool {
			return p.Code
		}
	}
	return ""
}

func TestDemoVerdicts(t *testing.T) {
	_, p := world(t, "demo")
	rest := map[string]*plan.Verdict{}
	for i := range p.Verdicts {
		if pod, ok := strings.CutPrefix(p.Verdicts[i].Object, "pod/"); ok {
			rest[pod] = &p.Verdicts[i]
		}
	}
	for _, e := range expectations(t) {
		n := 0
		for _, pod := range slices.Sorted(maps.Keys(rest)) {
			if !strings.HasPrefix(pod, e.pod) {
				continue
			}
			v := rest[pod]
			delete(rest, pod)
			n++
			if got := code(v, e.pool); got != e.code {
				t.Errorf("%s, pool %q: %s (%s), want %s", pod, e.pool, got, v.Detail, e.code)
			}
		}
		if n != e.many {
			t.Errorf("%s: %d pods have a verdict, want %d", e.pod, n, e.many)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(rest)) {
		t.Errorf("%s has a verdict that the description does not know: %s %s", pod, rest[pod].Code, rest[pod].Detail)
	}
}

// TestDemoDetails: the remarks in the table's last column are in the details.
func TestDemoDetails(t *testing.T) {
	_, p := world(t, "demo")
	for _, want := range []struct{ pod, pool, part string }{
		{"data-lab/replay-index-rebuild-", "general", "8xlarge"},
		{"storefront/storefront-admin-", "general", "harbourlane.example/pool"},
		{"observability/metrics-shim-", "general", "node-exporter"},
		{"matchmaking/legacy-lobby-", "general", "us-east-1f"},
		{"data-lab/replay-vision-", "general", "nvidia.com/gpu"},
		{"matchmaking/match-archive-", "", "gp3-fast"},
		{"ci/build-48213-unit-", "ci-runners", "24"},
	} {
		found := false
		for i := range p.Verdicts {
			v := &p.Verdicts[i]
			if !strings.HasPrefix(v.Object, "pod/"+want.pod) {
				continue
			}
			found = true
			detail := v.Detail
			for _, pool := range v.Pools {
				if pool.NodePool == want.pool {
					detail = pool.Detail
				}
			}
			if !strings.Contains(detail, want.part) {
				t.Errorf("%s, pool %q: %q does not speak of %s", v.Object, want.pool, detail, want.part)
			}
		}
		if !found {
			t.Errorf("%s has no verdict", want.pod)
		}
	}
}

// TestDemoPlacements: what is paid for is used, and the limits are reached and kept.
func TestDemoPlacements(t *testing.T) {
	_, p := world(t, "demo")
	onto := map[string]int{}
	for _, pl := range p.Placements {
		onto[pl.Node]++
	}
	for _, node := range []string{"ip-10-40-47-140.ec2.internal", "ci-runners-x7k2p"} {
		if onto[node] == 0 {
			t.Errorf("nothing is placed on %s: %v", node, onto)
		}
	}
	vcpu := map[string]int64{}
	sessions, pending := 0, p.Summary.PendingPods
	for i := range p.Launches {
		l := &p.Launches[i]
		if i := slices.IndexFunc(catalog.Default().Types, func(t catalog.InstanceType) bool { return t.Name == l.Chosen.InstanceType }); i >= 0 {
			vcpu[l.NodePool] += catalog.Default().Types[i].VCPU
		}
		for _, pod := range l.Pods {
			if strings.HasPrefix(pod, "arena/") {
				sessions++
			}
		}
	}
	got := fmt.Sprint("ci ", vcpu["ci-runners"], ", arena ", vcpu["arena-sessions"], ", sessions ", sessions, ", pending ", pending)
	if d := cmp.Diff("ci 16, arena 8, sessions 8, pending 106", got); d != "" {
		t.Error(d)
	}
}

// TestDemoTopology: pods are where the rules about zones, hosts and volumes want them,
// and the wish that cannot be had is given up.
func TestDemoTopology(t *testing.T) {
	_, p := world(t, "demo")
	zones := map[string]int{}
	var relaxed []string
	for i := range p.Launches {
		l := &p.Launches[i]
		checkout := 0
		for _, pod := range l.Pods {
			name, _, _ := strings.Cut(strings.TrimPrefix(pod, "storefront/"), "-7c9x")
			switch {
			case name == "checkout-web":
				checkout++
				zones["checkout "+l.Chosen.Zone]++
			case strings.HasPrefix(pod, "payments/ledger-db-"):
				zones[pod+" "+l.Chosen.Zone]++
				for _, o := range l.Options {
					if o.Zone != l.Chosen.Zone {
						t.Errorf("%s: option in %s, the volume of %s is in %s", l.Name, o.Zone, pod, l.Chosen.Zone)
					}
				}
			}
		}
		if checkout > 1 {
			t.Errorf("%s: %d pods of checkout-web on one node", l.Name, checkout)
		}
		for _, r := range l.Relaxed {
			if strings.Contains(r, "storefront/search-indexer") && strings.Contains(r, "us-east-1f") {
				relaxed = append(relaxed, r)
			}
		}
	}
	want := map[string]int{
		"checkout us-east-1a": 2, "checkout us-east-1b": 2, "checkout us-east-1c": 2,
		"payments/ledger-db-0 us-east-1a": 1, "payments/ledger-db-1 us-east-1b": 1, "payments/ledger-db-2 us-east-1c": 1,
	}
	if d := cmp.Diff(want, zones); d != "" {
		t.Error(d)
	}
	if len(relaxed) == 0 {
		t.Error("no launch says that search-indexer does without us-east-1f")
	}
}

// TestWhatIf: every change that is there to try is one of the demo, and the builds that
// wait for their pool's limit get a place where the pool has more cores.
func TestWhatIf(t *testing.T) {
	files, err := kube.Files([]string{"../what-if"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := kube.Options{Cluster: "demo", Region: "us-east-1", Now: time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)}
	for _, f := range files {
		sources, err := kube.Files([]string{"demo"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		before, after, err := kube.ReadWhatIf(sources, kube.Overlay{Sources: []kube.Source{f}}, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(after.Report.Left) > 0 || len(after.Report.Changes) == 0 {
			t.Errorf("%s: left out %v, changes %v", f.Name, after.Report.Left, after.Report.Changes)
		}
		for _, c := range after.Report.Changes {
			if c.Kind != plan.Replaced {
				t.Errorf("%s: %s", f.Name, c.Text())
			}
		}
		_, p := world(t, "demo")
		then, now := *p, provision.Plan(after.Snapshot, catalog.Default(), provision.Options{})
		plan.DescribeWith(&then, before.Snapshot, now, after.Snapshot)
		d := plan.Compare(&then, now)
		if f.Name == "../what-if/ci-runners.yaml" && (d.Count(plan.BecomesSchedulable) != 4 || d.Count(plan.BecomesUnschedulable) != 0) {
			t.Errorf("%s: %s", f.Name, d.Headline())
		}
	}
}
