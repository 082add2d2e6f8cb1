package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// LearnedMemory is how long a size is remembered after a node last turned out to have it
// (Karpenter: 60 days).
const LearnedMemory = 60 * 24 * time.Hour

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

// sameSize is the share within which two figures are one that is not always the same: nodes
// of a kind differ by what their firmware keeps.
const sameSize = 50 // 2 %

// Saw is what is known of a kind of node after another one turned out to have something
// else: where the two figures are nearly the same the smaller one holds, so that no node is
// planned with what only some have; otherwise the one seen last. A resource that the last
// one does not have, or not yet, stays.
func (l Learned) Saw(o Learned) Learned {
	o.Capacity, o.Allocatable = saw(l.Capacity, o.Capacity), saw(l.Allocatable, o.Allocatable)
	return o
}

func saw(was, is snapshot.Resources) snapshot.Resources {
	for _, name := range was.Names() {
		a, b := was.Get(name), is.Get(name)
		if b <= 0 || a > 0 && a < b && b-a <= a/sameSize {
			is = is.With(name, a)
		}
	}
	return is
}

// LearnedSizes are the sizes that matter for the classes: those of images that one of them
// has, seen within LearnedMemory. The snapshot sorts them.
func LearnedSizes(learned []Learned, classes []snapshot.NodeClass, now time.Time) []snapshot.LearnedSize {
	if len(learned) == 0 {
		return nil
	}
	images := map[string]bool{}
	for i := range classes {
		for k := range classes[i].Images {
			images[classes[i].Images[k].ID] = true
		}
	}
	delete(images, "")
	var out []snapshot.LearnedSize
	for i := range learned {
		l := &learned[i]
		if !images[l.ImageID] || now.Sub(l.Seen) >= LearnedMemory {
			continue
		}
		out = append(out, snapshot.LearnedSize{
			InstanceType: l.InstanceType, ImageID: l.ImageID, Shape: l.Shape, Capacity: l.Capacity, Allocatable: l.Allocatable,
		})
	}
	return out
}

// Shape is a hash of everything beside type and image that decides what a node has, as far
// as the class and the settings say it: classes of one shape have nodes of one size. That of
// a node is the one of its class when it was launched (Record.Shape): a class may change
// while the node starts.
func Shape(class *snapshot.NodeClass, settings snapshot.Settings) string {
	// What decides and has no typed field: user data may set flags of the kubelet.
	var spec struct {
		UserData   *string `json:"userData"`
		CPUOptions any     `json:"cpuOptions"`
	}
	if len(class.Spec) > 0 {
		_ = json.Unmarshal(class.Spec, &spec) // what cannot be read decides nothing
	}
	soft := class.Kubelet
	soft.EvictionSoft = nil // has no part in allocatable
	text, err := json.Marshal([]any{
		class.AMIFamily, soft, class.BlockDevices, class.InstanceStorePolicy, class.NetworkInterfaces, class.NestedVirtualization,
		spec.UserData, spec.CPUOptions, settings.ReservedENIs,
	})
	if err != nil {
		return "" // nothing in it that JSON cannot hold
	}
	sum := sha256.Sum256(text)
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
