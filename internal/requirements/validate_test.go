package requirements

import (
	"strings"
	"testing"

	"kerf.sh/kerf/internal/snapshot"
)

func TestValidatePool(t *testing.T) {
	reqs := func(texts ...string) (out []snapshot.SelectorRequirement) {
		for _, s := range texts {
			out = append(out, entry(s))
		}
		return out
	}
	taint := func(key, value, effect string) snapshot.Taint {
		return snapshot.Taint{Key: key, Value: value, Effect: effect}
	}
	many := func(n int) (out []snapshot.SelectorRequirement) {
		for range n {
			out = append(out, entry("k Exists"))
		}
		return out
	}
	for _, c := range []struct {
		name            string
		reqs            []snapshot.SelectorRequirement
		labels          map[string]string
		taints, startup []snapshot.Taint
		want            []string // one per error: parts, separated by |
	}{
		{name: "empty"},
		{name: "usual",
			reqs: reqs("karpenter.sh/capacity-type In spot on-demand", "beta.kubernetes.io/arch In arm64", cpu+" Gt 4", cpu+" Lt 16",
				"team Exists", "karpenter.k8s.aws/instance-tenancy In default", "k NotIn", "k DoesNotExist"),
			labels:  map[string]string{"team": "web", "kubernetes.io/os": "linux"},
			taints:  []snapshot.Taint{taint("a", "", "NoSchedule"), taint("a", "x", "NoExecute")},
			startup: []snapshot.Taint{taint("a", "", "PreferNoSchedule")}},
		{name: "BC-21: Gt eight", reqs: reqs(cpu + " Gt eight"),
			want: []string{`spec.template.spec.requirements[0]: ` + cpu + ` Gt|"eight"|whole number`}},
		{name: "BC-21: a contradiction is valid", reqs: reqs(cpu+" Gt 15", cpu+" Lt 16")},
		{name: "negative bound", reqs: reqs("k Exists", "k Lt -3"),
			want: []string{`requirements[1]: k Lt|"-3"|from 0`}},
		{name: "S-13: no capacity type is known", reqs: reqs("karpenter.sh/capacity-type In xspot"),
			want: []string{`requirements[0]: karpenter.sh/capacity-type In|"xspot"|on-demand, reserved, spot`}},
		{name: "S-13: one is known", reqs: reqs("karpenter.sh/capacity-type In xspot spot")},
		{name: "S-13: none is asked for", reqs: reqs("karpenter.sh/capacity-type NotIn xspot")},
		{name: "known values fewer than minValues",
			reqs: []snapshot.SelectorRequirement{{Key: labelCapacityType, Operator: OpIn, Values: []string{"spot", "x", "spot"}, MinValues: 2}},
			want: []string{"1 known values, fewer than minValues 2"}},
		{name: "tenancy", reqs: reqs("karpenter.k8s.aws/instance-tenancy In host"),
			want: []string{`instance-tenancy In|"host"|dedicated, default`}},
		{name: "restricted requirement keys",
			reqs: reqs("karpenter.sh/nodepool In x", "karpenter.sh/registered Exists", "kubernetes.io/hostname In a", "karpenter.k8s.aws/instance-pods Gt 8"),
			want: []string{"requirements[0]|karpenter.sh/nodepool", "requirements[1]|karpenter.sh/registered", "requirements[2]|kubernetes.io/hostname", "requirements[3]|instance-pods"}},
		{name: "minValues", reqs: []snapshot.SelectorRequirement{{Key: "k", Operator: OpExists, MinValues: 51}, {Key: "k", Operator: OpIn, Values: []string{"a"}, MinValues: 2}},
			want: []string{"requirements[0]: k: minValues 51 is more than 50", "requirements[1]: k In: 1 distinct"}},
		{name: "too many", reqs: many(101), want: []string{"101 requirements"}},
		{name: "labels", labels: map[string]string{"b_/x": "y", "a": "x y", "karpenter.sh/nodepool": "p", "kubernetes.io/hostname": "h"},
			want: []string{`labels[a]: value "x y"`, `labels[b_/x]: label key "b_/x"`, "labels[karpenter.sh/nodepool]|set by the autoscaler", "labels[kubernetes.io/hostname]|restricted"}},
		{name: "taints",
			taints:  []snapshot.Taint{taint("", "", "NoSchedule"), taint("a", "x y", "NoSchedule"), taint("b", "", "Never"), taint("c", "1", "NoExecute")},
			startup: []snapshot.Taint{taint("c", "2", "NoExecute"), taint("c", "", "NoSchedule")},
			want: []string{`spec.template.spec.taints[0]: taint key ""`, `taints[1]: taint a: value "x y"`, `taints[2]: taint b: effect "Never": use NoSchedule`,
				`startupTaints[0]: taint c:NoExecute repeats spec.template.spec.taints[3]`}},
		{name: "long key", reqs: []snapshot.SelectorRequirement{{Key: strings.Repeat("a", 253) + "/" + strings.Repeat("b", 63), Operator: OpExists}},
			want: []string{"317 characters"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			errs := ValidatePool(c.reqs, c.labels, c.taints, c.startup)
			for i, err := range errs {
				if i >= len(c.want) {
					t.Errorf("also: %v", err)
					continue
				}
				for part := range strings.SplitSeq(c.want[i], "|") {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %q does not say %q", err, part)
					}
				}
			}
			for i := len(errs); i < len(c.want); i++ {
				t.Errorf("no error that says %q", c.want[i])
			}
		})
	}
}
