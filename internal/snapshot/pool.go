package snapshot

import "time"

// ClassRef is a nodeClassRef.
type ClassRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// NodePool is a karpenter.sh/v1 NodePool.
type NodePool struct {
	Name                   string                `json:"name"`
	UID                    string                `json:"uid,omitempty"`
	Generation             int64                 `json:"generation,omitempty"`
	Annotations            map[string]string     `json:"annotations,omitempty"`
	Weight                 int32                 `json:"weight,omitempty"` // unset = 0
	Limits                 map[string]int64      `json:"limits,omitempty"` // by resource, in the units of Resources; nil = none
	Replicas               *int64                `json:"replicas,omitempty"`
	TemplateLabels         map[string]string     `json:"templateLabels,omitempty"`
	TemplateAnnotations    map[string]string     `json:"templateAnnotations,omitempty"`
	Taints                 []Taint               `json:"taints,omitempty"`
	StartupTaints          []Taint               `json:"startupTaints,omitempty"`
	Requirements           []SelectorRequirement `json:"requirements,omitempty"`
	ClassRef               ClassRef              `json:"classRef"`
	ExpireAfter            string                `json:"expireAfter,omitempty"`
	TerminationGracePeriod string                `json:"terminationGracePeriod,omitempty"`
	Disruption             Disruption            `json:"disruption"`
	// HasStatus tells a live object from a manifest: an absent status is computed,
	// a present Ready=False blocks.
	HasStatus  bool        `json:"hasStatus,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	Deleting   time.Time   `json:"deleting,omitzero"`
}

// Disruption is spec.disruption of a NodePool.
type Disruption struct {
	ConsolidationPolicy string   `json:"consolidationPolicy,omitempty"`
	ConsolidateAfter    string   `json:"consolidateAfter,omitempty"`
	Budgets             []Budget `json:"budgets,omitempty"`
}

// Budget is one disruption budget.
type Budget struct {
	Nodes    string   `json:"nodes,omitempty"` // "10%" or "3"
	Reasons  []string `json:"reasons,omitempty"`
	Schedule string   `json:"schedule,omitempty"`
	Duration string   `json:"duration,omitempty"`
}

// NodeClass is a karpenter.k8s.aws/v1 EC2NodeClass: what the planner needs of it
// typed, the whole spec raw for those who launch.
type NodeClass struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid,omitempty"`
	Generation  int64             `json:"generation,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// AMIFamily is AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025
	// or Custom, derived from the alias where the spec leaves it out.
	AMIFamily            string             `json:"amiFamily,omitempty"`
	AMIAlias             string             `json:"amiAlias,omitempty"` // "al2023@latest"
	Kubelet              Kubelet            `json:"kubelet"`
	BlockDevices         []BlockDevice      `json:"blockDevices,omitempty"`
	InstanceStorePolicy  string             `json:"instanceStorePolicy,omitempty"` // "" or RAID0
	NetworkInterfaces    []NetworkInterface `json:"networkInterfaces,omitempty"`
	ConnectionTracking   bool               `json:"connectionTracking,omitempty"`
	NestedVirtualization bool               `json:"nestedVirtualization,omitempty"`
	// Zones are the zones of the resolved subnets; nil when the status says nothing.
	Zones []SubnetZone `json:"zones,omitempty"`
	// Images are the resolved AMIs of the status.
	Images       []Image               `json:"images,omitempty"`
	Reservations []CapacityReservation `json:"reservations,omitempty"`
	HasStatus    bool                  `json:"hasStatus,omitempty"`
	Conditions   []Condition           `json:"conditions,omitempty"`
	Deleting     time.Time             `json:"deleting,omitzero"`
	Spec         []byte                `json:"spec,omitempty"` // the spec as JSON
}

// Kubelet is spec.kubelet of an EC2NodeClass, as far as it decides allocatable.
type Kubelet struct {
	MaxPods        *int64            `json:"maxPods,omitempty"`
	PodsPerCore    *int64            `json:"podsPerCore,omitempty"`
	KubeReserved   map[string]string `json:"kubeReserved,omitempty"` // quantities as written
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	EvictionHard   map[string]string `json:"evictionHard,omitempty"`
	EvictionSoft   map[string]string `json:"evictionSoft,omitempty"`
}

// BlockDevice is one blockDeviceMapping, as far as it decides ephemeral storage.
type BlockDevice struct {
	DeviceName string `json:"deviceName,omitempty"`
	RootVolume bool   `json:"rootVolume,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"` // 0 = not given
}

// NetworkInterface is one entry of spec.networkInterfaces.
type NetworkInterface struct {
	NetworkCard int32  `json:"networkCard"`
	Device      int32  `json:"device"`
	Type        string `json:"type,omitempty"` // interface, efa-only
}

// SubnetZone is a zone of a resolved subnet.
type SubnetZone struct {
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneID,omitempty"`
}

// Image is a resolved AMI with the requirements its variant puts on types.
type Image struct {
	ID           string                `json:"id"`
	Name         string                `json:"name,omitempty"`
	Deprecated   bool                  `json:"deprecated,omitempty"`
	Requirements []SelectorRequirement `json:"requirements,omitempty"`
}

// CapacityReservation is a reservation that a class resolved.
type CapacityReservation struct {
	ID           string    `json:"id"`
	InstanceType string    `json:"instanceType"`
	Zone         string    `json:"zone"`
	Type         string    `json:"type,omitempty"` // default, capacity-block
	State        string    `json:"state,omitempty"`
	Remaining    int64     `json:"remaining,omitempty"` // instances that are left; -1 = not known
	Expires      time.Time `json:"expires,omitzero"`
}
