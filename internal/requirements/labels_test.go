package requirements

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestWellKnownIsSorted(t *testing.T) {
	if !slices.IsSorted(wellKnown) {
		t.Error("wellKnown is searched by halves and must be sorted")
	}
	for _, k := range wellKnown {
		if !WellKnown(k) || Restricted(k) != nil || checkLabelKey(k) != "" {
			t.Errorf("%s: well-known %v, restricted %v", k, WellKnown(k), Restricted(k))
		}
	}
	for alias, key := range aliases {
		if !WellKnown(key) || WellKnown(alias) || Normalize(alias) != key || Normalize(key) != key {
			t.Errorf("alias %s of %s", alias, key)
		}
	}
	for key, values := range knownValues {
		if !WellKnown(key) || !slices.IsSorted(values) {
			t.Errorf("known values of %s", key)
		}
	}
}

func TestRestricted(t *testing.T) {
	for key, hint := range map[string]string{
		"karpenter.sh/capacity-types":        "did you mean karpenter.sh/capacity-type?",
		"karpenter.sh/registered":            "",
		"karpenter.k8s.aws/instance-pods":    "",
		"karpenter.k8s.aws/ec2nodeclass":     "",
		"karpenter.k8s.aws/instance-cpus":    "did you mean karpenter.k8s.aws/instance-cpu?",
		"compatibility.karpenter.sh/x":       "",
		"compatibility.karpenter.k8s.aws/xy": "",
		"kubernetes.io/hostname":             "topology spread",
	} {
		err := Restricted(key)
		if err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, want it to say %q", key, err, hint)
		}
	}
	for _, key := range []string{
		"team", "example.com/team", "node.kubernetes.io/custom", "kubernetes.io/custom", "k8s.io/x",
		"notkarpenter.sh/x", "karpenter.sh.example.com/x", "karpenter.sh", "karpenter.sh/nodepool", "topology.kubernetes.io/zone",
	} {
		if err := Restricted(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Label syntax is Kubernetes' own.
func TestLabelSyntax(t *testing.T) {
	text := rapid.OneOf(
		rapid.StringMatching(`[-a-zA-Z0-9_.]{0,4}`),
		rapid.StringMatching(`[-a-zA-Z0-9_./]{0,12}`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,5}[a-z0-9])?/[a-zA-Z0-9]{1,3}`),
		rapid.SampledFrom([]string{
			strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253) + "/b", strings.Repeat("a", 254) + "/b",
			"a/" + strings.Repeat("b", 64), "é", "a\n", "A.b/c", "a..b/c", "a.-b/c", "/", "a/", "/a", ".", "a_b/c",
		}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		if got, want := checkLabelKey(s), validation.IsQualifiedName(s); (got == "") != (len(want) == 0) {
			t.Errorf("key %q: we say %q, Kubernetes %q", s, got, want)
		}
		if got, want := checkLabelValue(s), validation.IsValidLabelValue(s); (got == "") != (len(want) == 0) {
			t.Errorf("value %q: we say %q, Kubernetes %q", s, got, want)
		}
	})
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"topology.kubernetes.io/zon", "topology.kubernetes.io/zone"},
		{"topology.kubernetes.io/zoen", "topology.kubernetes.io/zone"},
		{"zone", "topology.kubernetes.io/zone"},
		{"arch", "kubernetes.io/arch"},
		{"karpenter.sh/instance-family", "karpenter.k8s.aws/instance-family"},
		{"karpenter.k8s.aws/instance-famly", "karpenter.k8s.aws/instance-family"},
		{"node.kubernetes.io/instance-types", "node.kubernetes.io/instance-type"},
		{"instance-typ", "node.kubernetes.io/instance-type"},
		{"team", ""},
		{"example.com/tier", ""},
		{"", ""},
	} {
		backwards := slices.Clone(wellKnown)
		slices.Reverse(backwards)
		for _, keys := range [][]string{wellKnown, backwards} {
			if got := nearest(c.key, slices.Values(keys)); got != c.want {
				t.Errorf("%q: nearest is %q, want %q", c.key, got, c.want)
			}
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1},
		{"kitten", "sitting", 3}, {"zone", "zones", 1}, {"abcdefghijkl", "x", 9},
	} {
		if got := distance(c.a, c.b, 9); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
