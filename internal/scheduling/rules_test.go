package scheduling

import (
	"testing"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

func TestRulesThatRefuseNewNodes(t *testing.T) {
	term := func(es ...snapshot.SelectorRequirement) snapshot.NodeSelectorTerm {
		return snapshot.NodeSelectorTerm{Expressions: es}
	}
	e := func(key, op string, values ...string) snapshot.SelectorRequirement {
		return snapshot.SelectorRequirement{Key: key, Operator: op, Values: values}
	}
	avoid := e("karpenter.sh/nodepool", "DoesNotExist")
	cases := []struct {
		name string
		spec snapshot.PodSpec
		want plan.Code
		alts int
	}{
		{"nothing", snapshot.PodSpec{}, "", 1},
		{"selector", snapshot.PodSpec{NodeSelector: map[string]string{"team": "a"}}, "", 1},
		{"pool selector", snapshot.PodSpec{NodeSelector: map[string]string{"karpenter.sh/nodepool": "a"}}, "", 1},
		{"class selector", snapshot.PodSpec{NodeSelector: map[string]string{"karpenter.k8s.aws/ec2nodeclass": "a"}}, "", 1},
		{"hostname", snapshot.PodSpec{NodeSelector: map[string]string{"kubernetes.io/hostname": "n1"}}, plan.InvalidSelector, 1},
		{"restricted domain", snapshot.PodSpec{NodeSelector: map[string]string{"karpenter.sh/initialised": "true"}}, plan.InvalidSelector, 1},
		{"two terms", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{term(e("a", "Exists")), term(e("b", "In", "1"))}}, "", 2},
		{"empty terms match nothing", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{}, {}}}, "", 0},
		{"no terms match nothing", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{}}, "", 0},
		{"unknown operator", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{term(e("a", "Near", "1"))}}, plan.InvalidSelector, 0},
		{"pool operator", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{term(e("a", "Gte", "1"))}}, plan.InvalidSelector, 0},
		{"an invalid term beside a valid one", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{term(e("a", "Gt", "eight")), term(e("b", "In", "1"))}}, "", 1},
		{"an invalid term before an empty one", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{}, term(e("a", "Gt", "eight"))}}, plan.InvalidSelector, 0},
		{"matchFields", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{Fields: []snapshot.SelectorRequirement{e("metadata.name", "In", "n1")}}}}, plan.MatchFieldsUsed, 1},
		{"avoids all pools", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{term(avoid)}}, plan.RefusesNodePools, 1},
		{"avoids all pools in one of two terms", snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{term(avoid), term(e("a", "Exists"))}}, "", 2},
		{"prefers to avoid all pools (S-05)", snapshot.PodSpec{Preferred: []snapshot.PreferredTerm{{Weight: 1, Term: term(avoid)}}}, "", 1},
	}
	for _, c := range cases {
		r := compileRules(&c.spec).restrict()
		if r.refused != c.want || len(r.Alternatives) != c.alts || (r.refused == "") != (r.detail == "") {
			t.Errorf("%s: %q (%s), %d alternatives; want %q, %d", c.name, r.refused, r.detail, len(r.Alternatives), c.want, c.alts)
		}
	}
}
