package scheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

func TestDaemonOverhead(t *testing.T) {
	ds := func(cpu int64, change func(s *snapshot.PodSpec)) snapshot.DaemonSet {
		d := snapshot.DaemonSet{Namespace: "default", Name: "agent", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: size(cpu, 0, 1)}}}
		change(&d.Template.Spec)
		return d
	}
	live := func(name string, cpu int64, age time.Duration) snapshot.Pod {
		p := pod(name, cpu, 0)
		p.Owner = &snapshot.Owner{Kind: "DaemonSet", Name: "agent"}
		p.NodeName, p.Created = "gone", clock.Add(-age)
		// Live daemon pods name their node.
		p.Spec.Required = []snapshot.NodeSelectorTerm{{Fields: []snapshot.SelectorRequirement{req("metadata.name", "In", "gone")}}}
		return p
	}
	affinity := func(es ...snapshot.SelectorRequirement) func(s *snapshot.PodSpec) {
		return func(s *snapshot.PodSpec) { s.Required = []snapshot.NodeSelectorTerm{{Expressions: es}} }
	}
	taint := snapshot.Taint{Key: "x", Effect: noSchedule}
	cases := []struct {
		name   string
		taints []snapshot.Taint
		ds     []snapshot.DaemonSet
		live   []snapshot.Pod
		want   int64 // cpu on a c5.large
	}{
		{"template", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) {})}, nil, 100},
		{"the newest live pod", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) {})}, []snapshot.Pod{live("old", 150, time.Hour), live("new", 200, time.Minute), live("older", 250, 2*time.Hour)}, 200},
		{"affinity is the template's: it wants another pool (S-08)", nil, []snapshot.DaemonSet{ds(100, affinity(req(poolLabel, "In", "other")))}, []snapshot.Pod{live("new", 200, 0)}, 0},
		{"affinity is the template's: it wants this pool", nil, []snapshot.DaemonSet{ds(100, affinity(req(poolLabel, "In", "a")))}, []snapshot.Pod{live("new", 200, 0)}, 200},
		{"selector of another architecture", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) { s.NodeSelector = map[string]string{catalog.LabelArch: "arm64"} })}, nil, 0},
		{"registered nodes only", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) { s.NodeSelector = map[string]string{labelRegistered: "true"} })}, nil, 100},
		{"taint not tolerated", []snapshot.Taint{taint}, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) {})}, nil, 0},
		{"tolerates everything (S-09)", []snapshot.Taint{taint}, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) { s.Tolerations = []snapshot.Toleration{{Operator: "Exists"}} })}, nil, 100},
		{"a preference is no obstacle", []snapshot.Taint{{Key: "x", Effect: preferNoSchedule}}, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) {})}, nil, 100},
		{"a zone that the type may be in", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) { s.NodeSelector = map[string]string{catalog.LabelZone: "z-b"} })}, nil, 100},
		{"a zone that nobody has", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) { s.NodeSelector = map[string]string{catalog.LabelZone: "z-q"} })}, nil, 0},
		{"two", nil, []snapshot.DaemonSet{ds(100, func(s *snapshot.PodSpec) {}), ds(50, func(s *snapshot.PodSpec) {})}, nil, 150},
		{"a selector that cannot be read matches nothing", nil, []snapshot.DaemonSet{ds(100, affinity(req("a", "Near", "b")))}, nil, 0},
	}
	for _, c := range cases {
		np := pool("a", types("c5.large"))
		np.Taints = c.taints
		s := small([]snapshot.NodePool{np}, append([]snapshot.Pod{pod("p", 1, 1)}, c.live...)...)
		s.DaemonSets = c.ds
		for i := range s.DaemonSets {
			if i > 0 {
				s.DaemonSets[i].Name = "agent2"
			}
		}
		w, p := world(s)
		if got := 1930 - p.Templates[0].Types[0].Alloc[0]; got != c.want {
			t.Errorf("%s: overhead %dm, want %dm", c.name, got, c.want)
		}
		if got := w.Templates[0].Daemons(0).CPU; got != c.want {
			t.Errorf("%s: daemons ask for %dm, want %dm", c.name, got, c.want)
		}
	}
}

// Types on which daemon pods leave nothing are not templates' types.
func TestTypesThatDaemonPodsFill(t *testing.T) {
	s := small([]snapshot.NodePool{pool("a", types("c5.large", "m5.xlarge"))}, pod("p", 1, 1))
	s.DaemonSets = []snapshot.DaemonSet{{Namespace: "default", Name: "hog", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: size(1931, 0, 1)}}}}
	_, p := world(s)
	if diff := cmp.Diff([]string{"m5.xlarge"}, allowedTypes(p, 0)); diff != "" {
		t.Errorf("types (-want +got)\n%s", diff)
	}
	if len(p.Templates[0].Types) != 1 || len(p.Templates[0].Offers) != 6 {
		t.Errorf("%d types, %d offers", len(p.Templates[0].Types), len(p.Templates[0].Offers))
	}
}

// BC-14: a host port of a daemon pod is taken on every new node.
func TestHostPortsOfDaemons(t *testing.T) {
	a, b, c := pod("a", 1, 1), pod("b", 2, 1), pod("c", 3, 1)
	a.Spec.HostPorts = []snapshot.HostPort{{Port: 8080}}
	b.Spec.HostPorts = []snapshot.HostPort{{Port: 8080, Protocol: "UDP"}}
	c.Spec.HostPorts = []snapshot.HostPort{{Port: 9090}}
	s := small([]snapshot.NodePool{pool("a", types("c5.large"))}, a, b, c)
	s.DaemonSets = []snapshot.DaemonSet{{Namespace: "default", Name: "agent", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{HostPorts: []snapshot.HostPort{{Port: 8080}}}}}}
	w, p := world(s)
	for i := range p.Classes {
		name := s.Pods[w.Classes[i].Pods[0]].Name
		if got, want := len(allowedOffers(p, i)) > 0, name != "a"; got != want {
			t.Errorf("pod %s may run: %v, want %v", name, got, want)
		}
		conflicts := map[string]int{"a": 1, "b": 1, "c": 1}[name]
		if len(p.Classes[i].Conflicts) != conflicts || int(p.Classes[i].Conflicts[0]) != i {
			t.Errorf("pod %s conflicts with %v", name, p.Classes[i].Conflicts)
		}
	}
}
