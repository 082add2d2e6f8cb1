package kube

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Groups of the kinds that are read strictly.
const (
	karpenterGroup = "karpenter.sh"
	awsGroup       = "karpenter.k8s.aws"
	kerfGroup      = "kerf.sh"
	bufferGroup    = "autoscaling.x-k8s.io"
)

// kind is how objects of one kind are read.
type kind struct {
	version    string // the only one that is read
	namespaced bool
	read       func(r *reader, o object) *fieldError
}

// object is one object on its way into the snapshot.
type object struct {
	raw []byte
	// typed is the object itself when it was decoded already; raw is then nil.
	typed any
	at    place
	kind  string
	namespace,
	name string
}

type groupKind struct{ group, kind string }

var kinds = map[groupKind]kind{
	{"", "Pod"}:                            {"v1", true, core((*reader).addPod)},
	{"", "Node"}:                           {"v1", false, core((*reader).addNode)},
	{"", "Namespace"}:                      {"v1", false, core((*reader).addNamespace)},
	{"", "LimitRange"}:                     {"v1", true, core((*reader).addLimitRange)},
	{"", "PersistentVolumeClaim"}:          {"v1", true, core((*reader).addClaim)},
	{"", "PersistentVolume"}:               {"v1", false, core((*reader).addVolume)},
	{"apps", "DaemonSet"}:                  {"v1", true, core((*reader).addDaemonSet)},
	{"apps", "Deployment"}:                 {"v1", true, core((*reader).addDeployment)},
	{"apps", "ReplicaSet"}:                 {"v1", true, core((*reader).addReplicaSet)},
	{"apps", "StatefulSet"}:                {"v1", true, core((*reader).addStatefulSet)},
	{"batch", "Job"}:                       {"v1", true, core((*reader).addJob)},
	{"node.k8s.io", "RuntimeClass"}:        {"v1", false, core((*reader).addRuntimeClass)},
	{"scheduling.k8s.io", "PriorityClass"}: {"v1", false, core((*reader).addPriorityClass)},
	{"storage.k8s.io", "StorageClass"}:     {"v1", false, core((*reader).addStorageClass)},
	{"storage.k8s.io", "CSINode"}:          {"v1", false, core((*reader).addCSINode)},
	{"storage.k8s.io", "VolumeAttachment"}: {"v1", false, core((*reader).addAttachment)},
	{"policy", "PodDisruptionBudget"}:      {"v1", true, core((*reader).addBudget)},
	{"", "PodTemplate"}:                    {"v1", true, core((*reader).addPodTemplate)},
	{karpenterGroup, "NodePool"}:           {"v1", false, strict((*reader).addNodePool)},
	{karpenterGroup, "NodeOverlay"}:        {"v1alpha1", false, strict((*reader).addOverlay)},
	{bufferGroup, "CapacityBuffer"}:        {"v1beta1", true, strict((*reader).addBuffer)},
	{karpenterGroup, "NodeClaim"}:          {"v1", false, strict((*reader).addNodeClaim)},
	{awsGroup, "EC2NodeClass"}:             {"v1", false, strict((*reader).addNodeClass)},
}

type coreKinds interface {
	corev1.Pod | corev1.Node | corev1.Namespace | corev1.LimitRange | corev1.PersistentVolumeClaim |
		corev1.PersistentVolume | appsv1.DaemonSet | appsv1.Deployment | appsv1.ReplicaSet |
		appsv1.StatefulSet | batchv1.Job | nodev1.RuntimeClass | schedulingv1.PriorityClass |
		storagev1.StorageClass | storagev1.CSINode | storagev1.VolumeAttachment | policyv1.PodDisruptionBudget | corev1.PodTemplate
}

func core[T coreKinds](add func(*reader, *T, object) *fieldError) func(*reader, object) *fieldError {
	return func(r *reader, o object) *fieldError {
		if v, ok := o.typed.(*T); ok {
			return add(r, v, o)
		}
		var v T
		if err := decodeLenient(o.raw, &v, ""); err != nil {
			return err
		}
		return add(r, &v, o)
	}
}

func strict[T any](add func(*reader, *T, object) *fieldError) func(*reader, object) *fieldError {
	return func(r *reader, o object) *fieldError {
		var v T
		if err := decodeStrict(o.raw, &v, ""); err != nil {
			return explainUnknown(err)
		}
		return add(r, &v, o)
	}
}

// object reads one object. It implements sink.
func (r *reader) object(raw []byte, id identity, at place) error {
	if id.Kind == "" {
		return r.problem(at.problem("", "kind", "missing: every object needs apiVersion and kind"))
	}
	if id.Kind == "List" {
		if at.item > 0 {
			return r.problem(at.problem("List", "", "a List within a List"))
		}
		return nil // without items
	}
	if id.APIVersion == "" {
		return r.problem(at.problem(id.Kind+" "+id.Metadata.Name, "apiVersion", "missing: every object needs apiVersion and kind"))
	}
	group, version, ok := strings.Cut(id.APIVersion, "/")
	if !ok {
		group, version = "", id.APIVersion
	}
	k, known := kinds[groupKind{group, id.Kind}]
	if !known || k.version != version {
		return r.other(group, version, id, at)
	}
	o := object{raw: raw, at: at, kind: id.Kind, name: id.Metadata.Name}
	if k.namespaced {
		if o.namespace = id.Metadata.Namespace; o.namespace == "" {
			o.namespace = "default"
		}
	}
	if o.name == "" {
		if id.Metadata.GenerateName != "" {
			r.leave(at.problem(o.ref(), "metadata.generateName", fmt.Sprintf(
				"%q has no name yet; give it metadata.name to plan with it", id.Metadata.GenerateName)))
			return nil
		}
		return r.problem(at.problem(id.Kind, "metadata.name", "missing"))
	}
	return r.accept(k, o)
}

// accept reads an object of a kind that is read.
func (r *reader) accept(k kind, o object) error {
	if !r.first(o) {
		return nil
	}
	drafts := len(r.drafts)
	if err := k.read(r, o); err != nil {
		p := o.at.problem(o.ref(), err.field, err.message)
		if err.refused || r.living {
			r.leave(p)
			return nil
		}
		return r.problem(p)
	}
	if r.over != nil {
		r.lay(o, drafts)
		return nil
	}
	r.count(o)
	return nil
}

func (o object) key() objectKey { return objectKey{o.kind, o.namespace, o.name} }

// first reports whether an object is to be read: it is the first of its kind and
// name, or part of an overlay. One that is not is left out.
func (r *reader) first(o object) bool {
	first, twice := r.seen[o.key()]
	if r.over != nil {
		return true // the last one counts
	}
	if twice {
		r.leave(o.at.problem(o.ref(), "metadata.name", "the same object is already in "+first.problem("", "", "").Place()+"; that one is kept"))
	}
	return !twice
}

func (r *reader) count(o object) {
	r.seen[o.key()] = o.at
	r.report.Objects[o.kind]++
}

// ref is "Pod team-a/web".
func (o object) ref() string {
	if o.namespace != "" {
		return o.kind + " " + o.namespace + "/" + o.name
	}
	return o.kind + " " + o.name
}

// converts is who does it for manifests of older generations.
const converts = " (plan --validate --convert does)"

// other counts or leaves out an object of a kind or version that is not read.
func (r *reader) other(group, version string, id identity, at place) error {
	name := id.Kind + " " + id.Metadata.Name
	if id.Metadata.Namespace != "" {
		name = id.Kind + " " + id.Metadata.Namespace + "/" + id.Metadata.Name
	}
	_, sameKind := kinds[groupKind{group, id.Kind}]
	switch {
	case group == karpenterGroup && id.Kind == "Provisioner":
		r.leave(at.problem(name, "apiVersion", id.APIVersion+" is not supported; write a NodePool of karpenter.sh/v1 in its place"+converts))
	case group == awsGroup && id.Kind == "AWSNodeTemplate", group == karpenterGroup && id.Kind == "AWSNodeTemplate":
		r.leave(at.problem(name, "apiVersion", id.APIVersion+" is not supported; write an EC2NodeClass of karpenter.k8s.aws/v1 in its place"+converts))
	case group == karpenterGroup && id.Kind == "Machine":
		r.leave(at.problem(name, "apiVersion", id.APIVersion+" is not supported; its successor is NodeClaim of karpenter.sh/v1"))
	case group == "extensions" && (id.Kind == "DaemonSet" || id.Kind == "Deployment" || id.Kind == "ReplicaSet"):
		r.leave(at.problem(name, "apiVersion", id.APIVersion+" is not supported; convert it to apps/v1"))
	case sameKind:
		want := kinds[groupKind{group, id.Kind}].version
		if group != "" {
			want = group + "/" + want
		}
		if version == "v1beta1" && (group == karpenterGroup || group == awsGroup) {
			want += converts
		}
		r.leave(at.problem(name, "apiVersion", id.APIVersion+" is not supported; convert it to "+want))
	default:
		if group != "" {
			group += "/"
		}
		r.report.Ignored[group+id.Kind]++
	}
	return nil
}
