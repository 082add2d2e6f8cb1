package launch

import (
	"fmt"
	"math"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

const gib = 1 << 30

// blockDevices are the volumes of a class, or the default ones of its family.
func blockDevices(c *nodeclass.Class) ([]BlockDevice, error) {
	if len(c.Spec.BlockDeviceMappings) == 0 {
		return defaultDevices(c.Family), nil
	}
	out := make([]BlockDevice, len(c.Spec.BlockDeviceMappings))
	for i, m := range c.Spec.BlockDeviceMappings {
		d := BlockDevice{Device: m.DeviceName}
		if e := m.EBS; e != nil {
			d.Type, d.KMSKey, d.Snapshot = e.VolumeType, e.KMSKeyID, e.SnapshotID
			d.Encrypted, d.DeleteOnTermination = e.Encrypted, e.DeleteOnTermination
			d.IOPS, d.Throughput, d.InitializationRate = e.IOPS, e.Throughput, e.VolumeInitializationRate
			size, err := sizeGiB(e.VolumeSize, fmt.Sprintf("spec.blockDeviceMappings[%d].ebs.volumeSize", i))
			if err != nil {
				return nil, err
			}
			d.SizeGiB = size
		}
		out[i] = d
	}
	return out, nil
}

// sizeGiB is a quantity in GiB, rounded up.
func sizeGiB(text, field string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := snapshot.ParseQuantity(snapshot.EphemeralStorage, text)
	if err != nil || n <= 0 || (n-1)/gib >= math.MaxInt32 {
		return 0, nodeclass.Refuse(nodeclass.InvalidNodeClass, `%s: %q is no size of a volume; write it like "20Gi"`, field, text)
	}
	return int32((n-1)/gib + 1), nil
}

// defaultDevices are the volumes of a family whose class names none (Karpenter: default
// block device mappings); a Custom image brings its own.
func defaultDevices(family string) []BlockDevice {
	yes := true
	gp3 := func(device string, size int32) BlockDevice {
		return BlockDevice{Device: device, SizeGiB: size, Type: "gp3", Encrypted: &yes}
	}
	switch family {
	case catalog.FamilyAL2, catalog.FamilyAL2023:
		return []BlockDevice{gp3("/dev/xvda", 20)}
	case catalog.FamilyBottlerocket:
		return []BlockDevice{gp3("/dev/xvda", 4), gp3("/dev/xvdb", 20)}
	case catalog.FamilyWindows2019, catalog.FamilyWindows2022, catalog.FamilyWindows2025:
		return []BlockDevice{gp3("/dev/sda1", 50)}
	}
	return nil
}
