package provision

import (
	"fmt"

	"kerf.sh/kerf/internal/packing"
)

// fewerValues says which minValues a launch does not meet, and by how much (Karpenter:
// annotation karpenter.sh/nodeclaim-min-values-relaxed).
func fewerValues(t *packing.Template, options []int) []string {
	var out []string
	for i := range t.MinValues {
		mv := &t.MinValues[i]
		values := map[int32]bool{}
		for _, o := range options {
			for _, v := range mv.Values[t.Offers[o].Type] {
				values[v] = true
			}
		}
		if len(values) < mv.Min {
			out = append(out, fmt.Sprintf("minValues of %s lowered from %d to %d", mv.Key, mv.Min, len(values)))
		}
	}
	return out
}
