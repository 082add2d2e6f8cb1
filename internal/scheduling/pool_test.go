package scheduling

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

func ready(status, reason string, generation int64) []snapshot.Condition {
	return []snapshot.Condition{{Type: "Ready", Status: status, Reason: reason, ObservedGeneration: generation}}
}

func TestPoolsThatLaunchNothing(t *testing.T) {
	three := int64(3)
	cases := []struct {
		name   string
		change func(s *snapshot.Snapshot, p *snapshot.NodePool)
		want   plan.Code
		detail string
	}{
		{"ready", func(s *snapshot.Snapshot, p *snapshot.NodePool) {}, "", ""},
		{"condition True", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.HasStatus, p.Conditions = true, ready("True", "", 0)
		}, "", ""},
		{"status without the condition", func(s *snapshot.Snapshot, p *snapshot.NodePool) { p.HasStatus = true }, "", ""},
		{"condition False", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.HasStatus, p.Conditions = true, ready("False", "NodeClassNotFound", 0)
		}, plan.NodePoolNotReady, "NodeClassNotFound"},
		{"condition Unknown", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.HasStatus, p.Conditions = true, ready("Unknown", "", 0)
		}, plan.NodePoolNotReady, "Unknown"},
		{"old generation", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.HasStatus, p.Conditions, p.Generation = true, ready("True", "", 2), 3
		}, plan.NodePoolNotReady, "generation 2"},
		{"deleting", func(s *snapshot.Snapshot, p *snapshot.NodePool) { p.Deleting = clock }, plan.NodePoolDeleting, ""},
		{"static", func(s *snapshot.Snapshot, p *snapshot.NodePool) { p.Replicas = &three }, plan.NodePoolStatic, "3 nodes"},
		{"Auto Mode", func(s *snapshot.Snapshot, p *snapshot.NodePool) { p.ClassRef.Group = "eks.amazonaws.com" }, plan.ForeignNodeClass, "eks.amazonaws.com"},
		{"capacity type that does not exist (S-13)", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, req(catalog.LabelCapacityType, "In", "xspot"))
		}, plan.NodePoolInvalid, "xspot"},
		{"bound that is no number (BC-21)", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, req(catalog.LabelCPU, "Gt", "eight"))
		}, plan.NodePoolInvalid, "eight"},
		{"no class", func(s *snapshot.Snapshot, p *snapshot.NodePool) { p.ClassRef.Name = "gone" }, plan.NodeClassNotFound, "gone"},
		{"class not ready", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			s.NodeClasses[0].Conditions = ready("False", "SubnetsNotFound", 0)
		}, plan.NodeClassNotReady, "SubnetsNotFound"},
		{"class of an old generation", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			s.NodeClasses[0].Conditions, s.NodeClasses[0].Generation = ready("True", "", 1), 2
		}, plan.NodeClassNotReady, "generation 1"},
		{"class deleting", func(s *snapshot.Snapshot, p *snapshot.NodePool) { s.NodeClasses[0].Deleting = clock }, plan.NodeClassNotReady, "deleted"},
		{"class with a negative reservation (BC-18)", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			s.NodeClasses[0].Kubelet.KubeReserved = map[string]string{"cpu": "-1"}
		}, plan.NodeClassInvalid, "kubeReserved"},
		{"contradiction (BC-21)", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, req(catalog.LabelCPU, "Gt", "15"), req(catalog.LabelCPU, "Lt", "16"))
		}, plan.NoInstanceTypeFits, "contradict"},
		{"no such type", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, types("c5.huge"))
		}, plan.NoInstanceTypeFits, "c5.huge"},
		{"no such zone", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, req(catalog.LabelZone, "In", "z-q"))
		}, plan.NoOffering, "z-q"},
		{"too little variety", func(s *snapshot.Snapshot, p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{Key: catalog.LabelFamily, Operator: "Exists", MinValues: 9})
		}, plan.MinValuesUnmet, "minValues 9"},
	}
	for _, c := range cases {
		s := small([]snapshot.NodePool{pool("a"), pool("other")}, pod("p", 100, 100))
		c.change(s, &s.NodePools[0])
		w, p := world(s)
		code, detail := poolCode(t, w, "a")
		if code != c.want || !strings.Contains(detail, c.detail) {
			t.Errorf("%s: %q %q, want %q %q", c.name, code, detail, c.want, c.detail)
		}
		templates := map[string]bool{}
		for i := range p.Templates {
			templates[p.Templates[i].Name] = true
		}
		if templates["a"] != (c.want == "") {
			t.Errorf("%s: the pool has a template: %v", c.name, templates["a"])
		}
	}
}

func TestPoolOrder(t *testing.T) {
	s := small([]snapshot.NodePool{pool("a"), pool("b"), pool("light"), pool("heavy")})
	s.NodePools[0].Weight, s.NodePools[1].Weight, s.NodePools[3].Weight = 10, 10, 20
	w, p := world(s)
	var got []string
	for i := range w.Pools {
		got = append(got, p.Pools[i].Name)
	}
	if diff := cmp.Diff([]string{"heavy", "b", "a", "light"}, got); diff != "" {
		t.Errorf("weight first, then name descending (S-29) (-want +got)\n%s", diff)
	}
}

func TestPoolTypes(t *testing.T) {
	cases := []struct {
		name string
		reqs []snapshot.SelectorRequirement
		want []string
	}{
		{"two bounds (BC-21)", []snapshot.SelectorRequirement{req(catalog.LabelCPU, "Gt", "8"), req(catalog.LabelCPU, "Lt", "24")}, []string{"c5.4xlarge", "m5.4xlarge"}},
		{"both inclusive", []snapshot.SelectorRequirement{req(catalog.LabelCPU, "Gte", "8"), req(catalog.LabelCPU, "Lte", "8")}, []string{"m5.2xlarge"}},
		{"family", []snapshot.SelectorRequirement{req(catalog.LabelFamily, "In", "c6g")}, []string{"c6g.medium"}},
		{"not a family", []snapshot.SelectorRequirement{req(catalog.LabelFamily, "NotIn", "c5", "m5")}, []string{"c6g.medium"}},
		{"old label", []snapshot.SelectorRequirement{req("beta.kubernetes.io/arch", "In", "arm64")}, []string{"c6g.medium"}},
		{"absent label", []snapshot.SelectorRequirement{req(catalog.LabelGPUCount, "DoesNotExist"), req(catalog.LabelSize, "In", "medium")}, []string{"c6g.medium"}},
	}
	for _, c := range cases {
		_, p := world(small([]snapshot.NodePool{pool("a", c.reqs...)}, pod("p", 100, 100)))
		if diff := cmp.Diff(c.want, allowedTypes(p, 0)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestUnknownNamesAreWarned(t *testing.T) {
	w, _ := world(small([]snapshot.NodePool{pool("a", req(catalog.LabelZone, "In", "z-a", "z-q"), types("c5.large", "c5.lage"))}, pod("p", 100, 100)))
	var got []string
	for _, v := range w.Warnings {
		got = append(got, v.Object+" "+string(v.Code)+" "+v.Detail)
	}
	want := []string{
		"nodepool/a UnknownZone zone z-q has no offer: zones of its NodeClass are z-a, z-b, z-c",
		"nodepool/a UnknownInstanceType instance type c5.lage is not in the catalogue; did you mean c5.large?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}

// Limits count the capacity of nodes, of claims in flight, and of nodes that are
// going until they are gone.
func TestRemainingLimits(t *testing.T) {
	labels := map[string]string{"karpenter.sh/nodepool": "a", "karpenter.sh/initialized": "true"}
	node := func(name string) snapshot.Node {
		return snapshot.Node{Name: name, Labels: labels, Capacity: snapshot.Resources{CPU: 2000, Memory: 4096 * mib, Pods: 29}}
	}
	going := node("n2")
	going.Deleting = clock
	s := small([]snapshot.NodePool{pool("a"), pool("free")})
	s.NodePools[0].Limits = map[string]int64{"cpu": 10_000, "nodes": 4, "nvidia.com/gpu": 1}
	s.Nodes = []snapshot.Node{node("n1"), going}
	s.NodeClaims = []snapshot.NodeClaim{
		{Name: "launched", Labels: labels, ClassRef: s.NodePools[0].ClassRef, Capacity: snapshot.Resources{CPU: 4000, Pods: 58}, Allocatable: snapshot.Resources{CPU: 3900}},
		{Name: "open", Labels: labels, ClassRef: s.NodePools[0].ClassRef, Requirements: []snapshot.SelectorRequirement{types("c5.large", "m5.2xlarge")}},
	}
	w, p := world(s)
	if diff := cmp.Diff([]string{"cpu", "nodes", "nvidia.com/gpu"}, p.LimitDims); diff != "" {
		t.Fatalf("limited resources (-want +got)\n%s", diff)
	}
	// 10 - 2 - 2 - 4 - 8 (the larger of both types) = -6: nothing left.
	want := map[string][]int64{"a": {-6000, 0, 1}, "free": {packing.NoLimit, packing.NoLimit, packing.NoLimit}}
	for i := range p.Pools {
		if diff := cmp.Diff(want[p.Pools[i].Name], p.Pools[i].Remaining); diff != "" {
			t.Errorf("remaining of %s (-want +got)\n%s", p.Pools[i].Name, diff)
		}
	}
	for i := range p.Templates[0].Types {
		ty := &p.Templates[0].Types[i]
		if ty.Name == "c5.large" {
			if diff := cmp.Diff([]int64{2000, 1, 0}, ty.Capacity); diff != "" {
				t.Errorf("capacity of c5.large (-want +got)\n%s", diff)
			}
		}
	}
	if w.Pools[0].Spec.Name != "free" {
		t.Errorf("first pool is %s", w.Pools[0].Spec.Name)
	}
}
