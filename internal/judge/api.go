package judge

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"
)

// react does what an API server, and the controllers behind it, do with the
// scheduler's requests.
func (o *objects) react(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		if b, ok := a.Object.(*corev1.Binding); ok {
			return true, b, o.bind(b)
		}
	case clienttesting.PatchActionImpl:
		if a.GetResource().Resource == "pods" {
			p, err := o.patchPod(a)
			return true, p, err
		}
	case clienttesting.UpdateActionImpl:
		switch obj := a.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			o.set(obj)
			if n, ok := o.nodes.find("", obj.Annotations[selectedNode]).(*corev1.Node); ok && obj.Spec.VolumeName == "" {
				o.bindClaim(obj, n)
			}
			return true, obj, nil
		case *corev1.PersistentVolume:
			o.set(obj)
			return true, obj, nil
		}
	case clienttesting.DeleteActionImpl:
		if a.GetResource().Resource == "pods" {
			// A victim of preemption: its controller makes another one.
			if p, ok := o.pods.find(a.GetNamespace(), a.GetName()).(*corev1.Pod); ok {
				o.remove(p)
				o.set(again(p))
			}
			return true, nil, nil
		}
	}
	return true, nil, nil
}

// again is the pod that replaces one that was deleted; it keeps the name, so that the
// plan and its outcome can be told together.
func again(p *corev1.Pod) *corev1.Pod {
	p = fresh(p)
	p.UID += "-again"
	return p
}

func (o *objects) bind(b *corev1.Binding) error {
	p, ok := o.pods.find(b.Namespace, b.Name).(*corev1.Pod)
	switch {
	case !ok:
		return fmt.Errorf("bind pod %s/%s: there is none", b.Namespace, b.Name)
	case p.Spec.NodeName != "":
		return fmt.Errorf("bind pod %s/%s: it is on node %s", b.Namespace, b.Name, p.Spec.NodeName)
	}
	p = p.DeepCopy()
	p.Spec.NodeName = b.Target.Name
	p.Status.NominatedNodeName = "" // as the API server does since 1.35
	p.Status.Phase = corev1.PodRunning
	o.set(p)
	return nil
}

// patchPod applies a patch of a pod's status. Every one makes a new version of the pod.
func (o *objects) patchPod(a clienttesting.PatchActionImpl) (runtime.Object, error) {
	p, ok := o.pods.find(a.GetNamespace(), a.GetName()).(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("patch pod %s/%s: there is none", a.GetNamespace(), a.GetName())
	}
	if a.PatchType != types.StrategicMergePatchType {
		return nil, fmt.Errorf("patch pod %s/%s: patches of type %s are not known here", a.GetNamespace(), a.GetName(), a.PatchType)
	}
	was, err := json.Marshal(corev1.Pod{Status: p.Status})
	if err != nil {
		return nil, err
	}
	is, err := strategicpatch.StrategicMergePatch(was, a.Patch, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("patch pod %s/%s: %w", a.GetNamespace(), a.GetName(), err)
	}
	var patched corev1.Pod
	if err := json.Unmarshal(is, &patched); err != nil {
		return nil, err
	}
	p = p.DeepCopy()
	p.Status = patched.Status
	o.set(p)
	return p, nil
}
