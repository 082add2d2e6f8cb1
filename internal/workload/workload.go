package workload

import (
	"cmp"
	"fmt"
	"slices"
)

// Kinds of workload.
const (
	Uniform      = "uniform"
	MixedWeb     = "mixedweb"
	MemCPU       = "memcpu"
	Diverse      = "diverse"
	Zonal        = "zonal"
	AntiAffinity = "antiaffinity"
	Hostname     = "hostname"
)

// Kinds lists every kind, in the order of reports.
func Kinds() []string {
	return []string{Uniform, MixedWeb, MemCPU, Diverse, Zonal, AntiAffinity, Hostname}
}

// Sizes lists the pod counts of the named workloads.
func Sizes() []int { return []int{100, 1000, 5000, 10000, 50000} }

// Deployment is a number of equal pods.
type Deployment struct {
	Name      string `json:"name"`
	Replicas  int    `json:"replicas"`
	CPUMilli  int64  `json:"cpuMilli"`
	MemoryMiB int64  `json:"memoryMiB"`
	// ZoneMaxSkew and HostMaxSkew are hard topology spread constraints over the
	// deployment's own pods; 0 = none.
	ZoneMaxSkew int `json:"zoneMaxSkew,omitempty"`
	HostMaxSkew int `json:"hostnameMaxSkew,omitempty"`
	// HostAntiAffinity keeps the deployment's pods on different nodes.
	HostAntiAffinity bool `json:"hostnameSelfAntiAffinity,omitempty"`
}

// Workload is a set of deployments, none of whose pods runs yet. Its JSON form is
// canonical: tests pin its checksum.
type Workload struct {
	Name        string       `json:"name"`
	Kind        string       `json:"kind"`
	N           int          `json:"pods"`
	Seed        int64        `json:"seed"`
	Deployments []Deployment `json:"deployments"`
}

// Named returns the published workload of a kind with n pods ("mixedweb-1000").
// Shapes depend on the kind alone, except for diverse, where a larger workload
// begins with the shapes of a smaller one. It panics on an unknown kind or n < 1.
func Named(kind string, n int) Workload {
	seed := kindSeed(kind)
	w := Workload{Name: fmt.Sprintf("%s-%d", kind, n), Kind: kind, N: n, Seed: seed}
	return generate(w, false)
}

// Random returns a workload of the same kind whose shapes and split are drawn from
// seed ("mixedweb-1000-s7"). Equal arguments give equal workloads. It panics on an
// unknown kind or n < 1.
func Random(kind string, n int, seed int64) Workload {
	w := Workload{Name: fmt.Sprintf("%s-%d-s%d", kind, n, seed), Kind: kind, N: n, Seed: seed}
	return generate(w, true)
}

// kindSeed turns a kind into the seed of its named workloads.
func kindSeed(kind string) int64 {
	h := int64(0)
	for _, c := range kind {
		h = h*131 + int64(c)
	}
	return h & 0x7fffffff
}

// Constrained reports whether some pod has a topology or affinity rule, so that
// resources alone do not decide.
func (w Workload) Constrained() bool {
	return slices.ContainsFunc(w.Deployments, func(d Deployment) bool {
		return d.ZoneMaxSkew > 0 || d.HostMaxSkew > 0 || d.HostAntiAffinity
	})
}

// Shape is a number of pods with the same requests.
type Shape struct {
	CPUMilli, MemoryMiB int64
	Count               int
}

// Shapes merges deployments of equal requests, largest CPU first, then largest
// memory. Topology rules are left out: see Constrained.
func Shapes(w Workload) []Shape {
	count := map[Shape]int{}
	for _, d := range w.Deployments {
		count[Shape{CPUMilli: d.CPUMilli, MemoryMiB: d.MemoryMiB}] += d.Replicas
	}
	out := make([]Shape, 0, len(count))
	for s, n := range count {
		s.Count = n
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(b.CPUMilli, a.CPUMilli), cmp.Compare(b.MemoryMiB, a.MemoryMiB))
	})
	return out
}
