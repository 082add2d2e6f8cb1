package scheduling

import (
	"slices"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// selects reports whether a label selector matches labels. A nil selector selects
// nothing, an empty one everything; an unknown operator selects nothing.
func selects(s *snapshot.LabelSelector, labels map[string]string) bool {
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
		case requirements.OpIn:
			ok = ok && slices.Contains(e.Values, v)
		case requirements.OpNotIn:
			ok = !ok || !slices.Contains(e.Values, v)
		case requirements.OpExists:
		case requirements.OpDoesNotExist:
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
