package fakeaws

import (
	"encoding/xml"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// outputNames are the elements of EC2's answers that are not the SDK's name of their field
// with a small letter.
var outputNames = map[string]string{
	"CreateFleetOutput.Errors": "errorSet", "CreateFleetOutput.Instances": "fleetInstanceSet",
	"FleetLaunchTemplateOverrides.BlockDeviceMappings": "blockDeviceMappingSet",
	"InstanceRequirements.AcceleratorManufacturers":    "acceleratorManufacturerSet",
	"InstanceRequirements.AcceleratorNames":            "acceleratorNameSet",
	"InstanceRequirements.AcceleratorTypes":            "acceleratorTypeSet",
	"InstanceRequirements.AllowedInstanceTypes":        "allowedInstanceTypeSet",
	"InstanceRequirements.CpuManufacturers":            "cpuManufacturerSet",
	"InstanceRequirements.ExcludedInstanceTypes":       "excludedInstanceTypeSet",
	"InstanceRequirements.InstanceGenerations":         "instanceGenerationSet",
	"InstanceRequirements.LocalStorageTypes":           "localStorageTypeSet",
	"CpuPerformanceFactor.References":                  "referenceSet",
	"DescribeInstancesOutput.Reservations":             "reservationSet",
	"DescribeInstanceStatusOutput.InstanceStatuses":    "instanceStatusSet", "InstanceStatus.Events": "eventsSet",
	"Reservation.Groups": "groupSet", "Reservation.Instances": "instancesSet",
	"Instance.BlockDeviceMappings": "blockDeviceMapping", "Instance.ElasticGpuAssociations": "elasticGpuAssociationSet",
	"Instance.ElasticInferenceAcceleratorAssociations": "elasticInferenceAcceleratorAssociationSet",
	"Instance.Licenses": "licenseSet", "Instance.NetworkInterfaces": "networkInterfaceSet",
	"Instance.PublicDnsName": "dnsName", "Instance.PublicIpAddress": "ipAddress",
	"Instance.SecondaryInterfaces": "secondaryInterfaceSet", "Instance.SecurityGroups": "groupSet",
	"Instance.State": "instanceState", "Instance.StateTransitionReason": "reason", "Instance.Tags": "tagSet",
	"Monitoring.MetricCategoryIds":                  "metricCategoryIdSet",
	"InstanceNetworkInterface.Groups":               "groupSet",
	"InstanceNetworkInterface.Ipv4Prefixes":         "ipv4PrefixSet",
	"InstanceNetworkInterface.Ipv6Addresses":        "ipv6AddressesSet",
	"InstanceNetworkInterface.Ipv6Prefixes":         "ipv6PrefixSet",
	"InstanceNetworkInterface.PrivateIpAddresses":   "privateIpAddressesSet",
	"ProductCode.ProductCodeId":                     "productCode",
	"ProductCode.ProductCodeType":                   "type",
	"InstanceSecondaryInterface.PrivateIpAddresses": "privateIpAddressSet",
	"TerminateInstancesOutput.TerminatingInstances": "instancesSet",
	"RunInstancesOutput.Groups":                     "groupSet", "RunInstancesOutput.Instances": "instancesSet",
	"LaunchTemplate.Tags": "tagSet", "ValidationWarning.Errors": "errorSet",
	"DescribeSubnetsOutput.Subnets": "subnetSet", "Subnet.Tags": "tagSet",
	"DescribeSecurityGroupsOutput.SecurityGroups": "securityGroupInfo",
	"SecurityGroup.Description":                   "groupDescription", "SecurityGroup.Tags": "tagSet", "IpPermission.UserIdGroupPairs": "groups",
	"DescribePlacementGroupsOutput.PlacementGroups": "placementGroupSet", "PlacementGroup.Tags": "tagSet",
	"DescribeImagesOutput.Images": "imagesSet", "Image.BlockDeviceMappings": "blockDeviceMapping", "Image.ImageWatermarks": "imageWatermarkSet",
	"Image.OwnerId": "imageOwnerId", "Image.Public": "isPublic", "Image.State": "imageState", "Image.Tags": "tagSet",
	"EbsBlockDevice.AvailabilityZoneId": "AvailabilityZoneId", "EbsBlockDevice.EbsCardIndex": "EbsCardIndex",
	"EbsBlockDevice.VolumeInitializationRate":                 "VolumeInitializationRate",
	"InstanceTypeSpecification.SupportedInstanceTypes":        "supportedInstanceTypeSet",
	"InstanceTypeSpecification.UnsupportedInstanceTypes":      "unsupportedInstanceTypeSet",
	"DescribeCapacityReservationsOutput.CapacityReservations": "capacityReservationSet",
	"CapacityReservation.CapacityAllocations":                 "capacityAllocationSet", "CapacityReservation.Tags": "tagSet",
	"CapacityAllocation.AllocationMetadata":           "allocationMetadataList",
	"DescribeSpotPriceHistoryOutput.SpotPriceHistory": "spotPriceHistorySet",
	"DescribeInstanceTypesOutput.InstanceTypes":       "instanceTypeSet",
	"EbsInfo.EbsCards":                                "ebsCardSet", "GpuDeviceInfo.Workloads": "workloadSet", "NetworkCardInfo.InterfaceTypes": "interfaceTypeSet",
	"DescribeInstanceTypeOfferingsOutput.InstanceTypeOfferings": "instanceTypeOfferingSet",
	"DescribeAvailabilityZonesOutput.AvailabilityZones":         "availabilityZoneInfo",
	"AvailabilityZone.Geography":                                "geographySet", "AvailabilityZone.Messages": "messageSet",
	"AvailabilityZone.State": "zoneState", "AvailabilityZone.SubGeography": "subGeographySet",
	"DescribeReservedInstancesOutput.ReservedInstances": "reservedInstancesSet", "ReservedInstances.Tags": "tagSet",
}

// memberLists are EC2's lists whose entries are named as in IAM.
var memberLists = map[string]bool{"InferenceAcceleratorInfo.Accelerators": true}

// encode writes the fields of an SDK output as elements.
func (d dialect) encode(w io.Writer, v reflect.Value) error {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Name == "ResultMetadata" {
			continue
		}
		if err := d.element(w, d.elementOf(t, f.Name), t.Name()+"."+f.Name, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// elementOf is the name of a field's element.
func (d dialect) elementOf(t reflect.Type, field string) string {
	if d.capital {
		return field
	}
	if name, ok := outputNames[t.Name()+"."+field]; ok {
		return name
	}
	return strings.ToLower(field[:1]) + field[1:]
}

func (d dialect) element(w io.Writer, name, of string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return d.element(w, name, of, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		item := d.item
		if memberLists[of] {
			item = "member"
		}
		fmt.Fprintf(w, "<%s>", name)
		for i := range v.Len() {
			if err := d.element(w, item, of, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		fmt.Fprintf(w, "<%s>", name)
		if v.Type() == timeType {
			io.WriteString(w, v.Interface().(time.Time).UTC().Format("2006-01-02T15:04:05.000Z"))
		} else if err := d.encode(w, v); err != nil {
			return err
		}
	case reflect.String:
		if v.Len() == 0 && v.Type().Name() != "string" {
			return nil // an enumeration that says nothing
		}
		fmt.Fprintf(w, "<%s>", name)
		if err := xml.EscapeText(w, []byte(v.String())); err != nil {
			return err
		}
	case reflect.Bool:
		fmt.Fprintf(w, "<%s>%t", name, v.Bool())
	case reflect.Int32, reflect.Int64:
		fmt.Fprintf(w, "<%s>%d", name, v.Int())
	case reflect.Float32, reflect.Float64:
		fmt.Fprintf(w, "<%s>%s", name, strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits()))
	default:
		return fmt.Errorf("%s: this AWS cannot write a %s", of, v.Type())
	}
	_, err := fmt.Fprintf(w, "</%s>", name)
	return err
}
