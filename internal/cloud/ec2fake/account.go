package ec2fake

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// DescribeAvailabilityZones tells of every zone that has a subnet.
func (f *EC2) DescribeAvailabilityZones(_ context.Context, in *ec2.DescribeAvailabilityZonesInput, _ ...func(*ec2.Options)) (*ec2.DescribeAvailabilityZonesOutput, error) {
	return do(f, "DescribeAvailabilityZones", in, func() (*ec2.DescribeAvailabilityZonesOutput, error) {
		out := &ec2.DescribeAvailabilityZonesOutput{}
		seen := map[string]bool{}
		for i := range f.Subnets {
			if s := &f.Subnets[i]; !seen[*s.AvailabilityZone] {
				seen[*s.AvailabilityZone] = true
				out.AvailabilityZones = append(out.AvailabilityZones, types.AvailabilityZone{ZoneName: aws.String(*s.AvailabilityZone), ZoneId: aws.String(aws.ToString(s.AvailabilityZoneId))})
			}
		}
		return out, nil
	})
}

// DescribeReservedInstances finds reserved instances by their state. The call has no pages.
func (f *EC2) DescribeReservedInstances(_ context.Context, in *ec2.DescribeReservedInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeReservedInstancesOutput, error) {
	return do(f, "DescribeReservedInstances", in, func() (*ec2.DescribeReservedInstancesOutput, error) {
		found, err := filtered(f.Reserved, in.Filters, func(r *types.ReservedInstances) ([]types.Tag, map[string]string) {
			return r.Tags, map[string]string{"state": string(r.State)}
		})
		return &ec2.DescribeReservedInstancesOutput{ReservedInstances: found}, err
	})
}
