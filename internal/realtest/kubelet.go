package realtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Machine is a node that the simulated kubelet brings up.
type Machine struct {
	Name, ProviderID    string
	Labels, Annotations map[string]string
	Taints              []corev1.Taint
	// Capacity by resource ("cpu": "8"); Allocatable is the same unless it is given.
	Capacity, Allocatable map[string]string
}

// Join creates the Node of a machine, ready, and keeps its Lease alive while Kubelet runs.
func (c *Cluster) Join(ctx context.Context, m Machine) (*corev1.Node, error) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{corev1.LabelHostname: m.Name, corev1.LabelOSStable: "linux"}, Annotations: m.Annotations},
		Spec:       corev1.NodeSpec{ProviderID: m.ProviderID, Taints: m.Taints},
	}
	for k, v := range m.Labels {
		n.Labels[k] = v
	}
	made, err := c.Clientset.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("join node %s: %w", m.Name, err)
	}
	allocatable := m.Allocatable
	if allocatable == nil {
		allocatable = m.Capacity
	}
	now := metav1.Now()
	// Controllers write to the new Node meanwhile.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		made.Status.Capacity, made.Status.Allocatable = quantities(m.Capacity), quantities(allocatable)
		made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}}
		updated, err := c.Clientset.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			if fresh, gerr := c.Clientset.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{}); gerr == nil {
				made = fresh
			}
			return err
		}
		if err == nil {
			made = updated
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join node %s: %w", m.Name, err)
	}
	return made, c.Beat(ctx, m.Name)
}

func quantities(in map[string]string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for k, v := range in {
		out[corev1.ResourceName(k)] = resource.MustParse(v)
	}
	return out
}

// Beat renews the Lease of a node.
func (c *Cluster) Beat(ctx context.Context, node string) error {
	leases := c.Clientset.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NowMicro(), int32(40)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now}
	if l, err := leases.Get(ctx, node, metav1.GetOptions{}); err == nil {
		l.Spec = spec
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
		return err
	}
	_, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: corev1.NamespaceNodeLease}, Spec: spec}, metav1.CreateOptions{})
	return err
}

// Kubelet plays the kubelets of all nodes until ctx ends: a pod with a node runs and is
// ready, a pod that is being deleted goes. It lists again and again, because a watch is
// closed by the server under load. The returned function waits for its end.
func (c *Cluster) Kubelet(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		beaten := time.Time{}
		for ctx.Err() == nil {
			if time.Since(beaten) > 10*time.Second {
				beaten = time.Now()
				c.beats(ctx)
			}
			c.pods(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return group.Wait
}

func (c *Cluster) beats(ctx context.Context) {
	nodes, err := c.Clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range nodes.Items {
		c.Beat(ctx, nodes.Items[i].Name) //nolint:errcheck // the next one comes
	}
}

func (c *Cluster) pods(ctx context.Context) {
	pods, err := c.Clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return
	}
	for i := range pods.Items {
		c.PlayPod(ctx, &pods.Items[i]) //nolint:errcheck // tried again
	}
}

// PlayPod does to a pod that has a node what its kubelet does: it runs and is ready, or, if
// it is being deleted, goes.
func (c *Cluster) PlayPod(ctx context.Context, p *corev1.Pod) error {
	switch {
	case p.DeletionTimestamp != nil:
		zero := int64(0)
		return c.Clientset.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	case p.Status.Phase == corev1.PodPending || p.Status.Phase == "":
		now := time.Now().UTC().Format(time.RFC3339)
		patch := fmt.Sprintf(`{"status":{"phase":"Running","startTime":%q,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q},{"type":"ContainersReady","status":"True","lastTransitionTime":%q}]}}`, now, now, now)
		_, err := c.Clientset.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
	return nil
}
