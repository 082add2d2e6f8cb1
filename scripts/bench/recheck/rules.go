package recheck

import (
	"maps"
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
)

// Rules checks what the workloads ask for beside resources, against the nodes of a plan
// once all of them run: pods that keep apart share no node, and pods that spread differ
// by no more than their skew between the places there are (the zones of the class, the
// nodes of the plan).
func Rules(pods []snapshot.Pod, p *plan.Plan) Faults {
	var f Faults
	byRef := make(map[string]*snapshot.Pod, len(pods))
	for i := range pods {
		byRef[pods[i].Ref()] = &pods[i]
	}
	zones := map[string]map[string]int{} // by rule, then zone
	hosts := map[string][]int{}          // by rule: pods on each node that has some
	spread := map[string]map[string]int{}
	for i := range p.Launches {
		l := &p.Launches[i]
		here := map[string]int{}
		inZone := false
		for _, ref := range l.Pods {
			pod := byRef[ref]
			if pod == nil {
				continue // Plan says so
			}
			app := pod.Labels["app"]
			here[app]++
			for _, t := range pod.Spec.Spread {
				if spread[app] == nil {
					spread[app] = map[string]int{}
				}
				spread[app][t.TopologyKey] = int(t.MaxSkew)
				inZone = inZone || t.TopologyKey == zoneKey
			}
			if len(pod.Spec.Anti) > 0 && here[app] == 2 {
				f.addf("launch %s: two pods of %s, which keep apart", l.Name, app)
			}
		}
		for _, o := range l.Options {
			if inZone && o.Zone != l.Chosen.Zone {
				f.addf("launch %s: its pods are spread over zones, but it may come up in %s and %s", l.Name, l.Chosen.Zone, o.Zone)
				break
			}
		}
		for app, n := range here {
			if zones[app] == nil {
				zones[app] = map[string]int{}
			}
			zones[app][l.Chosen.Zone] += n
			hosts[app] = append(hosts[app], n)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(spread)) {
		if skew, ok := spread[app][hostKey]; ok {
			least := 0
			if len(hosts[app]) == len(p.Launches) {
				least = slices.Min(hosts[app])
			}
			if top := slices.Max(hosts[app]); top-least > skew {
				f.addf("%d pods of %s on one node, %d on another: the skew is %d at most", top, app, least, skew)
			}
		}
		if skew, ok := spread[app][zoneKey]; ok {
			var counts []int
			for _, z := range workload.Zones() {
				counts = append(counts, zones[app][z.Zone])
			}
			if slices.Max(counts)-slices.Min(counts) > skew {
				f.addf("pods of %s in zones: %v, the skew is %d at most", app, counts, skew)
			}
		}
	}
	return f
}

// Topology keys of the workloads.
const (
	zoneKey = "topology.kubernetes.io/zone"
	hostKey = "kubernetes.io/hostname"
)
