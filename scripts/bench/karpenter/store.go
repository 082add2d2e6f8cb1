package karpenter

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"kerf.sh/kerf/internal/workload"
)

// store reads as the cache of a controller does: by index, and each read is a copy. The fake
// client would take more time than Karpenter.
type store struct {
	client.Client
	pool    *v1.NodePool
	daemons []appsv1.DaemonSet
	pods    map[string][]*corev1.Pod // by node
	nodes   map[string]*corev1.Node
}

func newStore(pool *v1.NodePool) *store {
	s := &store{Client: fake.NewFakeClient(), pool: pool, pods: map[string][]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
	for _, d := range workload.DaemonSets() {
		ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, UID: types.UID(d.UID)}}
		ds.Spec.Template.Spec = podSpec(&d.Template.Spec)
		s.daemons = append(s.daemons, ds)
	}
	return s
}

// List implements client.Reader for what Karpenter's disruption lists.
func (s *store) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	switch l := list.(type) {
	case *corev1.PodList:
		if o.FieldSelector != nil {
			if node, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName"); ok {
				l.Items = copies(l.Items, s.pods[node])
				return nil
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			l.Items = copies(l.Items, s.pods[name])
		}
	case *v1.NodePoolList:
		l.Items = append(l.Items, *s.pool.DeepCopy())
	case *appsv1.DaemonSetList:
		for i := range s.daemons {
			l.Items = append(l.Items, *s.daemons[i].DeepCopy())
		}
	case *policyv1.PodDisruptionBudgetList, *corev1.NamespaceList:
	default:
		return fmt.Errorf("the benchmark has no list of %T", list)
	}
	return nil
}

func copies(out []corev1.Pod, pods []*corev1.Pod) []corev1.Pod {
	for _, p := range pods {
		out = append(out, *p.DeepCopy())
	}
	return out
}

// Get implements client.Reader for what Karpenter's disruption gets.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *corev1.Node:
		if n, ok := s.nodes[key.Name]; ok {
			n.DeepCopyInto(o)
			return nil
		}
	case *v1.NodePool:
		s.pool.DeepCopyInto(o)
		return nil
	case *storagev1.CSINode:
	default:
		return fmt.Errorf("the benchmark has no %T", into)
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}
