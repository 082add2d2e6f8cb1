package snapshot

import "slices"

// Selects reports whether the selector matches labels. A nil selector selects nothing, an
// empty one everything; an unknown operator selects nothing.
func (s *LabelSelector) Selects(labels map[string]string) bool {
	if s == nil {
		return false
	}
	for k, v := range s.MatchLabels {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for i := range s.Expressions {
		e := &s.Expressions[i]
		v, ok := labels[e.Key]
		switch e.Operator {
		case "In":
			ok = ok && slices.Contains(e.Values, v)
		case "NotIn":
			ok = !ok || !slices.Contains(e.Values, v)
		case "Exists":
		case "DoesNotExist":
			ok = !ok
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}
