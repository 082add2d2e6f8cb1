package scheduling

import (
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// PoolTypes are the types that each NodePool's nodes can be, by pool and name, as they are
// planned with: under its class and settings, with what overlays add. Pools that cannot
// launch are left out; a static one launches, though not for pods.
func PoolTypes(s *snapshot.Snapshot, c *catalog.Catalog) map[string]map[string]*catalog.Resolved {
	bare := *s
	bare.Pods, bare.Nodes, bare.NodeClaims, bare.DaemonSets, bare.Workloads, bare.Nominations = nil, nil, nil, nil, nil, nil
	bare.Buffers = nil
	w := New(&bare, c)
	out := make(map[string]map[string]*catalog.Resolved, len(w.Pools))
	for i := range w.Pools {
		p := &w.Pools[i]
		if p.Code != "" && !p.static() || p.u == nil {
			continue
		}
		types := make(map[string]*catalog.Resolved, len(p.types))
		for _, t := range p.types {
			types[p.u.types[t].Type.Name] = &p.u.types[t]
		}
		out[p.Spec.Name] = types
	}
	return out
}
