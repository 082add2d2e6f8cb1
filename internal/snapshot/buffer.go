package snapshot

import "time"

// CapacityBuffer is an autoscaling.x-k8s.io/v1beta1 CapacityBuffer: room that is kept
// for pods to come.
type CapacityBuffer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Strategy is spec.provisioningStrategy; "" = ActiveCapacity.
	Strategy string `json:"strategy,omitempty"`
	// PodTemplate names the PodTemplate of one unit; Scalable the workload whose pods
	// are the units. One of the two is given.
	PodTemplate string       `json:"podTemplate,omitempty"`
	Scalable    *ScalableRef `json:"scalable,omitempty"`
	Replicas    *int64       `json:"replicas,omitempty"`
	// Percentage is a share of the replicas of Scalable.
	Percentage *int64 `json:"percentage,omitempty"`
	// Limits bound what all units ask for together, by resource, in the units of
	// Resources.
	Limits map[string]int64 `json:"limits,omitempty"`
}

// ActiveCapacity is the strategy of a buffer that keeps nodes for its units.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// ScalableRef names a workload in the namespace of a buffer.
type ScalableRef struct {
	Group string `json:"group,omitempty"` // "" counts as that of the kind
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// PodTemplateObject is a core/v1 PodTemplate.
type PodTemplateObject struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Template  PodTemplate `json:"template"`
}

// Nomination is what the ledger remembers of a pod that a plan has given a place: the
// pod is not planned again while its node exists or is coming, and the place is not
// given to others.
type Nomination struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid,omitempty"` // "" = any pod of the name
	// Node is the name of the Node or NodeClaim.
	Node string `json:"node"`
	// Until is when the nomination ends, unless it is renewed; zero = it does not.
	Until time.Time `json:"until,omitzero"`
}

// Outlasts reports whether the nomination ends after another one; of two that end together
// the first by node counts as the longer one.
func (n *Nomination) Outlasts(o *Nomination) bool {
	if !n.Until.Equal(o.Until) {
		return n.Until.IsZero() || !o.Until.IsZero() && n.Until.After(o.Until)
	}
	return n.Node < o.Node
}
