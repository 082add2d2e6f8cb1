package e2e

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// clusterName is the name of the cluster, and of what AWS has of it.
const clusterName = "real"

// kubeVersion is what EKS says of the cluster's version.
const kubeVersion = "1.36"

// zones are the zones of the subnets, with their ids.
var zones = [][2]string{{"us-east-1a", "use1-az1"}, {"us-east-1b", "use1-az2"}, {"us-east-1c", "use1-az4"}}

// nodeRole is the role that EC2NodeClasses name.
const nodeRole = "KerfNodeRole-real"

// tagged are the tags by which EC2NodeClasses find subnets and security groups.
var tagged = []string{"karpenter.sh/discovery", clusterName}

// newEC2 is an EC2 with the types of the embedded table that have a price, subnets in three
// zones, and the images of AL2023 and Bottlerocket.
func newEC2(c *catalog.Catalog) (*ec2fake.EC2, *ec2fake.SSM) {
	f := ec2fake.New(time.Now)
	f.Seed = "e2e"
	f.TypeInfos = map[string]types.InstanceTypeInfo{}
	for i := range c.Types {
		t := &c.Types[i]
		price := onDemand(t)
		if price == 0 {
			continue
		}
		f.AddType(ec2fake.Type{Name: t.Name, Arch: t.Arch, VCPU: t.VCPU, OnDemand: price, Spot: price * 35 / 100})
		f.TypeInfos[t.Name] = infoOf(t)
	}
	for i, z := range zones {
		f.AddSubnet(fmt.Sprintf("subnet-%017d", i+1), z[0], z[1], 4000, tagged...)
	}
	f.AddGroup("sg-00000000000000001", "nodes", tagged...)
	created := time.Now().Add(-30 * 24 * time.Hour)
	s := &ec2fake.SSM{Parameters: map[string]string{}}
	image := func(id, name, arch, parameter string) {
		f.AddImage(id, name, arch, created)
		s.Parameters[parameter] = id
	}
	for i, arch := range []string{"x86_64", "arm64"} {
		image(fmt.Sprintf("ami-1000000000000000%d", i), "amazon-eks-node-al2023-"+arch+"-standard-"+kubeVersion+"-v20261101", arch,
			"/aws/service/eks/optimized-ami/"+kubeVersion+"/amazon-linux-2023/"+arch+"/standard/recommended/image_id")
		image(fmt.Sprintf("ami-2000000000000000%d", i), "bottlerocket-aws-k8s-"+kubeVersion+"-"+arch+"-v1.50.0", arch,
			"/aws/service/bottlerocket/aws-k8s-"+kubeVersion+"/"+arch+"/latest/image_id")
	}
	f.VisibleAfter, f.RunningAfter = time.Second, 2*time.Second
	return f, s
}

func onDemand(t *catalog.InstanceType) int64 {
	for _, o := range t.Offerings {
		if o.CapacityType == catalog.OnDemand && o.Available {
			return o.Price
		}
	}
	return 0
}

// infoOf describes a type as EC2 does.
func infoOf(t *catalog.InstanceType) types.InstanceTypeInfo {
	arch := types.ArchitectureTypeX8664
	if t.Arch == catalog.ARM64 {
		arch = types.ArchitectureTypeArm64
	}
	out := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(t.Name), Hypervisor: types.InstanceTypeHypervisor(t.Hypervisor), CurrentGeneration: aws.Bool(true),
		BareMetal: aws.Bool(t.Hypervisor == ""), SupportedUsageClasses: []types.UsageClassType{types.UsageClassTypeOnDemand, types.UsageClassTypeSpot},
		VCpuInfo:      &types.VCpuInfo{DefaultVCpus: aws.Int32(int32(t.VCPU))},
		MemoryInfo:    &types.MemoryInfo{SizeInMiB: aws.Int64(t.MemoryMiB)},
		ProcessorInfo: &types.ProcessorInfo{SupportedArchitectures: []types.ArchitectureType{arch}, Manufacturer: aws.String(t.CPUManufacturer), SustainedClockSpeedInGhz: aws.Float64(float64(t.ClockMHz) / 1000)},
		NetworkInfo: &types.NetworkInfo{
			MaximumNetworkInterfaces: aws.Int32(int32(t.ENI.Interfaces)), Ipv4AddressesPerInterface: aws.Int32(int32(t.ENI.IPv4PerENI)), MaximumNetworkCards: aws.Int32(int32(max(1, t.ENI.Cards))),
			DefaultNetworkCardIndex: aws.Int32(0),
		},
		EbsInfo:             &types.EbsInfo{EbsOptimizedSupport: types.EbsOptimizedSupportUnsupported, NvmeSupport: types.EbsNvmeSupportRequired},
		InstanceStorageInfo: &types.InstanceStorageInfo{TotalSizeInGB: aws.Int64(t.LocalNVMeGB), NvmeSupport: types.EphemeralNvmeSupportRequired},
	}
	if t.Encryption != "" {
		out.NetworkInfo.EncryptionInTransitSupported = aws.Bool(t.Encryption == "true")
	}
	if t.ENI.EFAInterfaces > 0 {
		out.NetworkInfo.EfaSupported, out.NetworkInfo.EfaInfo = aws.Bool(true), &types.EfaInfo{MaximumEfaInterfaces: aws.Int32(int32(t.ENI.EFAInterfaces))}
	}
	if t.EBSMbps > 0 {
		out.EbsInfo.EbsOptimizedSupport = types.EbsOptimizedSupportDefault
		out.EbsInfo.EbsOptimizedInfo = &types.EbsOptimizedInfo{MaximumBandwidthInMbps: aws.Int32(int32(t.EBSMbps))}
	}
	for _, g := range t.GPUs {
		if out.GpuInfo == nil {
			out.GpuInfo = &types.GpuInfo{}
		}
		out.GpuInfo.Gpus = append(out.GpuInfo.Gpus, types.GpuDeviceInfo{Name: aws.String(g.Name), Manufacturer: aws.String(g.Manufacturer), Count: aws.Int32(int32(g.Count)),
			MemoryInfo: &types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(g.MemoryMiB))}})
	}
	for _, a := range t.Accelerators {
		if a.Cores > 0 {
			if out.NeuronInfo == nil {
				out.NeuronInfo = &types.NeuronInfo{}
			}
			out.NeuronInfo.NeuronDevices = append(out.NeuronInfo.NeuronDevices, types.NeuronDeviceInfo{Name: aws.String(a.Name), Count: aws.Int32(int32(a.Count)),
				CoreInfo: &types.NeuronDeviceCoreInfo{Count: aws.Int32(int32(a.Cores))}, MemoryInfo: &types.NeuronDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(a.MemoryMiB))}})
			continue
		}
		if out.InferenceAcceleratorInfo == nil {
			out.InferenceAcceleratorInfo = &types.InferenceAcceleratorInfo{}
		}
		out.InferenceAcceleratorInfo.Accelerators = append(out.InferenceAcceleratorInfo.Accelerators, types.InferenceDeviceInfo{Name: aws.String(a.Name), Manufacturer: aws.String(a.Manufacturer), Count: aws.Int32(int32(a.Count))})
	}
	return out
}

// eksOf is the cluster as EKS tells of it.
func eksOf(endpoint string, ca []byte) fakeaws.EKS {
	return fakeaws.EKS{Name: clusterName, Version: kubeVersion, Endpoint: endpoint, CA: ca, ServiceCIDR: "10.0.0.0/24", SecurityGroup: "sg-00000000000000001"}
}
