package requirements

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

const cpu = "karpenter.k8s.aws/instance-cpu"

// entry reads "key Operator value value...".
func entry(text string) snapshot.SelectorRequirement {
	f := strings.Fields(text)
	return snapshot.SelectorRequirement{Key: f[0], Operator: f[1], Values: f[2:]}
}

// req reads "key Operator values; key Operator values" of one key.
func req(t *testing.T, text string) Requirement {
	t.Helper()
	s := set(t, text)
	if s.Len() != 1 {
		t.Fatalf("%q is %d requirements", text, s.Len())
	}
	return s.reqs[0]
}

func set(t *testing.T, text string) Set {
	t.Helper()
	var entries []snapshot.SelectorRequirement
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) != "" {
			entries = append(entries, entry(part))
		}
	}
	s, err := Parse(entries)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNew(t *testing.T) {
	max64 := strconv.Itoa(math.MaxInt64)
	for _, c := range []struct {
		in, want string
		has, not []string
		absent   bool
	}{
		{in: "k In b a b", want: "k In [a b]", has: []string{"a", "b"}, not: []string{"c", ""}},
		{in: "k NotIn a", want: "k NotIn [a]", has: []string{"b", "", "3"}, not: []string{"a"}, absent: true},
		{in: "k NotIn", want: "k NotIn []", has: []string{"b", ""}, absent: true},
		{in: "k Exists", want: "k Exists", has: []string{"b", ""}},
		{in: "k DoesNotExist", want: "k DoesNotExist", not: []string{"b", ""}, absent: true},
		{in: "k Gt 8", want: "k Gte 9", has: []string{"9", "09", "100", max64}, not: []string{"8", "-9", "+9", "a", "", "9.5", max64 + "0"}},
		{in: "k Lt 8", want: "k Lte 7", has: []string{"7", "0", "007"}, not: []string{"8", "-1", "a", ""}},
		{in: "k Gte 8", want: "k Gte 8", has: []string{"8", "9"}, not: []string{"7"}},
		{in: "k Lte 8", want: "k Lte 8", has: []string{"8", "0"}, not: []string{"9", "x"}},
		{in: "k Gte 0", want: "k Gte 0", has: []string{"0"}, not: []string{"x", ""}},
		{in: "k Gt " + max64, want: "k Gte " + max64 + ", Lte -1", not: []string{max64, "0"}},
		{in: "k Gte " + max64, want: "k Gte " + max64, has: []string{max64}, not: []string{"1"}},
		{in: "k Lt 0", want: "k Lte -1", not: []string{"0", "-1"}},
		{in: "beta.kubernetes.io/arch In arm64", want: "kubernetes.io/arch In [arm64]"},
		{in: "topology.ebs.csi.aws.com/zone In z", want: "topology.kubernetes.io/zone In [z]"},
		{in: "k In 1 2 3 4 5 6 7 8", want: "k In [1 2 3 4 5 6 and 2 more]"},
	} {
		r, err := New(entry(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if r.String() != c.want {
			t.Errorf("%s: is %q, want %q", c.in, r, c.want)
		}
		if r.AllowsAbsent() != c.absent {
			t.Errorf("%s: AllowsAbsent is %v", c.in, r.AllowsAbsent())
		}
		for _, v := range c.has {
			if !r.Has(v) {
				t.Errorf("%s: does not have %q", c.in, v)
			}
		}
		for _, v := range c.not {
			if r.Has(v) {
				t.Errorf("%s: has %q", c.in, v)
			}
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		in   snapshot.SelectorRequirement
		want []string // parts of the message
	}{
		{entry(cpu + " Gt eight"), []string{cpu, "Gt", `"eight"`, "whole number"}},
		{entry("k Lt -3"), []string{"k Lt", `"-3"`, "from 0"}},
		{entry("k Gt +3"), []string{"k Gt", `"+3"`}},
		{entry("k Lt -9223372036854775808"), []string{"k Lt", `"-9223372036854775808"`}},
		{entry("k Gt 1.5"), []string{"k Gt", `"1.5"`}},
		{entry("k Gte 99999999999999999999"), []string{"k Gte", `"99999999999999999999"`, "64 bits"}},
		{entry("k Lt"), []string{"k Lt", "exactly one"}},
		{entry("k Lt 1 2"), []string{"k Lt", "exactly one", `["1" "2"]`}},
		{entry("k In"), []string{"k In", "no values"}},
		{entry("k Near 1"), []string{"k", `"Near"`, "In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte"}},
		{entry("k in a"), []string{`"in"`}},
		{entry("a/b/c Exists"), []string{`"a/b/c"`}},
		{entry("-k Exists"), []string{`"-k"`}},
		{snapshot.SelectorRequirement{Key: "", Operator: OpExists}, []string{`label key ""`, "empty"}},
		{snapshot.SelectorRequirement{Key: "k", Operator: OpIn, Values: []string{"a b"}}, []string{"k In", `"a b"`}},
		{snapshot.SelectorRequirement{Key: "k", Operator: OpNotIn, Values: []string{strings.Repeat("a", 64)}}, []string{"k NotIn", "64 characters"}},
		{snapshot.SelectorRequirement{Key: "k", Operator: OpIn, Values: []string{"a", "a"}, MinValues: 2}, []string{"k In", "1 distinct", "minValues 2"}},
		{snapshot.SelectorRequirement{Key: "k", Operator: OpExists, MinValues: -1}, []string{"k Exists", "-1"}},
	} {
		_, err := New(c.in)
		if err == nil {
			t.Errorf("%+v: no error", c.in)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %q does not say %q", c.in, err, part)
			}
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, c := range []struct {
		name, a, b, want string
		empty            bool
		impossible       bool
	}{
		{name: "allow, allow", a: "k In a b", b: "k In b c", want: "k In [b]"},
		{name: "allow, other allow", a: "k In a", b: "k In b", want: "k In []", empty: true, impossible: true},
		{name: "allow, deny", a: "k In a b", b: "k NotIn b c", want: "k In [a]"},
		{name: "allow, deny all", a: "k In a b", b: "k NotIn a b", want: "k In []", empty: true, impossible: true},
		{name: "deny, deny", a: "k NotIn a", b: "k NotIn b", want: "k NotIn [a b]"},
		{name: "deny, exists", a: "k NotIn a", b: "k Exists", want: "k Exists, NotIn [a]"},
		{name: "deny, absent", a: "k NotIn a", b: "k DoesNotExist", want: "k DoesNotExist", empty: true},
		{name: "exists, absent", a: "k Exists", b: "k DoesNotExist", want: "k In []", empty: true, impossible: true},
		{name: "allow, bound", a: "k In 4 8 16 x", b: "k Gt 4", want: "k In [16 8]"},
		{name: "deny, bound", a: "k NotIn 9 z", b: "k Gt 8", want: "k NotIn [9 z], Gte 9"},
		{name: "BC-21", a: cpu + " Gt 8", b: cpu + " Lt 24", want: cpu + " Gte 9, Lte 23"},
		{name: "BC-21 twin: Gt 15, Lt 16", a: cpu + " Gt 15", b: cpu + " Lt 16", want: cpu + " Gte 16, Lte 15", empty: true, impossible: true},
		{name: "BC-21 twin: Gt 8, Gt 16", a: cpu + " Gt 8", b: cpu + " Gt 16", want: cpu + " Gte 17"},
		{name: "BC-21 twin: Gte 8, Lte 8", a: cpu + " Gte 8", b: cpu + " Lte 8", want: cpu + " Gte 8, Lte 8"},
		{name: "alias", a: "beta.kubernetes.io/os In linux windows", b: "kubernetes.io/os In linux", want: "kubernetes.io/os In [linux]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []Requirement{
				req(t, c.a).Intersect(req(t, c.b)),
				req(t, c.b).Intersect(req(t, c.a)),
				req(t, c.a+";"+c.b),
			} {
				if r.String() != c.want || r.Empty() != c.empty || r.Impossible() != c.impossible {
					t.Errorf("is %q, empty %v, impossible %v; want %q, %v, %v",
						r, r.Empty(), r.Impossible(), c.want, c.empty, c.impossible)
				}
			}
		})
	}
}

// BC-21: the types that a pool's bounds leave, by their CPUs.
func TestBoundsChooseTypes(t *testing.T) {
	for _, c := range []struct {
		reqs string
		want []string
	}{
		{cpu + " Gt 8; " + cpu + " Lt 24", []string{"16"}},
		{cpu + " Lt 24; " + cpu + " Gt 8", []string{"16"}},
		{cpu + " Gt 15; " + cpu + " Lt 16", nil},
		{cpu + " Gt 8; " + cpu + " Gt 16", []string{"32"}},
		{cpu + " Gte 8; " + cpu + " Lte 8", []string{"8"}},
	} {
		var got []string
		for _, n := range []string{"2", "8", "16", "32"} {
			if set(t, c.reqs).IsCompatible(NewSet(In(cpu, n)), nil) {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.reqs, diff)
		}
	}
}

func TestMinValues(t *testing.T) {
	a := In("k", "a", "b", "c").WithMinValues(2)
	b := Exists("k").WithMinValues(3)
	got := a.Intersect(b)
	if got.MinValues() != 3 || got.String() != "k In [a b c], minValues 3" {
		t.Errorf("is %q with minValues %d", got, got.MinValues())
	}
}

func TestAny(t *testing.T) {
	for _, c := range []struct {
		in, want string
		none     bool
	}{
		{in: "k In b a", want: "a"},
		{in: "k Exists", want: "1"},
		{in: "k NotIn 1 2", want: "3"},
		{in: "k Gt 7; k NotIn 8", want: "9"},
		{in: "k Gte 8; k Lte 9; k NotIn 8 9", want: "08"},
		{in: "k Gt 9223372036854775806", want: "9223372036854775807"},
		{in: "k DoesNotExist", none: true},
		{in: "k Gt 3; k Lt 4", none: true},
		{in: "k Lt 0", none: true},
	} {
		r := req(t, c.in)
		got, ok := r.Any()
		if got != c.want || ok == c.none {
			t.Errorf("%s: %q, %v", c.in, got, ok)
		}
		if ok && !r.Has(got) {
			t.Errorf("%s: does not have its own %q", c.in, got)
		}
	}
}

func TestValuesAndBounds(t *testing.T) {
	values, complement := req(t, "k NotIn b a").Values()
	if diff := cmp.Diff([]string{"a", "b"}, values); diff != "" || !complement {
		t.Error(diff, complement)
	}
	lo, hi, ok := req(t, "k Gt 3; k Lte 9").Bounds()
	if lo != 4 || hi != 9 || !ok {
		t.Error(lo, hi, ok)
	}
	if _, _, ok := req(t, "k In 5; k Lte 9").Bounds(); ok {
		t.Error("an allow-list keeps bounds")
	}
	if v, ok := In("k", "a").Single(); v != "a" || !ok {
		t.Error(v, ok)
	}
	if _, ok := NotIn("k", "a").Single(); ok {
		t.Error("a deny-list of one is not single")
	}
	if got := DoesNotExist("beta.kubernetes.io/os").Key(); got != "kubernetes.io/os" {
		t.Error(got)
	}
}

// A requirement is a value: what is derived from it leaves it as it was.
func TestIntersectLeavesOperands(t *testing.T) {
	a, b := In("k", "a", "b", "c", "d"), NotIn("k", "b", "d")
	before := []string{a.String(), b.String()}
	first := a.Intersect(b)
	a.Intersect(In("k", "d"))
	first.Intersect(In("k", "c"))
	if diff := cmp.Diff(before, []string{a.String(), b.String()}); diff != "" {
		t.Error(diff)
	}
	if first.String() != "k In [a c]" {
		t.Error(first)
	}
}
