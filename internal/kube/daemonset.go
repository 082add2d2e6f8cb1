package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/snapshot"
)

func (r *reader) addDaemonSet(d *appsv1.DaemonSet, o object) *fieldError {
	need, err := needsOf(&d.Spec.Template.Spec, "spec.template.spec")
	if err != nil {
		return err
	}
	r.snap.DaemonSets = append(r.snap.DaemonSets, snapshot.DaemonSet{
		Namespace: o.namespace, Name: o.name, UID: string(d.UID), Template: podTemplate(&d.Spec.Template),
	})
	i := len(r.snap.DaemonSets) - 1
	r.drafts = append(r.drafts, draft{
		namespace: o.namespace, need: need, at: o.at, ref: o.ref(), field: "spec.template.spec",
		spec: func() *snapshot.PodSpec { return &r.snap.DaemonSets[i].Template.Spec },
	})
	return nil
}

func podTemplate(t *corev1.PodTemplateSpec) snapshot.PodTemplate {
	return snapshot.PodTemplate{
		Labels: labels(t.Labels), Annotations: annotations(t.Annotations), Spec: podSpec(&t.Spec),
	}
}
