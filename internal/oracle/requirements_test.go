package oracle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/scheduling"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// What Karpenter's AWS provider adds to the core's label tables.
func init() {
	karpv1.RestrictedLabelDomains.Insert("karpenter.k8s.aws")
	karpv1.WellKnownLabels.Insert(cpuLabel, tenancyLabel)
	karpv1.WellKnownValuesForRequirements[tenancyLabel] = karpv1.WellKnownValuesForRequirements[karpv1.CapacityTypeLabelKey].Clone().Clear().Insert("default", "dedicated")
	karpv1.NormalizedLabels["topology.ebs.csi.aws.com/zone"] = corev1.LabelTopologyZone
}

const (
	cpuLabel     = "karpenter.k8s.aws/instance-cpu"
	tenancyLabel = "karpenter.k8s.aws/instance-tenancy"
)

// values are what a label can have: a value never begins with a sign.
var values = []string{"", "a", "b", "c", "other", "0", "1", "2", "3", "4", "5", "6", "02", "03", "9223372036854775806", "9223372036854775807", "9223372036854775808"}

func drawEntry(t *rapid.T, key string, operators ...string) snapshot.SelectorRequirement {
	e := snapshot.SelectorRequirement{Key: key, Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
	switch e.Operator {
	case "In", "NotIn":
		e.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "1", "2", "3", "4", "03"}), 1, 5).Draw(t, "values")
	case "Gt", "Lt", "Gte", "Lte":
		e.Values = []string{rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "9223372036854775806", "9223372036854775807"}).Draw(t, "bound")}
	}
	return e
}

var (
	poolOperators = []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}
	podOperators  = poolOperators[:6]
)

func drawEntries(t *rapid.T, keys ...string) []snapshot.SelectorRequirement {
	n := rapid.IntRange(0, 4).Draw(t, "entries")
	out := make([]snapshot.SelectorRequirement, n)
	for i := range out {
		out[i] = drawEntry(t, rapid.SampledFrom(keys).Draw(t, "key"), poolOperators...)
		if out[i].Operator != "In" {
			out[i].MinValues = rapid.IntRange(0, 3).Draw(t, "minValues")
		}
	}
	return out
}

func theirs(entries []snapshot.SelectorRequirement) karp.Requirements {
	out := karp.NewRequirements()
	for _, e := range entries {
		var minValues *int
		if e.MinValues > 0 {
			minValues = &e.MinValues
		}
		out.Add(karp.NewRequirementWithFlexibility(e.Key, corev1.NodeSelectorOperator(e.Operator), minValues, slices.Clone(e.Values)...))
	}
	return out
}

func ours(t *rapid.T, entries []snapshot.SelectorRequirement) requirements.Set {
	s, err := requirements.Parse(entries)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRequirement(t *testing.T) {
	faults := []string{"Gt is inclusive", "the first requirement of a key is lost", "minValues is lost"}
	check(t, nil, faults, func(t *rapid.T, fault string) difference {
		entries := append(drawEntries(t, "k"), drawEntry(t, "k", poolOperators...))
		their := theirs(entries).Get("k")
		asked := slices.Clone(entries)
		switch fault {
		case "Gt is inclusive":
			for i := range asked {
				if asked[i].Operator == "Gt" {
					asked[i].Operator = "Gte"
				}
			}
		case "the first requirement of a key is lost":
			asked = asked[len(asked)-1:]
		}
		our, _ := ours(t, asked).Get("k")
		if fault == "minValues is lost" {
			our = our.WithMinValues(0)
		}
		differ := func(what string) difference {
			return difference{text: fmt.Sprintf("%v: ours %v, theirs %v: %s", entries, our, their, what)}
		}
		for _, v := range values {
			if our.Has(v) != their.Has(v) {
				return differ("has " + v)
			}
		}
		// Gt of the largest integer becomes a DoesNotExist without minValues there.
		if theirMin := their.MinValues; !our.Empty() && our.MinValues() != lo.FromPtr(theirMin) {
			return differ("minValues")
		}
		if vs, complement := our.Values(); !complement {
			got := their.Values()
			slices.Sort(got)
			if !slices.Equal(got, vs) {
				return differ("values")
			}
		}
		return difference{}
	})
}

// Kerf never takes what Karpenter refuses. It refuses what Karpenter takes only
// where Karpenter loses a demand on the way.
func TestCompatible(t *testing.T) {
	const (
		contradiction = "requirements of one key that contradict each other allow nothing (Karpenter: they become DoesNotExist, which a missing label satisfies)"
		presence      = "Exists, Gt, Lt, Gte, Lte keep demanding the label next to a NotIn (Karpenter: they become a NotIn, which a missing label satisfies)"
	)
	keys := []string{cpuLabel, "k", "beta.kubernetes.io/arch", "kubernetes.io/arch"}
	faults := []string{"every undefined key is open", "no undefined key is open", "a missing label satisfies nothing"}
	check(t, []string{contradiction, presence}, faults, func(t *rapid.T, fault string) difference {
		haveEntries, wantEntries := drawEntries(t, keys...), drawEntries(t, keys...)
		have, want := ours(t, haveEntries), ours(t, wantEntries)
		var open func(string) bool
		their := false
		if rapid.Bool().Draw(t, "open") {
			open = requirements.WellKnown
			their = theirs(haveEntries).IsCompatible(theirs(wantEntries), karp.AllowUndefinedWellKnownLabels)
		} else {
			their = theirs(haveEntries).IsCompatible(theirs(wantEntries))
		}
		switch fault {
		case "every undefined key is open":
			open = func(string) bool { return true }
		case "no undefined key is open":
			open = nil
		}
		our := have.IsCompatible(want, open)
		if fault == "a missing label satisfies nothing" {
			our = our && !some(want, requirements.Requirement.AllowsAbsent)
		}
		if our == their {
			return difference{}
		}
		return difference{
			fmt.Sprintf("have %v, want %v: ours %v, theirs %v", have, want, our, their),
			[]departure{
				{contradiction, !our && (some(have, requirements.Requirement.Impossible) || some(want, requirements.Requirement.Impossible))},
				{presence, !our && (some(have, demanded) || some(want, demanded))},
			},
		}
	})
}

func some(s requirements.Set, f func(requirements.Requirement) bool) bool {
	for r := range s.All() {
		if f(r) {
			return true
		}
	}
	return false
}

// demanded: values are denied, and the label must be there all the same.
func demanded(r requirements.Requirement) bool {
	denied, complement := r.Values()
	return complement && len(denied) > 0 && !r.AllowsAbsent()
}

func TestWellKnownAndRestricted(t *testing.T) {
	for _, key := range slices.Concat(karpv1.WellKnownLabels.UnsortedList(), []string{
		"karpenter.sh/x", "a.karpenter.sh/x", "karpenter.k8s.aws/x", "kubernetes.io/hostname", "kubernetes.io/x", "k8s.io/y", "x", "example.com/x",
		"notkarpenter.sh/x", "karpenter.sh", "karpenter.sh/nodepool", "karpenter.sh/initialized",
	}) {
		if got, want := requirements.Restricted(key), karpv1.IsRestrictedLabel(key); (got == nil) != (want == nil) {
			t.Errorf("%s: ours %v, theirs %v", key, got, want)
		}
		if karpv1.WellKnownLabels.Has(key) && !requirements.WellKnown(key) {
			t.Errorf("%s is well known", key)
		}
	}
	for alias, key := range karpv1.NormalizedLabels {
		if got := requirements.Normalize(alias); got != key {
			t.Errorf("%s: normalised to %s, want %s", alias, got, key)
		}
	}
}
