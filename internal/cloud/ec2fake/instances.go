package ec2fake

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// forgottenAfter is how long EC2 shows an instance that has ended.
const forgottenAfter = 60 * endsAfter // half an hour

// known are the instances that describing shows.
func (f *EC2) known() []*Instance {
	now := f.Now()
	var out []*Instance
	for _, i := range f.instances {
		if now.Before(i.VisibleFrom) || !i.ShuttingFrom.IsZero() && now.Sub(i.ShuttingFrom) > forgottenAfter {
			continue
		}
		out = append(out, i)
	}
	return out
}

// find gives the instances of ids; one unknown id fails the call and names all unknown.
func (f *EC2) find(ids []string, among []*Instance) ([]*Instance, error) {
	if len(ids) > 1000 {
		return nil, Error("InvalidParameterValue", "at most 1000 instance ids, not %d", len(ids))
	}
	var out []*Instance
	var unknown []string
	for _, id := range ids {
		i := slices.IndexFunc(among, func(i *Instance) bool { return i.ID == id })
		if i < 0 {
			unknown = append(unknown, id)
			continue
		}
		out = append(out, among[i])
	}
	switch len(unknown) {
	case 0:
		return out, nil
	case 1:
		return nil, Error("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", unknown[0])
	}
	return nil, Error("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(unknown, ", "))
}

// DescribeInstances finds instances by ids or filters. Young instances are not shown.
func (f *EC2) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return do(f, "DescribeInstances", in, func() (*ec2.DescribeInstancesOutput, error) {
		list := f.known()
		if len(in.InstanceIds) > 0 {
			if in.MaxResults != nil {
				return nil, Error("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
			}
			var err error
			if list, err = f.find(in.InstanceIds, list); err != nil {
				return nil, err
			}
		}
		var found []types.Instance
		for _, i := range list {
			ok, err := match(in.Filters, i.Tags, func(name string) ([]string, bool) {
				switch name {
				case "instance-state-name":
					return []string{string(i.State(f.Now()))}, true
				case "instance-id":
					return []string{i.ID}, true
				}
				return nil, false
			})
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, f.describe(i))
			}
		}
		slices.SortFunc(found, func(a, b types.Instance) int { return cmp.Compare(*a.InstanceId, *b.InstanceId) })
		size := in.MaxResults
		if len(in.InstanceIds) > 0 {
			size = nil
		}
		some, next, err := page(f, found, in.NextToken, size)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeInstancesOutput{NextToken: next}
		for _, i := range some {
			out.Reservations = append(out.Reservations, types.Reservation{Instances: []types.Instance{i}})
		}
		return out, nil
	})
}

func (f *EC2) describe(i *Instance) types.Instance {
	out := types.Instance{
		InstanceId: aws.String(i.ID), InstanceType: types.InstanceType(i.Type), ImageId: aws.String(i.ImageID), SubnetId: aws.String(i.Subnet),
		LaunchTime: aws.Time(i.Launched), State: &types.InstanceState{Name: i.State(f.Now())}, Placement: &types.Placement{AvailabilityZone: aws.String(i.Zone), AvailabilityZoneId: aws.String(i.ZoneID), Tenancy: types.TenancyDefault},
		ClientToken: aws.String(i.Attempt),
	}
	if out.State.Name != types.InstanceStateNamePending {
		out.PrivateDnsName = aws.String(i.PrivateDNS) // a pending instance has no address yet (BC-27)
	}
	if i.Spot {
		out.InstanceLifecycle = types.InstanceLifecycleTypeSpot
	}
	if i.Profile != "" {
		out.IamInstanceProfile = &types.IamInstanceProfile{Arn: aws.String(i.Profile)}
	}
	if i.Reservation != "" {
		out.CapacityReservationId = aws.String(i.Reservation)
	}
	out.CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{CapacityReservationPreference: types.CapacityReservationPreferenceOpen}
	if i.Targeted {
		out.CapacityReservationSpecification.CapacityReservationPreference = types.CapacityReservationPreferenceCapacityReservationsOnly
	}
	for _, g := range i.Groups {
		out.SecurityGroups = append(out.SecurityGroups, types.GroupIdentifier{GroupId: aws.String(g)})
	}
	for k, v := range i.Tags {
		out.Tags = append(out.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	slices.SortFunc(out.Tags, func(a, b types.Tag) int { return cmp.Compare(*a.Key, *b.Key) })
	return out
}

// TerminateInstances ends instances; one unknown id fails the call. Ending one twice is fine.
func (f *EC2) TerminateInstances(_ context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	return do(f, "TerminateInstances", in, func() (*ec2.TerminateInstancesOutput, error) {
		list, err := f.find(in.InstanceIds, f.known())
		if err != nil {
			return nil, err
		}
		out := &ec2.TerminateInstancesOutput{}
		for _, i := range list {
			before := i.State(f.Now())
			f.end(i)
			out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{
				InstanceId: aws.String(i.ID), PreviousState: &types.InstanceState{Name: before}, CurrentState: &types.InstanceState{Name: i.State(f.Now())},
			})
		}
		return out, nil
	})
}

// end gives back what an instance holds.
func (f *EC2) end(i *Instance) {
	if !i.ShuttingFrom.IsZero() {
		return
	}
	i.ShuttingFrom = f.Now()
	for k := range f.Subnets {
		if *f.Subnets[k].SubnetId == i.Subnet {
			*f.Subnets[k].AvailableIpAddressCount++
		}
	}
	for k := range f.Reservations {
		if aws.ToString(f.Reservations[k].CapacityReservationId) == i.Reservation {
			*f.Reservations[k].AvailableInstanceCount++
		}
	}
}

// Interrupt ends an instance from EC2's side, as spot does; false when it does not exist.
func (f *EC2) Interrupt(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.instances {
		if i.ID == id {
			f.end(i)
			return true
		}
	}
	return false
}

// CreateTags tags instances.
func (f *EC2) CreateTags(_ context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	return do(f, "CreateTags", in, func() (*ec2.CreateTagsOutput, error) {
		list, err := f.find(in.Resources, f.known())
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			for k, v := range tagMap(in.Tags) {
				i.Tags[k] = v
			}
		}
		return &ec2.CreateTagsOutput{}, nil
	})
}

// RunInstances serves dry runs only: nothing that is tested here launches without a fleet.
func (f *EC2) RunInstances(_ context.Context, in *ec2.RunInstancesInput, _ ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	return do(f, "RunInstances", in, func() (*ec2.RunInstancesOutput, error) {
		if !aws.ToBool(in.DryRun) {
			return nil, Error("UnsupportedOperation", "this EC2 launches by fleet only")
		}
		if in.LaunchTemplate == nil || f.templates[aws.ToString(in.LaunchTemplate.LaunchTemplateName)] == nil {
			return nil, Error("InvalidLaunchTemplateName.NotFoundException", "The specified launch template does not exist.")
		}
		return nil, Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	})
}
