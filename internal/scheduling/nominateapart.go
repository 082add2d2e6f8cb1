package scheduling

import (
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// tenants are the pods on nodes, for the question whether a nomination still holds.
type tenants struct {
	on         map[string][]*snapshot.Pod
	namespaces map[string]map[string]string
}

func tenantsOf(s *snapshot.Snapshot) *tenants {
	out := &tenants{on: map[string][]*snapshot.Pod{}, namespaces: map[string]map[string]string{}}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName != "" && !p.Terminal() {
			out.on[p.NodeName] = append(out.on[p.NodeName], p)
		}
	}
	for i := range s.Namespaces {
		out.namespaces[s.Namespaces[i].Name] = s.Namespaces[i].Labels
	}
	return out
}

// taken reports whether a pod on the node keeps the pod away, or the pod it: somebody else
// got the place that was meant for it, and waiting for it would have no end.
func (s *tenants) taken(p *snapshot.Pod, node string) bool {
	for _, o := range s.on[node] {
		if o.UID != p.UID && (s.apart(p, o) || s.apart(o, p)) {
			return true
		}
	}
	return false
}

// apart reports whether a required anti-affinity of a pod keeps another off its node.
func (s *tenants) apart(p, o *snapshot.Pod) bool {
	for i := range p.Spec.Anti {
		t := &p.Spec.Anti[i]
		if t.Weight != 0 || t.TopologyKey != catalog.LabelHostname {
			continue
		}
		m := affinityMatcher(p, t)
		if m.matches(o, s.namespaces) {
			return true
		}
	}
	return false
}
