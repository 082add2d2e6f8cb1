package plan

import "strings"

// IsUnit reports whether a reference is that of a unit of a CapacityBuffer
// ("buffer/namespace/buffer/number") and not of a pod ("namespace/name").
func IsUnit(ref string) bool {
	return strings.HasPrefix(ref, "buffer/") && strings.Count(ref, "/") == 3
}

// CountMoved says what placements are of: "3 pods", "2 pods and 1 buffer unit".
func CountMoved(list []Placement) string {
	units := 0
	for _, p := range list {
		if IsUnit(p.Pod) {
			units++
		}
	}
	switch {
	case units == 0:
		return Count(len(list), "pod")
	case units == len(list):
		return Count(units, "buffer unit")
	}
	return Count(len(list)-units, "pod") + " and " + Count(units, "buffer unit")
}
