package scheduling

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

func TestExplain(t *testing.T) {
	daemon := snapshot.DaemonSet{Namespace: "kube-system", Name: "agent", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: size(150, 200, 1), HostPorts: []snapshot.HostPort{{Port: 8080}}}}}
	selector := func(key, value string) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { s.Pods[0].Spec.NodeSelector = map[string]string{key: value} }
	}
	both := func(fs ...func(*snapshot.Snapshot)) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			for _, f := range fs {
				f(s)
			}
		}
	}
	need := func(cpu, mem int64) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { s.Pods[0].Spec.Requests = size(cpu, mem, 1) }
	}
	cases := []struct {
		name   string
		reqs   []snapshot.SelectorRequirement
		change func(s *snapshot.Snapshot)
		code   plan.Code
		detail string
	}{
		{"too large (BC-17)", nil, need(200_000, 100), plan.NoInstanceTypeFits,
			"needs 200 cpu; the largest allowed type m5.8xlarge gives 31.85: 168.15 short"},
		{"after daemonsets", nil, both(need(200_000, 100), func(s *snapshot.Snapshot) { s.DaemonSets = []snapshot.DaemonSet{daemon} }), plan.NoInstanceTypeFits,
			"needs 200 cpu; the largest allowed type m5.8xlarge gives 31.7 after daemonsets: 168.3 short"},
		{"a little too large", []snapshot.SelectorRequirement{types("c5.large")}, need(100, 3115), plan.NoInstanceTypeFits,
			"needs 3115Mi memory; the largest allowed type c5.large gives 3114Mi: 1Mi short (c5.4xlarge would do, but the NodePool requires node.kubernetes.io/instance-type In [c5.large])"},
		{"both together", []snapshot.SelectorRequirement{types("c5.4xlarge", "m5.2xlarge")}, need(15_000, 29_000), plan.NoInstanceTypeFits,
			"needs 28.3Gi memory with everything else; m5.2xlarge has enough, but the nearest allowed type with the rest, c5.4xlarge, gives 26.7Gi: 1.58Gi short (m5.4xlarge would do, but the NodePool requires node.kubernetes.io/instance-type In [c5.4xlarge m5.2xlarge])"},
		{"a device that nobody has", nil, func(s *snapshot.Snapshot) { s.Pods[0].Spec.Requests.Extended = map[string]int64{"nvidia.com/gpu": 1} }, plan.NoInstanceTypeFits,
			"needs 1 nvidia.com/gpu; no allowed type has any"},
		{"taint", nil, func(s *snapshot.Snapshot) {
			s.NodePools[0].Taints = []snapshot.Taint{{Key: "team", Value: "red", Effect: noSchedule}}
		}, plan.TaintNotTolerated,
			"taint team=red:NoSchedule is not tolerated"},
		{"one of two taints", nil, func(s *snapshot.Snapshot) {
			s.NodePools[0].Taints = []snapshot.Taint{{Key: "a", Effect: noSchedule}, {Key: "b", Effect: noSchedule}}
			s.Pods[0].Spec.Tolerations = []snapshot.Toleration{{Key: "a", Operator: "Exists"}}
		}, plan.TaintNotTolerated, "taint b:NoSchedule is not tolerated"},
		{"zone that the pool excludes", []snapshot.SelectorRequirement{req(catalog.LabelZone, "In", "z-a", "z-b")}, selector(catalog.LabelZone, "z-c"), plan.RequirementConflict,
			"topology.kubernetes.io/zone: the pod wants In [z-c], the NodePool has In [z-a z-b]"},
		{"zone that nobody offers", nil, selector(catalog.LabelZone, "z-q"), plan.NoOffering,
			"no available offer with topology.kubernetes.io/zone In [z-q]: the NodePool offers z-a, z-b, z-c"},
		{"type label", nil, selector(catalog.LabelFamily, "c7"), plan.NoInstanceTypeFits,
			"no type of the NodePool has karpenter.k8s.aws/instance-family In [c7]: its types have c5, c6g, m5"},
		{"custom label", nil, selector("team", "red"), plan.RequirementConflict,
			"team: the pod wants In [red], the NodePool has no such label"},
		{"near miss of a label", nil, selector("topology.kubernetes.io/zoneid", "red"), plan.RequirementConflict,
			"topology.kubernetes.io/zoneid: the pod wants In [red], the NodePool has no such label (did you mean topology.k8s.aws/zone-id?)"},
		{"open label with another value", []snapshot.SelectorRequirement{req("team", "In", "blue", "green")}, selector("team", "red"), plan.RequirementConflict,
			"team: the pod wants In [red], the NodePool has In [blue green]"},
		{"two rules, and only both", []snapshot.SelectorRequirement{req(catalog.LabelZone, "In", "z-a")}, both(selector(catalog.LabelZone, "z-c"), need(40_000, 100)), plan.RequirementConflict,
			"topology.kubernetes.io/zone: the pod wants In [z-c], the NodePool has In [z-a]; and needs 40 cpu; the largest allowed type m5.8xlarge gives 31.85: 8.15 short"},
		{"host port", nil, func(s *snapshot.Snapshot) {
			s.DaemonSets = []snapshot.DaemonSet{daemon}
			s.Pods[0].Spec.HostPorts = []snapshot.HostPort{{Port: 8080}}
		}, plan.HostPortTaken, "host port 8080/TCP is taken on every node by DaemonSet kube-system/agent"},
		{"no alternative", nil, func(s *snapshot.Snapshot) { s.Pods[0].Spec.Required = []snapshot.NodeSelectorTerm{{}} }, plan.RequirementConflict,
			"the required node affinity has no term with an expression, so no node matches"},
		{"minValues", []snapshot.SelectorRequirement{{Key: catalog.LabelInstanceType, Operator: "Exists", MinValues: 5}}, need(20_000, 100), plan.MinValuesUnmet,
			"node.kubernetes.io/instance-type: minValues 5, but the types that can host the pod bring 1"},
		{"the nearest of two terms", []snapshot.SelectorRequirement{req(catalog.LabelZone, "In", "z-a")}, func(s *snapshot.Snapshot) {
			s.Pods[0].Spec.Required = []snapshot.NodeSelectorTerm{
				{Expressions: []snapshot.SelectorRequirement{req("x", "Exists"), req("y", "Exists")}},
				{Expressions: []snapshot.SelectorRequirement{req("z", "Exists")}},
			}
		}, plan.RequirementConflict, "z: the pod wants Exists, the NodePool has no such label"},
	}
	for _, c := range cases {
		s := small([]snapshot.NodePool{pool("a", c.reqs...)}, pod("p", 100, 100))
		c.change(s)
		w, _ := world(s)
		got := w.Explain(0, nil, false)
		if len(got) != 1 {
			t.Fatalf("%s: %d reasons", c.name, len(got))
		}
		if got[0].Code != c.code || got[0].Detail != c.detail {
			t.Errorf("%s:\n got %s: %s\nwant %s: %s", c.name, got[0].Code, got[0].Detail, c.code, c.detail)
		}
	}
}

func TestExplainUnavailableOffers(t *testing.T) {
	c := worldtest.Fixture()
	for i := range c.Types {
		for k := range c.Types[i].Offerings {
			if o := &c.Types[i].Offerings[k]; o.Zone == "z-a" && o.CapacityType == "spot" {
				o.Available = false
			}
		}
	}
	p := pod("p", 100, 100)
	p.Spec.NodeSelector = map[string]string{catalog.LabelZone: "z-a", catalog.LabelCapacityType: "spot", catalog.LabelInstanceType: "c5.large"}
	w := New(small([]snapshot.NodePool{pool("a")}, p), c)
	w.Problem()
	got := w.Explain(0, nil, false)[0]
	want := "no available offer with karpenter.sh/capacity-type In [spot], node.kubernetes.io/instance-type In [c5.large], topology.kubernetes.io/zone In [z-a]: " +
		"c5.large spot in zone z-a: it is out of capacity or not offered; the NodePool offers zones z-a, z-b, z-c as on-demand, spot"
	if got.Code != plan.NoOffering || got.Detail != want {
		t.Errorf("got %s: %s\nwant %s", got.Code, got.Detail, want)
	}
}

func TestExplainLimits(t *testing.T) {
	s := small([]snapshot.NodePool{pool("a", types("c5.large"))}, pod("p", 100, 100))
	s.NodePools[0].Limits = map[string]int64{"cpu": 3000}
	labels := map[string]string{poolLabel: "a"}
	s.Nodes = []snapshot.Node{{Name: "n1", Labels: labels, Capacity: size(2000, 4096, 29), Deleting: clock}}
	w, p := world(s)
	r := packing.Solve(p)
	if len(r.Unplaced) != 1 {
		t.Fatalf("result %+v", r)
	}
	got := w.Explain(0, r.Unplaced[0].Limits, false)[0]
	want := "limit cpu 3: 2 used with this plan (1 node that is going counts until it is gone), 1 left, and the smallest node for the pod takes 2"
	if got.Code != plan.LimitReached || got.Detail != want {
		t.Errorf("got %s: %s\nwant %s", got.Code, got.Detail, want)
	}
}

// Pools are listed nearest first: fewer rules, then a smaller miss; pools that
// launch nothing come last.
func TestExplainOrder(t *testing.T) {
	p := pod("p", 3000, 100)
	p.Spec.NodeSelector = map[string]string{"team": "red"}
	off, far, near, nearer := pool("off"), pool("far", types("c5.large")), pool("near", types("c5.large")), pool("nearer", types("m5.large", "c6g.medium"))
	off.ClassRef.Name = "gone"
	near.TemplateLabels = map[string]string{"team": "red"}
	nearer.TemplateLabels = map[string]string{"team": "red"}
	nearer.Requirements = append(nearer.Requirements, req(catalog.LabelSize, "In", "large"))
	s := small([]snapshot.NodePool{off, far, near, nearer}, p)
	s.Pods[0].Spec.Requests.Memory = 3200 * mib
	w, _ := world(s)
	var got []string
	for _, r := range w.Explain(0, nil, false) {
		got = append(got, fmt.Sprintf("%s %s", r.NodePool, r.Code))
	}
	want := []string{"nearer NoInstanceTypeFits", "near NoInstanceTypeFits", "far RequirementConflict", "off NodeClassNotFound"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
}

// What is blamed is to blame: with the blamed rules out of the way the pod fits,
// or the reason is another one.
func TestPropertyBlame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
		some := func(label string) bool { return rapid.IntRange(0, 2).Draw(t, label) == 0 }
		np := pool("a")
		if some("zone") {
			np.Requirements = append(np.Requirements, req(catalog.LabelZone, "In", pick("pool zone", "z-a", "z-b")))
		}
		if some("type") {
			np.Requirements = append(np.Requirements, types("c5.large", pick("pool type", "m5.8xlarge", "c6g.medium")))
		}
		if some("label") {
			np.Requirements = append(np.Requirements, req("team", "In", "red", "blue"))
		}
		if some("taint") {
			np.Taints = []snapshot.Taint{{Key: "x", Effect: noSchedule}}
		}
		p := pod("p", int64(rapid.SampledFrom([]int{100, 3000, 20_000, 50_000}).Draw(t, "cpu")), int64(rapid.SampledFrom([]int{100, 9000, 200_000}).Draw(t, "mem")))
		p.Spec.NodeSelector = map[string]string{}
		for _, kv := range [][2]string{{catalog.LabelZone, pick("zone wanted", "z-a", "z-c", "z-q")}, {catalog.LabelArch, pick("arch wanted", "amd64", "arm64")}, {"team", pick("team wanted", "red", "green")}, {catalog.LabelFamily, pick("family wanted", "m5", "c9")}} {
			if some(kv[0]) {
				p.Spec.NodeSelector[kv[0]] = kv[1]
			}
		}
		s := small([]snapshot.NodePool{np}, p)
		w, prob := world(s)
		if fits(prob, &prob.Classes[0]) {
			return
		}
		best := w.nearestIn(0, 0)
		if err := blameHolds(w, np, p, best); err != nil {
			t.Fatal(err)
		}
		// And nothing smaller would have done: no single blamed rule is idle.
		if best.rules > 1 {
			for k := range p.Spec.NodeSelector {
				one := p
				one.Spec.NodeSelector = map[string]string{}
				for o, v := range p.Spec.NodeSelector {
					if o != k {
						one.Spec.NodeSelector[o] = v
					}
				}
				_, single := world(small([]snapshot.NodePool{np}, one))
				if fits(single, &single.Classes[0]) {
					t.Fatalf("%d rules are blamed, but %s alone is the reason: %s", best.rules, k, w.Explain(0, nil, false)[0].Detail)
				}
			}
		}
	})
}

// blameHolds takes away exactly what is blamed and looks whether the pod fits then.
func blameHolds(w *World, np snapshot.NodePool, p snapshot.Pod, best candidate) error {
	if best.rules == 0 {
		return fmt.Errorf("the pod fits nothing, yet nothing is blamed")
	}
	x := w.table(0)
	q := p
	q.Spec.NodeSelector = map[string]string{}
	for k, v := range p.Spec.NodeSelector {
		q.Spec.NodeSelector[k] = v
	}
	for b := range x.blames {
		if best.n.mask&(1<<b) == 0 {
			continue
		}
		switch x.blames[b].kind {
		case byTaint:
			q.Spec.Tolerations = append(q.Spec.Tolerations, snapshot.Toleration{Key: x.t.taints[x.blames[b].at].Key, Operator: "Exists"})
		case byLabel:
			delete(q.Spec.NodeSelector, x.blames[b].key)
		default:
			return fmt.Errorf("unexpected blame %+v", x.blames[b])
		}
	}
	for d, name := range w.Dims {
		if have := x.alloc[best.typ*len(w.Dims)+d]; best.short > 0 && q.Spec.Requests.Get(name) > have {
			q.Spec.Requests = q.Spec.Requests.With(name, have)
		}
	}
	_, after := world(small([]snapshot.NodePool{np}, q))
	if !fits(after, &after.Classes[0]) {
		return fmt.Errorf("%s\nwas blamed, but without it the pod still fits nothing: %v %+v", w.Explain(0, nil, false)[0].Detail, q.Spec.NodeSelector, q.Spec.Requests)
	}
	return nil
}

// The check sees blame that leaves out one of two reasons.
func TestBlameHoldsFails(t *testing.T) {
	np := pool("a", req(catalog.LabelZone, "In", "z-a"))
	np.Taints = []snapshot.Taint{{Key: "x", Effect: noSchedule}}
	p := pod("p", 40_000, 100)
	p.Spec.NodeSelector = map[string]string{catalog.LabelZone: "z-c"}
	w, _ := world(small([]snapshot.NodePool{np}, p))
	best := w.nearestIn(0, 0)
	if err := blameHolds(w, np, p, best); err != nil || best.rules != 3 {
		t.Fatalf("%d rules, %v", best.rules, err)
	}
	for b := range w.table(0).blames {
		if bit := uint64(1) << b; best.n.mask&bit != 0 {
			less := best
			less.n.mask &^= bit
			if blameHolds(w, np, p, less) == nil {
				t.Errorf("blame without %+v is not seen", w.table(0).blames[b])
			}
		}
	}
	less := best
	less.short = 0
	if blameHolds(w, np, p, less) == nil {
		t.Error("blame without the size is not seen")
	}
}
