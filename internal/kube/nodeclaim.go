package kube

import "kerf.sh/kerf/internal/snapshot"

func (r *reader) addNodeClaim(c *nodeClaim, o object) *fieldError {
	if err := c.Spec.check("spec"); err != nil {
		return err
	}
	if err := negative(c.Spec.Resources.Requests, "spec.resources.requests"); err != nil {
		return err
	}
	var status nodeClaimStatus
	if _, err := decodeStatus(c.Status, &status); err != nil {
		return err
	}
	r.snap.NodeClaims = append(r.snap.NodeClaims, snapshot.NodeClaim{
		Name:                   c.Metadata.Name,
		UID:                    string(c.Metadata.UID),
		Labels:                 labels(c.Metadata.Labels),
		Annotations:            annotations(c.Metadata.Annotations),
		Requirements:           ownRequirements(c.Spec.Requirements),
		Taints:                 ownTaints(c.Spec.Taints),
		StartupTaints:          ownTaints(c.Spec.StartupTaints),
		Requests:               resources(c.Spec.Resources.Requests),
		ClassRef:               snapshot.ClassRef(c.Spec.NodeClassRef),
		ExpireAfter:            orElse(c.Spec.ExpireAfter, defaultExpireAfter),
		TerminationGracePeriod: c.Spec.TerminationGracePeriod,
		ProviderID:             status.ProviderID,
		NodeName:               status.NodeName,
		ImageID:                status.ImageID,
		Capacity:               resources(status.Capacity),
		Allocatable:            resources(status.Allocatable),
		Conditions:             metaConditions(status.Conditions),
		LastPodEvent:           when(status.LastPodEventTime),
		Created:                when(&c.Metadata.CreationTimestamp),
		Deleting:               when(c.Metadata.DeletionTimestamp),
	})
	return nil
}
