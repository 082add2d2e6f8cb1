package kube

import (
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Feed takes the objects of a source that is no text. They go through the same
// conversion as those of files.
type Feed struct{ r *reader }

// feed reads a source that feeds objects.
func (r *reader) feed(src Source) error {
	r.fed = true
	if err := src.Feed(&Feed{r: r}); err != nil {
		return fmt.Errorf("read %s: %w", src.Name, err)
	}
	return nil
}

// Incomplete says that something could not be read, and what: the snapshot is then
// incomplete, and no plan on it removes anything.
func (f *Feed) Incomplete(why string) {
	f.r.snap.Incomplete = append(f.r.snap.Incomplete, why)
}

// List starts a list: objects that count together or not at all. name is its place in
// messages. Lists may be filled at the same time, each by one goroutine.
func (f *Feed) List(name string) *FeedList {
	r := newReader(f.r.opts)
	r.living = true
	return &FeedList{r: r, name: name}
}

// Add takes a list into the reading, once it is whole. It is not for use by several
// goroutines. The order in which lists are added matters to nothing but messages.
func (f *Feed) Add(l *FeedList) error {
	r, to := l.r, f.r
	for k := range r.seen {
		if at, twice := to.seen[k]; twice {
			return fmt.Errorf("%s: %s is already in %s", l.name, k.ref(), at.problem("", "", "").Place())
		}
	}
	for i := range r.drafts {
		d := r.drafts[i]
		d.index += to.length(d.list)
		to.drafts = append(to.drafts, d)
	}
	to.snap.Append(r.snap)
	maps.Copy(to.seen, r.seen)
	for kind, n := range r.report.Objects {
		to.report.Objects[kind] += n
	}
	for kind, n := range r.report.Ignored {
		to.report.Ignored[kind] += n
	}
	to.report.Left = append(to.report.Left, r.report.Left...)
	to.report.Warnings = append(to.report.Warnings, r.report.Warnings...)
	return nil
}

// length is how many objects the list of drafts holds.
func (r *reader) length(l draftList) int {
	switch l {
	case draftDaemonSet:
		return len(r.snap.DaemonSets)
	case draftWorkload:
		return len(r.snap.Workloads)
	case draftTemplate:
		return len(r.snap.PodTemplates)
	}
	return len(r.snap.Pods)
}

// FeedList gathers the objects of one list. An object that cannot be converted is left
// out and named (Report.Left), as nobody is there to correct it: the others go on.
type FeedList struct {
	r    *reader
	name string
	n    int32
}

// Len is how many objects were given.
func (l *FeedList) Len() int { return int(l.n) }

// Object takes a pointer to one object of a core kind (*corev1.Pod, *appsv1.Deployment,
// ...). Its strings and slices are kept.
func (l *FeedList) Object(o metav1.Object) error {
	t := reflect.TypeOf(o)
	k, ok := coreTypes[t]
	if !ok {
		return fmt.Errorf("take an object: %v is no kind that is read", t)
	}
	id := kinds[k]
	l.n++
	out := object{typed: o, at: place{file: &l.name, item: l.n}, kind: k.kind, name: o.GetName()}
	if id.namespaced {
		out.namespace = o.GetNamespace()
	}
	if out.name == "" || id.namespaced && out.namespace == "" {
		return out.at.problem(out.ref(), "metadata", "an object without a name: the answer is not to be trusted")
	}
	return l.r.accept(id, out)
}

// JSON takes one object as JSON, of any kind. The bytes are not kept. One that is no
// object at all, or does not say what it is, is an error: the whole answer is then not to
// be trusted.
func (l *FeedList) JSON(raw []byte) error {
	l.n++
	at := place{file: &l.name, item: l.n}
	id, err := identify(raw)
	if err != nil {
		return at.problem("", err.field, err.message)
	}
	if id.Kind == "" || id.APIVersion == "" || id.Metadata.Name == "" || isList(id.Kind) {
		return at.problem(id.Kind, "", "no object: apiVersion, kind or metadata.name is missing")
	}
	return l.r.object(raw, id, at)
}

// coreTypes tells the kind of a typed object.
var coreTypes = map[reflect.Type]groupKind{
	reflect.TypeFor[*corev1.Pod]():                   {"", "Pod"},
	reflect.TypeFor[*corev1.Node]():                  {"", "Node"},
	reflect.TypeFor[*corev1.Namespace]():             {"", "Namespace"},
	reflect.TypeFor[*corev1.LimitRange]():            {"", "LimitRange"},
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): {"", "PersistentVolumeClaim"},
	reflect.TypeFor[*corev1.PersistentVolume]():      {"", "PersistentVolume"},
	reflect.TypeFor[*corev1.PodTemplate]():           {"", "PodTemplate"},
	reflect.TypeFor[*appsv1.DaemonSet]():             {"apps", "DaemonSet"},
	reflect.TypeFor[*appsv1.Deployment]():            {"apps", "Deployment"},
	reflect.TypeFor[*appsv1.ReplicaSet]():            {"apps", "ReplicaSet"},
	reflect.TypeFor[*appsv1.StatefulSet]():           {"apps", "StatefulSet"},
	reflect.TypeFor[*batchv1.Job]():                  {"batch", "Job"},
	reflect.TypeFor[*nodev1.RuntimeClass]():          {"node.k8s.io", "RuntimeClass"},
	reflect.TypeFor[*schedulingv1.PriorityClass]():   {"scheduling.k8s.io", "PriorityClass"},
	reflect.TypeFor[*storagev1.StorageClass]():       {"storage.k8s.io", "StorageClass"},
	reflect.TypeFor[*storagev1.CSINode]():            {"storage.k8s.io", "CSINode"},
	reflect.TypeFor[*storagev1.VolumeAttachment]():   {"storage.k8s.io", "VolumeAttachment"},
	reflect.TypeFor[*policyv1.PodDisruptionBudget](): {"policy", "PodDisruptionBudget"},
}
