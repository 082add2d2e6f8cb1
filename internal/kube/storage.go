package kube

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kerf.sh/kerf/internal/snapshot"
)

// Annotations and drivers of volumes.
const (
	bindCompleted    = "pv.kubernetes.io/bind-completed"
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
	betaClass        = "volume.beta.kubernetes.io/storage-class"
	selectedNode     = "volume.kubernetes.io/selected-node"

	ebsDriver = "ebs.csi.aws.com"
)

// inTree maps in-tree provisioners to the CSI driver that took their place.
var inTree = map[string]string{
	"kubernetes.io/aws-ebs": ebsDriver,
}

func claimSpec(s *corev1.PersistentVolumeClaimSpec) snapshot.ClaimSpec {
	out := snapshot.ClaimSpec{StorageClass: s.StorageClassName, VolumeName: s.VolumeName}
	out.AccessModes = accessModes(s.AccessModes)
	out.Bytes = amount("storage", *s.Resources.Requests.Storage())
	out.Block = s.VolumeMode != nil && *s.VolumeMode == corev1.PersistentVolumeBlock
	out.Selector = selector(s.Selector)
	return out
}

func accessModes(list []corev1.PersistentVolumeAccessMode) []string {
	var out []string
	for _, m := range list {
		out = append(out, string(m))
	}
	return out
}

func (r *reader) addClaim(c *corev1.PersistentVolumeClaim, o object) *fieldError {
	out := PersistentVolumeClaim(c)
	out.Namespace = o.namespace
	r.snap.Claims = append(r.snap.Claims, out)
	return nil
}

// PersistentVolumeClaim converts a claim.
func PersistentVolumeClaim(c *corev1.PersistentVolumeClaim) snapshot.PersistentVolumeClaim {
	out := snapshot.PersistentVolumeClaim{
		Namespace:     c.Namespace,
		Name:          c.Name,
		Spec:          claimSpec(&c.Spec),
		Phase:         string(c.Status.Phase),
		BindCompleted: c.Annotations[bindCompleted] != "",
		Deleting:      c.DeletionTimestamp != nil,
		SelectedNode:  c.Annotations[selectedNode],
	}
	if class, ok := c.Annotations[betaClass]; ok && out.Spec.StorageClass == nil {
		out.Spec.StorageClass = &class
	}
	return out
}

func (r *reader) addVolume(v *corev1.PersistentVolume, o object) *fieldError {
	r.snap.Volumes = append(r.snap.Volumes, PersistentVolume(v))
	return nil
}

// PersistentVolume converts a volume. In-tree EBS volumes are named by the CSI
// driver that handles them today.
func PersistentVolume(v *corev1.PersistentVolume) snapshot.PersistentVolume {
	out := snapshot.PersistentVolume{
		Name:         v.Name,
		StorageClass: v.Spec.StorageClassName,
		Local:        v.Spec.Local != nil || v.Spec.HostPath != nil,
		Labels:       labels(v.Labels),
		Deleting:     v.DeletionTimestamp != nil,
		Phase:        string(v.Status.Phase),
		Bytes:        amount("storage", *v.Spec.Capacity.Storage()),
		AccessModes:  accessModes(v.Spec.AccessModes),
		Block:        v.Spec.VolumeMode != nil && *v.Spec.VolumeMode == corev1.PersistentVolumeBlock,
	}
	if c := v.Spec.ClaimRef; c != nil {
		out.Claim = c.Namespace + "/" + c.Name
	}
	switch {
	case v.Spec.CSI != nil:
		out.Driver, out.Handle = v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle
	case v.Spec.AWSElasticBlockStore != nil:
		out.Driver, out.Handle = ebsDriver, volumeID(v.Spec.AWSElasticBlockStore.VolumeID)
	}
	if v.Spec.NodeAffinity != nil {
		out.Required = terms(v.Spec.NodeAffinity.Required)
	}
	return out
}

// volumeID takes "vol-1" out of "aws://us-east-1a/vol-1".
func volumeID(s string) string {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return s[i+1:]
		}
	}
	return s
}

func (r *reader) addStorageClass(c *storagev1.StorageClass, o object) *fieldError {
	r.snap.StorageClasses = append(r.snap.StorageClasses, StorageClass(c))
	return nil
}

// StorageClass converts a storage class.
func StorageClass(c *storagev1.StorageClass) snapshot.StorageClass {
	out := snapshot.StorageClass{
		Name:        c.Name,
		Provisioner: c.Provisioner,
		BindingMode: text(c.VolumeBindingMode),
		Default:     c.Annotations[defaultClass] == "true" || c.Annotations[betaDefaultClass] == "true",
	}
	if driver, ok := inTree[c.Provisioner]; ok {
		out.Provisioner = driver
	}
	for _, t := range c.AllowedTopologies {
		var one snapshot.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			one.Expressions = append(one.Expressions, snapshot.SelectorRequirement{Key: e.Key, Operator: "In", Values: e.Values})
		}
		out.AllowedTopologies = append(out.AllowedTopologies, one)
	}
	return out
}
