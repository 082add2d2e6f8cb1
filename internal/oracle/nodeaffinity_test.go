package oracle

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// MatchesLabels decides as kube-scheduler does about a node that exists: terms are
// alternatives, the expressions of one all hold, and a term with an error matches
// nothing.
func TestNodeAffinity(t *testing.T) {
	faults := []string{"all terms must match", "a missing label never matches", "a bad term is left out"}
	check(t, nil, faults, func(t *rapid.T, fault string) difference {
		keys := rapid.SampledFrom([]string{"k", "l", cpuLabel})
		labels := rapid.MapOfN(keys, rapid.SampledFrom(values), 0, 3).Draw(t, "labels")
		var terms []corev1.NodeSelectorTerm
		our := fault == "all terms must match"
		for range rapid.IntRange(1, 3).Draw(t, "terms") {
			var entries []snapshot.SelectorRequirement
			var term corev1.NodeSelectorTerm
			for range rapid.IntRange(1, 3).Draw(t, "expressions") {
				e := drawEntry(t, keys.Draw(t, "key"), podOperators...)
				switch rapid.IntRange(0, 30).Draw(t, "mistake") {
				case 0:
					e.Operator = "Near"
				case 1:
					e.Operator, e.Values = "Gt", []string{"eight"}
				case 2:
					e.Operator, e.Values = "Lt", []string{"1", "2"}
				case 3:
					e.Operator, e.Values = "In", nil
				case 4:
					e.Operator, e.Values = "In", []string{"a b"}
				case 5:
					e.Operator, e.Values = "Gt", []string{"-1"}
				case 6:
					e.Operator, e.Values = "Lt", []string{"+3"}
				case 7:
					e.Operator, e.Values = "Gt", []string{"99999999999999999999"}
				case 8:
					e.Key = "a/b/c"
				}
				entries = append(entries, e)
				term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
					Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: e.Values})
			}
			terms = append(terms, term)
			s, err := requirements.Parse(entries)
			match := err == nil && s.MatchesLabels(labels) == nil
			switch fault {
			case "all terms must match":
				our = our && match
				continue
			case "a missing label never matches":
				for _, k := range s.Keys() {
					_, ok := labels[k]
					match = match && ok
				}
			case "a bad term is left out":
				match = match || err != nil
			}
			our = our || match
		}
		node := &corev1.Node{}
		node.Labels = labels
		their, _ := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: terms}).Match(node)
		if our != their {
			return difference{text: fmt.Sprintf("%v on %v: ours %v, theirs %v", terms, labels, our, their)}
		}
		return difference{}
	})
}
