package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/snapshot"
)

// needs is what the containers of a pod ask for, kept small until the defaults
// of admission can be applied.
type needs struct {
	init, app []container
	// pod holds pod-level requests and limits; nil maps when there are none.
	pod      container
	overhead map[string]int64
}

type container struct {
	name             string
	requests, limits map[string]int64
	sidecar          bool
}

func needsOf(s *corev1.PodSpec, field string) (*needs, *fieldError) {
	if err := checkNegative(s, field); err != nil {
		return nil, err
	}
	n := &needs{overhead: amounts(s.Overhead)}
	for i := range s.InitContainers {
		n.init = append(n.init, containerOf(&s.InitContainers[i]))
	}
	for i := range s.Containers {
		n.app = append(n.app, containerOf(&s.Containers[i]))
	}
	if s.Resources != nil {
		n.pod = container{requests: amounts(s.Resources.Requests), limits: amounts(s.Resources.Limits)}
	}
	return n, nil
}

func containerOf(c *corev1.Container) container {
	return container{
		name: c.Name, sidecar: sidecar(c),
		requests: amounts(c.Resources.Requests), limits: amounts(c.Resources.Limits),
	}
}

// resize takes the larger of what is asked for and what the kubelet has given,
// for containers that are being resized in place.
func (n *needs) resize(s *corev1.PodStatus) {
	given := func(list []container, statuses []corev1.ContainerStatus) {
		for i := range list {
			for j := range statuses {
				if statuses[j].Name != list[i].name {
					continue
				}
				list[i].requests = larger(list[i].requests, amounts(statuses[j].AllocatedResources))
				if statuses[j].Resources != nil {
					list[i].requests = larger(list[i].requests, amounts(statuses[j].Resources.Requests))
				}
			}
		}
	}
	given(n.app, s.ContainerStatuses)
	given(n.init, s.InitContainerStatuses)
}

func larger(a, b map[string]int64) map[string]int64 {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	if out == nil {
		out = map[string]int64{}
	}
	for k, v := range b {
		out[k] = max(out[k], v)
	}
	return out
}

// requests is the effective request of the pod: the larger of what runs for good
// (containers and sidecars) and what each init container needs beside the
// sidecars that were started before it; pod-level requests win; overhead and one
// pod on top.
func (n *needs) requests() snapshot.Resources {
	var running, peak snapshot.Resources
	for _, c := range n.init {
		if c.sidecar {
			running = running.Add(sum(c.requests))
			peak = peak.Max(running)
			continue
		}
		peak = peak.Max(running.Add(sum(c.requests)))
	}
	for _, c := range n.app {
		running = running.Add(sum(c.requests))
	}
	total := peak.Max(running)
	for name, v := range n.pod.requests {
		total = total.With(name, v)
	}
	return total.Add(sum(n.overhead)).With(snapshot.Pods, 1)
}

// defaults applies what admission adds: the defaults of the namespace's
// LimitRanges, then limits into missing requests.
func (n *needs) defaults(ranges []*snapshot.LimitRange) {
	each := func(c *container) {
		c.requests, c.limits = maps.Clone(c.requests), maps.Clone(c.limits)
		fill(&c.requests, c.limits)
		for _, lr := range ranges {
			for _, item := range lr.Limits {
				if item.Type != string(corev1.LimitTypeContainer) {
					continue
				}
				fill(&c.limits, item.Default)
				fill(&c.requests, item.DefaultRequest)
			}
		}
		fill(&c.requests, c.limits)
	}
	for i := range n.init {
		each(&n.init[i])
	}
	for i := range n.app {
		each(&n.app[i])
	}
	fill(&n.pod.requests, n.pod.limits)
}

func fill(into *map[string]int64, from map[string]int64) {
	for k, v := range from {
		if _, ok := (*into)[k]; !ok {
			if *into == nil {
				*into = map[string]int64{}
			}
			(*into)[k] = v
		}
	}
}
