package instancetype_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/instancetype"
	"kerf.sh/kerf/internal/cloud/pricing"
)

var ctx = context.Background()

func world() *ec2fake.EC2 {
	e := ec2fake.New(func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) })
	e.PageSize = 1
	e.AddSubnet("subnet-1", "a", "1", 1)
	e.AddSubnet("subnet-2", "b", "2", 1)
	e.AddType(ec2fake.Type{Name: "m7g.large", Arch: "arm64", VCPU: 2, Spot: 1}, ec2fake.Type{Name: "p9.metal", Arch: "amd64", VCPU: 96})
	e.TypeInfos = map[string]types.InstanceTypeInfo{"p9.metal": {
		InstanceType: "p9.metal", VCpuInfo: &types.VCpuInfo{DefaultVCpus: aws.Int32(96)}, MemoryInfo: &types.MemoryInfo{SizeInMiB: aws.Int64(1 << 20)},
		ProcessorInfo: &types.ProcessorInfo{SupportedArchitectures: []types.ArchitectureType{"x86_64"}, Manufacturer: aws.String("Intel Corp"), SustainedClockSpeedInGhz: aws.Float64(3.1)},
		NetworkInfo: &types.NetworkInfo{MaximumNetworkInterfaces: aws.Int32(60), Ipv4AddressesPerInterface: aws.Int32(50), MaximumNetworkCards: aws.Int32(4), DefaultNetworkCardIndex: aws.Int32(0),
			NetworkCards: []types.NetworkCardInfo{{NetworkCardIndex: aws.Int32(0), MaximumNetworkInterfaces: aws.Int32(15)}, {NetworkCardIndex: aws.Int32(1), MaximumNetworkInterfaces: aws.Int32(15)}},
			EfaInfo:      &types.EfaInfo{MaximumEfaInterfaces: aws.Int32(4)}, EncryptionInTransitSupported: aws.Bool(true)},
		EbsInfo:               &types.EbsInfo{EbsOptimizedSupport: types.EbsOptimizedSupportDefault, EbsOptimizedInfo: &types.EbsOptimizedInfo{MaximumBandwidthInMbps: aws.Int32(19000)}},
		InstanceStorageInfo:   &types.InstanceStorageInfo{NvmeSupport: types.EphemeralNvmeSupportRequired, TotalSizeInGB: aws.Int64(8000)},
		GpuInfo:               &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{Name: aws.String("H9"), Manufacturer: aws.String("NVIDIA"), Count: aws.Int32(8), MemoryInfo: &types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(81920)}}}},
		NeuronInfo:            &types.NeuronInfo{NeuronDevices: []types.NeuronDeviceInfo{{Name: aws.String("Trn9"), Count: aws.Int32(2), CoreInfo: &types.NeuronDeviceCoreInfo{Count: aws.Int32(4)}}}},
		SupportedUsageClasses: []types.UsageClassType{types.UsageClassTypeOnDemand},
	}}
	return e
}

func TestTypes(t *testing.T) {
	found, err := instancetype.Types(ctx, world())
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	want := instancetype.Found{OnDemand: true, Type: catalog.InstanceType{
		Name: "p9.metal", Arch: "amd64", VCPU: 96, MemoryMiB: 1 << 20, CPUManufacturer: "intel-corp", ClockMHz: 3100, Encryption: "true", EBSMbps: 19000, LocalNVMeGB: 8000,
		ENI:          catalog.ENI{Interfaces: 15, IPv4PerENI: 50, EFAInterfaces: 4, Cards: 4},
		GPUs:         []catalog.Device{{Name: "H9", Manufacturer: "NVIDIA", Count: 8, MemoryMiB: 81920}},
		Accelerators: []catalog.Device{{Name: "Trn9", Manufacturer: "aws", Count: 2, Cores: 4}},
	}}
	if d := cmp.Diff(want, found[1], cmpopts.EquateEmpty()); d != "" {
		t.Errorf("p9.metal (-want +got):\n%s", d)
	}
	if a := found[0]; a.Type.Arch != "arm64" || !a.Spot || !a.OnDemand {
		t.Errorf("m7g.large: %+v", a)
	}
	e := world()
	e.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.N == 2 {
			return ec2fake.Fault{Before: errors.New("no answer")}
		}
		return ec2fake.Fault{}
	}
	if got, err := instancetype.Types(ctx, e); err == nil || got != nil {
		t.Errorf("half of the types: %v, %v", got, err)
	}
}

// TestMerge: zones are EC2's, prices and what EC2 does not tell are the table's, and a type
// that the table does not know is sold once it has a price.
func TestMerge(t *testing.T) {
	e := world()
	found, err := instancetype.Types(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	zones, err := instancetype.Zones(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	table := &catalog.Catalog{Region: "r", Zones: []string{"a", "z"}, Types: []catalog.InstanceType{
		{Name: "gone.large"},
		{Name: "m7g.large", NetworkMbps: 937, Volumes: 25, ENI: catalog.ENI{Branch: 9}, Offerings: []catalog.Offering{
			{Zone: "a", CapacityType: "on-demand", Price: 81, Available: true}, {Zone: "z", CapacityType: "spot", Price: 32, Available: true, Estimated: true}}},
	}}
	got := instancetype.Merge(table, found, zones, map[string]string{"a": "1", "b": "2"})
	if d := cmp.Diff([]string{"a", "b"}, got.Zones); d != "" || len(got.Types) != 2 {
		t.Fatalf("zones, %d types:\n%s", len(got.Types), d)
	}
	m7g := got.Types[0]
	if m7g.NetworkMbps != 937 || m7g.Volumes != 25 || m7g.ENI.Branch != 9 || m7g.ENI.Interfaces != 3 {
		t.Errorf("m7g.large: %+v", m7g)
	}
	want := []catalog.Offering{
		{Zone: "a", ZoneID: "1", CapacityType: "on-demand", Price: 81, Available: true}, {Zone: "a", ZoneID: "1", CapacityType: "spot", Price: 32, Available: true, Estimated: true},
		{Zone: "b", ZoneID: "2", CapacityType: "on-demand", Price: 81, Available: true}, {Zone: "b", ZoneID: "2", CapacityType: "spot", Price: 32, Available: true, Estimated: true},
	}
	if d := cmp.Diff(want, m7g.Offerings); d != "" {
		t.Errorf("offers (-want +got):\n%s", d)
	}
	if o := got.Types[1].Offerings; len(o) != 2 || o[0].Available {
		t.Errorf("a type without a price: %+v", o)
	}
	priced := pricing.Apply(got, map[string]int64{"p9.metal": 98}, nil)
	if o := priced.Types[1].Offerings; !o[0].Available || o[0].Price != 98 {
		t.Errorf("with a price: %+v", o)
	}
}
