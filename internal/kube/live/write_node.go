package live

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// ChangeNode changes the Node with this UID, in one write that is conditional on what was
// read; while others change it too it is tried again. Nothing is written where the Node is
// already as it should be. It reports whether something was. A Node with another UID, or
// none, is ErrConflict or ErrNotFound.
func (c *Client) ChangeNode(ctx context.Context, name, uid string, change NodeChange) (changed bool, err error) {
	return c.changeNode(ctx, name, uid, &change, nil)
}

// changeNode is ChangeNode with a Node that was read before, or nil.
func (c *Client) changeNode(ctx context.Context, name, uid string, change *NodeChange, read *corev1.Node) (changed bool, err error) {
	q, err := object("Node", "", name)
	if err != nil {
		return false, err
	}
	err = c.retry(func() error {
		changed = false
		n := read
		read = nil // once: what is tried again is read again
		if n == nil {
			if n, err = get[corev1.Node](ctx, c, kindNamed("Node").request("get"), "Node", name); err != nil {
				return err
			}
		}
		if uid != "" && string(n.UID) != uid {
			return another(q, uid, string(n.UID))
		}
		body := nodePatch(change, n)
		if body == nil {
			return nil
		}
		changed = true
		return c.patch(ctx, q, mergePatch, body)
	})
	return changed && err == nil, err
}

// atOnce is how many Nodes are written at the same moment: more than are opened together
// but in the largest plans.
const atOnce = 64

// ChangeNodes makes the same change to Nodes, as nearly at one moment as can be: all are
// read before the first is written, and none waits for another. The errors are those of
// ChangeNode, in the order of nodes.
func (c *Client) ChangeNodes(ctx context.Context, nodes []api.NodeName, change NodeChange) []error {
	read, errs := make([]*corev1.Node, len(nodes)), make([]error, len(nodes))
	parallel(len(nodes), atOnce, func(i int) {
		// One that cannot be read now is read again when it is written, and that error counts.
		if n, err := get[corev1.Node](ctx, c, kindNamed("Node").request("get"), "Node", nodes[i].Name); err == nil {
			read[i] = n
		}
	})
	parallel(len(nodes), atOnce, func(i int) {
		_, errs[i] = c.changeNode(ctx, nodes[i].Name, nodes[i].UID, &change, read[i])
	})
	return errs
}

// nodePatch is the merge patch that makes of n what the change says; nil when it is that.
func nodePatch(x *NodeChange, n *corev1.Node) map[string]any {
	if _, done := n.Labels[x.Unless]; done && x.Unless != "" {
		return nil
	}
	meta := map[string]any{}
	if d := texts(n.Labels, x.Labels, x.DropLabels); d != nil {
		meta["labels"] = d
	}
	if d := texts(n.Annotations, x.Annotations, x.DropAnnotations); d != nil {
		meta["annotations"] = d
	}
	if x.Finalizer != "" && !slices.Contains(n.Finalizers, x.Finalizer) {
		meta["finalizers"] = append(slices.Clone(n.Finalizers), x.Finalizer)
	}
	if x.Owner != nil {
		if refs, differ := owned(n.OwnerReferences, reference(*x.Owner)); differ {
			meta["ownerReferences"] = refs
		}
	}
	spec := map[string]any{}
	if taints := taintsWith(x, n.Spec.Taints); !slices.EqualFunc(taints, n.Spec.Taints, sameTaint) {
		spec["taints"] = taints
	}
	if x.Unschedulable != nil && *x.Unschedulable != n.Spec.Unschedulable {
		spec["unschedulable"] = *x.Unschedulable
	}
	if len(meta)+len(spec) == 0 {
		return nil
	}
	body := map[string]any{}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	meta["uid"], meta["resourceVersion"] = n.UID, n.ResourceVersion
	body["metadata"] = meta
	return body
}

// texts is the merge patch of labels or annotations, nil when there is nothing to change.
func texts(have, set map[string]string, drop []string) map[string]any {
	out := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		if v, ok := have[k]; !ok || v != set[k] {
			out[k] = set[k]
		}
	}
	for _, k := range drop {
		if _, ok := have[k]; ok {
			out[k] = nil
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func owned(have []metav1.OwnerReference, want metav1.OwnerReference) ([]metav1.OwnerReference, bool) {
	out := slices.Clone(have)
	i := slices.IndexFunc(out, func(o metav1.OwnerReference) bool { return o.Kind == want.Kind && o.APIVersion == want.APIVersion })
	if i < 0 {
		return append(out, want), true
	}
	if out[i].UID == want.UID && out[i].Name == want.Name {
		return out, false
	}
	out[i] = want
	return out, true
}

// taintsWith are those of the node with the change made. The time at which one was added
// stays with it.
func taintsWith(x *NodeChange, have []corev1.Taint) []corev1.Taint {
	out := slices.DeleteFunc(slices.Clone(have), func(t corev1.Taint) bool {
		return slices.ContainsFunc(x.DropTaints, func(d snapshot.Taint) bool {
			return d.Key == t.Key && (d.Effect == "" || d.Effect == string(t.Effect))
		})
	})
	for _, t := range x.Taints {
		want := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		i := slices.IndexFunc(out, func(o corev1.Taint) bool { return o.MatchTaint(&want) })
		switch {
		case i < 0:
			out = append(out, want)
		case out[i].Value != want.Value:
			out[i].Value = want.Value
		}
	}
	return out
}

func sameTaint(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }
