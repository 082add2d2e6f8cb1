package lifecycle

import (
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
