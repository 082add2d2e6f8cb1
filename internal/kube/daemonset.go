package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/snapshot"
)

func (r *reader) addDaemonSet(d *appsv1.DaemonSet, o object) *fieldError {
	if err := checkSpec(&d.Spec.Template.Spec, templateSpec); err != nil {
		return err
	}
	r.snap.DaemonSets = append(r.snap.DaemonSets, snapshot.DaemonSet{
		Namespace: o.namespace, Name: o.name, UID: string(d.UID), Template: podTemplate(&d.Spec.Template),
	})
	r.draft(o, needsOf(&d.Spec.Template.Spec), templateSpec, draftDaemonSet, len(r.snap.DaemonSets))
	return nil
}

// templateSpec is the path of the pod spec in workloads.
const templateSpec = "spec.template.spec"

// podTemplate converts a template, its requests left out.
func podTemplate(t *corev1.PodTemplateSpec) snapshot.PodTemplate {
	return snapshot.PodTemplate{
		Labels: labels(t.Labels), Annotations: annotations(t.Annotations), Spec: podSpec(&t.Spec),
	}
}
