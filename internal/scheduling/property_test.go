package scheduling

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

var drawnKeys = map[string][]string{
	catalog.LabelZone:         {"z-a", "z-b", "z-q"},
	catalog.LabelZoneID:       {"zid-a", "zid-c"},
	catalog.LabelCapacityType: {"spot", "on-demand", "reserved"},
	catalog.LabelArch:         {"amd64", "arm64"},
	catalog.LabelFamily:       {"c5", "m5", "c6g"},
	catalog.LabelCPU:          {"2", "4", "8"},
	catalog.LabelGPUCount:     {"1"},
	catalog.LabelNodePool:     {"a", "b"},
	"team":                    {"red", "blue"},
	"rank":                    {"1", "7"},
}

func drawExpression(t *rapid.T, operators ...string) snapshot.SelectorRequirement {
	keys := sortedKeys(drawnKeys)
	key := rapid.SampledFrom(keys).Draw(t, "key")
	e := snapshot.SelectorRequirement{Key: key, Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
	switch e.Operator {
	case "In", "NotIn":
		e.Values = rapid.SliceOfNDistinct(rapid.SampledFrom(drawnKeys[key]), 1, len(drawnKeys[key]), rapid.ID).Draw(t, "values")
	case "Gt", "Lt":
		e.Values = []string{rapid.SampledFrom([]string{"1", "4", "7"}).Draw(t, "bound")}
	}
	return e
}

func drawSpec(t *rapid.T) snapshot.PodSpec {
	s := snapshot.PodSpec{Requests: snapshot.Resources{CPU: 100, Pods: 1}}
	if rapid.Bool().Draw(t, "has selector") {
		e := drawExpression(t, "In")
		s.NodeSelector = map[string]string{e.Key: e.Values[0]}
	}
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		var term snapshot.NodeSelectorTerm
		for range rapid.IntRange(0, 2).Draw(t, "expressions") {
			term.Expressions = append(term.Expressions, drawExpression(t, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
		}
		s.Required = append(s.Required, term)
	}
	return s
}

// matchesLabels is kube-scheduler's reading of a pod's selectors, written down
// once more, on the labels of one node.
func matchesLabels(s *snapshot.PodSpec, labels map[string]string) bool {
	for k, v := range s.NodeSelector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	if s.Required == nil {
		return true
	}
	for _, term := range s.Required {
		if len(term.Expressions) == 0 {
			continue
		}
		all := true
		for _, e := range term.Expressions {
			v, ok := labels[e.Key]
			switch e.Operator {
			case "In":
				all = all && ok && slices.Contains(e.Values, v)
			case "NotIn":
				all = all && (!ok || !slices.Contains(e.Values, v))
			case "Exists":
				all = all && ok
			case "DoesNotExist":
				all = all && !ok
			default:
				var have, bound int
				_, err1 := fmt.Sscanf(v, "%d", &have)
				_, err2 := fmt.Sscanf(e.Values[0], "%d", &bound)
				good := ok && err1 == nil && err2 == nil && (e.Operator == "Gt" && have > bound || e.Operator == "Lt" && have < bound)
				all = all && good
			}
		}
		if all {
			return true
		}
	}
	return false
}

// agree compares the sets that the tables give with the plain reading, offer by
// offer and node by node.
func agree(w *World, p *packing.Problem, spec *snapshot.PodSpec) error {
	for i := range w.Templates {
		t := &w.Templates[i]
		for o := range t.offers {
			want := matchesLabels(spec, t.NodeLabels(o))
			if got := p.Classes[0].Offers[i].Has(o); got != want {
				return fmt.Errorf("template %s, %v: allowed %v, want %v", t.Name, t.NodeLabels(o), got, want)
			}
		}
	}
	for k, i := range w.Targets {
		if want := matchesLabels(spec, w.Nodes[i].Labels); p.Classes[0].Nodes.Has(k) != want {
			return fmt.Errorf("node %v: allowed %v, want %v", w.Nodes[i].Labels, !want, want)
		}
	}
	return nil
}

func TestPropertySetsAgreeWithPlainReading(t *testing.T) {
	fixture := worldtest.Fixture()
	rapid.Check(t, func(t *rapid.T) {
		np := pool("a")
		for range rapid.IntRange(0, 2).Draw(t, "requirements") {
			e := drawExpression(t, "In", "NotIn", "Exists")
			if e.Key != catalog.LabelNodePool {
				np.Requirements = append(np.Requirements, e)
			}
		}
		if rapid.Bool().Draw(t, "labelled") {
			np.TemplateLabels = map[string]string{"team": "red"}
		}
		p := pod("p", 1, 1)
		p.Spec = drawSpec(t)
		s := small([]snapshot.NodePool{np}, p)
		for i := range 4 {
			labels := map[string]string{}
			for _, k := range sortedKeys(drawnKeys) {
				if rapid.Bool().Draw(t, "has label") {
					labels[k] = rapid.SampledFrom(drawnKeys[k]).Draw(t, "label")
				}
			}
			s.Nodes = append(s.Nodes, snapshot.Node{Name: fmt.Sprint("n", i), Labels: labels, Allocatable: size(100, 100, 5)})
		}
		w := New(s, fixture)
		if err := agree(w, w.Problem(), &s.Pods[0].Spec); err != nil {
			t.Fatal(err)
		}
	})
}

// The comparison sees a rule that is read wrongly.
func TestAgreeFails(t *testing.T) {
	p := pod("p", 1, 1)
	p.Spec.NodeSelector = map[string]string{catalog.LabelZone: "z-a"}
	s := small([]snapshot.NodePool{pool("a")}, p)
	s.Nodes = []snapshot.Node{{Name: "n", Labels: map[string]string{catalog.LabelZone: "z-a"}, Allocatable: size(100, 100, 5)}}
	w, prob := world(s)
	if err := agree(w, prob, &s.Pods[0].Spec); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]snapshot.PodSpec{
		"another zone": {NodeSelector: map[string]string{catalog.LabelZone: "z-b"}},
		"no zone":      {},
		"one more":     {NodeSelector: map[string]string{catalog.LabelZone: "z-a", "team": "red"}},
	} {
		if agree(w, prob, &spec) == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

// Whatever the input, no panic: quantities beyond all bounds, unknown operators,
// references to nothing.
func TestPropertyNoPanic(t *testing.T) {
	fixture := worldtest.Fixture()
	odd := rapid.SampledFrom([]int64{0, 1, -1, 100, 1 << 40, snapshot.MaxQuantity, -snapshot.MaxQuantity, 1<<63 - 1, -1 << 63})
	rapid.Check(t, func(t *rapid.T) {
		res := func() snapshot.Resources {
			r := snapshot.Resources{CPU: odd.Draw(t, "cpu"), Memory: odd.Draw(t, "memory"), Pods: odd.Draw(t, "pods")}
			if rapid.Bool().Draw(t, "extended") {
				r.Extended = map[string]int64{"nvidia.com/gpu": odd.Draw(t, "gpu")}
			}
			return r
		}
		word := rapid.SampledFrom([]string{"", "a", "In", "Near", "Exists", "Gt", "karpenter.sh/x", "bad key!", catalog.LabelZone, "z-a", "NoSchedule"})
		exprs := func() (out []snapshot.SelectorRequirement) {
			for range rapid.IntRange(0, 2).Draw(t, "n") {
				out = append(out, snapshot.SelectorRequirement{Key: word.Draw(t, "key"), Operator: word.Draw(t, "op"), Values: []string{word.Draw(t, "value")}, MinValues: int(odd.Draw(t, "min") % 9)})
			}
			return out
		}
		s := small(nil)
		for i := range rapid.IntRange(0, 3).Draw(t, "pools") {
			np := pool(fmt.Sprint("p", i), exprs()...)
			np.ClassRef.Name = rapid.SampledFrom([]string{"default", "gone"}).Draw(t, "class")
			np.Limits = map[string]int64{"cpu": odd.Draw(t, "limit"), "nodes": odd.Draw(t, "nodes")}
			np.TemplateLabels = map[string]string{word.Draw(t, "label"): word.Draw(t, "label value")}
			np.Taints = []snapshot.Taint{{Key: word.Draw(t, "taint"), Effect: word.Draw(t, "effect")}}
			if rapid.Bool().Draw(t, "plain") {
				np = pool(fmt.Sprint("p", i))
			}
			s.NodePools = append(s.NodePools, np)
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
			p := pod(fmt.Sprint("p", i), 1, 1)
			p.Spec.Requests = res()
			p.Spec.NodeSelector = map[string]string{word.Draw(t, "selector"): word.Draw(t, "selected")}
			if rapid.Bool().Draw(t, "affinity") {
				p.Spec.Required = []snapshot.NodeSelectorTerm{{Expressions: exprs(), Fields: exprs()}}
			}
			p.NodeName = rapid.SampledFrom([]string{"", "n0", "nowhere"}).Draw(t, "node")
			p.Spec.Volumes = []snapshot.Volume{{Claim: word.Draw(t, "claim")}}[:rapid.IntRange(0, 1).Draw(t, "volumes")]
			s.Pods = append(s.Pods, p)
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "nodes there") {
			s.Nodes = append(s.Nodes, snapshot.Node{Name: fmt.Sprint("n", i), Allocatable: res(), Labels: map[string]string{poolLabel: "p0"}})
		}
		for range rapid.IntRange(0, 2).Draw(t, "claims") {
			s.NodeClaims = append(s.NodeClaims, snapshot.NodeClaim{Name: "c", ClassRef: snapshot.ClassRef{Group: classGroup, Name: "default"}, Requirements: exprs(), Allocatable: res(), NodeName: "n0"})
		}
		s.DaemonSets = []snapshot.DaemonSet{{Name: "d", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: res(), Required: []snapshot.NodeSelectorTerm{{Expressions: exprs()}}}}}}
		w := New(s, fixture)
		p := w.Problem()
		for i := range p.Classes {
			for _, r := range w.Explain(i, nil, false) {
				if r.Code == "" || r.Detail == "" {
					t.Fatalf("reason without words: %+v", r)
				}
			}
		}
		for i := range p.Templates {
			for k := range p.Templates[i].Types {
				if slices.Min(p.Templates[i].Types[k].Alloc) < 0 {
					t.Fatalf("type %s is below zero", p.Templates[i].Types[k].Name)
				}
			}
		}
	})
}
