package provision

import (
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// bounds turns the certified bounds into people's units: cores, GiB, pods.
func (pl *planner) bounds() {
	for i := range pl.r.Bounds {
		b := &pl.r.Bounds[i]
		out := plan.Bound{Pods: b.Pods, Total: b.Total, Demand: map[string]float64{}, Duals: map[string]float64{}}
		for _, t := range b.Templates {
			out.Pools = append(out.Pools, pl.w.Pools[pl.w.Templates[t].Pool].Spec.Name)
		}
		slices.Sort(out.Pools)
		out.Pools = slices.Compact(out.Pools)
		for k := range b.Demand {
			name := snapshot.Nodes // the last row is the forced node count
			if k < len(pl.p.Dims) {
				name = pl.p.Dims[k]
			}
			u := unit(name)
			out.Demand[name] = float64(b.Demand[k]) / u
			if k < len(b.Duals) {
				out.Duals[name] = b.Duals[k] * u
			}
		}
		pl.out.Bounds = append(pl.out.Bounds, out)
	}
}

// unit is how many raw units people count as one.
func unit(resource string) float64 {
	switch resource {
	case snapshot.CPU:
		return 1000
	case snapshot.Memory, snapshot.EphemeralStorage:
		return 1 << 30
	}
	return 1
}
