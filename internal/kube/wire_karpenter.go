package kube

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The wire of karpenter.sh/v1. Only spec fields are checked by name; a status is
// written by a controller, maybe a newer one, and is read leniently.

type nodePool struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     nodePoolSpec      `json:"spec"`
	Status   json.RawMessage   `json:"status"`
}

type nodePoolSpec struct {
	Template   claimTemplate       `json:"template"`
	Disruption *disruption         `json:"disruption"`
	Limits     corev1.ResourceList `json:"limits"`
	Weight     *int32              `json:"weight"`
	Replicas   *int64              `json:"replicas"`
}

type claimTemplate struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec claimTemplateSpec `json:"spec"`
}

type claimTemplateSpec struct {
	Taints                 []taint        `json:"taints"`
	StartupTaints          []taint        `json:"startupTaints"`
	Requirements           []requirement  `json:"requirements"`
	NodeClassRef           classReference `json:"nodeClassRef"`
	TerminationGracePeriod string         `json:"terminationGracePeriod"`
	ExpireAfter            string         `json:"expireAfter"`
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
	// TimeAdded is part of the core type and means nothing here.
	TimeAdded *metav1.Time `json:"timeAdded"`
}

type requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values"`
	MinValues *int     `json:"minValues"`
}

type classReference struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

type disruption struct {
	ConsolidateAfter    *string   `json:"consolidateAfter"`
	ConsolidationPolicy string    `json:"consolidationPolicy"`
	Budgets             *[]budget `json:"budgets"`
}

type budget struct {
	Reasons  []string `json:"reasons"`
	Nodes    *string  `json:"nodes"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

type nodePoolStatus struct {
	Conditions []metav1.Condition `json:"conditions"`
}

type nodeClaim struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     nodeClaimSpec     `json:"spec"`
	Status   json.RawMessage   `json:"status"`
}

type nodeClaimSpec struct {
	claimTemplateSpec
	Resources struct {
		Requests corev1.ResourceList `json:"requests"`
	} `json:"resources"`
}

type nodeClaimStatus struct {
	NodeName         string              `json:"nodeName"`
	ProviderID       string              `json:"providerID"`
	ImageID          string              `json:"imageID"`
	Capacity         corev1.ResourceList `json:"capacity"`
	Allocatable      corev1.ResourceList `json:"allocatable"`
	Conditions       []metav1.Condition  `json:"conditions"`
	LastPodEventTime *metav1.Time        `json:"lastPodEventTime"`
}
