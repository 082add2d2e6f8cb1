package template

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/userdata"
)

// Tags are tags in the SDK's form, sorted by key.
func Tags(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

// Input is the request that makes a template. The template itself is tagged, and so is
// what it makes that a fleet request cannot tag: network interfaces, and spot requests
// where there are any. It has no token: the name is the content, so a second pass that makes
// it is told that it exists, and one that was collected can be made again.
func Input(t *launch.Template) *ec2.CreateLaunchTemplateInput {
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(t.Name),
		LaunchTemplateData: data(t),
		TagSpecifications:  []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: Tags(t.Tags)}},
	}
}

func data(t *launch.Template) *types.RequestLaunchTemplateData {
	out := &types.RequestLaunchTemplateData{
		ImageId:    aws.String(t.ImageID),
		Monitoring: &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(t.Monitoring)},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointState(t.Metadata.Endpoint),
			HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6(t.Metadata.IPv6),
			HttpPutResponseHopLimit: aws.Int32(t.Metadata.HopLimit),
			HttpTokens:              types.LaunchTemplateHttpTokensState(t.Metadata.Tokens),
			InstanceMetadataTags:    types.LaunchTemplateInstanceMetadataTagsStateDisabled,
		},
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeNetworkInterface, Tags: Tags(t.Tags)}},
	}
	if t.SpotTags {
		out.TagSpecifications = append(out.TagSpecifications, types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: Tags(t.Tags)})
	}
	if t.UserData != "" {
		out.UserData = aws.String(userdata.Base64(t.UserData))
	}
	if t.InstanceProfile != "" {
		out.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(t.InstanceProfile)}
	}
	if t.Tenancy != "" || t.PlacementGroup != "" {
		out.Placement = &types.LaunchTemplatePlacementRequest{Tenancy: types.Tenancy(t.Tenancy), GroupId: text(t.PlacementGroup)}
		if t.Partition > 0 {
			out.Placement.PartitionNumber = aws.Int32(t.Partition)
		}
	}
	if t.Nested != "" {
		out.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{NestedVirtualization: types.NestedVirtualizationSpecification(t.Nested)}
	}
	if t.Enclave {
		out.EnclaveOptions = &types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)}
	}
	if r := t.Reservation; r.Preference != "" {
		out.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationPreference: types.CapacityReservationPreference(r.Preference)}
		if r.ID != "" {
			out.CapacityReservationSpecification.CapacityReservationTarget = &types.CapacityReservationTarget{CapacityReservationId: aws.String(r.ID)}
		}
		if r.Market != "" {
			out.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketType(r.Market)}
		}
	}
	for i := range t.BlockDevices {
		out.BlockDeviceMappings = append(out.BlockDeviceMappings, device(&t.BlockDevices[i]))
	}
	for i := range t.Interfaces {
		out.NetworkInterfaces = append(out.NetworkInterfaces, nic(&t.Interfaces[i]))
	}
	return out
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func device(d *launch.BlockDevice) types.LaunchTemplateBlockDeviceMappingRequest {
	return types.LaunchTemplateBlockDeviceMappingRequest{
		DeviceName: aws.String(d.Device),
		Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
			DeleteOnTermination: d.DeleteOnTermination, Encrypted: d.Encrypted, Iops: d.IOPS, KmsKeyId: text(d.KMSKey),
			SnapshotId: text(d.Snapshot), Throughput: d.Throughput, VolumeInitializationRate: d.InitializationRate,
			VolumeSize: number(d.SizeGiB), VolumeType: types.VolumeType(d.Type),
		},
	}
}

func nic(n *launch.Interface) types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	out := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
		NetworkCardIndex: aws.Int32(n.Card), DeviceIndex: aws.Int32(n.Device), InterfaceType: text(n.Type),
		Groups: n.SecurityGroups, AssociatePublicIpAddress: n.PublicIP,
		Ipv4PrefixCount: number(n.IPv4Prefixes), Ipv6PrefixCount: number(n.IPv6Prefixes),
	}
	if n.IPv6 {
		out.PrimaryIpv6, out.Ipv6AddressCount = aws.Bool(true), aws.Int32(1)
	}
	if c := n.Tracking; c != nil {
		out.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: c.TCPEstablishedTimeout, UdpStreamTimeout: c.UDPStreamTimeout, UdpTimeout: c.UDPTimeout,
		}
	}
	return out
}
