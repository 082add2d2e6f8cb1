package scheduling

import (
	"maps"
	"slices"

	"kerf.sh/kerf/internal/requirements"
)

// column is one label over a list of things: the same few values many times, so
// that a requirement is evaluated once per value.
type column struct {
	ids    []int32 // index in values; absent where the label is missing
	values []string
}

const absent = int32(-1)

// newColumn reads a label of n things.
func newColumn(n int, get func(i int) (string, bool)) *column {
	c := &column{ids: make([]int32, n)}
	var seen map[string]int32
	for i := range n {
		v, ok := get(i)
		if !ok {
			c.ids[i] = absent
			continue
		}
		// Labels change slowly along a list that is sorted by name.
		if k := len(c.values); k > 0 && i > 0 && c.ids[i-1] >= 0 && c.values[c.ids[i-1]] == v {
			c.ids[i] = c.ids[i-1]
			continue
		}
		id := int32(-1)
		if seen == nil {
			for k := range c.values {
				if c.values[k] == v {
					id = int32(k)
					break
				}
			}
			if id < 0 && len(c.values) == 8 {
				seen = make(map[string]int32, 64)
				for k := range c.values {
					seen[c.values[k]] = int32(k)
				}
			}
		} else if k, ok := seen[v]; ok {
			id = k
		}
		if id < 0 {
			id = int32(len(c.values))
			c.values = append(c.values, v)
			if seen != nil {
				seen[v] = id
			}
		}
		c.ids[i] = id
	}
	return c
}

// table evaluates a requirement on every value: entry id+1, absence first.
func (c *column) table(r *requirements.Requirement, buf []bool) []bool {
	buf = append(buf[:0], r.AllowsAbsent())
	for _, v := range c.values {
		buf = append(buf, r.Has(v))
	}
	return buf
}

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}
