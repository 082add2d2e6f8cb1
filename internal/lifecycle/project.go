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
	r.label(out.Labels)
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

// label sets the labels that say what the node is, where they are missing.
func (r Record) label(labels map[string]string) {
	set := func(key, value string) {
		if value != "" && labels[key] == "" {
			labels[key] = value
		}
	}
	set("karpenter.sh/nodepool", r.NodePool)
	set("node.kubernetes.io/instance-type", r.Instance.Type)
	set("topology.kubernetes.io/zone", r.Instance.Zone)
	set("karpenter.sh/capacity-type", r.Instance.CapacityType)
	set("karpenter.k8s.aws/capacity-reservation-id", r.Instance.ReservationID)
}

// Remember puts into a snapshot what records know and objects do not: the nodes that have
// no NodeClaim object yet, what objects do not say yet of theirs, those that are going
// although their object does not say so, and the nominations. Doing it twice is doing it
// once. The snapshot is still to be normalized.
func Remember(s *snapshot.Snapshot, records []Record, now time.Time) {
	index := make(map[string]int, len(s.NodeClaims))
	for i := range s.NodeClaims {
		index[s.NodeClaims[i].Name] = i
	}
	for i := range records {
		r := &records[i]
		if r.Phase == Closed {
			continue
		}
		at, ok := index[r.Claim]
		if !ok {
			at = len(s.NodeClaims)
			s.NodeClaims = append(s.NodeClaims, r.NodeClaim())
		}
		c := &s.NodeClaims[at]
		if c.UID != "" && r.UID != "" && c.UID != r.UID {
			continue // somebody made another object of that name
		}
		r.complete(c)
		// A node that EC2 takes is going, whatever its object says: its pods are planned.
		if c.Deleting.IsZero() && (!r.Phase.Live() || r.Doomed != nil) {
			c.Deleting = now
			if !r.DeletingSince.IsZero() {
				c.Deleting = r.DeletingSince
			}
		}
	}
	s.Nominations = Nominations(records, now)
}

// complete fills in what a NodeClaim does not say yet: its status is written after the
// record, and may be late. The instance decides which Node is the claim's, so that a node
// is not counted twice; before there is one, the claim stands for the least that it may
// become, and takes from the limits what is reserved.
func (r *Record) complete(c *snapshot.NodeClaim) {
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	fill(&c.ProviderID, r.Instance.ProviderID())
	fill(&c.ImageID, r.Instance.ImageID)
	fill(&c.NodeName, r.Node)
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if r.label(labels); len(labels) > len(c.Labels) {
		c.Labels = labels
	}
	if c.Allocatable.IsZero() {
		c.Allocatable = r.Allocatable
	}
	if c.Capacity.IsZero() {
		c.Capacity = r.Capacity
	}
	if c.Capacity.IsZero() {
		c.Capacity = r.Reserved.Resources()
	}
}
