package requirements

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSet(t *testing.T) {
	s := set(t, "b In 1 2; a Exists; b In 2 3; beta.kubernetes.io/arch In arm64")
	if diff := cmp.Diff([]string{"a", "b", "kubernetes.io/arch"}, s.Keys()); diff != "" {
		t.Error(diff)
	}
	if r, ok := s.Get("b"); !ok || r.String() != "b In [2]" {
		t.Error(r, ok)
	}
	if _, ok := s.Get("c"); ok {
		t.Error("has c")
	}
	if got, want := s.String(), "a Exists; b In [2]; kubernetes.io/arch In [arm64]"; got != want {
		t.Errorf("is %q, want %q", got, want)
	}
	c := s.Clone()
	c.Add(In("a", "x"), In("z", "y"))
	if got, want := s.String(), "a Exists; b In [2]; kubernetes.io/arch In [arm64]"; got != want {
		t.Errorf("adding to the clone made it %q", got)
	}
	if diff := cmp.Diff(map[string]string{"a": "x", "b": "2", "kubernetes.io/arch": "arm64", "z": "y"}, c.Labels()); diff != "" {
		t.Error(diff)
	}
	c.AddSet(set(t, "z NotIn y"))
	if r, _ := c.Get("z"); !r.Impossible() {
		t.Error(r)
	}
	if w := c.Without("z"); w.Len() != 3 || c.Len() != 4 {
		t.Error(w, c)
	}
	if w := s.Without("z"); w.Len() != 3 {
		t.Error(w)
	}
	var keys []string
	for r := range s.All() {
		keys = append(keys, r.Key())
	}
	if !slices.Equal(keys, s.Keys()) {
		t.Error(keys)
	}
	var zero Set
	if zero.Len() != 0 || zero.MatchesLabels(nil) != nil || !zero.IsCompatible(Set{}, nil) {
		t.Error("the empty set refuses something")
	}
}

func TestCompatible(t *testing.T) {
	for _, c := range []struct {
		name, have, want string
		strict           bool // no undefined key is allowed
		conflict         string
	}{
		{name: "overlap", have: "k In a b", want: "k In b"},
		{name: "disjoint", have: "k In a b", want: "k In c", conflict: "k: wants In [c], has In [a b]"},
		{name: "first key by name", have: "b In 1; a In 1", want: "b In 2; a In 2", conflict: "a: wants In [2], has In [1]"},
		{name: "undefined well-known is open", have: "", want: cpu + " Gt 4"},
		{name: "undefined well-known, strict", strict: true, have: "", want: cpu + " Gt 4",
			conflict: cpu + ": wants Gte 5, has no such label"},
		{name: "undefined custom", have: "kubernetes.io/arch In arm64", want: "team In web",
			conflict: "team: wants In [web], has no such label"},
		{name: "undefined custom, near miss of a pool label", have: "example.com/team In web", want: "example.com/tema In web",
			conflict: "example.com/tema: wants In [web], has no such label (did you mean example.com/team?)"},
		{name: "undefined custom, near miss of a well-known one", want: "karpenter.sh/capacity-typ In spot",
			conflict: "karpenter.sh/capacity-typ: wants In [spot], has no such label (did you mean karpenter.sh/capacity-type?)"},
		{name: "undefined custom, domain left out", want: "instance-category In c",
			conflict: "instance-category: wants In [c], has no such label (did you mean karpenter.k8s.aws/instance-category?)"},
		{name: "undefined custom NotIn", want: "team NotIn web"},
		{name: "undefined custom DoesNotExist", want: "team DoesNotExist"},
		{name: "undefined custom Exists", want: "team Exists", conflict: "team: wants Exists, has no such label"},
		{name: "pool Exists takes the pod's value", have: "team Exists", want: "team In web"},
		{name: "NotIn against DoesNotExist", have: "k DoesNotExist", want: "k NotIn a"},
		{name: "In against DoesNotExist", have: "k DoesNotExist", want: "k In a", conflict: "k: wants In [a], has DoesNotExist"},
		{name: "Exists against DoesNotExist", have: "k Exists", want: "k DoesNotExist", conflict: "k: wants DoesNotExist, has Exists"},
		{name: "bounds apart", have: cpu + " Lte 8", want: cpu + " Gt 8", conflict: cpu + ": wants Gte 9, has Lte 8"},
		{name: "bounds meet", have: cpu + " Lte 8", want: cpu + " Gte 8"},
		{name: "pool contradicts itself", have: "k In a; k In b; l In x", want: "l In x",
			conflict: "k: wants anything, has In [] (impossible)"},
		{name: "pod contradicts itself", have: "", want: cpu + " Gt 15; " + cpu + " Lt 16",
			conflict: cpu + ": wants Gte 16, Lte 15 (impossible), has no such label"},
		{name: "alias", have: "topology.kubernetes.io/zone In z", want: "failure-domain.beta.kubernetes.io/zone In z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			allow := WellKnown
			if c.strict {
				allow = nil
			}
			have, want := set(t, c.have), set(t, c.want)
			if got := have.Compatible(want, allow).String(); got != c.conflict {
				t.Errorf("conflict %q, want %q", got, c.conflict)
			}
			if got := have.IsCompatible(want, allow); got != (c.conflict == "") {
				t.Errorf("IsCompatible is %v", got)
			}
		})
	}
}

func TestMatchesLabels(t *testing.T) {
	node := map[string]string{
		"kubernetes.io/arch": "arm64", cpu: "08", "gen": "six", "empty": "",
		"failure-domain.beta.kubernetes.io/zone": "z1",
	}
	for _, c := range []struct{ in, conflict string }{
		{in: "kubernetes.io/arch In arm64 amd64"},
		{in: "beta.kubernetes.io/arch In arm64"},
		{in: "topology.kubernetes.io/zone In z1"},
		{in: "kubernetes.io/arch In amd64", conflict: `kubernetes.io/arch: wants In [amd64], has "arm64"`},
		{in: "kubernetes.io/arch DoesNotExist", conflict: `kubernetes.io/arch: wants DoesNotExist, has "arm64"`},
		{in: cpu + " Gt 7; " + cpu + " Lt 9"},
		{in: cpu + " Gt 8", conflict: cpu + `: wants Gte 9, has "08"`},
		{in: "gen Gt 5", conflict: `gen: wants Gte 6, has "six"`},
		{in: "gen Lt 5", conflict: `gen: wants Lte 4, has "six"`},
		{in: "empty Exists"},
		{in: "empty Gt 0", conflict: `empty: wants Gte 1, has ""`},
		{in: "gone NotIn x"},
		{in: "gone DoesNotExist"},
		{in: "gone In x", conflict: "gone: wants In [x], has no such label"},
		{in: "gone Exists", conflict: "gone: wants Exists, has no such label"},
		{in: "gone Lt 5", conflict: "gone: wants Lte 4, has no such label"},
		{in: "gone NotIn x; gone Exists", conflict: "gone: wants Exists, NotIn [x], has no such label"},
		{in: "emtpy Exists", conflict: "emtpy: wants Exists, has no such label (did you mean empty?)"},
	} {
		if got := set(t, c.in).MatchesLabels(node).String(); got != c.conflict {
			t.Errorf("%s: conflict %q, want %q", c.in, got, c.conflict)
		}
		if got := set(t, c.in).Matches(node); got != (c.conflict == "") {
			t.Errorf("%s: Matches is %v", c.in, got)
		}
	}
}

func TestFromLabels(t *testing.T) {
	s := FromLabels(map[string]string{"b": "1", "a": "2", "beta.kubernetes.io/os": "linux", "kubernetes.io/os": "linux"})
	if got, want := s.String(), "a In [2]; b In [1]; kubernetes.io/os In [linux]"; got != want {
		t.Errorf("is %q, want %q", got, want)
	}
}

// Thousands of types are tried for each class of pods: no answer but a conflict
// that is asked for may allocate.
func TestAnswersAllocateNothing(t *testing.T) {
	pool, pod := set(t, "a In 1 2; b NotIn x; "+cpu+" Gt 3"), set(t, "a In 2; b In y; "+cpu+" In 4 8; team NotIn z")
	if n := testing.AllocsPerRun(100, func() {
		if !pool.IsCompatible(pod, WellKnown) {
			t.Fatal("incompatible")
		}
	}); n != 0 {
		t.Errorf("IsCompatible: %v allocations", n)
	}
	labels := map[string]string{"a": "2", "b": "y", cpu: "8"}
	if n := testing.AllocsPerRun(100, func() {
		if !pool.Matches(labels) || pod.Matches(nil) {
			t.Fatal("mismatch")
		}
	}); n != 0 {
		t.Errorf("Matches: %v allocations", n)
	}
}

func BenchmarkIsCompatible(b *testing.B) {
	labels := map[string]string{}
	for _, k := range wellKnown {
		labels[k] = "5"
	}
	typ := FromLabels(labels)
	gt, _ := New(entry(cpu + " Gt 4"))
	pool := NewSet(In("kubernetes.io/arch", "5", "amd64"), gt, NotIn("karpenter.k8s.aws/instance-family", "t2", "t3"), In("karpenter.sh/capacity-type", "5"))
	b.ReportAllocs()
	for b.Loop() {
		if !typ.IsCompatible(pool, WellKnown) {
			b.Fatal("incompatible")
		}
	}
}

func BenchmarkIncompatible(b *testing.B) {
	a, c := NewSet(In("kubernetes.io/arch", "arm64")), NewSet(In("kubernetes.io/arch", "amd64"))
	b.ReportAllocs()
	for b.Loop() {
		if a.IsCompatible(c, WellKnown) {
			b.Fatal("compatible")
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	pool := NewSet(In("kubernetes.io/arch", "arm64", "amd64"), In("karpenter.sh/capacity-type", "spot", "on-demand"), Exists("team"))
	pod := NewSet(In("kubernetes.io/arch", "arm64"), In("team", "web"), NotIn("zone", "a"))
	b.ReportAllocs()
	for b.Loop() {
		s := pool.Clone()
		s.AddSet(pod)
	}
}
