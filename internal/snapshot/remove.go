package snapshot

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Karpenter's label of the NodePool that a node or claim belongs to.
const nodePoolLabel = "karpenter.sh/nodepool"

// Removal is what taking one object away did.
type Removal struct {
	Object Ref
	// Going are the nodes and claims that are marked as being deleted, Gone what went
	// with the object because it belonged to it. Both sorted.
	Going, Gone []Ref
}

// Remove takes objects away, as deleting them would (kubectl delete). What belongs
// to an object goes with it, as Kubernetes' garbage collection has it:
//
//   - a Node or NodeClaim: both are going, marked as being deleted at the given time.
//     They are still there, and their pods need a place elsewhere;
//   - a NodePool: it is gone, and its NodeClaims with their nodes are going;
//   - a workload or DaemonSet: its pods are gone, a Deployment's ReplicaSets too;
//   - a Namespace: everything in it is gone;
//   - anything else: that object alone.
//
// The objects must be there (see Objects). Lists are replaced, not written to.
func (s *Snapshot) Remove(refs []Ref, at time.Time) []Removal {
	out := make([]Removal, 0, len(refs))
	for _, r := range refs {
		m := Removal{Object: r}
		switch r.Kind {
		case "Node":
			m.Going = s.markGoing(map[string]bool{r.Name: true}, nil, at)
		case "NodeClaim":
			m.Going = s.markGoing(nil, map[string]bool{r.Name: true}, at)
		case "NodePool":
			s.Drop(r)
			nodes, claims := s.ofPool(r.Name)
			m.Going = s.markGoing(nodes, claims, at)
		default:
			m.Gone = s.Owned(r)
			s.Drop(append([]Ref{r}, m.Gone...)...)
		}
		out = append(out, m)
	}
	return out
}

// Drop takes just these objects off the lists. Lists are replaced, not written to.
func (s *Snapshot) Drop(refs ...Ref) {
	gone := make(map[Ref]bool, len(refs))
	for _, r := range refs {
		gone[r] = true
	}
	for _, l := range lists {
		l.drop(s, func(r Ref) bool { return gone[r] })
	}
}

// markGoing marks nodes and claims, and the other half of each, as being deleted,
// and returns those that were not before.
func (s *Snapshot) markGoing(nodes, claims map[string]bool, at time.Time) []Ref {
	if nodes == nil {
		nodes = map[string]bool{}
	}
	if claims == nil {
		claims = map[string]bool{}
	}
	providers := map[string]bool{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; nodes[n.Name] && n.ProviderID != "" {
			providers[n.ProviderID] = true
		}
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if claims[c.Name] || c.NodeName != "" && nodes[c.NodeName] || c.ProviderID != "" && providers[c.ProviderID] {
			claims[c.Name] = true
			if c.NodeName != "" {
				nodes[c.NodeName] = true
			}
			if c.ProviderID != "" {
				providers[c.ProviderID] = true
			}
		}
	}
	var out []Ref
	s.Nodes, s.NodeClaims = slices.Clone(s.Nodes), slices.Clone(s.NodeClaims)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Deleting.IsZero() && (nodes[n.Name] || n.ProviderID != "" && providers[n.ProviderID]) {
			n.Deleting = at
			out = append(out, Ref{"Node", "", n.Name})
		}
	}
	for i := range s.NodeClaims {
		if c := &s.NodeClaims[i]; c.Deleting.IsZero() && claims[c.Name] {
			c.Deleting = at
			out = append(out, Ref{"NodeClaim", "", c.Name})
		}
	}
	slices.SortFunc(out, Ref.Compare)
	return out
}

// Going names the nodes that are being deleted, themselves or by their claim, and
// the claims that are, whose nodes may not be there yet.
func (s *Snapshot) Going() map[string]bool {
	out, providers := map[string]bool{}, map[string]bool{}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if c.Deleting.IsZero() {
			continue
		}
		out[c.Name], out[c.NodeName], providers[c.ProviderID] = true, true, true
	}
	delete(out, "")
	delete(providers, "")
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Deleting.IsZero() || providers[n.ProviderID] {
			out[n.Name] = true
		}
	}
	return out
}

// ofPool are the claims of a pool, which it owns, and the nodes that name the pool
// and whose claim is not in the snapshot.
func (s *Snapshot) ofPool(pool string) (nodes, claims map[string]bool) {
	nodes, claims = map[string]bool{}, map[string]bool{}
	joined := map[string]bool{}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		joined[c.NodeName], joined[c.ProviderID] = true, true
		if c.Labels[nodePoolLabel] == pool {
			claims[c.Name] = true
		}
	}
	delete(joined, "")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Labels[nodePoolLabel] == pool && !joined[n.Name] && !joined[n.ProviderID] {
			nodes[n.Name] = true
		}
	}
	return nodes, claims
}

// Owned are the objects that garbage collection would take away with another, sorted:
// what lives in a Namespace, the ReplicaSets and pods of a workload.
func (s *Snapshot) Owned(r Ref) []Ref {
	gone := map[Ref]bool{}
	s.owned(r, gone)
	return slices.SortedFunc(maps.Keys(gone), Ref.Compare)
}

func (s *Snapshot) owned(r Ref, gone map[Ref]bool) {
	if r.Kind == "Namespace" {
		for _, l := range lists {
			for i := range l.len(s) {
				if o := l.ref(s, i); o.Namespace == r.Name {
					gone[o] = true
				}
			}
		}
		return
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if o := w.Owner; o != nil && o.Kind == r.Kind && o.Name == r.Name && w.Namespace == r.Namespace {
			child := Ref{w.Kind, w.Namespace, w.Name}
			gone[child] = true
			s.owned(child, gone)
		}
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Namespace == r.Namespace && p.BelongsTo(r.Kind, r.Name) {
			gone[Ref{"Pod", p.Namespace, p.Name}] = true
		}
	}
}

// BelongsTo reports whether an object of the pod's namespace controls the pod: its
// owner, or the Deployment of the ReplicaSet that owns it, told by its name, for
// ReplicaSets are seldom saved.
func (p *Pod) BelongsTo(kind, name string) bool {
	o := p.Owner
	if o == nil {
		return false
	}
	if o.Kind == kind && o.Name == name {
		return true
	}
	hash := p.Labels["pod-template-hash"]
	if kind != "Deployment" || o.Kind != "ReplicaSet" || hash == "" {
		return false
	}
	deployment, ok := strings.CutSuffix(o.Name, "-"+hash)
	return ok && deployment == name
}
