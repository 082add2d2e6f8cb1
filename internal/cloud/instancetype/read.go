package instancetype

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/paging"
)

// Client are the calls of EC2 that types need.
type Client interface {
	DescribeInstanceTypes(ctx context.Context, in *ec2.DescribeInstanceTypesInput, opts ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstanceTypeOfferings(ctx context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, opts ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error)
}

// Found is a type as EC2 describes it.
type Found struct {
	Type           catalog.InstanceType // without offerings
	Spot, OnDemand bool                 // usage classes
}

// Types are the types of the region that nodes can be made of, by name. Nothing comes with
// an error.
func Types(ctx context.Context, c Client) ([]Found, error) {
	var out []Found
	in := &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100), Filters: []types.Filter{
		{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
		{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
	}}
	err := paging.All(func() { out = nil }, func(token *string) (*string, error) {
		in.NextToken = token
		page, err := c.DescribeInstanceTypes(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range page.InstanceTypes {
			out = append(out, read(&page.InstanceTypes[i]))
		}
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("describe instance types: %w", awserr.From(err))
	}
	slices.SortFunc(out, func(a, b Found) int { return cmp.Compare(a.Type.Name, b.Type.Name) })
	return out, nil
}

// Zones are the zones in which each type is sold, sorted. Nothing comes with an error.
func Zones(ctx context.Context, c Client) (map[string][]string, error) {
	var out map[string][]string
	in := &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000)}
	err := paging.All(func() { out = map[string][]string{} }, func(token *string) (*string, error) {
		in.NextToken = token
		page, err := c.DescribeInstanceTypeOfferings(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, o := range page.InstanceTypeOfferings {
			out[string(o.InstanceType)] = append(out[string(o.InstanceType)], aws.ToString(o.Location))
		}
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("describe instance type offerings: %w", awserr.From(err))
	}
	for _, zones := range out {
		slices.Sort(zones)
	}
	return out, nil
}

// ZoneClient is the call of EC2 that ids of zones need.
type ZoneClient interface {
	DescribeAvailabilityZones(ctx context.Context, in *ec2.DescribeAvailabilityZonesInput, opts ...func(*ec2.Options)) (*ec2.DescribeAvailabilityZonesOutput, error)
}

// ZoneIDs are the ids of the region's zones, by the names that this account has for them.
func ZoneIDs(ctx context.Context, c ZoneClient) (map[string]string, error) {
	got, err := c.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, fmt.Errorf("describe availability zones: %w", awserr.From(err))
	}
	out := map[string]string{}
	for _, z := range got.AvailabilityZones {
		out[aws.ToString(z.ZoneName)] = aws.ToString(z.ZoneId)
	}
	return out, nil
}

func read(i *types.InstanceTypeInfo) Found {
	t := catalog.InstanceType{Name: string(i.InstanceType), Hypervisor: string(i.Hypervisor)}
	if i.VCpuInfo != nil {
		t.VCPU = int64(aws.ToInt32(i.VCpuInfo.DefaultVCpus))
	}
	if i.MemoryInfo != nil {
		t.MemoryMiB = aws.ToInt64(i.MemoryInfo.SizeInMiB)
	}
	if p := i.ProcessorInfo; p != nil {
		t.Arch = catalog.AMD64
		if len(p.SupportedArchitectures) > 0 && p.SupportedArchitectures[0] == types.ArchitectureTypeArm64 {
			t.Arch = catalog.ARM64
		}
		t.CPUManufacturer = strings.ReplaceAll(strings.ToLower(aws.ToString(p.Manufacturer)), " ", "-")
		t.ClockMHz = int64(math.Round(aws.ToFloat64(p.SustainedClockSpeedInGhz) * 1000))
		t.NestedVirtualization = slices.ContainsFunc(p.SupportedFeatures, func(f types.SupportedAdditionalProcessorFeature) bool {
			return strings.Contains(string(f), "nested-virtualization")
		})
	}
	if n := i.NetworkInfo; n != nil {
		t.ENI = eni(n)
		if n.EncryptionInTransitSupported != nil {
			t.Encryption = strconv.FormatBool(*n.EncryptionInTransitSupported)
		}
	}
	if e := i.EbsInfo; e != nil && e.EbsOptimizedSupport == types.EbsOptimizedSupportDefault && e.EbsOptimizedInfo != nil {
		t.EBSMbps = int64(aws.ToInt32(e.EbsOptimizedInfo.MaximumBandwidthInMbps))
	}
	if s := i.InstanceStorageInfo; s != nil && s.NvmeSupport != types.EphemeralNvmeSupportUnsupported {
		t.LocalNVMeGB = aws.ToInt64(s.TotalSizeInGB)
	}
	readDevices(i, &t)
	return Found{Type: t, Spot: slices.Contains(i.SupportedUsageClasses, types.UsageClassTypeSpot), OnDemand: slices.Contains(i.SupportedUsageClasses, types.UsageClassTypeOnDemand)}
}

// eni are the network limits: interfaces of the default card count (Karpenter: ENI limits).
func eni(n *types.NetworkInfo) catalog.ENI {
	out := catalog.ENI{Interfaces: int64(aws.ToInt32(n.MaximumNetworkInterfaces)), IPv4PerENI: int64(aws.ToInt32(n.Ipv4AddressesPerInterface)), Cards: int64(aws.ToInt32(n.MaximumNetworkCards))}
	for _, card := range n.NetworkCards {
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(n.DefaultNetworkCardIndex) && card.MaximumNetworkInterfaces != nil {
			out.Interfaces = int64(*card.MaximumNetworkInterfaces)
		}
	}
	if n.EfaInfo != nil {
		out.EFAInterfaces = int64(aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces))
	}
	return out
}

func readDevices(i *types.InstanceTypeInfo, t *catalog.InstanceType) {
	if i.GpuInfo != nil {
		for _, g := range i.GpuInfo.Gpus {
			d := catalog.Device{Name: aws.ToString(g.Name), Manufacturer: aws.ToString(g.Manufacturer), Count: int64(aws.ToInt32(g.Count))}
			if g.MemoryInfo != nil {
				d.MemoryMiB = int64(aws.ToInt32(g.MemoryInfo.SizeInMiB))
			}
			t.GPUs = append(t.GPUs, d)
		}
	}
	if i.NeuronInfo != nil {
		for _, n := range i.NeuronInfo.NeuronDevices {
			d := catalog.Device{Name: aws.ToString(n.Name), Manufacturer: "aws", Count: int64(aws.ToInt32(n.Count))}
			if n.CoreInfo != nil {
				d.Cores = int64(aws.ToInt32(n.CoreInfo.Count))
			}
			if n.MemoryInfo != nil {
				d.MemoryMiB = int64(aws.ToInt32(n.MemoryInfo.SizeInMiB))
			}
			t.Accelerators = append(t.Accelerators, d)
		}
		return
	}
	if i.InferenceAcceleratorInfo != nil {
		for _, a := range i.InferenceAcceleratorInfo.Accelerators {
			t.Accelerators = append(t.Accelerators, catalog.Device{Name: aws.ToString(a.Name), Manufacturer: aws.ToString(a.Manufacturer), Count: int64(aws.ToInt32(a.Count))})
		}
	}
}
