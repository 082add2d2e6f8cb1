package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kerf.sh/kerf/internal/snapshot"
)

// workload is what the kinds of workloads have in common.
type workload struct {
	owner    []metav1.OwnerReference
	uid      types.UID
	replicas int64
	first    int64 // ordinal
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim
}

func (r *reader) addWorkload(o object, in workload) *fieldError {
	if in.replicas < 0 {
		return refusedf("spec.replicas", "%d is negative", in.replicas)
	}
	if in.first < 0 {
		return refusedf("spec.ordinals.start", "%d is negative", in.first)
	}
	if err := checkSpec(&in.template.Spec, templateSpec); err != nil {
		return err
	}
	w := snapshot.Workload{
		Kind: o.kind, Namespace: o.namespace, Name: o.name, UID: string(in.uid), Owner: controller(in.owner),
		Replicas: in.replicas, FirstOrdinal: in.first, Selector: selector(in.selector), Template: podTemplate(in.template),
	}
	for i := range in.claims {
		if w.ClaimTemplates == nil {
			w.ClaimTemplates = map[string]snapshot.ClaimSpec{}
		}
		w.ClaimTemplates[in.claims[i].Name] = claimSpec(&in.claims[i].Spec)
	}
	r.snap.Workloads = append(r.snap.Workloads, w)
	r.draft(o, needsOf(&in.template.Spec), templateSpec, draftWorkload, len(r.snap.Workloads))
	return nil
}

func replicas(n *int32) int64 {
	if n == nil {
		return 1
	}
	return int64(*n)
}

func (r *reader) addDeployment(d *appsv1.Deployment, o object) *fieldError {
	return r.addWorkload(o, workload{owner: d.OwnerReferences, uid: d.UID, replicas: replicas(d.Spec.Replicas), selector: d.Spec.Selector,
		template: &d.Spec.Template})
}

func (r *reader) addReplicaSet(d *appsv1.ReplicaSet, o object) *fieldError {
	return r.addWorkload(o, workload{owner: d.OwnerReferences, uid: d.UID, replicas: replicas(d.Spec.Replicas), selector: d.Spec.Selector,
		template: &d.Spec.Template})
}

func (r *reader) addStatefulSet(d *appsv1.StatefulSet, o object) *fieldError {
	w := workload{owner: d.OwnerReferences, uid: d.UID, replicas: replicas(d.Spec.Replicas), selector: d.Spec.Selector,
		template: &d.Spec.Template, claims: d.Spec.VolumeClaimTemplates}
	if d.Spec.Ordinals != nil {
		w.first = int64(d.Spec.Ordinals.Start)
	}
	return r.addWorkload(o, w)
}

func (r *reader) addJob(j *batchv1.Job, o object) *fieldError {
	return r.addWorkload(o, workload{owner: j.OwnerReferences, uid: j.UID, replicas: jobPods(j), selector: j.Spec.Selector,
		template: &j.Spec.Template})
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
