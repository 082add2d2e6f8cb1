package snapshot

import "time"

// Pod is a pod as the planner sees it.
type Pod struct {
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	UID         string            `json:"uid,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owner       *Owner            `json:"owner,omitempty"` // the controlling owner
	Created     time.Time         `json:"created,omitzero"`
	// Deleting is the deletionTimestamp; zero when the pod is not being deleted.
	Deleting time.Time `json:"deleting,omitzero"`

	Spec PodSpec `json:"spec"`

	// Buffer is the name of the CapacityBuffer, in Namespace, that the pod is a unit of:
	// it stands for a pod to come and exists in plans alone. "" for every real pod.
	Buffer string `json:"buffer,omitempty"`

	NodeName      string `json:"nodeName,omitempty"`
	NominatedNode string `json:"nominatedNode,omitempty"`
	Phase         string `json:"phase,omitempty"` // "" counts as Pending
	// Scheduled is the PodScheduled condition; nil when the pod carries none.
	Scheduled *Condition `json:"scheduled,omitempty"`
	Ready     *Condition `json:"ready,omitempty"`
	Started   time.Time  `json:"started,omitzero"` // status.startTime
}

// Ref is "namespace/name", for a unit of a CapacityBuffer
// "buffer/namespace/buffer/number".
func (p *Pod) Ref() string {
	if p.Buffer != "" {
		return "buffer/" + p.Namespace + "/" + p.Buffer + "/" + p.Name
	}
	return p.Namespace + "/" + p.Name
}

// Terminal reports whether the pod has finished.
func (p *Pod) Terminal() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// Owner is a controlling owner reference.
type Owner struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// Condition is a Kubernetes condition.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False, Unknown
	Reason             string    `json:"reason,omitempty"`
	Message            string    `json:"message,omitempty"`
	ObservedGeneration int64     `json:"observedGeneration,omitempty"`
	Since              time.Time `json:"since,omitzero"` // lastTransitionTime
}

// PodSpec is what decides where a pod may run and what it needs there.
type PodSpec struct {
	// Requests is the effective request: containers, sidecars, init containers,
	// pod-level resources, overhead and pods=1, after admission defaults.
	Requests     Resources         `json:"requests"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Required holds the OR terms of the required node affinity; nil when there is
	// none. A pod with required affinity but only empty terms matches nothing.
	Required    []NodeSelectorTerm `json:"required,omitempty"`
	Preferred   []PreferredTerm    `json:"preferred,omitempty"`
	Tolerations []Toleration       `json:"tolerations,omitempty"`
	HostPorts   []HostPort         `json:"hostPorts,omitempty"`
	Spread      []TopologySpread   `json:"spread,omitempty"`
	Affinity    []PodAffinityTerm  `json:"podAffinity,omitempty"`     // required and preferred
	Anti        []PodAffinityTerm  `json:"podAntiAffinity,omitempty"` // required and preferred
	Volumes     []Volume           `json:"volumes,omitempty"`
	// ResourceClaims names the pod's DRA claims.
	ResourceClaims   []string `json:"resourceClaims,omitempty"`
	Gates            []string `json:"gates,omitempty"` // schedulingGates
	SchedulerName    string   `json:"schedulerName,omitempty"`
	Priority         int32    `json:"priority,omitempty"`
	PriorityClass    string   `json:"priorityClass,omitempty"`
	RuntimeClass     string   `json:"runtimeClass,omitempty"`
	TerminationGrace *int64   `json:"terminationGrace,omitempty"` // seconds
}

// NodeSelectorTerm is one OR term of a node affinity. Expressions are ANDed.
type NodeSelectorTerm struct {
	Expressions []SelectorRequirement `json:"expressions,omitempty"`
	// Fields are matchFields; Karpenter refuses pods that use them for new nodes.
	Fields []SelectorRequirement `json:"fields,omitempty"`
}

// PreferredTerm is a weighted node affinity preference.
type PreferredTerm struct {
	Weight int32            `json:"weight"`
	Term   NodeSelectorTerm `json:"term"`
}

// SelectorRequirement is key, operator (In, NotIn, Exists, DoesNotExist, Gt, Lt;
// in NodePools Gte and Lte too), values; MinValues in NodePools only.
type SelectorRequirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues int      `json:"minValues,omitempty"`
}

// Taint is a node taint.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"` // NoSchedule, PreferNoSchedule, NoExecute
}

// Toleration is a pod toleration. Operator "" means Equal; Effect "" all effects.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"` // Exists, Equal, Gt, Lt
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// HostPort is a host port in use or asked for. IP "" means all addresses,
// Protocol "" means TCP.
type HostPort struct {
	IP       string `json:"ip,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Port     int32  `json:"port"`
}

// LabelSelector is a Kubernetes label selector; nil selects nothing in topology
// terms, an empty one selects everything.
type LabelSelector struct {
	MatchLabels map[string]string     `json:"matchLabels,omitempty"`
	Expressions []SelectorRequirement `json:"expressions,omitempty"`
}

// TopologySpread is a topologySpreadConstraint.
type TopologySpread struct {
	MaxSkew            int32          `json:"maxSkew"`
	TopologyKey        string         `json:"topologyKey"`
	WhenUnsatisfiable  string         `json:"whenUnsatisfiable"` // DoNotSchedule, ScheduleAnyway
	Selector           *LabelSelector `json:"selector,omitempty"`
	MinDomains         *int32         `json:"minDomains,omitempty"`
	NodeAffinityPolicy string         `json:"nodeAffinityPolicy,omitempty"` // "" = Honor
	NodeTaintsPolicy   string         `json:"nodeTaintsPolicy,omitempty"`   // "" = Ignore
	MatchLabelKeys     []string       `json:"matchLabelKeys,omitempty"`
}

// PodAffinityTerm is a required (Weight 0) or preferred pod (anti-)affinity term.
type PodAffinityTerm struct {
	Weight            int32          `json:"weight,omitempty"`
	TopologyKey       string         `json:"topologyKey"`
	Selector          *LabelSelector `json:"selector,omitempty"`
	Namespaces        []string       `json:"namespaces,omitempty"`
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	MatchLabelKeys    []string       `json:"matchLabelKeys,omitempty"`
	MismatchLabelKeys []string       `json:"mismatchLabelKeys,omitempty"`
}

// Volume is a pod volume that can decide about the node: a claim or a generic
// ephemeral volume. Other volumes are not kept.
type Volume struct {
	Name  string `json:"name"`
	Claim string `json:"claim,omitempty"` // persistentVolumeClaim.claimName
	// Ephemeral is the template of a generic ephemeral volume.
	Ephemeral *ClaimSpec `json:"ephemeral,omitempty"`
}
