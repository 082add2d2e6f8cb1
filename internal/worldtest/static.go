package worldtest

import (
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// static: the launches of a static pool are as many as it is short of, within its
// limit, and none when the feature is off.
func (j *judge) static() {
	launched := map[string]int64{}
	for _, l := range j.p.Launches {
		launched[l.NodePool]++
	}
	for _, name := range sortedKeys(j.pools) {
		v := j.pools[name]
		if v.pool.Replicas == nil {
			continue
		}
		want := int64(0)
		if len(v.supplies) > 0 && (!j.strictMinValues(v) || launched[name] > 0) {
			running, all := int64(0), int64(0)
			for _, n := range j.nodes {
				if n.pool == name {
					all++
					if !n.going {
						running++
					}
				}
			}
			want = max(0, *v.pool.Replicas-running)
			if limit, ok := v.pool.Limits[snapshot.Nodes]; ok {
				want = min(want, max(0, limit-all))
			}
		}
		if launched[name] != want {
			j.fail("static NodePool %s launches %d nodes, it is short of %d", name, launched[name], want)
		}
	}
	// No pod has a node launched for it that fits one of theirs.
	for _, l := range j.p.Launches {
		v := j.pools[l.NodePool]
		if !l.Static || v == nil {
			continue
		}
		sup := v.find(l.Chosen)
		for _, o := range j.p.Launches {
			forPods := slices.ContainsFunc(j.inLaunch[o.Name], func(p *snapshot.Pod) bool { return p.Buffer == "" })
			for _, p := range j.inLaunch[o.Name] {
				if p.Buffer != "" && forPods {
					continue // the launch is there for pods
				}
				if !o.Static && sup != nil && j.holds(sup, &l, append(append([]*snapshot.Pod(nil), j.inLaunch[l.Name]...), p)) == "" &&
					j.wouldJoin(p, &o, l.Name, sup.Labels) {
					j.fail("pod %s of launch %s fits static launch %s", p.Ref(), o.Name, l.Name)
				}
			}
		}
	}
}
