package provision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

var clock = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func newPool(name string, weight int32, types ...string) snapshot.NodePool {
	p := snapshot.NodePool{Name: name, Weight: weight, ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}}
	if len(types) > 0 {
		p.Requirements = []snapshot.SelectorRequirement{{Key: catalog.LabelInstanceType, Operator: "In", Values: types}}
	}
	return p
}

func newPod(name string, cpu, mem int64) snapshot.Pod {
	return snapshot.Pod{Namespace: "default", Name: name, Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: cpu, Memory: mem * mib, Pods: 1}}}
}

func newSnapshot(pools []snapshot.NodePool, pods ...snapshot.Pod) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Cluster: "test", Region: "z", Now: clock, Settings: snapshot.DefaultSettings(), NodePools: pools, Pods: pods,
		NodeClasses: []snapshot.NodeClass{{Name: "default", AMIFamily: "AL2023", HasStatus: true,
			Zones: []snapshot.SubnetZone{{Zone: "z-a", ZoneID: "zid-a"}, {Zone: "z-b", ZoneID: "zid-b"}, {Zone: "z-c", ZoneID: "zid-c"}}}},
	}
}

// BC-17: a pod larger than anything keeps no other pod from its node, and its
// verdict names the nearest type and the gap.
func TestGiantAmongOrdinaryPods(t *testing.T) {
	s := newSnapshot([]snapshot.NodePool{newPool("big", 20, "m5.8xlarge"), newPool("small", 30, "m5.large")},
		newPod("p1", 200_000, 100), newPod("p2", 20_000, 100), newPod("p3", 500, 100))
	p := provision.Plan(s, worldtest.Fixture(), provision.Options{})
	if bad := worldtest.Check(s, worldtest.Fixture(), p); len(bad) > 0 {
		t.Errorf("broken rules: %s", strings.Join(bad, "\n"))
	}
	want := []plan.Verdict{{
		Object: "pod/default/p1", Code: plan.NoInstanceTypeFits,
		Detail: "nearest of 2 NodePools is big: needs 200 cpu; the largest allowed type m5.8xlarge gives 31.85: 168.15 short",
		Pools: []plan.PoolVerdict{
			{NodePool: "big", Code: plan.NoInstanceTypeFits, Detail: "needs 200 cpu; the largest allowed type m5.8xlarge gives 31.85: 168.15 short"},
			{NodePool: "small", Code: plan.NoInstanceTypeFits, Detail: "needs 200 cpu; the largest allowed type m5.large gives 1.93: 198.07 short"},
		},
	}}
	if diff := cmp.Diff(want, p.Verdicts); diff != "" {
		t.Errorf("verdicts (-want +got)\n%s", diff)
	}
	if p.Summary.PendingPods != 3 || p.Summary.Unschedulable != 1 {
		t.Errorf("summary %+v", p.Summary)
	}
}

// S-30: a pod whose storage class is missing is left out and explained.
func TestMissingStorageClass(t *testing.T) {
	gone := "gone"
	bad := newPod("bad", 100, 100)
	bad.Spec.Volumes = []snapshot.Volume{{Name: "data", Claim: "data"}}
	s := newSnapshot([]snapshot.NodePool{newPool("a", 0)}, bad, newPod("good", 100, 100))
	s.Claims = []snapshot.PersistentVolumeClaim{{Namespace: "default", Name: "data", Spec: snapshot.ClaimSpec{StorageClass: &gone}}}
	p := provision.Plan(s, worldtest.Fixture(), provision.Options{})
	want := []plan.Verdict{{Object: "pod/default/bad", Code: plan.VolumeProblem, Detail: "persistentVolumeClaim data names storage class gone, which does not exist"}}
	if diff := cmp.Diff(want, p.Verdicts); diff != "" {
		t.Errorf("verdicts (-want +got)\n%s", diff)
	}
	if len(p.Launches) != 1 || !slices.Equal(p.Launches[0].Pods, []string{"default/good"}) {
		t.Errorf("launches %+v", p.Launches)
	}
}

func TestLaunchInFull(t *testing.T) {
	np := newPool("a", 0, "c5.large")
	np.TemplateLabels = map[string]string{"team": "red"}
	s := newSnapshot([]snapshot.NodePool{np}, newPod("x", 700, 100), newPod("y", 700, 100))
	s.DaemonSets = []snapshot.DaemonSet{{Namespace: "kube-system", Name: "agent", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 100, Memory: 64 * mib, Pods: 1}}}}}
	p := provision.Plan(s, worldtest.Fixture(), provision.Options{})
	if len(p.Launches) != 1 {
		t.Fatalf("%d launches", len(p.Launches))
	}
	l := p.Launches[0]
	if l.Name != "a-1" || l.NodePool != "a" || l.NodeClass != "default" || l.Chosen != l.Options[0] {
		t.Errorf("launch %+v", l)
	}
	if diff := cmp.Diff(plan.Offer{InstanceType: "c5.large", Zone: "z-a", CapacityType: "spot", Price: 34_000}, l.Chosen); diff != "" {
		t.Errorf("chosen (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(snapshot.Resources{CPU: 1500, Memory: 264 * mib, Pods: 3}, l.Requests); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(snapshot.Resources{CPU: 100, Memory: 64 * mib, Pods: 1}, l.Daemons); diff != "" {
		t.Errorf("daemons (-want +got)\n%s", diff)
	}
	for k, v := range map[string]string{
		"team": "red", catalog.LabelNodePool: "a", catalog.LabelNodeClass: "default", catalog.LabelInstanceType: "c5.large",
		catalog.LabelZone: "z-a", catalog.LabelZoneID: "zid-a", catalog.LabelCapacityType: "spot", catalog.LabelArch: "amd64", catalog.LabelFamily: "c5",
	} {
		if l.Labels[k] != v {
			t.Errorf("label %s is %q, want %q", k, l.Labels[k], v)
		}
	}
	// Both prices are exact, so the bound is in people's units and below the price.
	if len(p.Bounds) != 1 || p.Bounds[0].Pods != 2 || p.Bounds[0].Demand[snapshot.CPU] != 1.4 || p.Summary.LaunchLowerBound > p.Summary.LaunchPrice {
		t.Errorf("bounds %+v", p.Bounds)
	}
}

func TestPricesOfNodes(t *testing.T) {
	s := newSnapshot([]snapshot.NodePool{newPool("a", 0, "c5.large")}, newPod("p", 1900, 100))
	labels := func(typ, capacity string) map[string]string {
		return map[string]string{catalog.LabelInstanceType: typ, catalog.LabelZone: "z-a", "eks.amazonaws.com/capacityType": capacity}
	}
	s.Nodes = []snapshot.Node{{Name: "known", Labels: labels("c5.large", "SPOT")}, {Name: "strange", Labels: labels("x9.huge", "ON_DEMAND")}}
	p := provision.Plan(s, worldtest.Fixture(), provision.Options{})
	if p.Summary.PriceBefore != 34_000 || p.Summary.PriceAfter != 68_000 {
		t.Errorf("price before %d, after %d", p.Summary.PriceBefore, p.Summary.PriceAfter)
	}
	want := []plan.Warning{{Object: "node/strange", Code: plan.PriceUnknown,
		Detail: `1 node of unknown price, counted as $0 (this one: type "x9.huge", zone "z-a", capacity type "on-demand")`}}
	got := slices.DeleteFunc(p.Warnings, func(w plan.Warning) bool { return w.Code == plan.FewOptions })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}

func TestPodsOfGoingNodes(t *testing.T) {
	web, kept := newPod("web", 500, 100), newPod("kept", 500, 100)
	web.NodeName, kept.NodeName = "old", "old"
	kept.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	s := newSnapshot([]snapshot.NodePool{newPool("a", 0, "c5.large")}, kept, newPod("new", 500, 100), web)
	s.Nodes = []snapshot.Node{{Name: "old", Deleting: clock, Labels: map[string]string{catalog.LabelNodePool: "a", catalog.LabelInstanceType: "c5.large", catalog.LabelZone: "z-a"},
		Allocatable: snapshot.Resources{CPU: 1930, Memory: 3000 * mib, Pods: 29}}}
	p := provision.Plan(s, worldtest.Fixture(), provision.Options{})
	if diff := cmp.Diff([]plan.Displaced{{Pod: "default/web", From: "old", To: "a-1"}}, p.Displaced); diff != "" {
		t.Errorf("displaced (-want +got)\n%s", diff)
	}
	if len(p.Launches) != 1 || !slices.Equal(p.Launches[0].Pods, []string{"default/new", "default/web"}) {
		t.Errorf("launches %+v", p.Launches)
	}
	if len(p.Verdicts) != 1 || p.Verdicts[0].Code != plan.EvictionBlocked || p.Verdicts[0].Object != "pod/default/kept" {
		t.Errorf("verdicts %+v", p.Verdicts)
	}
	if p.Summary.PendingPods != 1 {
		t.Errorf("%d pending pods", p.Summary.PendingPods)
	}
}

// rich is a world with most things in it.
func rich() *snapshot.Snapshot {
	s := newSnapshot([]snapshot.NodePool{newPool("a", 10, "c5.large", "m5.large"), newPool("b", 0), newPool("c", 0)})
	s.NodePools[0].Limits = map[string]int64{"cpu": 6000}
	s.NodePools[1].Taints = []snapshot.Taint{{Key: "x", Effect: "NoSchedule"}}
	for i := range 24 {
		p := newPod(fmt.Sprintf("p%02d", i), int64(100+300*(i%5)), int64(200*(1+i%3)))
		switch i % 6 {
		case 1:
			p.Spec.NodeSelector = map[string]string{catalog.LabelZone: "z-b"}
		case 2:
			p.Spec.Tolerations = []snapshot.Toleration{{Operator: "Exists"}}
		case 3:
			p.Spec.HostPorts = []snapshot.HostPort{{Port: 80}}
		case 4:
			p.Spec.NodeSelector = map[string]string{"team": "none"}
		}
		s.Pods = append(s.Pods, p)
	}
	for i := range 3 {
		s.Nodes = append(s.Nodes, snapshot.Node{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{catalog.LabelZone: "z-b", catalog.LabelNodePool: "a"},
			Capacity: snapshot.Resources{CPU: 1000}, Allocatable: snapshot.Resources{CPU: 930, Memory: 900 * mib, Pods: 5}})
	}
	return s
}

// The order of objects in the input changes nothing.
func TestOrderOfInput(t *testing.T) {
	want := provision.Plan(rich(), worldtest.Fixture(), provision.Options{})
	if len(want.Launches) == 0 || len(want.Placements) == 0 || len(want.Verdicts) == 0 {
		t.Fatalf("the world is too plain: %+v", want.Summary)
	}
	for seed := range uint64(5) {
		s := rich()
		r := rand.New(rand.NewPCG(seed, 7))
		r.Shuffle(len(s.Pods), func(a, b int) { s.Pods[a], s.Pods[b] = s.Pods[b], s.Pods[a] })
		r.Shuffle(len(s.Nodes), func(a, b int) { s.Nodes[a], s.Nodes[b] = s.Nodes[b], s.Nodes[a] })
		r.Shuffle(len(s.NodePools), func(a, b int) { s.NodePools[a], s.NodePools[b] = s.NodePools[b], s.NodePools[a] })
		if diff := cmp.Diff(want, provision.Plan(s, worldtest.Fixture(), provision.Options{})); diff != "" {
			t.Fatalf("seed %d (-want +got)\n%s", seed, diff)
		}
	}
}

// The id changes with everything that matters, and with nothing else.
func TestIdentity(t *testing.T) {
	id := func(change func(s *snapshot.Snapshot, c *catalog.Catalog)) string {
		s, c := rich(), worldtest.Fixture()
		change(s, c)
		return provision.Plan(s, c, provision.Options{}).ID
	}
	base := id(func(*snapshot.Snapshot, *catalog.Catalog) {})
	same := map[string]func(s *snapshot.Snapshot, c *catalog.Catalog){
		"clock":     func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Now = s.Now.Add(time.Hour) },
		"pod label": func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Pods[0].Labels = map[string]string{"unseen": "x"} },
		"finished pod on a node": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			p := newPod("zz", 1, 1)
			p.NodeName, p.Phase = "n0", "Succeeded"
			s.Pods = append(s.Pods, p)
		},
	}
	other := map[string]func(s *snapshot.Snapshot, c *catalog.Catalog){
		"request":   func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Pods[0].Spec.Requests.CPU++ },
		"pod name":  func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Pods[23].Name = "p99" },
		"pod gone":  func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Pods = s.Pods[1:] },
		"pod gated": func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Pods[0].Spec.Gates = []string{"g"} },
		"selector": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.Pods[0].Spec.NodeSelector = map[string]string{catalog.LabelZone: "z-a"}
		},
		"host port": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.Pods[0].Spec.HostPorts = []snapshot.HostPort{{Port: 80}}
		},
		"limit":  func(s *snapshot.Snapshot, c *catalog.Catalog) { s.NodePools[0].Limits["cpu"] += 1000 },
		"weight": func(s *snapshot.Snapshot, c *catalog.Catalog) { s.NodePools[1].Weight = 5 },
		"pool taint": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.NodePools[2].Taints = []snapshot.Taint{{Key: "y", Effect: "NoSchedule"}}
		},
		"pool label": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.NodePools[2].TemplateLabels = map[string]string{"tier": "x"}
		},
		"pool not ready": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.NodePools[2].HasStatus, s.NodePools[2].Conditions = true, []snapshot.Condition{{Type: "Ready", Status: "False"}}
		},
		"node room":     func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Nodes[0].Allocatable.CPU -= 10 },
		"node cordoned": func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Nodes[0].Unschedulable = true },
		"node going":    func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Nodes[0].Deleting = clock },
		"running pod": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			p := newPod("zz", 1, 1)
			p.NodeName = "n0"
			s.Pods = append(s.Pods, p)
		},
		"daemonset": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.DaemonSets = []snapshot.DaemonSet{{Namespace: "default", Name: "d", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 1, Pods: 1}}}}}
		},
		"price":        func(s *snapshot.Snapshot, c *catalog.Catalog) { c.Types[0].Offerings[0].Price++ },
		"availability": func(s *snapshot.Snapshot, c *catalog.Catalog) { c.Types[0].Offerings[0].Available = false },
		"zone":         func(s *snapshot.Snapshot, c *catalog.Catalog) { s.NodeClasses[0].Zones = s.NodeClasses[0].Zones[:2] },
		"kubelet": func(s *snapshot.Snapshot, c *catalog.Catalog) {
			s.NodeClasses[0].Kubelet.KubeReserved = map[string]string{"cpu": "500m"}
		},
		"work":       func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Settings.Work++ },
		"seed":       func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Seed++ },
		"incomplete": func(s *snapshot.Snapshot, c *catalog.Catalog) { s.Incomplete = []string{"nodes: forbidden"} },
	}
	for name, change := range same {
		if id(change) != base {
			t.Errorf("%s: the id changes", name)
		}
	}
	for name, change := range other {
		if id(change) == base {
			t.Errorf("%s: the id stays", name)
		}
	}
}

func flat(lines []plan.Line, indent string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(indent + l.Text + "\n" + flat(l.Children, indent+"  "))
	}
	return b.String()
}

func TestExplainedObjects(t *testing.T) {
	s := newSnapshot([]snapshot.NodePool{newPool("heavy", 10, "c5.large"), newPool("light", 0, "m5.8xlarge")},
		newPod("big", 20_000, 100), newPod("giant", 200_000, 100), newPod("gated", 1, 1), newPod("tiny", 100, 100))
	s.Pods[2].Spec.Gates = []string{"wait"}
	s.NodePools[0].Limits = map[string]int64{"cpu": 4000}
	s.Nodes = []snapshot.Node{{Name: "n1", Labels: map[string]string{catalog.LabelInstanceType: "c5.large", catalog.LabelZone: "z-a"}, Allocatable: snapshot.Resources{CPU: 200, Memory: 1000 * mib, Pods: 5}}}
	cases := map[string][]string{
		"pod/default/tiny":  {"It asks for cpu 100m", "It fits on n1"},
		"pod/default/gated": {"not planned (SchedulingGated)"},
		"pod/default/big":   {"It runs on light-1", "m5.8xlarge in zone z-a as spot for $0.6140", "NodePool heavy (weight 10) comes first, but: NoInstanceTypeFits: needs 20 cpu"},
		"pod/default/giant": {"It stays pending", "NodePool light (NoInstanceTypeFits): needs 200 cpu; the largest allowed type m5.8xlarge gives 31.85", "node n1: needs 200 cpu, 0.1 left"},
		"pod/default/gaint": {"There is no pod default/gaint", "Did you mean pod/default/giant?"},
		"node/n1":           {"Type c5.large in zone z-a as on-demand; price $0.0850 per hour", "The plan puts 1 pod on it, which asks for", "pod default/tiny"},
		"nodepool/heavy":    {"Weight 10, NodeClass default", "It allows 1 instance type with 6 available offers", "Limit cpu: 0 of 4 used", "1 pod: NoInstanceTypeFits: needs 200 cpu"},
		"deployment/x":      {"unknown kind"},
	}
	for object, want := range cases {
		p := provision.Plan(s, worldtest.Fixture(), provision.Options{Explain: object})
		if p.Explained == nil || p.Explained.Object != object {
			t.Fatalf("%s: explained %+v", object, p.Explained)
		}
		text := flat(p.Explained.Lines, "")
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is missing in\n%s", object, part, text)
			}
		}
	}
	if p := provision.Plan(s, worldtest.Fixture(), provision.Options{}); p.Explained != nil {
		t.Error("nothing was asked, yet something is explained")
	}
}

func TestWarnsOfSchedulerAndCatalogue(t *testing.T) {
	one, two := newPod("one", 100, 100), newPod("two", 100, 100)
	one.Spec.Spread = []snapshot.TopologySpread{{MaxSkew: 1, TopologyKey: catalog.LabelZone, WhenUnsatisfiable: "DoNotSchedule"}}
	one.Spec.Anti = []snapshot.PodAffinityTerm{{TopologyKey: catalog.LabelHostname}}
	two.Spec.Spread, two.Spec.SchedulerName = one.Spec.Spread, "mine"
	s := newSnapshot([]snapshot.NodePool{newPool("a", 0)}, one, two)
	s.Region = "elsewhere"
	c := worldtest.Fixture()
	c.Region = "z"
	var got []string
	for _, w := range provision.Plan(s, c, provision.Options{}).Warnings {
		got = append(got, w.Object+" "+string(w.Code))
	}
	want := []string{" CatalogueOfOtherRegion", "nodepool/a FewOptions", "pod/default/two SchedulerIgnored"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one warning per kind of rule (-want +got)\n%s", diff)
	}
}
