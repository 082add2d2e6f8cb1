package ec2fake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// DescribeSubnets finds subnets by filters.
func (f *EC2) DescribeSubnets(_ context.Context, in *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	return do(f, "DescribeSubnets", in, func() (*ec2.DescribeSubnetsOutput, error) {
		found, err := filtered(f.Subnets, in.Filters, func(s *types.Subnet) ([]types.Tag, map[string]string) {
			return s.Tags, map[string]string{"subnet-id": *s.SubnetId, "vpc-id": aws.ToString(s.VpcId)}
		})
		if err != nil {
			return nil, err
		}
		some, next, err := page(f, found, in.NextToken, in.MaxResults)
		// Counts change while an answer is being read.
		some = slices.Clone(some)
		for i := range some {
			some[i].AvailableIpAddressCount = aws.Int32(*some[i].AvailableIpAddressCount)
		}
		return &ec2.DescribeSubnetsOutput{Subnets: some, NextToken: next}, err
	})
}

// DescribeSecurityGroups finds security groups by filters.
func (f *EC2) DescribeSecurityGroups(_ context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return do(f, "DescribeSecurityGroups", in, func() (*ec2.DescribeSecurityGroupsOutput, error) {
		found, err := filtered(f.Groups, in.Filters, func(g *types.SecurityGroup) ([]types.Tag, map[string]string) {
			return g.Tags, map[string]string{"group-id": *g.GroupId, "group-name": aws.ToString(g.GroupName)}
		})
		if err != nil {
			return nil, err
		}
		some, next, err := page(f, found, in.NextToken, in.MaxResults)
		return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: some, NextToken: next}, err
	})
}

// DescribePlacementGroups finds placement groups by names or ids; an unknown one is an error.
func (f *EC2) DescribePlacementGroups(_ context.Context, in *ec2.DescribePlacementGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
	return do(f, "DescribePlacementGroups", in, func() (*ec2.DescribePlacementGroupsOutput, error) {
		out := &ec2.DescribePlacementGroupsOutput{}
		for _, name := range slices.Concat(in.GroupNames, in.GroupIds) {
			i := slices.IndexFunc(f.Placements, func(g types.PlacementGroup) bool {
				return aws.ToString(g.GroupName) == name || aws.ToString(g.GroupId) == name
			})
			if i < 0 {
				return nil, Error("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
			}
			out.PlacementGroups = append(out.PlacementGroups, f.Placements[i])
		}
		return out, nil
	})
}

// DescribeImages finds images by ids, owners and filters. An unknown id is an error, as is
// a malformed one.
func (f *EC2) DescribeImages(_ context.Context, in *ec2.DescribeImagesInput, _ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return do(f, "DescribeImages", in, func() (*ec2.DescribeImagesOutput, error) {
		for _, id := range in.ImageIds {
			if !slices.ContainsFunc(f.Images, func(i types.Image) bool { return *i.ImageId == id }) {
				return nil, Error("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
			}
		}
		found, err := filtered(f.Images, in.Filters, func(i *types.Image) ([]types.Tag, map[string]string) {
			return i.Tags, map[string]string{"image-id": *i.ImageId, "name": aws.ToString(i.Name), "state": string(i.State), "owner-id": aws.ToString(i.OwnerId)}
		})
		if err != nil {
			return nil, err
		}
		now := f.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		found = slices.DeleteFunc(found, func(i types.Image) bool {
			deprecated := i.DeprecationTime != nil && *i.DeprecationTime <= now
			return len(in.ImageIds) > 0 && !slices.Contains(in.ImageIds, *i.ImageId) ||
				len(in.Owners) > 0 && !slices.Contains(in.Owners, aws.ToString(i.OwnerId)) ||
				deprecated && !aws.ToBool(in.IncludeDeprecated)
		})
		some, next, err := page(f, found, in.NextToken, in.MaxResults)
		return &ec2.DescribeImagesOutput{Images: some, NextToken: next}, err
	})
}

// DescribeCapacityReservations finds reservations by filters.
func (f *EC2) DescribeCapacityReservations(_ context.Context, in *ec2.DescribeCapacityReservationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	return do(f, "DescribeCapacityReservations", in, func() (*ec2.DescribeCapacityReservationsOutput, error) {
		for _, id := range in.CapacityReservationIds {
			if !slices.ContainsFunc(f.Reservations, func(r types.CapacityReservation) bool { return *r.CapacityReservationId == id }) {
				return nil, Error("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
			}
		}
		found, err := filtered(f.Reservations, in.Filters, func(r *types.CapacityReservation) ([]types.Tag, map[string]string) {
			return r.Tags, map[string]string{"state": string(r.State), "owner-id": aws.ToString(r.OwnerId), "instance-match-criteria": string(r.InstanceMatchCriteria)}
		})
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(r types.CapacityReservation) bool {
			return len(in.CapacityReservationIds) > 0 && !slices.Contains(in.CapacityReservationIds, *r.CapacityReservationId)
		})
		some, next, err := page(f, found, in.NextToken, in.MaxResults)
		some = slices.Clone(some)
		for i := range some {
			if n := some[i].AvailableInstanceCount; n != nil {
				some[i].AvailableInstanceCount = aws.Int32(*n)
			}
		}
		return &ec2.DescribeCapacityReservationsOutput{CapacityReservations: some, NextToken: next}, err
	})
}

// DescribeSpotPriceHistory gives the present price of each type in each zone that has a
// subnet.
func (f *EC2) DescribeSpotPriceHistory(_ context.Context, in *ec2.DescribeSpotPriceHistoryInput, _ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return do(f, "DescribeSpotPriceHistory", in, func() (*ec2.DescribeSpotPriceHistoryOutput, error) {
		var zones []string
		for _, s := range f.Subnets {
			zones = append(zones, aws.ToString(s.AvailabilityZone))
		}
		slices.Sort(zones)
		var found []types.SpotPrice
		for _, name := range slices.Sorted(maps.Keys(f.Types)) {
			for _, zone := range slices.Compact(slices.Clone(zones)) {
				if p := f.Types[name].Spot; p > 0 {
					found = append(found, types.SpotPrice{
						InstanceType: types.InstanceType(name), AvailabilityZone: aws.String(zone), Timestamp: aws.Time(f.Now()),
						SpotPrice: aws.String(fmt.Sprintf("%d.%06d", p/1e6, p%1e6)), ProductDescription: types.RIProductDescriptionLinuxUnix,
					})
				}
			}
		}
		some, next, err := page(f, found, in.NextToken, in.MaxResults)
		return &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: some, NextToken: next}, err
	})
}

// filtered are the things that pass filters, sorted as they stand; of gives the tags and
// the values of the other filters of a thing.
func filtered[T any](list []T, filters []types.Filter, of func(*T) ([]types.Tag, map[string]string)) ([]T, error) {
	var out []T
	for i := range list {
		tags, values := of(&list[i])
		ok, err := match(filters, tagMap(tags), func(name string) ([]string, bool) {
			v, ok := values[name]
			return []string{v}, ok
		})
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, list[i])
		}
	}
	return out, nil
}
