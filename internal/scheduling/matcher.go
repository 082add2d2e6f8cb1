package scheduling

import (
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// labelNamespaceName is the label that the API server gives every namespace.
const labelNamespaceName = "kubernetes.io/metadata.name"

// matcher selects pods by label in some namespaces.
type matcher struct {
	sel *snapshot.LabelSelector // nil selects nothing
	// extra are labels of the carrying pod folded into the selector (matchLabelKeys
	// and mismatchLabelKeys).
	extra []folded
	// namespaces by name; with spaces, also those whose labels it selects.
	namespaces []string
	spaces     *snapshot.LabelSelector
}

// folded is a label value that selected pods must have, or must not.
type folded struct {
	key, value string
	not        bool
}

// spreadMatcher selects what a spread constraint of a pod counts. Folding the keys in
// again is harmless where the API server has done so already.
func spreadMatcher(p *snapshot.Pod, t *snapshot.TopologySpread) matcher {
	m := matcher{sel: t.Selector, namespaces: []string{p.Namespace}}
	m.fold(p, t.MatchLabelKeys, false)
	return m
}

// affinityMatcher selects what a pod (anti-)affinity term of a pod is about. A term
// without namespaces and namespaceSelector means the pod's own namespace.
func affinityMatcher(p *snapshot.Pod, t *snapshot.PodAffinityTerm) matcher {
	m := matcher{sel: t.Selector, namespaces: t.Namespaces, spaces: t.NamespaceSelector}
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		m.namespaces = []string{p.Namespace}
	}
	m.fold(p, t.MatchLabelKeys, false)
	m.fold(p, t.MismatchLabelKeys, true)
	return m
}

func (m *matcher) fold(p *snapshot.Pod, keys []string, not bool) {
	for _, k := range keys {
		if v, ok := p.Labels[k]; ok {
			m.extra = append(m.extra, folded{k, v, not})
		}
	}
}

// matches reports whether the matcher selects a pod. labels are those of namespaces.
func (m *matcher) matches(p *snapshot.Pod, labels map[string]map[string]string) bool {
	return m.sees(p.Namespace, labels) && m.selects(p.Labels)
}

func (m *matcher) selects(labels map[string]string) bool {
	if !selects(m.sel, labels) {
		return false
	}
	for i := range m.extra {
		f := &m.extra[i]
		if v, ok := labels[f.key]; (ok && v == f.value) == f.not {
			return false
		}
	}
	return true
}

// sees reports whether pods of a namespace are looked at.
func (m *matcher) sees(namespace string, labels map[string]map[string]string) bool {
	if slices.Contains(m.namespaces, namespace) {
		return true
	}
	if m.spaces == nil {
		return false
	}
	have, ok := labels[namespace]
	if !ok { // every namespace has this label at least
		have = map[string]string{labelNamespaceName: namespace}
	}
	return selects(m.spaces, have)
}

// id writes the matcher so that equal ones are equal strings.
func (m *matcher) id(b *strings.Builder) {
	selectorID(b, m.sel)
	extra := slices.Clone(m.extra)
	slices.SortFunc(extra, func(a, c folded) int { return strings.Compare(a.key+"\x00"+a.value, c.key+"\x00"+c.value) })
	for _, f := range extra {
		b.WriteString(strconv.Quote(f.key) + strconv.FormatBool(f.not) + strconv.Quote(f.value))
	}
	b.WriteByte('@')
	for _, n := range slices.Sorted(slices.Values(m.namespaces)) {
		b.WriteString(strconv.Quote(n))
	}
	selectorID(b, m.spaces)
}

func selectorID(b *strings.Builder, s *snapshot.LabelSelector) {
	if s == nil {
		b.WriteString("nil;")
		return
	}
	b.WriteByte('{')
	for _, k := range sortedKeys(s.MatchLabels) {
		b.WriteString(strconv.Quote(k) + "=" + strconv.Quote(s.MatchLabels[k]))
	}
	parts := make([]string, len(s.Expressions))
	for i := range s.Expressions {
		e := &s.Expressions[i]
		parts[i] = strconv.Quote(e.Key) + e.Operator
		for _, v := range slices.Sorted(slices.Values(e.Values)) {
			parts[i] += strconv.Quote(v)
		}
	}
	slices.Sort(parts)
	for _, p := range parts {
		b.WriteString(p)
	}
	b.WriteByte('}')
}

// selectorKeys adds the labels that a selector reads.
func selectorKeys(into map[string]bool, s *snapshot.LabelSelector) {
	if s == nil {
		return
	}
	for k := range s.MatchLabels {
		into[k] = true
	}
	for i := range s.Expressions {
		into[s.Expressions[i].Key] = true
	}
}

// describeSelector writes a selector for people.
func describeSelector(s *snapshot.LabelSelector) string {
	if s == nil {
		return "no pod"
	}
	var parts []string
	for _, k := range sortedKeys(s.MatchLabels) {
		parts = append(parts, k+"="+s.MatchLabels[k])
	}
	for i := range s.Expressions {
		e := &s.Expressions[i]
		switch e.Operator {
		case requirements.OpExists, requirements.OpDoesNotExist:
			parts = append(parts, e.Key+" "+e.Operator)
		default:
			parts = append(parts, e.Key+" "+e.Operator+" ["+strings.Join(e.Values, " ")+"]")
		}
	}
	if len(parts) == 0 {
		return "all pods"
	}
	return strings.Join(parts, ", ")
}
