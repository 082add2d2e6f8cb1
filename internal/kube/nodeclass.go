package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// amiFamilies maps the family of an alias to the AMI family.
var amiFamilies = map[string]string{
	"al2":          "AL2",
	"al2023":       "AL2023",
	"bottlerocket": "Bottlerocket",
	"windows2019":  "Windows2019",
	"windows2022":  "Windows2022",
	"windows2025":  "Windows2025",
}

func (r *reader) addNodeClass(c *nodeClass, o object) *fieldError {
	if t := strings.TrimSpace(string(c.Spec)); t == "" || t == "null" {
		return malformed("spec", "missing")
	}
	var spec nodeClassSpec
	if err := decodeStrict(c.Spec, &spec, "spec"); err != nil {
		return err
	}
	var status nodeClassStatus
	present, err := decodeStatus(c.Status, &status)
	if err != nil {
		return err
	}
	raw, err := canonical(c.Spec)
	if err != nil {
		return err
	}
	out := snapshot.NodeClass{
		Name:                 c.Metadata.Name,
		UID:                  string(c.Metadata.UID),
		Generation:           c.Metadata.Generation,
		Annotations:          annotations(c.Metadata.Annotations),
		AMIFamily:            spec.AMIFamily,
		InstanceStorePolicy:  spec.InstanceStorePolicy,
		ConnectionTracking:   spec.ConnectionTracking != nil,
		NestedVirtualization: spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization == "enabled",
		HasStatus:            present && len(status.Conditions)+len(status.Subnets)+len(status.AMIs) > 0,
		Conditions:           metaConditions(status.Conditions),
		Deleting:             when(c.Metadata.DeletionTimestamp),
		Spec:                 raw,
	}
	for _, t := range spec.AMISelectorTerms {
		if t.Alias == "" {
			continue
		}
		out.AMIAlias = t.Alias
		if family, _, _ := strings.Cut(t.Alias, "@"); out.AMIFamily == "" {
			out.AMIFamily = amiFamilies[family]
		}
	}
	if k := spec.Kubelet; k != nil {
		out.Kubelet = snapshot.Kubelet{
			MaxPods: k.MaxPods, PodsPerCore: k.PodsPerCore,
			KubeReserved: labels(k.KubeReserved), SystemReserved: labels(k.SystemReserved),
			EvictionHard: labels(k.EvictionHard), EvictionSoft: labels(k.EvictionSoft),
		}
	}
	for _, b := range spec.BlockDeviceMappings {
		one := snapshot.BlockDevice{DeviceName: b.DeviceName, RootVolume: b.RootVolume}
		if b.EBS != nil && b.EBS.VolumeSize != nil {
			one.Bytes = amount(snapshot.EphemeralStorage, *b.EBS.VolumeSize)
		}
		out.BlockDevices = append(out.BlockDevices, one)
	}
	for _, n := range spec.NetworkInterfaces {
		out.NetworkInterfaces = append(out.NetworkInterfaces, snapshot.NetworkInterface{
			NetworkCard: n.NetworkCardIndex, Device: n.DeviceIndex, Type: n.InterfaceType,
		})
	}
	for _, s := range status.Subnets {
		out.Zones = append(out.Zones, snapshot.SubnetZone{Zone: s.Zone, ZoneID: s.ZoneID})
	}
	slices.SortFunc(out.Zones, func(a, b snapshot.SubnetZone) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.ZoneID, b.ZoneID))
	})
	out.Zones = slices.Compact(out.Zones)
	for _, a := range status.AMIs {
		out.Images = append(out.Images, snapshot.Image{
			ID: a.ID, Name: a.Name, Deprecated: a.Deprecated, Requirements: requirements(a.Requirements),
		})
	}
	for _, c := range status.CapacityReservations {
		out.Reservations = append(out.Reservations, snapshot.CapacityReservation{
			ID: c.ID, InstanceType: c.InstanceType, Zone: c.AvailabilityZone,
			Type: orElse(c.ReservationType, "default"), State: orElse(c.State, "active"), Expires: when(c.EndTime),
			Remaining: -1, // the status does not say
		})
	}
	r.snap.NodeClasses = append(r.snap.NodeClasses, out)
	return nil
}

// canonical is the JSON of an object with sorted names and without white space,
// so that YAML and JSON of one object are the same bytes. Numbers stay as written.
func canonical(raw []byte) ([]byte, *fieldError) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, malformed("spec", err.Error())
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, malformed("spec", err.Error())
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
