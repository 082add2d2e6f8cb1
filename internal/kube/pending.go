package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// maxWorkloadPods is the most pods that one workload stands for.
const maxWorkloadPods = 10_000

// planWorkloads makes the pods of workloads that have none in the input, where the
// settings want that, and those of the workloads of an overlay.
func (r *reader) planWorkloads() {
	all := r.snap.Settings.PlanWorkloads
	if !all && r.over == nil {
		return
	}
	r.settlePods()
	owned := r.ownedPods()
	workloads := slices.Clone(r.snap.Workloads)
	slices.SortFunc(workloads, func(a, b snapshot.Workload) int {
		return strings.Compare(a.Namespace+"/"+a.Name+"/"+a.Kind, b.Namespace+"/"+b.Name+"/"+b.Kind)
	})
	known := map[objectKey]bool{}
	for i := range workloads {
		known[workloadKey(&workloads[i])] = true
	}
	taken := map[[2]string]bool{}
	for i := range r.snap.Pods {
		taken[[2]string{r.snap.Pods[i].Namespace, r.snap.Pods[i].Name}] = true
	}
	for i := range workloads {
		w := &workloads[i]
		// The pods of a ReplicaSet are those of its Deployment.
		if o := w.Owner; o != nil && known[objectKey{o.Kind, w.Namespace, o.Name}] {
			continue
		}
		if n, ok := r.missing(w); ok {
			r.planWorkload(w, n, taken)
		} else if all && !owned[workloadKey(w)] {
			r.planWorkload(w, w.Replicas, taken)
		}
	}
}

func workloadKey(w *snapshot.Workload) objectKey { return objectKey{w.Kind, w.Namespace, w.Name} }

// ownedPods tells which workloads have pods that have not finished: by the pods' controllers, and for a
// Deployment by those of its ReplicaSets, which need not be in the input.
func (r *reader) ownedPods() map[objectKey]bool {
	owned := map[objectKey]bool{}
	for i := range r.snap.Pods {
		p := &r.snap.Pods[i]
		if p.Owner == nil || p.Terminal() {
			continue
		}
		owned[objectKey{p.Owner.Kind, p.Namespace, p.Owner.Name}] = true
		if hash := p.Labels["pod-template-hash"]; p.Owner.Kind == "ReplicaSet" && hash != "" {
			if deployment, ok := strings.CutSuffix(p.Owner.Name, "-"+hash); ok {
				owned[objectKey{"Deployment", p.Namespace, deployment}] = true
			}
		}
	}
	for i := range r.snap.Workloads {
		w := &r.snap.Workloads[i]
		if w.Owner != nil && owned[workloadKey(w)] {
			owned[objectKey{w.Owner.Kind, w.Namespace, w.Owner.Name}] = true
		}
	}
	return owned
}

// planWorkload makes n pods of a workload.
func (r *reader) planWorkload(w *snapshot.Workload, n int64, taken map[[2]string]bool) {
	if n > maxWorkloadPods {
		r.warn(object{kind: w.Kind, namespace: w.Namespace, name: w.Name}.warningRef(), plan.StepLimit,
			"%d pods are planned for its %d replicas: the most of one workload", maxWorkloadPods, w.Replicas)
		n = maxWorkloadPods
	}
	said := r.saidOf(w)
	for ordinal := w.FirstOrdinal; n > 0; ordinal++ {
		name := w.Name + "-" + strconv.FormatInt(ordinal, 10)
		key := [2]string{w.Namespace, name}
		if taken[key] {
			continue
		}
		taken[key] = true
		n--
		r.snap.Pods = append(r.snap.Pods, r.workloadPod(w, name, ordinal))
		if said != nil {
			pod := *said
			pod.Kind, pod.Name = "Pod", name
			r.snap.Unadmitted = append(r.snap.Unadmitted, pod)
		}
		r.report.Objects["Pod"]++
	}
}

func (r *reader) workloadPod(w *snapshot.Workload, name string, ordinal int64) snapshot.Pod {
	apiVersion := "apps/v1"
	if w.Kind == "Job" {
		apiVersion = "batch/v1"
	}
	p := snapshot.Pod{
		Namespace:   w.Namespace,
		Name:        name,
		Labels:      w.Template.Labels,
		Annotations: w.Template.Annotations,
		Owner:       &snapshot.Owner{APIVersion: apiVersion, Kind: w.Kind, Name: w.Name, UID: w.UID},
		Spec:        w.Template.Spec,
	}
	// Labels that the controllers add and selectors of topology rules may use.
	switch w.Kind {
	case "StatefulSet":
		p.Labels = merged(map[string]string{
			"statefulset.kubernetes.io/pod-name": name,
			"apps.kubernetes.io/pod-index":       strconv.FormatInt(ordinal, 10),
		}, p.Labels)
	case "Job":
		p.Labels = merged(map[string]string{"batch.kubernetes.io/job-name": w.Name, "job-name": w.Name}, p.Labels)
	}
	p.Spec.Volumes = r.claimVolumes(w, name)
	return p
}

// claimVolumes adds the volumes of claim templates: the claim, where the input
// has it, else a claim that the controller would make.
func (r *reader) claimVolumes(w *snapshot.Workload, pod string) []snapshot.Volume {
	var out []snapshot.Volume
	for _, v := range w.Template.Spec.Volumes {
		if _, ok := w.ClaimTemplates[v.Name]; !ok {
			out = append(out, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.ClaimTemplates)) {
		claim := fmt.Sprintf("%s-%s", name, pod)
		if _, ok := r.seen[objectKey{"PersistentVolumeClaim", w.Namespace, claim}]; ok {
			out = append(out, snapshot.Volume{Name: name, Claim: claim})
			continue
		}
		spec := w.ClaimTemplates[name]
		out = append(out, snapshot.Volume{Name: name, Ephemeral: &spec})
	}
	return out
}
