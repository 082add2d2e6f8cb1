package handler

import (
	"context"
	"errors"
	"slices"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// strays takes the taint of nodes on their way out off those that nothing takes out any more:
// their command was forgotten with the table, or Karpenter tainted them before it stopped.
// Whoever taints a node writes down why first, and nodes are read before that is.
func (x *consolidating) strays(ctx context.Context) {
	going := map[string]bool{}
	for _, c := range x.commands {
		if c.Over() || c.Phase == lifecycle.Proposed {
			continue
		}
		for _, n := range c.Nodes {
			going[n] = true
		}
	}
	for i := range x.w.snap.NodeClaims {
		if c := &x.w.snap.NodeClaims[i]; !c.Deleting.IsZero() {
			going[c.NodeName] = true
		}
	}
	stays := map[string]bool{}
	for i := range x.w.known.Records {
		r := &x.w.known.Records[i]
		stays[r.Node] = r.Phase == lifecycle.Initialized && r.Doomed == nil && r.DeletingSince.IsZero()
	}
	for i := range x.w.snap.Nodes {
		n := &x.w.snap.Nodes[i]
		tainted := slices.ContainsFunc(n.Taints, func(t snapshot.Taint) bool { return t.Key == snapshot.Disrupted.Key })
		if !tainted || !n.Deleting.IsZero() || going[n.Name] || !stays[n.Name] {
			continue
		}
		_, err := x.h.Sweep.Cluster.ChangeNode(ctx, n.Name, n.UID, api.NodeChange{DropTaints: []snapshot.Taint{snapshot.Disrupted}})
		switch {
		case err == nil:
			x.rep.Back = append(x.rep.Back, "node "+n.Name+": nothing takes it out any more, its taint was taken off")
		case !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrConflict):
			x.rep.warn(err)
		}
	}
}
