package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/snapshot"
)

// needs is what the containers of a pod ask for, kept small until the defaults
// of admission can be applied.
type needs struct {
	containers []snapshot.Container
	pod        *snapshot.PodLevel
	// overhead is nil when the pod has none of its own.
	overhead *snapshot.Resources
}

func needsOf(s *corev1.PodSpec) needs {
	n := needs{containers: make([]snapshot.Container, 0, len(s.InitContainers)+len(s.Containers))}
	for i := range s.InitContainers {
		n.containers = append(n.containers, container(&s.InitContainers[i], true))
	}
	for i := range s.Containers {
		n.containers = append(n.containers, container(&s.Containers[i], false))
	}
	if s.Resources != nil {
		n.pod = &snapshot.PodLevel{Requests: resources(s.Resources.Requests), Limits: resources(s.Resources.Limits)}
	}
	if len(s.Overhead) > 0 {
		overhead := resources(s.Overhead)
		n.overhead = &overhead
	}
	return n
}

func container(c *corev1.Container, init bool) snapshot.Container {
	return snapshot.Container{
		Name:         c.Name,
		Requests:     resources(c.Resources.Requests),
		Limits:       resources(c.Resources.Limits),
		ZeroRequests: zeros(c.Resources.Requests),
		ZeroLimits:   zeros(c.Resources.Limits),
		Init:         init,
		Sidecar:      sidecar(c),
	}
}

// zeros names the resources that are written as zero.
func zeros(list corev1.ResourceList) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.IsZero() {
			out = append(out, string(name))
		}
	}
	return out
}

// resize adds what the kubelet has given to containers that are resized in place.
func (n *needs) resize(s *corev1.PodStatus) {
	infeasible := false
	for _, c := range s.Conditions {
		if c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonInfeasible {
			infeasible = true
		}
	}
	statuses := map[string]*corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].AllocatedResources != nil || list[i].Resources != nil && list[i].Resources.Requests != nil {
				statuses[list[i].Name] = &list[i]
			}
		}
	}
	for i := range n.containers {
		c := statuses[n.containers[i].Name]
		if c == nil {
			continue
		}
		r := &snapshot.Resize{Allocated: resources(c.AllocatedResources), Infeasible: infeasible}
		if c.Resources != nil {
			r.Actual = resources(c.Resources.Requests)
		}
		n.containers[i].Resize = r
	}
}

// requests is the effective request.
func (n *needs) requests() snapshot.Resources {
	var overhead snapshot.Resources
	if n.overhead != nil {
		overhead = *n.overhead
	}
	return snapshot.EffectiveRequests(n.containers, n.pod, overhead)
}

// admit applies the defaults of admission.
func (n *needs) admit(ranges []snapshot.LimitRange) {
	n.containers, n.pod = snapshot.AdmitPod(n.containers, n.pod, ranges)
}
