package lifecycle

import (
	"maps"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Adopt makes the record of a node that is there without one, from its NodeClaim, its Node
// (nil when it has not joined) and its instance (the zero Instance when EC2 does not show
// it). It is the reverse of NodeClaim, and touches nothing: what Karpenter made goes on as
// it is, and a table that was lost is filled again. The phase follows from what is there,
// never from what conditions say was there.
func Adopt(c snapshot.NodeClaim, n *snapshot.Node, in Instance, now time.Time) Record {
	r := Record{
		Claim: c.Name, UID: c.UID, Adopted: true, Created: c.Created, NodePool: c.Labels["karpenter.sh/nodepool"],
		Spec: Spec{
			Labels: maps.Clone(c.Labels), Annotations: maps.Clone(c.Annotations), Requirements: c.Requirements, Taints: c.Taints,
			StartupTaints: c.StartupTaints, Requests: c.Requests, ClassRef: c.ClassRef, ExpireAfter: c.ExpireAfter,
			TerminationGracePeriod: c.TerminationGracePeriod,
		},
		Instance: in, Capacity: c.Capacity, Allocatable: c.Allocatable, NextAt: now,
	}
	zone, id := parseProviderID(c.ProviderID)
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	fill(&r.Instance.ID, id)
	fill(&r.Instance.Zone, zone)
	fill(&r.Instance.Type, c.Labels["node.kubernetes.io/instance-type"])
	fill(&r.Instance.CapacityType, c.Labels["karpenter.sh/capacity-type"])
	fill(&r.Instance.ReservationID, c.Labels["karpenter.k8s.aws/capacity-reservation-id"])
	fill(&r.Instance.ImageID, c.ImageID)
	since := func(typ string, otherwise time.Time) time.Time {
		if s := snapshot.FindCondition(c.Conditions, typ); s != nil && s.Status == "True" && !s.Since.IsZero() {
			return s.Since
		}
		return otherwise
	}
	r.Phase, r.Reason = Intended, "AwaitingReconciliation"
	if r.Instance.ID != "" {
		r.Phase, r.Reason = Launched, ReasonNodeNotFound
		r.LaunchedAt = since("Launched", later(in.LaunchedAt, c.Created))
	}
	if n != nil && r.Phase == Launched {
		r.Node, r.NodeUID = n.Name, n.UID
		switch {
		case n.Labels[LabelInitialized] == "true":
			r.Phase, r.Reason = Initialized, ""
			r.RegisteredAt, r.InitializedAt = since("Registered", n.Created), since("Initialized", n.Created)
			r.Capacity, r.Allocatable = n.Capacity, n.Allocatable
		case n.Labels[LabelRegistered] == "true":
			r.Phase, r.Reason = Registered, ReasonNodeNotReady
			r.RegisteredAt = since("Registered", n.Created)
		default:
			r.Node, r.NodeUID = "", ""
		}
	}
	if end, err := time.Parse(time.RFC3339, c.Annotations[AnnotationEnd]); err == nil {
		r.Deadline = end
	}
	r.Reserved = UsageOf(r.Capacity, r.Instance.Price)
	// Tags that are there are kept; those that miss are given again, which changes nothing.
	r.Tagged = c.Annotations["karpenter.k8s.aws/tagged"] == "true"
	return r
}

// parseProviderID reads aws:///zone/id; empty for anything else.
func parseProviderID(s string) (zone, id string) {
	rest, ok := strings.CutPrefix(s, "aws:///")
	if !ok {
		return "", ""
	}
	zone, id, ok = strings.Cut(rest, "/")
	if !ok || !strings.HasPrefix(id, "i-") {
		return "", ""
	}
	return zone, id
}
