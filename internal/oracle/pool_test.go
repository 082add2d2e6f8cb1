package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// ValidatePool judges as Karpenter's runtime validation does, which runs after the
// schema of the NodePool: what only the schema rejects is a departure here.
func TestValidatePool(t *testing.T) {
	const (
		effect     = "a taint without effect (Karpenter: the schema rejects it)"
		taintValue = "a taint value that no node can have (Karpenter: takes prefix/name, and the node never registers)"
		repeated   = "the same value twice counts once for minValues (Karpenter: twice, and the pool never has enough)"
	)
	keys := []string{"k", "example.com/k", "a/b/c", "-x", "", cpuLabel, tenancyLabel, "karpenter.sh/capacity-type", "karpenter.sh/nodepool", "karpenter.sh/x",
		"x.karpenter.k8s.aws/y", "kubernetes.io/hostname", "kubernetes.io/z", "beta.kubernetes.io/arch", "topology.ebs.csi.aws.com/zone"}
	labelValues := []string{"", "a", "a b", "spot", "xspot", "reserved", "default", "host", "-", "3", "-3", "x/y", strings.Repeat("a", 64)}
	faults := []string{"restricted labels pass", "repeated taints pass", "operators are not looked at"}
	check(t, []string{effect, taintValue, repeated}, faults, func(t *rapid.T, fault string) difference {
		key, value := rapid.SampledFrom(keys), rapid.SampledFrom(labelValues)
		reqs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snapshot.SelectorRequirement {
			if rapid.IntRange(0, 20).Draw(t, "repeated") == 0 {
				return snapshot.SelectorRequirement{Key: "k", Operator: "In", Values: []string{"a", "a"}, MinValues: 2}
			}
			r := snapshot.SelectorRequirement{
				Key:       key.Draw(t, "key"),
				Operator:  rapid.SampledFrom(append([]string{"Near"}, poolOperators...)).Draw(t, "operator"),
				MinValues: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "minValues"),
			}
			switch r.Operator {
			case "Exists", "DoesNotExist":
			default:
				r.Values = rapid.SliceOfN(value, 0, 3).Draw(t, "values")
			}
			return r
		}), 0, 2).Draw(t, "requirements")
		labels := rapid.MapOfN(key, value, 0, 1).Draw(t, "labels")
		taints := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snapshot.Taint {
			return snapshot.Taint{
				Key:    key.Draw(t, "key"),
				Value:  value.Draw(t, "value"),
				Effect: rapid.SampledFrom([]string{"NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule", "", "Never"}).Draw(t, "effect"),
			}
		}), 0, 1)
		own, startup := taints.Draw(t, "taints"), taints.Draw(t, "startupTaints")

		pool := &karpv1.NodePool{}
		pool.Spec.Template.Labels = labels
		pool.Spec.Template.Spec.Taints = theirTaints(own)
		pool.Spec.Template.Spec.StartupTaints = theirTaints(startup)
		for _, r := range reqs {
			their := karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values}
			if r.MinValues > 0 {
				their.MinValues = &r.MinValues
			}
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, their)
		}
		theirErr := pool.RuntimeValidate(t.Context())
		errs := requirements.ValidatePool(reqs, labels, own, startup)
		part := map[string]string{"restricted labels pass": "restricted", "repeated taints pass": "repeats", "operators are not looked at": "unknown operator"}[fault]
		if fault != "" {
			errs = slices.DeleteFunc(errs, func(err error) bool { return strings.Contains(err.Error(), part) })
		}
		if (len(errs) == 0) == (theirErr == nil) {
			return difference{}
		}
		all := slices.Concat(own, startup)
		return difference{
			fmt.Sprintf("%+v %v %v %v: ours %v, theirs %v", reqs, labels, own, startup, errs, theirErr),
			[]departure{
				{effect, len(errs) > 0 && slices.ContainsFunc(all, func(t snapshot.Taint) bool { return t.Effect == "" })},
				{taintValue, len(errs) > 0 && slices.ContainsFunc(all, func(t snapshot.Taint) bool { return t.Value == "x/y" })},
				{repeated, len(errs) > 0 && slices.ContainsFunc(reqs, func(r snapshot.SelectorRequirement) bool {
					return len(r.Values) >= r.MinValues && r.MinValues > len(slices.Compact(slices.Sorted(slices.Values(r.Values))))
				})},
			},
		}
	})
}

func theirTaints(in []snapshot.Taint) (out []corev1.Taint) {
	for _, t := range in {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}
