package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Learned is what a node of a type, with an image and a shape of its class, turned out to
// have. It holds for all nodes of that kind and goes both ways, up and down.
type Learned struct {
	InstanceType string `json:"instanceType"`
	ImageID      string `json:"imageId"`
	// Shape is a hash of what else decides: kubelet settings, block devices, reservations.
	Shape       string             `json:"shape"`
	Capacity    snapshot.Resources `json:"capacity"`
	Allocatable snapshot.Resources `json:"allocatable"`
	Seen        time.Time          `json:"seen"`
	Version     int64              `json:"version"`
}

// Shape is a hash of what decides, beside type and image, how much of a node pods can have:
// kubelet settings, block devices, instance store and network interfaces of its class, as
// far as they are written down. Classes that differ in nothing else share what is learned.
func Shape(c *snapshot.NodeClass) string {
	raw, err := json.Marshal(struct {
		Family     string
		Kubelet    snapshot.Kubelet
		Disks      []snapshot.BlockDevice
		Store      string
		Interfaces []snapshot.NetworkInterface
		Nested     bool
	}{c.AMIFamily, c.Kubelet, c.BlockDevices, c.InstanceStorePolicy, c.NetworkInterfaces, c.NestedVirtualization})
	if err != nil { // strings and numbers can always be written
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// WorkloadMove is one time that pods of a workload had to go somewhere else because of us.
type WorkloadMove struct {
	Workload string         `json:"workload"` // namespace/kind/name
	At       time.Time      `json:"at"`
	From     string         `json:"from"`
	To       string         `json:"to,omitempty"`
	Reason   string         `json:"reason"`
	Command  string         `json:"command,omitempty"`
	Saving   snapshot.Price `json:"saving,omitempty"`
	Pods     int            `json:"pods"`
}

// Decision is a line of the decision log.
type Decision struct {
	At     time.Time `json:"at"`
	ID     string    `json:"id"` // of the plan
	Kind   string    `json:"kind"`
	Why    string    `json:"why"`
	Before int64     `json:"priceBefore"` // micro-dollars per hour
	After  int64     `json:"priceAfter"`
	// Snapshot is where the snapshot of the decision is kept, "" when it is not.
	Snapshot string   `json:"snapshot,omitempty"`
	Objects  []string `json:"objects,omitempty"`
}
