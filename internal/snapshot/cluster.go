package snapshot

// DaemonSet is an apps/v1 DaemonSet: every new node it matches carries its pod.
type DaemonSet struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Template is the pod template. Its Requests already hold the admission
	// defaults: limits copied into missing requests, LimitRange, RuntimeClass
	// overhead.
	Template PodTemplate `json:"template"`
}

// PodTemplate is the template of a workload.
type PodTemplate struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        PodSpec           `json:"spec"`
}

// Workload is a Deployment, ReplicaSet, StatefulSet or Job. One that has no pods
// in the input can stand for its pending pods.
type Workload struct {
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	UID       string         `json:"uid,omitempty"`
	Owner     *Owner         `json:"owner,omitempty"`
	Replicas  int64          `json:"replicas"`
	Selector  *LabelSelector `json:"selector,omitempty"`
	Template  PodTemplate    `json:"template"`
	// FirstOrdinal is the number of the first pod of a StatefulSet.
	FirstOrdinal int64 `json:"firstOrdinal,omitempty"`
	// ClaimTemplates are the volumeClaimTemplates of a StatefulSet, by name.
	ClaimTemplates map[string]ClaimSpec `json:"claimTemplates,omitempty"`
}

// Namespace carries the labels that namespaceSelectors match.
type Namespace struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// LimitRange holds the limits of type Container and Pod of a core/v1 LimitRange.
type LimitRange struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Limits    []LimitRangeItem `json:"limits,omitempty"`
}

// LimitRangeItem is one entry of a LimitRange.
type LimitRangeItem struct {
	Type           string           `json:"type"` // Container, Pod
	Default        map[string]int64 `json:"default,omitempty"`
	DefaultRequest map[string]int64 `json:"defaultRequest,omitempty"`
	Min            map[string]int64 `json:"min,omitempty"`
	Max            map[string]int64 `json:"max,omitempty"`
}

// RuntimeClass adds overhead, a node selector and tolerations to its pods.
type RuntimeClass struct {
	Name         string            `json:"name"`
	Overhead     Resources         `json:"overhead"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
}

// PriorityClass gives pods their priority.
type PriorityClass struct {
	Name             string `json:"name"`
	Value            int32  `json:"value"`
	GlobalDefault    bool   `json:"globalDefault,omitempty"`
	PreemptionPolicy string `json:"preemptionPolicy,omitempty"`
}

// ClaimSpec is the part of a PersistentVolumeClaim spec that decides.
type ClaimSpec struct {
	// StorageClass is nil when the claim names none ("" and nil differ).
	StorageClass *string  `json:"storageClass,omitempty"`
	VolumeName   string   `json:"volumeName,omitempty"`
	AccessModes  []string `json:"accessModes,omitempty"`
	// Bytes is the storage asked for; 0 = not given. Block tells volumeMode Block from
	// Filesystem. Selector picks volumes that exist by their labels.
	Bytes    int64          `json:"bytes,omitempty"`
	Block    bool           `json:"block,omitempty"`
	Selector *LabelSelector `json:"selector,omitempty"`
}

// PersistentVolumeClaim is a claim.
type PersistentVolumeClaim struct {
	Namespace     string    `json:"namespace"`
	Name          string    `json:"name"`
	Spec          ClaimSpec `json:"spec"`
	Phase         string    `json:"phase,omitempty"` // Pending, Bound, Lost
	BindCompleted bool      `json:"bindCompleted,omitempty"`
	Deleting      bool      `json:"deleting,omitempty"`
	// SelectedNode is the node for which the scheduler has ordered the volume
	// (annotation volume.kubernetes.io/selected-node); "" = none yet.
	SelectedNode string `json:"selectedNode,omitempty"`
}

// PersistentVolume is a volume.
type PersistentVolume struct {
	Name         string             `json:"name"`
	StorageClass string             `json:"storageClass,omitempty"`
	Driver       string             `json:"driver,omitempty"` // CSI driver, or the in-tree plugin's CSI name
	Handle       string             `json:"handle,omitempty"`
	Local        bool               `json:"local,omitempty"` // local or hostPath
	Required     []NodeSelectorTerm `json:"required,omitempty"`
	Labels       map[string]string  `json:"labels,omitempty"` // old zone labels
	Deleting     bool               `json:"deleting,omitempty"`
	// Claim is the claim that the volume is kept for or bound to, namespace/name; "" =
	// anybody's. Phase is its status: Available, Bound, Released, Failed.
	Claim       string   `json:"claim,omitempty"`
	Phase       string   `json:"phase,omitempty"`
	Bytes       int64    `json:"bytes,omitempty"`
	AccessModes []string `json:"accessModes,omitempty"`
	Block       bool     `json:"block,omitempty"`
}

// StorageClass is a storage class.
type StorageClass struct {
	Name              string             `json:"name"`
	Provisioner       string             `json:"provisioner"`
	BindingMode       string             `json:"bindingMode,omitempty"` // "" = Immediate
	Default           bool               `json:"default,omitempty"`
	AllowedTopologies []NodeSelectorTerm `json:"allowedTopologies,omitempty"`
}

// PodDisruptionBudget is a PDB.
type PodDisruptionBudget struct {
	Namespace          string         `json:"namespace"`
	Name               string         `json:"name"`
	Selector           *LabelSelector `json:"selector,omitempty"`
	MinAvailable       string         `json:"minAvailable,omitempty"`
	MaxUnavailable     string         `json:"maxUnavailable,omitempty"`
	UnhealthyPolicy    string         `json:"unhealthyPolicy,omitempty"`
	DisruptionsAllowed int32          `json:"disruptionsAllowed"`
	HasStatus          bool           `json:"hasStatus,omitempty"`
}
