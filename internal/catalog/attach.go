package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// slots are the volumes that a type can have attached.
type slots struct {
	volumes int64
	// shared slots are taken by network interfaces too, beyond the first.
	shared bool
}

// Slots of types that no table names.
const (
	sharedSlots      = 27 // 28, less the first interface
	sharedMetalSlots = 31
	xenSlots         = 39
)

// dedicatedSlots are the slots of types that have some for volumes alone, by size.
var dedicatedSlots = map[string]int64{
	"16xlarge": 48, "18xlarge": 48, "24xlarge": 64, "32xlarge": 88, "48xlarge": 128, "64xlarge": 128, "96xlarge": 128,
	"112xlarge": 128, "224xlarge": 128,
	"metal-16xl": 39, "metal-24xl": 39, "metal-32xl": 79, "metal-48xl": 79, "metal-96xl": 79,
}

// smallDedicatedSlots are those of every smaller size.
const smallDedicatedSlots = 32

// familySlots is one row of the tables.
type familySlots struct {
	dedicated bool
	volumes   int64            // 0: by size
	sizes     map[string]int64 // sizes that differ
}

var slotTable = sync.OnceValue(func() map[string]familySlots {
	out := map[string]familySlots{}
	for _, f := range strings.Fields(xenFamilies) {
		out[f] = familySlots{dedicated: true, volumes: xenSlots}
	}
	for line := range strings.Lines(dedicatedFamilies) {
		families, sizes, _ := strings.Cut(strings.TrimSpace(line), " ")
		addSlots(out, families, familySlots{dedicated: true, sizes: sizeSlots(sizes)})
	}
	for line := range strings.Lines(sharedFamilies) {
		families, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		most, sizes, _ := strings.Cut(rest, " ")
		if families != "" {
			addSlots(out, families, familySlots{volumes: slotNumber(most), sizes: sizeSlots(sizes)})
		}
	}
	return out
})

func addSlots(table map[string]familySlots, families string, s familySlots) {
	for f := range strings.SplitSeq(families, ",") {
		if f != "" {
			table[f] = s
		}
	}
}

func sizeSlots(text string) map[string]int64 {
	out := map[string]int64{}
	for _, s := range strings.Fields(text) {
		size, n, _ := strings.Cut(s, "=")
		out[size] = slotNumber(n)
	}
	return out
}

func slotNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("table of attach limits: %q is no number", text)) // a broken build
	}
	return n
}

// slotsOf are the slots of a type by its name.
func slotsOf(name string) slots {
	family, size, _ := strings.Cut(name, ".")
	f := slotTable()[family]
	if n, ok := f.sizes[size]; ok {
		return slots{n, !f.dedicated}
	}
	switch {
	case f.dedicated && f.volumes > 0:
		return slots{f.volumes, false}
	case f.dedicated:
		if n, ok := dedicatedSlots[size]; ok {
			return slots{n, false}
		}
		return slots{smallDedicatedSlots, false}
	case size == "metal":
		return slots{sharedMetalSlots, true}
	case f.volumes > 0:
		return slots{f.volumes, true}
	}
	return slots{sharedSlots, true} // of older families, and of those nobody has told us of
}

// startInterfaces are the network interfaces that a node has when the EBS CSI driver
// counts them: its own and the one that the VPC CNI keeps warm.
const startInterfaces = 2

// EBSVolumes is how many EBS volumes pods can have attached on a new node of the type,
// devices being the volumes that the node itself boots with: what the EBS CSI driver
// will report in CSINode, at least 1 (driver: getVolumesLimit). A figure of the catalogue
// file comes first.
func (t *InstanceType) EBSVolumes(devices int64) int64 {
	if t.Volumes > 0 {
		return t.Volumes
	}
	s := slotsOf(t.Name)
	n := s.volumes - max(devices, 1)
	if s.shared {
		interfaces := int64(startInterfaces)
		if t.ENI.Interfaces > 0 {
			interfaces = min(interfaces, t.ENI.Interfaces)
		}
		n -= interfaces - 1
	}
	return max(n, 1)
}
