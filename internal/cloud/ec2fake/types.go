package ec2fake

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// DescribeInstanceTypes tells of all types. Filters are not looked at: every type of the
// fake is one that nodes can be made of.
func (f *EC2) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	return do(f, "DescribeInstanceTypes", in, func() (*ec2.DescribeInstanceTypesOutput, error) {
		all := map[string]types.InstanceTypeInfo{}
		for name, t := range f.Types {
			all[name] = t.describe()
		}
		maps.Copy(all, f.TypeInfos)
		list := slices.SortedFunc(maps.Values(all), func(a, b types.InstanceTypeInfo) int { return cmp.Compare(a.InstanceType, b.InstanceType) })
		some, next, err := page(f, list, in.NextToken, in.MaxResults)
		return &ec2.DescribeInstanceTypesOutput{InstanceTypes: some, NextToken: next}, err
	})
}

func (t Type) describe() types.InstanceTypeInfo {
	arch := types.ArchitectureTypeX8664
	if t.Arch == "arm64" {
		arch = types.ArchitectureTypeArm64
	}
	out := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(t.Name), Hypervisor: types.InstanceTypeHypervisorNitro,
		VCpuInfo: &types.VCpuInfo{DefaultVCpus: aws.Int32(int32(t.VCPU))}, MemoryInfo: &types.MemoryInfo{SizeInMiB: aws.Int64(t.VCPU * 4096)},
		ProcessorInfo:         &types.ProcessorInfo{SupportedArchitectures: []types.ArchitectureType{arch}},
		NetworkInfo:           &types.NetworkInfo{MaximumNetworkInterfaces: aws.Int32(3), Ipv4AddressesPerInterface: aws.Int32(10), MaximumNetworkCards: aws.Int32(1)},
		SupportedUsageClasses: []types.UsageClassType{types.UsageClassTypeOnDemand},
	}
	if t.Spot > 0 {
		out.SupportedUsageClasses = append(out.SupportedUsageClasses, types.UsageClassTypeSpot)
	}
	return out
}

// DescribeInstanceTypeOfferings tells of every type in every zone that has a subnet.
func (f *EC2) DescribeInstanceTypeOfferings(_ context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return do(f, "DescribeInstanceTypeOfferings", in, func() (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
		zones := map[string]bool{}
		for _, s := range f.Subnets {
			zones[aws.ToString(s.AvailabilityZone)] = true
		}
		var list []types.InstanceTypeOffering
		for _, name := range slices.Sorted(maps.Keys(f.Types)) {
			for _, zone := range slices.Sorted(maps.Keys(zones)) {
				list = append(list, types.InstanceTypeOffering{InstanceType: types.InstanceType(name), Location: aws.String(zone), LocationType: types.LocationTypeAvailabilityZone})
			}
		}
		some, next, err := page(f, list, in.NextToken, in.MaxResults)
		return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: some, NextToken: next}, err
	})
}
