package ec2fake

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

type storedFleet struct {
	request string
	answer  *ec2.CreateFleetOutput
	at      time.Time
}

// tokenFor is how long EC2 remembers a token.
const tokenFor = 24 * time.Hour

// choice is one override with its template.
type choice struct {
	template *storedTemplate
	override types.FleetLaunchTemplateOverridesRequest
	typ      Type
	zone     string
	subnet   *types.Subnet
	price    int64
	priority float64
}

// CreateFleet serves requests of type instant.
func (f *EC2) CreateFleet(_ context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	return do(f, "CreateFleet", in, func() (*ec2.CreateFleetOutput, error) {
		token := aws.ToString(in.ClientToken)
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, Error("InternalError", "%v", err)
		}
		if old, ok := f.fleets[token]; ok && token != "" && f.Now().Sub(old.at) < tokenFor {
			if old.request != string(raw) {
				return nil, Error("IdempotentParameterMismatch", "The specified client token '%s' was used with other request parameters", token)
			}
			return old.answer, nil
		}
		choices, err := f.checkFleet(in)
		if err != nil {
			return nil, err
		}
		if aws.ToBool(in.DryRun) {
			return nil, Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
		}
		out := f.fulfil(in, choices)
		if token != "" {
			f.fleets[token] = &storedFleet{string(raw), out, f.Now()}
		}
		return out, nil
	})
}

// checkFleet refuses what EC2 refuses before it looks for machines.
func (f *EC2) checkFleet(in *ec2.CreateFleetInput) ([]choice, error) {
	if in.Type != types.FleetTypeInstant {
		return nil, Error("InvalidParameterValue", "this EC2 serves fleets of type instant only")
	}
	target := in.TargetCapacitySpecification
	if target == nil || aws.ToInt32(target.TotalTargetCapacity) < 1 {
		return nil, Error("InvalidTargetCapacitySpecification", "TotalTargetCapacity must be at least 1")
	}
	if len(in.LaunchTemplateConfigs) == 0 || len(in.LaunchTemplateConfigs) > 50 {
		return nil, Error("InvalidFleetConfig", "a fleet has 1 to 50 launch template configs, not %d", len(in.LaunchTemplateConfigs))
	}
	spot := target.DefaultTargetCapacityType == types.DefaultTargetCapacityTypeSpot
	for _, s := range in.TagSpecifications {
		if s.ResourceType == types.ResourceTypeSpotInstancesRequest && !spot {
			return nil, Error("InvalidTagSpecification", "'spot-instances-request' is not a valid taggable resource type for this operation: the request launches no spot instance")
		}
		if len(s.Tags) > 50 {
			return nil, Error("TagLimitExceeded", "%s has %d tags, the limit is 50", s.ResourceType, len(s.Tags))
		}
	}
	var out []choice
	seen := map[string]bool{}
	for _, c := range in.LaunchTemplateConfigs {
		t := f.templates[aws.ToString(c.LaunchTemplateSpecification.LaunchTemplateName)]
		if t == nil {
			return nil, Error("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", aws.ToString(c.LaunchTemplateSpecification.LaunchTemplateName))
		}
		for _, s := range t.data.TagSpecifications {
			if s.ResourceType == types.ResourceTypeSpotInstancesRequest && !spot {
				return nil, Error("InvalidTagSpecification", "launch template %s tags a spot request, and the request launches no spot instance", t.name)
			}
		}
		for _, o := range c.Overrides {
			one, err := f.checkOverride(t, o, spot)
			if err != nil {
				return nil, err
			}
			key := string(o.InstanceType) + "/" + aws.ToString(o.SubnetId)
			if seen[key] {
				return nil, Error("InvalidFleetConfig", "Your Fleet configuration contains duplicate instance pools: %s", key)
			}
			seen[key] = true
			out = append(out, *one)
		}
	}
	return out, nil
}

func (f *EC2) checkOverride(t *storedTemplate, o types.FleetLaunchTemplateOverridesRequest, spot bool) (*choice, error) {
	typ, ok := f.Types[string(o.InstanceType)]
	if !ok {
		return nil, Error("InvalidParameterValue", "The instance type '%s' does not exist", o.InstanceType)
	}
	i := slices.IndexFunc(f.Subnets, func(s types.Subnet) bool { return *s.SubnetId == aws.ToString(o.SubnetId) })
	if i < 0 {
		return nil, Error("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", aws.ToString(o.SubnetId))
	}
	zone := aws.ToString(f.Subnets[i].AvailabilityZone)
	if o.AvailabilityZone != nil && *o.AvailabilityZone != zone {
		return nil, Error("InvalidParameterValue", "subnet %s is in %s, not in %s", *o.SubnetId, zone, *o.AvailabilityZone)
	}
	c := &choice{template: t, override: o, typ: typ, zone: zone, subnet: &f.Subnets[i], price: typ.OnDemand, priority: aws.ToFloat64(o.Priority)}
	if spot {
		c.price = typ.Spot
	}
	return c, nil
}

// fulfil launches what it can, by the strategy of the request.
func (f *EC2) fulfil(in *ec2.CreateFleetInput, choices []choice) *ec2.CreateFleetOutput {
	spot := in.TargetCapacitySpecification.DefaultTargetCapacityType == types.DefaultTargetCapacityTypeSpot
	prioritized := in.OnDemandOptions != nil && in.OnDemandOptions.AllocationStrategy == types.FleetOnDemandAllocationStrategyPrioritized ||
		in.SpotOptions != nil && in.SpotOptions.AllocationStrategy == types.SpotAllocationStrategyCapacityOptimizedPrioritized
	slices.SortStableFunc(choices, func(a, b choice) int {
		if prioritized {
			return cmp.Compare(a.priority, b.priority)
		}
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.typ.Name, b.typ.Name), cmp.Compare(a.zone, b.zone))
	})
	out := &ec2.CreateFleetOutput{FleetId: aws.String(f.id("fleet"))}
	want := int(aws.ToInt32(in.TargetCapacitySpecification.TotalTargetCapacity))
	for i := range choices {
		c := &choices[i]
		var ids []string
		for want > 0 {
			if code, message := f.refuse(c, spot); code != "" {
				out.Errors = append(out.Errors, types.CreateFleetError{
					ErrorCode: aws.String(code), ErrorMessage: aws.String(message), Lifecycle: lifecycle(spot), LaunchTemplateAndOverrides: c.describe(),
				})
				break
			}
			ids = append(ids, f.launch(in, c, spot).ID)
			want--
		}
		if len(ids) > 0 {
			out.Instances = append(out.Instances, types.CreateFleetInstance{
				InstanceIds: ids, InstanceType: c.override.InstanceType, Lifecycle: lifecycle(spot), LaunchTemplateAndOverrides: c.describe(),
			})
		}
	}
	return out
}

func lifecycle(spot bool) types.InstanceLifecycle {
	if spot {
		return types.InstanceLifecycleSpot
	}
	return types.InstanceLifecycleOnDemand
}

func (c *choice) describe() *types.LaunchTemplateAndOverridesResponse {
	return &types.LaunchTemplateAndOverridesResponse{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecification{LaunchTemplateName: aws.String(c.template.name)},
		Overrides:                   &types.FleetLaunchTemplateOverrides{InstanceType: c.override.InstanceType, SubnetId: c.override.SubnetId, AvailabilityZone: aws.String(c.zone)},
	}
}

// refuse says why one more instance of a choice cannot be had.
func (f *EC2) refuse(c *choice, spot bool) (code, message string) {
	ct := "on-demand"
	if spot {
		ct = "spot"
	}
	d := c.template.data
	image := slices.IndexFunc(f.Images, func(i types.Image) bool { return *i.ImageId == aws.ToString(d.ImageId) })
	reservation := f.reservationOf(c)
	switch {
	case f.Denied["ec2:RunInstances"]:
		return "UnauthorizedOperation", strings.TrimPrefix(f.denied("ec2:RunInstances").Error(), "api error UnauthorizedOperation: ")
	case image < 0:
		return "InvalidAMIID.NotFound", "The image id '[" + aws.ToString(d.ImageId) + "]' does not exist"
	case string(f.Images[image].Architecture) != map[string]string{"amd64": "x86_64", "arm64": "arm64"}[c.typ.Arch]:
		return "InvalidParameterValue", "The architecture '" + c.typ.Arch + "' of the specified instance type does not match the architecture '" + string(f.Images[image].Architecture) + "' of the specified AMI"
	case f.Profiles != nil && d.IamInstanceProfile != nil && !f.Profiles[aws.ToString(d.IamInstanceProfile.Name)]:
		return "InvalidParameterValue", "Value (" + aws.ToString(d.IamInstanceProfile.Name) + ") for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
	case spot && f.NoSpotRole:
		return "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances."
	case spot && c.typ.Spot == 0:
		return "UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration. The type is not offered as spot."
	case spot && f.SpotLimit > 0 && f.alive(func(i *Instance) bool { return i.Spot }) >= f.SpotLimit:
		return "MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"
	case !spot && f.VCPULimit > 0 && f.vcpu()+c.typ.VCPU > f.VCPULimit:
		return "VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit allows for the instance bucket that the specified instance type belongs to."
	case aws.ToInt32(c.subnet.AvailableIpAddressCount) < 1:
		return "InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '" + *c.subnet.SubnetId + "' to satisfy the requested number of instances."
	case reservation != nil && (reservation.State != types.CapacityReservationStateActive || aws.ToInt32(reservation.AvailableInstanceCount) < 1):
		return "ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request."
	}
	if slices.ContainsFunc(f.Short, func(o Offer) bool { return o.covers(c.typ.Name, c.zone, ct) }) {
		return "InsufficientInstanceCapacity", "We currently do not have sufficient " + c.typ.Name + " capacity in the Availability Zone you requested (" + c.zone + ")."
	}
	if n, ok := f.Left[Offer{c.typ.Name, c.zone, ct}]; ok && n < 1 {
		return "InsufficientInstanceCapacity", "We currently do not have sufficient " + c.typ.Name + " capacity in the Availability Zone you requested (" + c.zone + ")."
	}
	return "", ""
}

func (f *EC2) reservationOf(c *choice) *types.CapacityReservation {
	s := c.template.data.CapacityReservationSpecification
	if s == nil || s.CapacityReservationTarget == nil {
		return nil
	}
	for i := range f.Reservations {
		if aws.ToString(f.Reservations[i].CapacityReservationId) == aws.ToString(s.CapacityReservationTarget.CapacityReservationId) {
			return &f.Reservations[i]
		}
	}
	return &types.CapacityReservation{State: types.CapacityReservationStateCancelled}
}

func (f *EC2) alive(which func(*Instance) bool) int {
	n := 0
	for _, i := range f.instances {
		if i.ShuttingFrom.IsZero() && which(i) {
			n++
		}
	}
	return n
}

func (f *EC2) vcpu() int64 {
	var n int64
	for _, i := range f.instances {
		if i.ShuttingFrom.IsZero() && !i.Spot {
			n += f.Types[i.Type].VCPU
		}
	}
	return n
}

func (f *EC2) launch(in *ec2.CreateFleetInput, c *choice, spot bool) *Instance {
	d, now := c.template.data, f.Now()
	i := &Instance{
		ID: f.id("i"), Type: c.typ.Name, Zone: c.zone, ZoneID: aws.ToString(c.subnet.AvailabilityZoneId), Subnet: *c.subnet.SubnetId, ImageID: aws.ToString(d.ImageId), Spot: spot, Price: c.price,
		Template: c.template.name, Attempt: aws.ToString(in.ClientToken), Tags: map[string]string{}, Launched: now,
		VisibleFrom: now.Add(f.VisibleAfter), RunningFrom: now.Add(f.RunningAfter), UserData: aws.ToString(d.UserData),
	}
	i.PrivateDNS = "ip-" + strings.TrimPrefix(i.ID, "i-")[:8] + ".ec2.internal"
	for _, s := range in.TagSpecifications {
		if s.ResourceType == types.ResourceTypeInstance {
			i.Tags = tagMap(s.Tags)
		}
	}
	if d.IamInstanceProfile != nil {
		i.Profile = "arn:aws:iam::111122223333:instance-profile/" + aws.ToString(d.IamInstanceProfile.Name)
	}
	for _, n := range d.NetworkInterfaces {
		i.Groups = n.Groups
	}
	ct := "on-demand"
	if spot {
		ct = "spot"
	}
	if n, ok := f.Left[Offer{i.Type, i.Zone, ct}]; ok {
		f.Left[Offer{i.Type, i.Zone, ct}] = n - 1
	}
	*c.subnet.AvailableIpAddressCount--
	f.reserve(i, c)
	f.instances = append(f.instances, i)
	return i
}

// reserve puts an instance into the reservation it aims at, or, when its template says
// nothing about reservations, into an open one that matches.
func (f *EC2) reserve(i *Instance, c *choice) {
	r := f.reservationOf(c)
	if r != nil {
		i.Targeted = true
	} else if c.template.data.CapacityReservationSpecification == nil && !i.Spot {
		for k := range f.Reservations {
			o := &f.Reservations[k]
			if o.InstanceMatchCriteria == types.InstanceMatchCriteriaOpen && aws.ToString(o.InstanceType) == i.Type && aws.ToString(o.AvailabilityZone) == i.Zone && aws.ToInt32(o.AvailableInstanceCount) > 0 {
				r = o
				break
			}
		}
	}
	if r != nil {
		i.Reservation = aws.ToString(r.CapacityReservationId)
		*r.AvailableInstanceCount--
	}
}
