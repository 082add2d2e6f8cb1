package snapshot

import "time"

// Node is a Node object.
type Node struct {
	Name          string            `json:"name"`
	UID           string            `json:"uid,omitempty"`
	ProviderID    string            `json:"providerID,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	Taints        []Taint           `json:"taints,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
	Capacity      Resources         `json:"capacity"`
	Allocatable   Resources         `json:"allocatable"`
	Conditions    []Condition       `json:"conditions,omitempty"`
	Created       time.Time         `json:"created,omitzero"`
	Deleting      time.Time         `json:"deleting,omitzero"`
}

// NodeClaim is a karpenter.sh/v1 NodeClaim. Before its Node exists it stands for
// capacity that is in flight.
type NodeClaim struct {
	Name          string                `json:"name"`
	UID           string                `json:"uid,omitempty"`
	Labels        map[string]string     `json:"labels,omitempty"`
	Annotations   map[string]string     `json:"annotations,omitempty"`
	Requirements  []SelectorRequirement `json:"requirements,omitempty"`
	Taints        []Taint               `json:"taints,omitempty"`
	StartupTaints []Taint               `json:"startupTaints,omitempty"`
	Requests      Resources             `json:"requests"` // spec.resources.requests
	ClassRef      ClassRef              `json:"classRef"`
	ExpireAfter   string                `json:"expireAfter,omitempty"`
	// TerminationGracePeriod is "" when unlimited.
	TerminationGracePeriod string      `json:"terminationGracePeriod,omitempty"`
	ProviderID             string      `json:"providerID,omitempty"`
	NodeName               string      `json:"nodeName,omitempty"`
	ImageID                string      `json:"imageID,omitempty"`
	Capacity               Resources   `json:"capacity"`
	Allocatable            Resources   `json:"allocatable"`
	Conditions             []Condition `json:"conditions,omitempty"`
	LastPodEvent           time.Time   `json:"lastPodEvent,omitzero"`
	Created                time.Time   `json:"created,omitzero"`
	Deleting               time.Time   `json:"deleting,omitzero"`
}

// FindCondition returns the condition of a type, or nil.
func FindCondition(cs []Condition, typ string) *Condition {
	for i := range cs {
		if cs[i].Type == typ {
			return &cs[i]
		}
	}
	return nil
}

// CSINode gives the attach limits of a node, by driver.
type CSINode struct {
	Name    string           `json:"name"`
	Drivers map[string]int64 `json:"drivers,omitempty"` // driver -> allocatable count; -1 = no limit given
}

// VolumeAttachment is an attachment of a persistent volume to a node.
type VolumeAttachment struct {
	Name     string `json:"name"`
	Attacher string `json:"attacher"`
	Node     string `json:"node"`
	Volume   string `json:"volume,omitempty"`
	Attached bool   `json:"attached,omitempty"`
}
