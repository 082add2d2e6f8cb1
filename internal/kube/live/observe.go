package live

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/snapshot"
)

// Small questions, for passes that do not need a whole snapshot. Their lists are whole
// too, or an error.

// PendingPods are the pods that have no node: one request when there are few. This is the
// only question of an idle pass.
func (c *Client) PendingPods(ctx context.Context) ([]snapshot.Pod, error) {
	return c.pods(ctx, "spec.nodeName=")
}

// PendingVersions are the resource versions of the pods that have no node, by UID. Those of
// one kind grow with every write, in the order of the writes.
func (c *Client) PendingVersions(ctx context.Context) (map[string]uint64, error) {
	q := kindNamed("Pod").request("list")
	q.accept, q.params = metadataOnly, map[string]string{"fieldSelector": "spec.nodeName="}
	list, err := selected(ctx, c, q, func(l *metav1.PartialObjectMetadataList) []metav1.PartialObjectMetadata { return l.Items }, metaOfObject)
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint64, len(list))
	for i := range list {
		if n, err := strconv.ParseUint(list[i].Version.Resource, 10, 64); err == nil {
			out[list[i].Version.UID] = n
		}
	}
	return out, nil
}

// PodsOn are the pods that are bound to a node, finished ones included. What is about to
// take the node away asks anew.
func (c *Client) PodsOn(ctx context.Context, node string) ([]snapshot.Pod, error) {
	if node == "" {
		return nil, fmt.Errorf("list the pods of a node: no node is named")
	}
	return c.pods(ctx, "spec.nodeName="+node)
}

func (c *Client) pods(ctx context.Context, fields string) ([]snapshot.Pod, error) {
	q := kindNamed("Pod").request("list")
	q.params = map[string]string{"fieldSelector": fields}
	return selected(ctx, c, q, func(l *corev1.PodList) []corev1.Pod { return l.Items }, kube.Pod)
}

// Nodes are the nodes that a label selector selects, all for "". Nodes that have joined
// and wait for registration: "karpenter.sh/nodepool,!karpenter.sh/registered".
func (c *Client) Nodes(ctx context.Context, labels string) ([]snapshot.Node, error) {
	q := kindNamed("Node").request("list")
	if labels != "" {
		q.params = map[string]string{"labelSelector": labels}
	}
	return selected(ctx, c, q, func(l *corev1.NodeList) []corev1.Node { return l.Items }, kube.Node)
}

func selected[L, T, S any, P interface {
	protoObject[L]
	metav1.ListMetaAccessor
}](ctx context.Context, c *Client, q *request, items func(P) []T, convert func(*T) S) ([]S, error) {
	var out []S
	var l L
	name := fmt.Sprintf("%T", l)[len("v1."):]
	err := c.pages(ctx, q, func() { out = nil }, func(a answer) (*metav1.ListMeta, int, error) {
		l, err := unwrap[L, P](name, a)
		if err != nil {
			return nil, 0, err
		}
		page := items(l)
		for i := range page {
			out = append(out, convert(&page[i]))
		}
		return metaOf(l.GetListMeta()), len(page), nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Node reads one node again, with the version that a change of it is conditional on.
func (c *Client) Node(ctx context.Context, name string) (snapshot.Node, Version, error) {
	q := kindNamed("Node").request("get")
	n, err := get[corev1.Node](ctx, c, q, "Node", name)
	if err != nil {
		return snapshot.Node{}, Version{}, err
	}
	return kube.Node(n), Version{UID: string(n.UID), Resource: n.ResourceVersion}, nil
}

// Pod reads one pod again.
func (c *Client) Pod(ctx context.Context, namespace, name string) (snapshot.Pod, error) {
	q := kindNamed("Pod").request("get")
	q.namespace = namespace
	p, err := get[corev1.Pod](ctx, c, q, "Pod", name)
	if err != nil {
		return snapshot.Pod{}, err
	}
	return kube.Pod(p), nil
}

func get[T any, P protoObject[T]](ctx context.Context, c *Client, q *request, kind, name string) (P, error) {
	if q.name = name; name == "" {
		return nil, fmt.Errorf("get %s: no name", q.resource)
	}
	a, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	out, err := unwrap[T, P](kind, a)
	if err != nil {
		return nil, &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace, Name: q.name, Is: ErrUnavailable, Err: err, Detail: err.Error()}
	}
	return out, nil
}

// Metadata lists the metadata of all objects of a kind that Source reads ("NodeClaim",
// "Node", ...): what housekeeping needs, for a fraction of the bytes.
func (c *Client) Metadata(ctx context.Context, kind string) ([]Meta, error) {
	k := kindNamed(kind)
	if k == nil {
		return nil, fmt.Errorf("list metadata: %s is no kind that is read", kind)
	}
	q := k.request("list")
	q.accept = metadataOnly
	return selected(ctx, c, q, func(l *metav1.PartialObjectMetadataList) []metav1.PartialObjectMetadata { return l.Items }, metaOfObject)
}

func metaOfObject(o *metav1.PartialObjectMetadata) Meta {
	m := Meta{
		Namespace: o.Namespace, Name: o.Name, Version: Version{UID: string(o.UID), Resource: o.ResourceVersion}, Generation: o.Generation,
		Labels: o.Labels, Annotations: o.Annotations, Finalizers: o.Finalizers, Created: o.CreationTimestamp.UTC(),
	}
	if o.DeletionTimestamp != nil {
		m.Deleting = o.DeletionTimestamp.UTC()
	}
	return m
}

// NodeClaim reads the metadata of one NodeClaim again.
func (c *Client) NodeClaim(ctx context.Context, name string) (Meta, error) {
	o, err := c.custom(ctx, "NodeClaim", name)
	if err != nil {
		return Meta{}, err
	}
	return metaOfObject(&metav1.PartialObjectMetadata{ObjectMeta: o.Metadata}), nil
}

// customObject is as much of a custom resource as writes need.
type customObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   json.RawMessage   `json:"status"`
}

func (c *Client) custom(ctx context.Context, kind, name string) (*customObject, error) {
	q := kindNamed(kind).request("get")
	if q.name = name; name == "" {
		return nil, fmt.Errorf("get %s: no name", q.resource)
	}
	a, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	var o customObject
	if err := json.Unmarshal(a.body, &o); err != nil {
		return nil, &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Name: name, Is: ErrUnavailable, Err: err, Detail: "decode the answer: " + err.Error()}
	}
	return &o, nil
}

// Leases are the Leases of a name in all namespaces: one renewed lately under Karpenter's
// name ("karpenter-leader-election") means that Karpenter runs.
func (c *Client) Leases(ctx context.Context, name string) ([]LeaseState, error) {
	q := &request{verb: "list", group: "coordination.k8s.io", version: "v1", resource: "leases", accept: protobuf,
		params: map[string]string{"fieldSelector": "metadata.name=" + name}}
	return selected(ctx, c, q, func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }, func(l *coordinationv1.Lease) LeaseState {
		out := LeaseState{Namespace: l.Namespace, Name: l.Name}
		if l.Spec.HolderIdentity != nil {
			out.Holder = *l.Spec.HolderIdentity
		}
		if l.Spec.RenewTime != nil {
			out.Renewed = l.Spec.RenewTime.UTC()
		}
		return out
	})
}
