package scheduling

import "kerf.sh/kerf/internal/snapshot"

// selects reports whether a label selector matches labels (snapshot.LabelSelector.Selects).
func selects(s *snapshot.LabelSelector, labels map[string]string) bool { return s.Selects(labels) }
