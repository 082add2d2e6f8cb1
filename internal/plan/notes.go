package plan

import (
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// maxNoted is how many workloads a note names.
const maxNoted = 3

// noteLaunches says of launches which rules of their pods shaped them: why all offers
// are in one zone, and which pods choose with whom they share a node.
func noteLaunches(p *Plan, s *snapshot.Snapshot) {
	if len(p.Launches) == 0 {
		return
	}
	pods := make(map[string]*snapshot.Pod)
	for i := range p.Launches {
		for _, ref := range p.Launches[i].Pods {
			pods[ref] = nil
		}
	}
	for i := range s.Pods {
		ref := s.Pods[i].Ref()
		if _, ok := pods[ref]; ok {
			pods[ref] = &s.Pods[i]
		}
	}
	zoned := zonedClaims(s)
	for i := range p.Launches {
		l := &p.Launches[i]
		l.Notes = nil
		inZone, wished, apart := rulesNoted{}, rulesNoted{}, rulesNoted{}
		for _, ref := range l.Pods {
			if pod := pods[ref]; pod != nil {
				noteZone(inZone, pod, zoned)
				noteWishes(wished, pod)
				noteHost(apart, pod)
			}
		}
		if len(inZone) == 0 && len(l.Relaxed) == 0 {
			inZone = wished
		}
		if zone := oneZone(l.Options); zone != "" && len(inZone) > 0 {
			l.Notes = append(l.Notes, "only in "+zone+": "+inZone.String())
		}
		if len(apart) > 0 {
			l.Notes = append(l.Notes, "apart from others on its node: "+apart.String())
		}
	}
}

// oneZone is the zone of all offers, "" if there are several.
func oneZone(offers []Offer) string {
	zone := ""
	for i := range offers {
		if i > 0 && offers[i].Zone != zone {
			return ""
		}
		zone = offers[i].Zone
	}
	return zone
}

// rulesNoted are workloads by the rule that they have.
type rulesNoted map[string]map[string]bool

func (r rulesNoted) add(rule string, p *snapshot.Pod) {
	if r[rule] == nil {
		r[rule] = map[string]bool{}
	}
	r[rule][workload(p)] = true
}

// String is "topology spread of shop/web; volume of shop/db".
func (r rulesNoted) String() string {
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, rule+" of "+few(slices.Sorted(maps.Keys(r[rule])), maxNoted))
	}
	return strings.Join(parts, "; ")
}

// isZone reports whether a label names the zone, under any of its names.
func isZone(key string) bool {
	switch key {
	case "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id":
		return true
	}
	return false
}

func zoneTerms(terms []snapshot.NodeSelectorTerm) bool {
	return slices.ContainsFunc(terms, func(t snapshot.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.Expressions, func(e snapshot.SelectorRequirement) bool { return isZone(e.Key) })
	})
}

// zonedClaims are the claims, as namespace/name, whose volume is in a zone.
func zonedClaims(s *snapshot.Snapshot) map[string]bool {
	volumes := map[string]bool{}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if zoneTerms(v.Required) || slices.ContainsFunc(slices.Collect(maps.Keys(v.Labels)), isZone) {
			volumes[v.Name] = true
		}
	}
	out := map[string]bool{}
	for i := range s.Claims {
		c := &s.Claims[i]
		if c.Spec.VolumeName != "" && volumes[c.Spec.VolumeName] {
			out[c.Namespace+"/"+c.Name] = true
		}
	}
	return out
}

// noteZone notes the required rules of a pod that look at zones.
func noteZone(r rulesNoted, p *snapshot.Pod, zoned map[string]bool) {
	spec := &p.Spec
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		claim := v.Claim
		if claim == "" && v.Ephemeral != nil {
			claim = p.Name + "-" + v.Name
		}
		if zoned[p.Namespace+"/"+claim] {
			r.add("volume", p)
		}
	}
	if slices.ContainsFunc(slices.Collect(maps.Keys(spec.NodeSelector)), isZone) {
		r.add("node selector", p)
	}
	if zoneTerms(spec.Required) {
		r.add("node affinity", p)
	}
	for i := range spec.Spread {
		if c := &spec.Spread[i]; isZone(c.TopologyKey) && c.WhenUnsatisfiable != "ScheduleAnyway" {
			r.add("topology spread", p)
		}
	}
	terms(r, p, spec.Affinity, "pod affinity")
	terms(r, p, spec.Anti, "pod anti-affinity")
}

// noteWishes notes the preferences of a pod that look at zones. They are named where
// nothing else explains the zone, and nothing was given up.
func noteWishes(r rulesNoted, p *snapshot.Pod) {
	spec := &p.Spec
	for i := range spec.Spread {
		if isZone(spec.Spread[i].TopologyKey) {
			r.add("preferred spread", p)
		}
	}
	for i := range spec.Preferred {
		if zoneTerms([]snapshot.NodeSelectorTerm{spec.Preferred[i].Term}) {
			r.add("preferred zone", p)
		}
	}
}

// terms notes required terms about other pods that look at zones.
func terms(r rulesNoted, p *snapshot.Pod, list []snapshot.PodAffinityTerm, rule string) {
	for i := range list {
		if t := &list[i]; isZone(t.TopologyKey) && t.Weight == 0 {
			r.add(rule, p)
		}
	}
}

// noteHost notes what keeps pods from sharing a node with others, often their like.
func noteHost(r rulesNoted, p *snapshot.Pod) {
	const hostname = "kubernetes.io/hostname"
	for i := range p.Spec.Anti {
		if t := &p.Spec.Anti[i]; t.TopologyKey == hostname && t.Weight == 0 {
			r.add("pod anti-affinity", p)
		}
	}
}
