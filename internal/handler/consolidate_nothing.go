package handler

import (
	"context"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// nothing reports whether a cluster in which the pass before found no node still has none: none
// is on its way, no command is under way, and there is no instance that nobody owns. A pass
// would find nothing then, and takes several times the requests. What cannot be read is for
// the pass to tell.
func (h *Consolidation) nothing(ctx context.Context) bool {
	if !h.empty || h.DryRun {
		return false
	}
	claims, err := h.Sweep.Cluster.Metadata(ctx, "NodeClaim")
	if err != nil || len(claims) > 0 {
		return false
	}
	nodes, err := h.Sweep.Cluster.Metadata(ctx, "Node")
	if err != nil || slices.ContainsFunc(nodes, func(n api.Meta) bool { return n.Labels[catalog.LabelNodePool] != "" }) {
		return false
	}
	records, err := h.Sweep.Memory.Records(ctx)
	if err != nil || len(records) > 0 {
		return false
	}
	commands, err := h.Sweep.Memory.Commands(ctx)
	if err != nil || slices.ContainsFunc(commands, func(c lifecycle.Command) bool { return !c.Over() }) {
		return false
	}
	orphans, err := h.orphans(ctx)
	return err == nil && len(orphans) == 0
}

// looked remembers for the next pass of the process whether there was any node.
func (x *consolidating) looked() {
	x.h.empty = x.rep.Nodes+len(x.w.snap.NodeClaims)+len(x.w.known.Records) == 0
}
