package kube

import (
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// unadmitted is what a draft and its spec say before admission.
func unadmitted(d *draft, s *snapshot.PodSpec) snapshot.Unadmitted {
	return snapshot.Unadmitted{
		Kind: d.object.kind, Namespace: d.object.namespace, Name: d.object.name,
		Containers: d.need.containers, Pod: d.need.pod, Overhead: d.need.overhead,
		NodeSelector: s.NodeSelector, Tolerations: s.Tolerations, Priority: s.Priority, PriorityClass: s.PriorityClass,
	}
}

// savedUnadmitted reads what a saved snapshot says of an object before admission.
func savedUnadmitted(r *reader, raw []byte, at place) error {
	var u snapshot.Unadmitted
	if err := decodeStrict(raw, &u, ""); err != nil {
		return r.problem(at.problem("", err.field, err.message))
	}
	if _, ok := draftLists[u.Kind]; !ok || u.Name == "" {
		return r.problem(at.problem(u.Kind+" "+u.Name, "", "the snapshot says what it was before admission, but nothing of that kind is admitted"))
	}
	r.unadmitted = append(r.unadmitted, u)
	return nil
}

// draftLists tells the kinds that go through admission: where they are, and the path
// of their pod spec.
var draftLists = map[string]struct {
	list  draftList
	field string
}{
	"Pod": {draftPod, "spec"}, "DaemonSet": {draftDaemonSet, templateSpec}, "PodTemplate": {draftTemplate, "template.spec"},
	"Deployment": {draftWorkload, templateSpec}, "ReplicaSet": {draftWorkload, templateSpec},
	"StatefulSet": {draftWorkload, templateSpec}, "Job": {draftWorkload, templateSpec},
}

// readmit makes drafts of the objects of a saved snapshot again, if an overlay
// changes what admission gives them; else they stay as they were saved.
func (r *reader) readmit() {
	if len(r.unadmitted) == 0 {
		return
	}
	anew := r.over != nil && r.over.admission()
	index := snapshot.NewIndex(r.snap)
	said := map[string]bool{}
	for i := range r.unadmitted {
		u := &r.unadmitted[i]
		key := objectKey{u.Kind, u.Namespace, u.Name}
		at := index.At(u.Ref())
		if at < 0 || r.over != nil && r.over.objects[key] != "" {
			continue // it is not there any more, or another one is in its place
		}
		if !anew {
			r.snap.Unadmitted = append(r.snap.Unadmitted, *u)
			continue
		}
		as := draftLists[u.Kind]
		d := draft{
			object: object{at: r.seen[key], kind: u.Kind, namespace: u.Namespace, name: u.Name},
			need:   needs{u.Containers, u.Pod, u.Overhead}, field: as.field, list: as.list, index: at,
		}
		s := r.spec(&d)
		s.NodeSelector, s.Tolerations, s.Priority, s.PriorityClass = u.NodeSelector, u.Tolerations, u.Priority, u.PriorityClass
		r.drafts = append(r.drafts, d)
		said[d.object.warningRef()] = true
	}
	if anew { // it is said again, as far as it still holds
		r.snap.Remarks = slices.DeleteFunc(slices.Clone(r.snap.Remarks), func(m snapshot.Remark) bool {
			return m.Code == string(plan.EmulatedAdmission) && said[m.Object]
		})
	}
}

// saidOf is what a workload's template said before admission, nil if nobody keeps it.
// Its pods said the same.
func (r *reader) saidOf(w *snapshot.Workload) *snapshot.Unadmitted {
	ref := snapshot.Ref{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
	for i := range r.snap.Unadmitted {
		if r.snap.Unadmitted[i].Ref() == ref {
			u := r.snap.Unadmitted[i]
			return &u
		}
	}
	return nil
}

// admission reports whether the overlay changes what admission gives to pods.
func (e *overlay) admission() bool {
	is := func(kind string) bool {
		return kind == "LimitRange" || kind == "RuntimeClass" || kind == "PriorityClass"
	}
	for k := range e.objects {
		if is(k.kind) {
			return true
		}
	}
	for _, m := range e.removed {
		if is(m.Object.Kind) || slices.ContainsFunc(m.Gone, func(o snapshot.Ref) bool { return is(o.Kind) }) {
			return true
		}
	}
	return false
}
