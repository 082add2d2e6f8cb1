package kube

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kerf.sh/kerf/internal/snapshot"
)

func (r *reader) addNode(n *corev1.Node, o object) *fieldError {
	r.snap.Nodes = append(r.snap.Nodes, Node(n))
	return nil
}

// Node converts a node.
func Node(n *corev1.Node) snapshot.Node {
	out := snapshot.Node{
		Name:          n.Name,
		UID:           string(n.UID),
		ProviderID:    n.Spec.ProviderID,
		Labels:        labels(n.Labels),
		Annotations:   annotations(n.Annotations),
		Taints:        taints(n.Spec.Taints),
		Unschedulable: n.Spec.Unschedulable,
		Capacity:      resources(n.Status.Capacity),
		Allocatable:   resources(n.Status.Allocatable),
		Created:       when(&n.CreationTimestamp),
		Deleting:      when(n.DeletionTimestamp),
	}
	for _, c := range n.Status.Conditions {
		out.Conditions = append(out.Conditions, condition(string(c.Type), string(c.Status), c.Reason, c.Message, 0, c.LastTransitionTime))
	}
	return out
}

func (r *reader) addCSINode(n *storagev1.CSINode, o object) *fieldError {
	r.snap.CSINodes = append(r.snap.CSINodes, CSINode(n))
	return nil
}

// CSINode converts the attach limits of a node.
func CSINode(n *storagev1.CSINode) snapshot.CSINode {
	out := snapshot.CSINode{Name: n.Name}
	for _, d := range n.Spec.Drivers {
		if out.Drivers == nil {
			out.Drivers = map[string]int64{}
		}
		out.Drivers[d.Name] = -1
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out.Drivers[d.Name] = int64(*d.Allocatable.Count)
		}
	}
	return out
}

func (r *reader) addAttachment(a *storagev1.VolumeAttachment, o object) *fieldError {
	r.snap.Attachments = append(r.snap.Attachments, VolumeAttachment(a))
	return nil
}

// VolumeAttachment converts an attachment.
func VolumeAttachment(a *storagev1.VolumeAttachment) snapshot.VolumeAttachment {
	return snapshot.VolumeAttachment{
		Name:     a.Name,
		Attacher: a.Spec.Attacher,
		Node:     a.Spec.NodeName,
		Volume:   text(a.Spec.Source.PersistentVolumeName),
		Attached: a.Status.Attached,
	}
}
