package scheduling

import (
	"kerf.sh/kerf/internal/snapshot"
)

// Selects reports whether a label selector matches labels; nil matches nothing.
func Selects(s *snapshot.LabelSelector, labels map[string]string) bool { return selects(s, labels) }
