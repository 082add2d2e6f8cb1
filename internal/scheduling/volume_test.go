package scheduling

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// statefulSet is so many pods, each with a bound EBS volume of its own in one of zones.
func statefulSet(n int, zones ...string) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Settings: snapshot.DefaultSettings()}
	for i := range n {
		name := fmt.Sprintf("db-%05d", i)
		s.Pods = append(s.Pods, snapshot.Pod{Namespace: "default", Name: name, Spec: snapshot.PodSpec{
			Requests: snapshot.Resources{CPU: 100, Pods: 1}, Volumes: []snapshot.Volume{{Name: "data", Claim: "data-" + name}},
		}})
		s.Claims = append(s.Claims, snapshot.PersistentVolumeClaim{
			Namespace: "default", Name: "data-" + name, Phase: "Bound", BindCompleted: true, Spec: snapshot.ClaimSpec{VolumeName: "pv-" + name},
		})
		s.Volumes = append(s.Volumes, snapshot.PersistentVolume{
			Name: "pv-" + name, Driver: ebsDriver, Handle: "vol-" + name,
			Required: []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{
				{Key: "topology.ebs.csi.aws.com/zone", Operator: "In", Values: []string{zones[i%len(zones)]}},
			}}},
		})
	}
	return s
}

// A thousand volumes in three zones are three kinds of pods.
func TestVolumesOfAZoneAreOneKind(t *testing.T) {
	w := New(statefulSet(1000, "z-a", "z-b", "z-c"), &catalog.Catalog{})
	if len(w.Rules) != 3 || len(w.Classes) != 3 {
		t.Errorf("%d rules-keys, %d classes, want 3 of each", len(w.Rules), len(w.Classes))
	}
	for i := range w.Rules {
		if got := w.Rules[i].slots; !cmp.Equal(got, map[string]int64{attachPrefix + ebsDriver: 1}) {
			t.Errorf("rules-key %d takes %v", i, got)
		}
	}
	if want := []string{"cpu", "memory", "pods", attachPrefix + ebsDriver}; !slices.Equal(w.Dims, want) {
		t.Errorf("dimensions %v, want %v", w.Dims, want)
	}
}

// Pods without volumes, and drivers that nothing limits, have no dimension to compare.
func TestNoAttachDimension(t *testing.T) {
	s := statefulSet(2, "z-a")
	for i := range s.Volumes {
		s.Volumes[i].Driver = "efs.csi.aws.com"
	}
	if w := New(s, &catalog.Catalog{}); len(w.Dims) != 3 {
		t.Errorf("file systems: dimensions %v", w.Dims)
	}
	for i := range s.Pods {
		s.Pods[i].Spec.Volumes = nil
	}
	if w := New(s, &catalog.Catalog{}); len(w.Dims) != 3 || w.attach != nil || w.profileOf != nil {
		t.Errorf("no volumes: dimensions %v, attachments %v", w.Dims, w.attach)
	}
}

func TestDemands(t *testing.T) {
	zone := func(key, op string, values ...string) snapshot.NodeSelectorTerm {
		return snapshot.NodeSelectorTerm{Expressions: []snapshot.SelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	for _, c := range []struct {
		name string
		pv   snapshot.PersistentVolume
		want []string
	}{
		{"nothing asked", snapshot.PersistentVolume{}, nil},
		{"one term", snapshot.PersistentVolume{Required: []snapshot.NodeSelectorTerm{zone(catalog.LabelZone, "In", "z-a")}},
			[]string{"topology.kubernetes.io/zone In [z-a]"}},
		{"terms are alternatives, old names are new ones", snapshot.PersistentVolume{Required: []snapshot.NodeSelectorTerm{
			zone("topology.ebs.csi.aws.com/zone", "In", "z-b", "z-a"), zone("failure-domain.beta.kubernetes.io/region", "In", "r")}},
			[]string{"topology.kubernetes.io/zone In [z-a z-b] or topology.kubernetes.io/region In [r]"}},
		{"an empty term matches nothing", snapshot.PersistentVolume{Required: []snapshot.NodeSelectorTerm{{}, zone(catalog.LabelZone, "In", "z-a")}},
			[]string{"topology.kubernetes.io/zone In [z-a]"}},
		{"nor does an invalid one", snapshot.PersistentVolume{Required: []snapshot.NodeSelectorTerm{zone(catalog.LabelZone, "Near", "z-a")}},
			[]string{"what no node has"}},
		{"labels, several zones", snapshot.PersistentVolume{Labels: map[string]string{"failure-domain.beta.kubernetes.io/zone": "z-a__z-b", "app": "x"}},
			[]string{"topology.kubernetes.io/zone In [z-a z-b]"}},
		{"terms and labels", snapshot.PersistentVolume{Required: []snapshot.NodeSelectorTerm{zone("rack", "Exists")}, Labels: map[string]string{catalog.LabelZone: "z-a"}},
			[]string{"rack Exists", "topology.kubernetes.io/zone In [z-a]"}},
	} {
		v := newVolumes(&snapshot.Snapshot{})
		var got []string
		for _, n := range v.ofPV(&c.pv) {
			got = append(got, v.demands[n].String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Demands are kept once: by what they ask, not by who asks.
func TestDemandsAreShared(t *testing.T) {
	v := newVolumes(&snapshot.Snapshot{})
	pv := func(name string, zones ...string) *snapshot.PersistentVolume {
		return &snapshot.PersistentVolume{Name: name, Required: []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{
			{Key: catalog.LabelZone, Operator: "In", Values: zones},
		}}}}
	}
	a, b, other := v.ofPV(pv("a", "z-a", "z-b")), v.ofPV(pv("b", "z-b", "z-a")), v.ofPV(pv("c", "z-a"))
	if !slices.Equal(a, b) || slices.Equal(a, other) || len(v.demands) != 2 {
		t.Errorf("demands %v, %v and %v of %d", a, b, other, len(v.demands))
	}
	if got, want := v.demands[a[0]].who(), "volume a or one of 1 like it"; got != want {
		t.Errorf("asked by %q, want %q", got, want)
	}
	// More values than a message lists are told apart all the same.
	many := func(last string) []string { return []string{"1", "2", "3", "4", "5", "6", "7", last} }
	if slices.Equal(v.ofPV(pv("d", many("x")...)), v.ofPV(pv("e", many("y")...))) {
		t.Error("demands that differ in the last value are taken for one")
	}
}

// Sets of shared volumes are those that pods have, and what they have together.
func TestSharedSets(t *testing.T) {
	s := &snapshot.Snapshot{Settings: snapshot.DefaultSettings(), StorageClasses: []snapshot.StorageClass{
		{Name: "gp3", Provisioner: ebsDriver, BindingMode: "WaitForFirstConsumer", Default: true},
	}}
	for _, name := range []string{"a", "b", "c", "d", "own"} {
		s.Claims = append(s.Claims, snapshot.PersistentVolumeClaim{Namespace: "default", Name: name, Phase: "Pending"})
	}
	for i, claims := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "own"}, {"b"}, {"c"}, {"c"}, {"d"}, {"d"}, {}} {
		p := snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("p%d", i), Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 100, Pods: 1}}}
		for _, c := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, snapshot.Volume{Name: c, Claim: c})
		}
		s.Pods = append(s.Pods, p)
	}
	w := New(s, &catalog.Catalog{})
	var shared []string
	for _, v := range w.attach.shared {
		shared = append(shared, fmt.Sprintf("%s %d", v.key.id, v.pods))
	}
	if diff := cmp.Diff([]string{"claim default/a 3", "claim default/b 3", "claim default/c 2"}, shared); diff != "" {
		t.Errorf("shared (-want +got):\n%s", diff)
	}
	want := [][]int32{nil, {0}, {0, 1}, {0, 1, 2}, {0, 2}, {1}, {1, 2}, {2}}
	if diff := cmp.Diff(want, w.attach.sets); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	for i := range w.Rules {
		if n := w.Rules[i].slots[attachPrefix+ebsDriver]; slices.Contains(w.Rules[i].shared, 2) && n != 0 {
			t.Errorf("c counts %d times for every pod", n)
		}
	}
}

// Reading volumes costs pods with volumes little and the others nothing: see also
// BenchmarkGroup.
func BenchmarkReadVolumes(b *testing.B) {
	s := statefulSet(50_000, "z-a", "z-b", "z-c")
	s.Normalize()
	plain := *s
	plain.Pods = slices.Clone(s.Pods)
	for i := range plain.Pods {
		plain.Pods[i].Spec.Volumes = nil
	}
	for name, s := range map[string]*snapshot.Snapshot{"volumes": s, "none": &plain} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := &World{Snapshot: s, Catalog: &catalog.Catalog{}, universes: map[string]*universe{}}
				w.splitPods()
				w.readVolumes()
				if w.groups = Group(s.Pods, w.pending, w.groupBy()); len(w.groups.Classes) == 0 {
					b.Fatal("no class")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/pod")
		})
	}
}
