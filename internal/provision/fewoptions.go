package provision

import (
	"fmt"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/plan"
)

// few counts the launches of a pool that have less choice than finds capacity well.
type few struct {
	name, why string // of the first
	n         int
}

// limited records why a launch has few options and returns what is said of the launch
// itself: what rules leave. That others are dear is true of most launches of a pool and
// said once, of the pool.
func (pl *planner) limited(pool, launch, why string, dear bool) string {
	if why == "" {
		return ""
	}
	if pl.few == nil {
		pl.few = map[string]*few{}
	}
	if pl.few[pool] == nil {
		pl.few[pool] = &few{name: launch, why: why}
	}
	pl.few[pool].n++
	if dear {
		return ""
	}
	return why
}

// warnFewOptions remarks on pools whose launches have few options, with one launch of
// each as an example.
func (pl *planner) warnFewOptions() {
	for _, pool := range slices.Sorted(maps.Keys(pl.few)) {
		f := pl.few[pool]
		detail := fmt.Sprintf("launch %s has %s", f.name, f.why)
		if f.n > 1 {
			detail = fmt.Sprintf("%d launches have few options; %s has %s", f.n, f.name, f.why)
		}
		pl.warn("nodepool/"+pool, plan.FewOptions, detail)
	}
}
