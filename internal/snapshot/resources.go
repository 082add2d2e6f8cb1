package snapshot

import (
	"maps"
	"math"
	"slices"
)

// Names of the resources that have a field of their own in Resources.
const (
	CPU              = "cpu"
	Memory           = "memory"
	EphemeralStorage = "ephemeral-storage"
	Pods             = "pods"
	// Nodes is Karpenter's pseudo-resource of NodePool limits: one per node.
	Nodes = "nodes"
)

// Limit of a single quantity. Sums saturate here, so that absurd manifests
// ("9E" of memory, ten times) can be compared but never overflow.
const MaxQuantity = math.MaxInt64 / 4

// Resources is a resource list in integers: CPU in millicores, memory and
// ephemeral storage in bytes, Extended (and everything else) in whole units. The
// zero value is empty. Methods never change their receiver or share its map.
type Resources struct {
	CPU       int64            `json:"cpu,omitempty"`
	Memory    int64            `json:"memory,omitempty"`
	Ephemeral int64            `json:"ephemeral,omitempty"`
	Pods      int64            `json:"pods,omitempty"`
	Extended  map[string]int64 `json:"extended,omitempty"`
}

// Get returns the quantity of a resource by its Kubernetes name; 0 when absent.
func (r Resources) Get(name string) int64 {
	switch name {
	case CPU:
		return r.CPU
	case Memory:
		return r.Memory
	case EphemeralStorage:
		return r.Ephemeral
	case Pods:
		return r.Pods
	}
	return r.Extended[name]
}

// With returns a copy with one quantity replaced.
func (r Resources) With(name string, v int64) Resources {
	switch name {
	case CPU:
		r.CPU = v
	case Memory:
		r.Memory = v
	case EphemeralStorage:
		r.Ephemeral = v
	case Pods:
		r.Pods = v
	default:
		m := make(map[string]int64, len(r.Extended)+1)
		maps.Copy(m, r.Extended)
		m[name] = v
		r.Extended = m
	}
	return r
}

// Names lists the resources that are not zero, sorted.
func (r Resources) Names() []string {
	var out []string
	for _, n := range []string{CPU, EphemeralStorage, Memory, Pods} {
		if r.Get(n) != 0 {
			out = append(out, n)
		}
	}
	for n, v := range r.Extended {
		if v != 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Clamp limits a quantity to [-MaxQuantity, MaxQuantity].
func Clamp(v int64) int64 { return min(max(v, -MaxQuantity), MaxQuantity) }

func add(a, b int64) int64 { return Clamp(Clamp(a) + Clamp(b)) }

func (r Resources) merge(o Resources, f func(a, b int64) int64) Resources {
	out := Resources{
		CPU: f(r.CPU, o.CPU), Memory: f(r.Memory, o.Memory),
		Ephemeral: f(r.Ephemeral, o.Ephemeral), Pods: f(r.Pods, o.Pods),
	}
	if len(r.Extended)+len(o.Extended) > 0 {
		out.Extended = make(map[string]int64, len(r.Extended)+len(o.Extended))
		for n, v := range r.Extended {
			out.Extended[n] = f(v, o.Extended[n])
		}
		for n, v := range o.Extended {
			if _, ok := r.Extended[n]; !ok {
				out.Extended[n] = f(0, v)
			}
		}
	}
	return out
}

// Add returns r + o, saturating at MaxQuantity.
func (r Resources) Add(o Resources) Resources { return r.merge(o, add) }

// Sub returns r - o; results may be negative.
func (r Resources) Sub(o Resources) Resources {
	return r.merge(o, func(a, b int64) int64 { return add(a, -Clamp(b)) })
}

// Max returns the component-wise maximum.
func (r Resources) Max(o Resources) Resources {
	return r.merge(o, func(a, b int64) int64 { return max(a, b) })
}

// Min is the component-wise minimum; what one lacks is 0.
func (r Resources) Min(o Resources) Resources {
	return r.merge(o, func(a, b int64) int64 { return min(a, b) })
}

// Floor returns r with negative components replaced by zero.
func (r Resources) Floor() Resources {
	return r.merge(Resources{}, func(a, _ int64) int64 { return max(a, 0) })
}

// Fits reports whether a request fits in what is available. As in Karpenter, a
// negative available quantity means that nothing fits; what is not requested is
// not compared.
func (r Resources) Fits(available Resources) bool {
	return r.Missing(available) == ""
}

// Missing names the first resource (in name order: cpu, ephemeral-storage,
// memory, pods, then extended ones) of which r needs more than is available, or
// that is available in a negative quantity; "" when r fits.
func (r Resources) Missing(available Resources) string {
	for _, n := range []string{CPU, EphemeralStorage, Memory, Pods} {
		if a := available.Get(n); a < 0 || r.Get(n) > a {
			return n
		}
	}
	worst := ""
	for n, a := range available.Extended {
		if a < 0 && (worst == "" || n < worst) {
			worst = n
		}
	}
	for n, v := range r.Extended {
		if v > 0 && v > available.Extended[n] && (worst == "" || n < worst) {
			worst = n
		}
	}
	return worst
}

// IsZero reports whether every component is zero.
func (r Resources) IsZero() bool { return len(r.Names()) == 0 }
