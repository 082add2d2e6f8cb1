package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Admit returns the containers of a pod template as the API server would have
// made them: missing requests from limits, then the defaults of the namespace's
// LimitRanges. It is for templates: a pod that exists has been admitted, under the
// LimitRanges of its day. The input is not changed.
func Admit(containers []Container, namespaceLimits []LimitRange) []Container {
	out, _ := AdmitPod(containers, nil, namespaceLimits)
	return out
}

// AdmitPod is Admit for a template with pod-level resources: pod-level requests
// that are missing come from the containers where one of them requests the
// resource, else from the pod-level limit. That happens before LimitRanges, as in
// the API server. podLevel may be nil, and is not changed.
func AdmitPod(containers []Container, podLevel *PodLevel, namespaceLimits []LimitRange) ([]Container, *PodLevel) {
	out := slices.Clone(containers)
	for i := range out {
		limitsToRequests(&out[i])
	}
	podLevel = defaultPodLevel(out, podLevel)
	// Kubernetes leaves the order of several LimitRanges open: here it is by name.
	ranges := slices.Clone(namespaceLimits)
	slices.SortStableFunc(ranges, func(a, b LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range ranges {
		requests, limits := rangeDefaults(r)
		for i := range out {
			fill(&out[i].Requests, &out[i].ZeroRequests, requests)
			fill(&out[i].Limits, &out[i].ZeroLimits, limits)
		}
	}
	return out, podLevel
}

func limitsToRequests(c *Container) {
	defaults := map[string]int64{}
	for _, n := range c.Limits.Names() {
		defaults[n] = c.Limits.Get(n)
	}
	for _, n := range c.ZeroLimits {
		defaults[n] = 0
	}
	fill(&c.Requests, &c.ZeroRequests, defaults)
}

// fill sets the quantities that are neither given nor written as zero.
func fill(r *Resources, zero *[]string, defaults map[string]int64) {
	for _, n := range slices.Sorted(maps.Keys(defaults)) {
		if r.Get(n) != 0 || slices.Contains(*zero, n) {
			continue
		}
		if defaults[n] == 0 {
			*zero = append(slices.Clip(*zero), n)
			continue
		}
		*r = r.With(n, defaults[n])
	}
}

// rangeDefaults returns the default requests and limits of containers under a
// LimitRange. When a LimitRange is stored, a missing default becomes the max, a
// missing defaultRequest the default, then the min; one that comes from a
// manifest has not been through that, and for a stored one it changes nothing.
func rangeDefaults(r LimitRange) (requests, limits map[string]int64) {
	requests, limits = map[string]int64{}, map[string]int64{}
	for _, item := range r.Limits {
		if item.Type != "Container" {
			continue
		}
		limit := overlay(item.Max, item.Default)
		maps.Copy(requests, overlay(overlay(item.Min, limit), item.DefaultRequest))
		maps.Copy(limits, limit)
	}
	return requests, limits
}

// overlay returns base with the entries of top over it.
func overlay(base, top map[string]int64) map[string]int64 {
	out := make(map[string]int64, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

func defaultPodLevel(containers []Container, podLevel *PodLevel) *PodLevel {
	if podLevel == nil || podLevel.Limits.IsZero() {
		return podLevel
	}
	out := *podLevel
	requested := containerRequests(containers)
	for _, n := range requested.Names() {
		// CPU and memory only: huge pages cannot be overcommitted, their request is
		// their limit.
		if (n == CPU || n == Memory) && out.Requests.Get(n) == 0 {
			out.Requests = out.Requests.With(n, requested.Get(n))
		}
	}
	for _, n := range out.Limits.Names() {
		if podLevelResource(n) && out.Requests.Get(n) == 0 {
			out.Requests = out.Requests.With(n, out.Limits.Get(n))
		}
	}
	return &out
}

// ApplyRuntimeClass gives a template's spec what its RuntimeClass adds: overhead
// to the requests, node selector, tolerations. It is for templates: the API server
// has done it for every pod. rc nil adds nothing. The error is a node selector
// that contradicts the pod's, for which the API server rejects the pod; the spec
// is then unchanged. Maps and slices of the spec are replaced, not written to.
func (spec *PodSpec) ApplyRuntimeClass(rc *RuntimeClass) error {
	if rc == nil {
		return nil
	}
	selector := spec.NodeSelector
	if len(rc.NodeSelector) > 0 {
		selector = maps.Clone(rc.NodeSelector)
		for _, k := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
			v := spec.NodeSelector[k]
			if other, ok := selector[k]; ok && other != v {
				return fmt.Errorf("nodeSelector %s=%s: runtime class %s wants %s=%s: make them equal or use another runtime class", k, v, rc.Name, k, other)
			}
			selector[k] = v
		}
	}
	tolerations := slices.Clip(spec.Tolerations)
	for _, t := range rc.Tolerations {
		if !slices.Contains(tolerations, t) {
			tolerations = append(tolerations, t)
		}
	}
	if !rc.Overhead.IsZero() {
		spec.Requests = spec.Requests.Add(rc.Overhead)
	}
	spec.NodeSelector, spec.Tolerations = selector, tolerations
	return nil
}

// Unadmitted is what a manifest or template said before admission, as far as that
// changes it. Saved snapshots keep it, so that a cluster with other LimitRanges,
// runtime or priority classes can be made of them. It decides nothing itself.
type Unadmitted struct {
	Kind          string            `json:"kind"`
	Namespace     string            `json:"namespace,omitempty"`
	Name          string            `json:"name"`
	Containers    []Container       `json:"containers,omitempty"`
	Pod           *PodLevel         `json:"pod,omitempty"` // spec.resources
	Overhead      *Resources        `json:"overhead,omitempty"`
	NodeSelector  map[string]string `json:"nodeSelector,omitempty"`
	Tolerations   []Toleration      `json:"tolerations,omitempty"`
	Priority      int32             `json:"priority,omitempty"`
	PriorityClass string            `json:"priorityClass,omitempty"`
}

// Ref names the object.
func (u *Unadmitted) Ref() Ref { return Ref{u.Kind, u.Namespace, u.Name} }
