package kube

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/snapshot"
)

// The wire of autoscaling.x-k8s.io/v1beta1.

type capacityBuffer struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta  `json:"metadata"`
	Spec     capacityBufferSpec `json:"spec"`
	Status   json.RawMessage    `json:"status"` // resolved anew in every plan
}

type capacityBufferSpec struct {
	ProvisioningStrategy string `json:"provisioningStrategy"`
	PodTemplateRef       *struct {
		Name string `json:"name"`
	} `json:"podTemplateRef"`
	ScalableRef *struct {
		APIGroup string `json:"apiGroup"`
		Kind     string `json:"kind"`
		Name     string `json:"name"`
	} `json:"scalableRef"`
	Replicas   *int32              `json:"replicas"`
	Percentage *int32              `json:"percentage"`
	Limits     corev1.ResourceList `json:"limits"`
}

func (r *reader) addBuffer(b *capacityBuffer, o object) *fieldError {
	s := &b.Spec
	if err := s.check(); err != nil {
		return err
	}
	out := snapshot.CapacityBuffer{
		Namespace: o.namespace, Name: o.name, UID: string(b.Metadata.UID), Strategy: s.ProvisioningStrategy,
		Replicas: widened(s.Replicas), Percentage: widened(s.Percentage), Limits: amounts(s.Limits),
	}
	if s.PodTemplateRef != nil {
		out.PodTemplate = s.PodTemplateRef.Name
	}
	if s.ScalableRef != nil {
		out.Scalable = &snapshot.ScalableRef{Group: s.ScalableRef.APIGroup, Kind: s.ScalableRef.Kind, Name: s.ScalableRef.Name}
	}
	r.snap.Buffers = append(r.snap.Buffers, out)
	return nil
}

func widened(n *int32) *int64 {
	if n == nil {
		return nil
	}
	v := int64(*n)
	return &v
}

// check refuses what the API server would refuse.
func (s *capacityBufferSpec) check() *fieldError {
	switch {
	case s.PodTemplateRef != nil && s.ScalableRef != nil:
		return refusedf("spec", "podTemplateRef and scalableRef exclude each other: keep one")
	case s.PodTemplateRef != nil && s.PodTemplateRef.Name == "":
		return refusedf("spec.podTemplateRef.name", "missing")
	case s.ScalableRef != nil && s.ScalableRef.Kind == "":
		return refusedf("spec.scalableRef.kind", "missing")
	case s.ScalableRef != nil && s.ScalableRef.Name == "":
		return refusedf("spec.scalableRef.name", "missing")
	case s.PodTemplateRef != nil && s.Replicas == nil && len(s.Limits) == 0:
		return refusedf("spec", "podTemplateRef needs replicas or limits beside it")
	case s.Replicas != nil && *s.Replicas < 0:
		return refusedf("spec.replicas", "%d is negative", *s.Replicas)
	case s.Percentage != nil && *s.Percentage < 0:
		return refusedf("spec.percentage", "%d is negative", *s.Percentage)
	}
	return negative(s.Limits, "spec.limits")
}

// addPodTemplate keeps a PodTemplate: capacity buffers refer to it.
func (r *reader) addPodTemplate(t *corev1.PodTemplate, o object) *fieldError {
	if err := checkSpec(&t.Template.Spec, "template.spec"); err != nil {
		return err
	}
	r.snap.PodTemplates = append(r.snap.PodTemplates, snapshot.PodTemplateObject{
		Namespace: o.namespace, Name: o.name, Template: podTemplate(&t.Template),
	})
	r.draft(o, needsOf(&t.Template.Spec), "template.spec", draftTemplate, len(r.snap.PodTemplates))
	return nil
}
