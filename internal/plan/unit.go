package plan

import "strings"

// IsUnit reports whether a reference is that of a unit of a CapacityBuffer
// ("buffer/namespace/buffer/number") and not of a pod ("namespace/name").
func IsUnit(ref string) bool {
	return strings.HasPrefix(ref, "buffer/") && strings.Count(ref, "/") == 3
}
