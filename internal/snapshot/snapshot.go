package snapshot

import "time"

// Snapshot is everything a plan is made on. All lists are sorted by namespace and
// name (Normalize does it), so that equal worlds are equal bytes.
type Snapshot struct {
	Cluster string    `json:"cluster,omitempty"`
	Region  string    `json:"region"`
	Now     time.Time `json:"now"`
	// Seed orders choices that are otherwise equal.
	Seed uint64 `json:"seed,omitempty"`
	// Incomplete says what could not be read; a plan on an incomplete reading never
	// removes anything. Empty means that the reading is complete.
	Incomplete []string `json:"incomplete,omitempty"`
	// Remarks are what the reading had to say, kept with a saved snapshot so that a
	// plan of it says the same. They decide nothing.
	Remarks []Remark `json:"remarks,omitempty"`
	// Unadmitted is what manifests and templates said before admission, where a saved
	// snapshot keeps it. It decides nothing.
	Unadmitted []Unadmitted `json:"unadmitted,omitempty"`

	Settings Settings `json:"settings"`

	Pods           []Pod                   `json:"pods,omitempty"`
	Nodes          []Node                  `json:"nodes,omitempty"`
	NodePools      []NodePool              `json:"nodePools,omitempty"`
	NodeClaims     []NodeClaim             `json:"nodeClaims,omitempty"`
	NodeClasses    []NodeClass             `json:"nodeClasses,omitempty"`
	DaemonSets     []DaemonSet             `json:"daemonSets,omitempty"`
	Workloads      []Workload              `json:"workloads,omitempty"`
	Namespaces     []Namespace             `json:"namespaces,omitempty"`
	LimitRanges    []LimitRange            `json:"limitRanges,omitempty"`
	RuntimeClasses []RuntimeClass          `json:"runtimeClasses,omitempty"`
	Priorities     []PriorityClass         `json:"priorityClasses,omitempty"`
	Claims         []PersistentVolumeClaim `json:"persistentVolumeClaims,omitempty"`
	Volumes        []PersistentVolume      `json:"persistentVolumes,omitempty"`
	StorageClasses []StorageClass          `json:"storageClasses,omitempty"`
	CSINodes       []CSINode               `json:"csiNodes,omitempty"`
	Attachments    []VolumeAttachment      `json:"volumeAttachments,omitempty"`
	Budgets        []PodDisruptionBudget   `json:"podDisruptionBudgets,omitempty"`
	Overlays       []NodeOverlay           `json:"nodeOverlays,omitempty"`
	Buffers        []CapacityBuffer        `json:"capacityBuffers,omitempty"`
	PodTemplates   []PodTemplateObject     `json:"podTemplates,omitempty"`
	// Nominations are what the ledger remembers; objects carry their own in
	// Pod.NominatedNode.
	Nominations []Nomination `json:"nominations,omitempty"`
	// Shortages, Setbacks and Learned are what the ledger remembers of offers and of types.
	Shortages []Shortage    `json:"shortages,omitempty"`
	Setbacks  []Setback     `json:"setbacks,omitempty"`
	Learned   []LearnedSize `json:"learnedSizes,omitempty"`
	// Rests are nodes that consolidation leaves in peace, as the ledger remembers it.
	Rests []Rest `json:"rests,omitempty"`
}

// Remark is a warning of the reading, or an object that it left out. Object and
// Code are as in a plan's warnings.
type Remark struct {
	Object string `json:"object,omitempty"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}
