package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/snapshot"
)

func (r *reader) addWorkload(o object, m *metav1.ObjectMeta, replicas int64, sel *metav1.LabelSelector, t *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) *fieldError {
	if replicas < 0 {
		return fieldErrorf("spec.replicas", "%d is negative", replicas)
	}
	need, err := needsOf(&t.Spec, "spec.template.spec")
	if err != nil {
		return err
	}
	w := snapshot.Workload{
		Kind: o.kind, Namespace: o.namespace, Name: o.name, UID: string(m.UID), Owner: controller(m.OwnerReferences),
		Replicas: replicas, Selector: selector(sel), Template: podTemplate(t),
	}
	for i := range claims {
		if w.ClaimTemplates == nil {
			w.ClaimTemplates = map[string]snapshot.ClaimSpec{}
		}
		w.ClaimTemplates[claims[i].Name] = claimSpec(&claims[i].Spec)
	}
	r.snap.Workloads = append(r.snap.Workloads, w)
	i := len(r.snap.Workloads) - 1
	r.drafts = append(r.drafts, draft{
		namespace: o.namespace, need: need, at: o.at, ref: o.ref(), field: "spec.template.spec",
		spec: func() *snapshot.PodSpec { return &r.snap.Workloads[i].Template.Spec },
	})
	return nil
}

func replicas(n *int32) int64 {
	if n == nil {
		return 1
	}
	return int64(*n)
}

func (r *reader) addDeployment(d *appsv1.Deployment, o object) *fieldError {
	return r.addWorkload(o, &d.ObjectMeta, replicas(d.Spec.Replicas), d.Spec.Selector, &d.Spec.Template, nil)
}

func (r *reader) addReplicaSet(d *appsv1.ReplicaSet, o object) *fieldError {
	return r.addWorkload(o, &d.ObjectMeta, replicas(d.Spec.Replicas), d.Spec.Selector, &d.Spec.Template, nil)
}

func (r *reader) addStatefulSet(d *appsv1.StatefulSet, o object) *fieldError {
	return r.addWorkload(o, &d.ObjectMeta, replicas(d.Spec.Replicas), d.Spec.Selector, &d.Spec.Template, d.Spec.VolumeClaimTemplates)
}

func (r *reader) addJob(j *batchv1.Job, o object) *fieldError {
	return r.addWorkload(o, &j.ObjectMeta, jobPods(j), j.Spec.Selector, &j.Spec.Template, nil)
}

// jobPods is how many pods of a job run at once: its parallelism, but not more
// than are left to complete; none when it is suspended or has finished.
func jobPods(j *batchv1.Job) int64 {
	if j.Spec.Suspend != nil && *j.Spec.Suspend || j.Status.CompletionTime != nil {
		return 0
	}
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) && c.Status == corev1.ConditionTrue {
			return 0
		}
	}
	n := replicas(j.Spec.Parallelism)
	if j.Spec.Completions != nil {
		n = min(n, max(0, int64(*j.Spec.Completions)-int64(j.Status.Succeeded)))
	}
	return n
}
