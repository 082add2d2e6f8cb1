package scheduling

import (
	"cmp"
	"encoding/binary"
	"slices"
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

// appendID writes the matcher so that equal ones are equal bytes. Whatever comes in any
// number is written with its number, and strings with their length.
func (m *matcher) appendID(b []byte) []byte {
	b = appendSelector(b, m.sel)
	extra := m.extra
	if len(extra) > 1 {
		extra = slices.Clone(extra)
		slices.SortFunc(extra, func(a, c folded) int {
			return cmp.Or(strings.Compare(a.key, c.key), strings.Compare(a.value, c.value), btoi(a.not)-btoi(c.not))
		})
	}
	b = binary.AppendUvarint(b, uint64(len(extra)))
	for _, f := range extra {
		b = append(appendString(appendString(b, f.key), f.value), byte(btoi(f.not)))
	}
	return appendSelector(appendStrings(b, m.namespaces), m.spaces)
}

func appendSelector(b []byte, s *snapshot.LabelSelector) []byte {
	if s == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(append(b, 1), uint64(len(s.MatchLabels)))
	if len(s.MatchLabels) == 1 { // nearly always
		for k, v := range s.MatchLabels {
			b = appendString(appendString(b, k), v)
		}
	} else {
		for _, k := range sortedKeys(s.MatchLabels) {
			b = appendString(appendString(b, k), s.MatchLabels[k])
		}
	}
	parts := make([]string, len(s.Expressions))
	for i := range s.Expressions {
		e := &s.Expressions[i]
		parts[i] = string(appendStrings(appendString(appendString(nil, e.Key), e.Operator), e.Values))
	}
	return appendStrings(b, parts)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendStrings writes a list whose order has no meaning.
func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	if len(list) > 1 {
		list = slices.Sorted(slices.Values(list))
	}
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// firstKey is the first key of a map that has some, by name.
func firstKey(m map[string]string) string {
	first, found := "", false
	for k := range m {
		if !found || k < first {
			first, found = k, true
		}
	}
	return first
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
