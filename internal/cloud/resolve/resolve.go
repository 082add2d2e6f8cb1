package resolve

import (
	"context"
	"errors"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/network"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/pricing"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Resolver resolves classes of one cluster.
type Resolver struct {
	Network    network.Client
	Images     *image.Resolver
	Profiles   *profile.Profiles
	Reserved   pricing.EC2 // nil: the gate ReservedCapacity is off
	Cluster    userdata.Cluster
	Region     string
	Kubernetes image.Version
	Now        func() time.Time
}

// Outcome is one class after a resolution.
type Outcome = nodeclass.Outcome

// Class resolves one class. old is its last resolution, nil when there is none. It does not
// fail: what is wrong is in the conditions of the status.
func (r *Resolver) Class(ctx context.Context, c *snapshot.NodeClass, old *nodeclass.Resolved) *Outcome {
	now := r.Now()
	options := nodeclass.StatusOptions{Now: now, Reservations: r.Reserved != nil}
	for _, p := range c.Conditions {
		options.Previous = append(options.Previous, nodeclass.Condition{Type: p.Type, Status: p.Status, Reason: p.Reason, Message: p.Message, ObservedGeneration: p.ObservedGeneration, LastTransitionTime: p.Since})
	}
	out := &Outcome{Resolved: &nodeclass.Resolved{Class: c.Name, UID: c.UID, Generation: c.Generation, At: now}}
	res := out.Resolved
	class, err := nodeclass.Parse(c)
	if err != nil {
		res.Checks = []nodeclass.Check{{Reason: nodeclass.InvalidNodeClass, Message: err.Error()}}
		out.Status = nodeclass.StatusOf(&nodeclass.Class{Name: c.Name, UID: c.UID, Generation: c.Generation}, res, options)
		return out
	}
	out.Class = class
	spec := &class.Spec
	res.Subnets, res.SubnetsErr = network.Subnets(ctx, r.Network, spec.SubnetSelectorTerms)
	res.SecurityGroups, res.SecurityGroupsErr = network.SecurityGroups(ctx, r.Network, spec.SecurityGroupSelectorTerms)
	res.PlacementGroup, res.PlacementGroupErr = network.PlacementGroup(ctx, r.Network, spec.PlacementGroupSelector)
	res.Images, res.ImagesErr = r.Images.Resolve(ctx, class, r.Kubernetes)
	res.Profile, res.ProfileErr = r.Profiles.Resolve(ctx, class)
	if r.Reserved != nil {
		res.Reservations, res.ReservationsErr = pricing.Reservations(ctx, r.Reserved, spec.CapacityReservationSelectorTerms)
	}
	for _, err := range []error{res.SubnetsErr, res.SecurityGroupsErr, res.ImagesErr, res.ProfileErr, res.PlacementGroupErr, res.ReservationsErr} {
		var no *nodeclass.Refusal
		out.Throttled = out.Throttled || err != nil && !errors.As(err, &no) && awserr.Is(err, awserr.Throttled)
	}
	out.Kept = res.KeepFrom(old)
	res.Checks = append(res.Checks, r.checks(class, res)...)
	out.Status = nodeclass.StatusOf(class, res, options)
	return out
}

// checks makes a template as a launch would, and reports what the class cannot have: user
// data too large, settings that its family does not know, volumes without a size.
func (r *Resolver) checks(class *nodeclass.Class, res *nodeclass.Resolved) []nodeclass.Check {
	const zone, typ = "zone", "type"
	in := launch.Input{
		Attempt: "check", Claims: []string{"check"}, Cluster: r.Cluster, Region: r.Region, Pool: "check", Class: class, Resolved: res,
		Offers:  []plan.Offer{{InstanceType: typ, Zone: zone, CapacityType: catalog.OnDemand}},
		Types:   map[string]launch.Type{typ: {Name: typ, ImageID: "ami-check", MaxPods: 110}},
		Subnets: map[string]nodeclass.Subnet{zone: {ID: "subnet-check"}}, Now: r.Now(),
	}
	_, err := launch.Plan(in)
	var no *nodeclass.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &no):
		return []nodeclass.Check{{Reason: no.Reason, Message: no.Message}}
	}
	return []nodeclass.Check{{Reason: nodeclass.InvalidNodeClass, Message: err.Error()}}
}
