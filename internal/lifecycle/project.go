package lifecycle

import (
	"maps"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// NodeClaim is the object that people see of a record. Where no such object could be
// created yet, it stands for the node in a snapshot: before the instance is known with
// what it may become (the least of what pods can have), then with what it is.
func (r Record) NodeClaim() snapshot.NodeClaim {
	out := snapshot.NodeClaim{
		Name: r.Claim, UID: r.UID, Labels: maps.Clone(r.Spec.Labels), Annotations: maps.Clone(r.Spec.Annotations),
		Requirements: r.Spec.Requirements, Taints: r.Spec.Taints, StartupTaints: r.Spec.StartupTaints, Requests: r.Spec.Requests,
		ClassRef: r.Spec.ClassRef, ExpireAfter: r.Spec.ExpireAfter, TerminationGracePeriod: r.Spec.TerminationGracePeriod,
		ProviderID: r.Instance.ProviderID(), NodeName: r.Node, ImageID: r.Instance.ImageID,
		Capacity: r.Capacity, Allocatable: r.Allocatable, Conditions: r.Conditions(), Created: r.Created,
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	label := func(key, value string) {
		if value != "" && out.Labels[key] == "" {
			out.Labels[key] = value
		}
	}
	label("karpenter.sh/nodepool", r.NodePool)
	label("node.kubernetes.io/instance-type", r.Instance.Type)
	label("topology.kubernetes.io/zone", r.Instance.Zone)
	label("karpenter.sh/capacity-type", r.Instance.CapacityType)
	label("karpenter.k8s.aws/capacity-reservation-id", r.Instance.ReservationID)
	if !r.Phase.Live() {
		out.Deleting = r.DeletingSince
	}
	if !r.Deadline.IsZero() {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[AnnotationEnd] = r.Deadline.UTC().Format(time.RFC3339)
	}
	return out
}

// Remember puts into a snapshot what records know and objects do not: the nodes that have
// no NodeClaim object yet, those that are going although their object does not say so,
// and the nominations. The snapshot is still to be normalized.
func Remember(s *snapshot.Snapshot, records []Record, now time.Time) {
	index := make(map[string]int, len(s.NodeClaims))
	for i := range s.NodeClaims {
		index[s.NodeClaims[i].Name] = i
	}
	for _, r := range records {
		if r.Phase == Closed {
			continue
		}
		i, ok := index[r.Claim]
		if !ok {
			s.NodeClaims = append(s.NodeClaims, r.NodeClaim())
			continue
		}
		// A node that EC2 takes is going, whatever its object says: its pods are planned.
		c := &s.NodeClaims[i]
		if c.Deleting.IsZero() && (!r.Phase.Live() || r.Doomed != nil) {
			c.Deleting = now
			if !r.DeletingSince.IsZero() {
				c.Deleting = r.DeletingSince
			}
		}
	}
	s.Nominations = append(s.Nominations, Nominations(records, now)...)
}
