package scheduling

import (
	"maps"
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// sameSet reports whether two lists hold the same elements, in any order. Lists
// written by one controller are in one order, so the first comparison nearly
// always decides.
func sameSet[T any](a, b []T, eq func(x, y *T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	inOrder := true
	for i := range a {
		if !eq(&a[i], &b[i]) {
			inOrder = false
			break
		}
	}
	if inOrder {
		return true
	}
	used := make([]bool, len(b))
next:
	for i := range a {
		for k := range b {
			if !used[k] && eq(&a[i], &b[k]) {
				used[k] = true
				continue next
			}
		}
		return false
	}
	return true
}

func sameString(a, b *string) bool { return *a == *b }

func sameExpression(a, b *snapshot.SelectorRequirement) bool {
	return a.Key == b.Key && a.Operator == b.Operator && sameSet(a.Values, b.Values, sameString)
}

func sameTerm(a, b *snapshot.NodeSelectorTerm) bool {
	return sameSet(a.Expressions, b.Expressions, sameExpression) && sameSet(a.Fields, b.Fields, sameExpression)
}

func samePreferred(a, b *snapshot.PreferredTerm) bool {
	return a.Weight == b.Weight && sameTerm(&a.Term, &b.Term)
}

func sameToleration(a, b *snapshot.Toleration) bool { return *a == *b }

func samePort(a, b *snapshot.HostPort) bool {
	return a.Port == b.Port && a.IP == b.IP && protocol(a.Protocol) == protocol(b.Protocol)
}

func sameSelector(a, b *snapshot.LabelSelector) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.MatchLabels, b.MatchLabels) && sameSet(a.Expressions, b.Expressions, sameExpression)
}

func sameSpread(a, b *snapshot.TopologySpread) bool {
	if (a.MinDomains == nil) != (b.MinDomains == nil) || a.MinDomains != nil && *a.MinDomains != *b.MinDomains {
		return false
	}
	return a.MaxSkew == b.MaxSkew && a.TopologyKey == b.TopologyKey && a.WhenUnsatisfiable == b.WhenUnsatisfiable &&
		a.NodeAffinityPolicy == b.NodeAffinityPolicy && a.NodeTaintsPolicy == b.NodeTaintsPolicy &&
		sameSelector(a.Selector, b.Selector) && sameSet(a.MatchLabelKeys, b.MatchLabelKeys, sameString)
}

func sameAffinity(a, b *snapshot.PodAffinityTerm) bool {
	return a.Weight == b.Weight && a.TopologyKey == b.TopologyKey &&
		sameSelector(a.Selector, b.Selector) && sameSelector(a.NamespaceSelector, b.NamespaceSelector) &&
		sameSet(a.Namespaces, b.Namespaces, sameString) && sameSet(a.MatchLabelKeys, b.MatchLabelKeys, sameString) &&
		sameSet(a.MismatchLabelKeys, b.MismatchLabelKeys, sameString)
}

// sameRules is equality in everything that hashRules reads.
func sameRules(p, q *snapshot.Pod, by *GroupBy) bool {
	a, b := &p.Spec, &q.Spec
	if len(a.NodeSelector) != len(b.NodeSelector) || (a.Required == nil) != (b.Required == nil) {
		return false
	}
	if len(a.NodeSelector) > 0 && !maps.Equal(a.NodeSelector, b.NodeSelector) {
		return false
	}
	if !sameSet(a.Required, b.Required, sameTerm) || !sameSet(a.Preferred, b.Preferred, samePreferred) ||
		!sameSet(a.Tolerations, b.Tolerations, sameToleration) || !sameSet(a.HostPorts, b.HostPorts, samePort) ||
		!sameSet(a.Spread, b.Spread, sameSpread) || !sameSet(a.Affinity, b.Affinity, sameAffinity) ||
		!sameSet(a.Anti, b.Anti, sameAffinity) {
		return false
	}
	if (by.Namespace || len(a.Spread)+len(a.Affinity)+len(a.Anti) > 0) && p.Namespace != q.Namespace {
		return false
	}
	return !slices.ContainsFunc(by.Labels, func(k string) bool {
		v, ok := p.Labels[k]
		w, have := q.Labels[k]
		return ok != have || v != w
	})
}

func sameRequests(a, b *snapshot.Resources) bool {
	if a.CPU != b.CPU || a.Memory != b.Memory || a.Ephemeral != b.Ephemeral || a.Pods != b.Pods {
		return false
	}
	if len(a.Extended)+len(b.Extended) == 0 {
		return true
	}
	for k, v := range a.Extended {
		if b.Extended[k] != v {
			return false
		}
	}
	for k, v := range b.Extended {
		if a.Extended[k] != v {
			return false
		}
	}
	return true
}
