package judge

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// Annotations of the volume controller.
const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	boundBy       = "pv.kubernetes.io/bound-by-controller"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

// provision does what the volume controller and a provisioner do once the scheduler
// has chosen a node: claims of the pod that waited for it get a volume that can be
// reached from the node's zone.
func (s *Scheduler) provision(p *corev1.Pod, node string) {
	n, _ := s.nodes.find("", node).(*corev1.Node)
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(p, v)
		}
		c, ok := s.claims.find(p.Namespace, name).(*corev1.PersistentVolumeClaim)
		if name == "" || !ok || c.Spec.VolumeName != "" || n == nil {
			continue
		}
		s.bindClaim(c, n)
	}
}

func (o *objects) bindClaim(c *corev1.PersistentVolumeClaim, n *corev1.Node) {
	if c.Spec.StorageClassName == nil {
		return
	}
	class, ok := o.others[kindOf(&storagev1.StorageClass{})].find("", *c.Spec.StorageClassName).(*storagev1.StorageClass)
	if !ok || class.Provisioner == "kubernetes.io/no-provisioner" {
		return
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(c.UID), Annotations: map[string]string{boundBy: "yes"}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name, AccessModes: c.Spec.AccessModes,
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef:               &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver(class.Provisioner), VolumeHandle: string(c.UID)}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	// A volume of a file system is reached from everywhere, a disk from its zone.
	key := zoneLabel
	if pv.Spec.CSI.Driver == ebsDriver {
		key = ebsZoneLabel
	}
	if pv.Spec.CSI.Driver != "efs.csi.aws.com" && n.Labels[key] != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Labels[key]}}},
		}}}}
	}
	o.set(pv)
	c = c.DeepCopy()
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[selectedNode] = n.Name
	c.Annotations[bindCompleted], c.Annotations[boundBy] = "yes", "yes"
	c.Spec.VolumeName = pv.Name
	c.Status.Phase = corev1.ClaimBound
	o.set(c)
}

// driver is the CSI driver that does the work of an in-tree provisioner.
func driver(provisioner string) string {
	if provisioner == "kubernetes.io/aws-ebs" {
		return ebsDriver
	}
	return provisioner
}
