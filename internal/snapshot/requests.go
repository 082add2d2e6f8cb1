package snapshot

import "strings"

// HugePagesPrefix begins the names of the huge page resources ("hugepages-2Mi").
const HugePagesPrefix = "hugepages-"

// Container is what counts of a container when a pod's request is worked out.
// Whoever reads a pod builds these; they do not outlive the reading.
type Container struct {
	Name     string    `json:"name"`
	Requests Resources `json:"requests"`
	Limits   Resources `json:"limits"`
	// ZeroRequests and ZeroLimits name the resources that are written as zero: no
	// default replaces those, other than what is not written at all.
	ZeroRequests []string `json:"zeroRequests,omitempty"`
	ZeroLimits   []string `json:"zeroLimits,omitempty"`
	// Init: listed under initContainers. Init containers count in their order.
	Init bool `json:"init,omitempty"`
	// Sidecar: restartPolicy Always. It makes an Init container a sidecar, which
	// keeps running beside all that starts after it; without Init it means nothing.
	Sidecar bool `json:"sidecar,omitempty"`
	// Resize is the in-place resize state, nil when the status carries none.
	Resize *Resize `json:"resize,omitempty"`
}

// Resize is the state of a container, or a pod, that may be resized in place.
type Resize struct {
	Allocated Resources `json:"allocated"` // status allocatedResources
	Actual    Resources `json:"actual"`    // status resources.requests
	// Infeasible: the wanted resize was refused for good (pod condition
	// PodResizePending, reason Infeasible): what is wanted does not count.
	Infeasible bool `json:"infeasible,omitempty"`
}

// PodLevel is spec.resources of a pod: requests and limits of the pod as a whole.
type PodLevel struct {
	Requests Resources `json:"requests"`
	Limits   Resources `json:"limits"`
}

// requests of a container: with a resize under way, the largest of what is wanted,
// given and in use.
func (c *Container) requests() Resources {
	switch {
	case c.Resize == nil || c.Init && !c.Sidecar:
		return c.Requests
	case c.Resize.Infeasible:
		return c.Resize.Allocated.Max(c.Resize.Actual)
	}
	return c.Requests.Max(c.Resize.Allocated).Max(c.Resize.Actual)
}

// EffectiveRequests is what a pod takes of its node (Kubernetes: PodRequests): per
// resource the larger of containers and sidecars together, and of each init
// container beside the sidecars started before it; pod-level requests in place of
// that where given; the overhead; and one pod. podLevel may be nil.
func EffectiveRequests(containers []Container, podLevel *PodLevel, overhead Resources) Resources {
	out := containerRequests(containers)
	if podLevel != nil {
		for _, n := range podLevel.Requests.Names() {
			if podLevelResource(n) {
				out = out.With(n, podLevel.Requests.Get(n))
			}
		}
	}
	if !overhead.IsZero() {
		out = out.Add(overhead)
	}
	out.Pods = 1
	return out
}

func containerRequests(containers []Container) Resources {
	var running, sidecars, starting Resources
	for i := range containers {
		c := &containers[i]
		req := c.requests()
		switch {
		case !c.Init:
			running = running.Add(req)
		case c.Sidecar:
			running = running.Add(req)
			sidecars = sidecars.Add(req)
		default:
			starting = starting.Max(sidecars.Add(req))
		}
	}
	return running.Max(starting)
}

// podLevelResource reports whether a resource can be requested for a pod as a
// whole.
func podLevelResource(name string) bool {
	return name == CPU || name == Memory || strings.HasPrefix(name, HugePagesPrefix)
}
