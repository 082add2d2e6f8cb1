package live

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// need says what it means that a kind cannot be read.
type need uint8

const (
	// wanted: without it the snapshot is incomplete.
	wanted need = iota
	// vital: without it there is no snapshot. A plan on a cluster that seems to have no
	// pods, or no nodes, is worse than none.
	vital
	// optional: where it is not served there are none; a failed list of it is as of others.
	optional
)

// kind is a kind that a snapshot is made of.
type kind struct {
	name                     string
	group, version, resource string
	need                     need
	decode                   decoder
}

func (k *kind) request(verb string) *request {
	q := &request{verb: verb, group: k.group, version: k.version, resource: k.resource, accept: protobuf}
	if k.decode == nil {
		q.accept = plainJSON
	}
	return q
}

// kinds are what a snapshot is made of, in the order in which lists are taken into it.
// Kinds without a decoder are custom resources and come as JSON.
var kinds = []kind{
	{"Namespace", "", "v1", "namespaces", wanted, typed(func(l *corev1.NamespaceList) []corev1.Namespace { return l.Items })},
	{"Node", "", "v1", "nodes", vital, typed(func(l *corev1.NodeList) []corev1.Node { return l.Items })},
	{"NodePool", "karpenter.sh", "v1", "nodepools", wanted, nil},
	{"NodeClaim", "karpenter.sh", "v1", "nodeclaims", wanted, nil},
	{"EC2NodeClass", "karpenter.k8s.aws", "v1", "ec2nodeclasses", wanted, nil},
	{"NodeOverlay", "karpenter.sh", "v1alpha1", "nodeoverlays", optional, nil},
	{"CapacityBuffer", "autoscaling.x-k8s.io", "v1beta1", "capacitybuffers", optional, nil},
	{"DaemonSet", "apps", "v1", "daemonsets", wanted, typed(func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items })},
	{"Deployment", "apps", "v1", "deployments", wanted, typed(func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items })},
	{"ReplicaSet", "apps", "v1", "replicasets", wanted, typed(func(l *appsv1.ReplicaSetList) []appsv1.ReplicaSet { return l.Items })},
	{"StatefulSet", "apps", "v1", "statefulsets", wanted, typed(func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items })},
	{"Job", "batch", "v1", "jobs", wanted, typed(func(l *batchv1.JobList) []batchv1.Job { return l.Items })},
	{"PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", wanted, typed(func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget { return l.Items })},
	{"LimitRange", "", "v1", "limitranges", wanted, typed(func(l *corev1.LimitRangeList) []corev1.LimitRange { return l.Items })},
	{"PodTemplate", "", "v1", "podtemplates", wanted, typed(func(l *corev1.PodTemplateList) []corev1.PodTemplate { return l.Items })},
	{"RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", wanted, typed(func(l *nodev1.RuntimeClassList) []nodev1.RuntimeClass { return l.Items })},
	{"PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", wanted, typed(func(l *schedulingv1.PriorityClassList) []schedulingv1.PriorityClass { return l.Items })},
	{"StorageClass", "storage.k8s.io", "v1", "storageclasses", wanted, typed(func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })},
	{"CSINode", "storage.k8s.io", "v1", "csinodes", wanted, typed(func(l *storagev1.CSINodeList) []storagev1.CSINode { return l.Items })},
	{"VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", wanted, typed(func(l *storagev1.VolumeAttachmentList) []storagev1.VolumeAttachment { return l.Items })},
	{"PersistentVolume", "", "v1", "persistentvolumes", wanted, typed(func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return l.Items })},
	{"PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", wanted, typed(func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items })},
	// Pods come last, and after the other lists are whole: what was bound meanwhile is
	// bound to a node that is known, or holds room that is not counted on; and no pod of a
	// known node is missed, which would make that node look empty.
	{"Pod", "", "v1", "pods", vital, typed(func(l *corev1.PodList) []corev1.Pod { return l.Items })},
}

// kindNamed finds a kind.
func kindNamed(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

// Kinds names what Source lists, as RBAC writes it: every one needs the verb list.
func Kinds() []struct{ Group, Resource string } {
	out := make([]struct{ Group, Resource string }, len(kinds))
	for i := range kinds {
		out[i].Group, out[i].Resource = kinds[i].group, kinds[i].resource
	}
	return out
}
