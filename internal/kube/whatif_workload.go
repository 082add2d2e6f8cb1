package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// settlePods brings the pods of the overlay's workloads to what their controllers
// would make of them in the end. Where the template differs from the one that was
// read, all pods give way to new ones; where only the number does, there are more or
// fewer. It notes how many pods planWorkloads has to make.
func (r *reader) settlePods() {
	if r.over == nil {
		return
	}
	r.over.missing = map[objectKey]int64{}
	then := map[objectKey]*snapshot.Workload{}
	for i := range r.over.before.Workloads {
		w := &r.over.before.Workloads[i]
		then[workloadKey(w)] = w
	}
	at := map[objectKey][]int{} // pods of the overlay's workloads
	for i := range r.snap.Workloads {
		if k := workloadKey(&r.snap.Workloads[i]); r.over.objects[k] != "" {
			at[k] = nil
		}
	}
	if len(at) == 0 {
		return
	}
	had := map[objectKey]int64{}
	for i := range r.over.before.Pods {
		if k, ok := podsController(&r.over.before.Pods[i], at); ok {
			had[k]++
		}
	}
	for i := range r.snap.Pods {
		if k, ok := podsController(&r.snap.Pods[i], at); ok {
			at[k] = append(at[k], i)
		}
	}
	gone := map[int]bool{}
	for i := range r.snap.Workloads {
		w := &r.snap.Workloads[i]
		k := workloadKey(w)
		pods, ok := at[k]
		if !ok {
			continue
		}
		old, keep := then[k], min(int64(len(pods)), w.Replicas)
		// A Job's template cannot be changed.
		other := old != nil && w.Kind != "Job" && string(templateOf(old)) != string(templateOf(w))
		if other {
			keep = 0
		}
		slices.SortFunc(pods, func(a, b int) int { return keptFirst(w.Kind, &r.snap.Pods[a], &r.snap.Pods[b]) })
		for _, p := range pods[keep:] {
			gone[p] = true
		}
		r.over.missing[k] = w.Replicas - keep
		r.over.notes[k] = podsNote(had[k], w.Replicas, other)
	}
	r.snap.Pods = without(r.snap.Pods, gone)
}

// missing tells how many pods a workload of the overlay wants beyond those it has;
// ok is false for other workloads.
func (r *reader) missing(w *snapshot.Workload) (n int64, ok bool) {
	if r.over == nil {
		return 0, false
	}
	n, ok = r.over.missing[workloadKey(w)]
	return n, ok
}

// podsController finds which of some workloads a pod belongs to, if it still counts.
func podsController(p *snapshot.Pod, of map[objectKey][]int) (objectKey, bool) {
	if p.Owner == nil || p.Terminal() || !p.Deleting.IsZero() {
		return objectKey{}, false
	}
	k := objectKey{p.Owner.Kind, p.Namespace, p.Owner.Name}
	if _, ok := of[k]; ok {
		return k, true
	}
	if hash := p.Labels["pod-template-hash"]; k.kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(k.name, "-"+hash); ok {
			k = objectKey{"Deployment", p.Namespace, name}
			_, ok = of[k]
			return k, ok
		}
	}
	return objectKey{}, false
}

// templateOf is what decides of a template, as bytes.
func templateOf(w *snapshot.Workload) []byte {
	t := w.Template
	t.Annotations = nil // tools stamp them at will
	raw, err := json.Marshal(&t)
	if err != nil {
		return nil // snapshot types hold nothing that JSON cannot
	}
	return raw
}

// keptFirst orders pods by which of them a controller that has too many lets live:
// a StatefulSet those with the lowest numbers, the others those that have a node, are
// ready, and have run longest.
func keptFirst(kind string, a, b *snapshot.Pod) int {
	if kind == "StatefulSet" {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	}
	ready := func(p *snapshot.Pod) bool { return p.Ready != nil && p.Ready.Status == "True" }
	return cmp.Or(
		-compareBools(a.NodeName != "", b.NodeName != ""),
		-compareBools(ready(a), ready(b)),
		a.Created.Compare(b.Created),
		strings.Compare(a.Name, b.Name),
	)
}

func compareBools(a, b bool) int { return btoi(a) - btoi(b) }

func podsNote(had, has int64, other bool) string {
	switch {
	case other && had > 0 && has > 0:
		return fmt.Sprintf("%s of another template instead of %d", plan.Count(int(has), "pod"), had)
	case has > had:
		return plan.Count(int(has-had), "pod") + " more"
	case has < had:
		return plan.Count(int(had-has), "pod") + " fewer"
	}
	return ""
}
