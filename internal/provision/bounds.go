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
		out := plan.Bound{Pods: b.Pods, Total: b.Total, Kind: string(b.Kind), Linear: b.Linear, Credit: b.Credit, Demand: map[string]float64{}, Duals: map[string]float64{}}
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
		out.Steps = pl.inUnits(b.Steps)
		for k := range b.Groups {
			g := &b.Groups[k]
			part := plan.BoundPart{Pod: pl.anyPod(g.Class), Pods: g.Pods, Demand: pl.inUnits(g.Demand), Duals: map[string]float64{}}
			for d, v := range g.Duals {
				part.Duals[pl.p.Dims[d]] = v * unit(pl.p.Dims[d])
			}
			out.Parts = append(out.Parts, part)
		}
		for _, c := range b.Prices {
			out.Prices = append(out.Prices, plan.PodPrice{Pod: pl.anyPod(c.Class), Price: c.Price})
		}
		pl.out.Bounds = append(pl.out.Bounds, out)
	}
	pl.out.Bounds = append(pl.out.Bounds, pl.forced...)
}

// anyPod names the first pod of a class.
func (pl *planner) anyPod(class int) string {
	return pl.s.Pods[pl.w.Classes[class].Pods[0]].Ref()
}

// inUnits gives a vector of raw amounts by resource, in people's units, without what
// is 0.
func (pl *planner) inUnits(v []int64) map[string]float64 {
	out := make(map[string]float64, len(v))
	for d, x := range v {
		if d < len(pl.p.Dims) && x != 0 {
			out[pl.p.Dims[d]] = float64(x) / unit(pl.p.Dims[d])
		}
	}
	return out
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
