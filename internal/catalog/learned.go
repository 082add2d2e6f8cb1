package catalog

import "kerf.sh/kerf/internal/snapshot"

// Size is what a node has, and what of it pods can have.
type Size struct{ Capacity, Allocatable snapshot.Resources }

// Learn puts what a node of the type turned out to have in the place of what is computed,
// and keeps that in Computed; false when it is the same. CPU, memory, ephemeral storage and
// pods go up and down. Of devices only fewer are believed: those of a node that has just
// joined may not be registered yet, and more may be what one NodePool's plugin makes of
// them. A figure that is missing stays as it is computed.
func (r *Resolved) Learn(is Size) bool {
	if r.Unusable != "" {
		return false
	}
	was := Size{r.Capacity, r.Allocatable}
	capacity := learned(was.Capacity, is.Capacity)
	allocatable := learned(was.Allocatable, is.Allocatable).Min(capacity)
	if len(allocatable.Sub(was.Allocatable).Names())+len(capacity.Sub(was.Capacity).Names()) == 0 {
		return false
	}
	r.Computed = &was
	r.Capacity, r.Allocatable = capacity, allocatable
	return true
}

func learned(computed, is snapshot.Resources) snapshot.Resources {
	out := computed
	for _, name := range basics {
		if v := snapshot.Clamp(is.Get(name)); v > 0 {
			out = out.With(name, v)
		}
	}
	for name, v := range computed.Extended {
		if got := is.Extended[name]; got > 0 && got < v {
			out = out.With(name, got)
		}
	}
	return out
}

// basics are the resources of which every node has some.
var basics = [...]string{snapshot.CPU, snapshot.Memory, snapshot.EphemeralStorage, snapshot.Pods}

// MaxPods is how many pods the kubelet of a node of the type is to admit. A node is started
// with what is computed: what it turns out to have follows from that.
func (r *Resolved) MaxPods() int64 {
	if r.Computed != nil {
		return r.Computed.Capacity.Pods
	}
	return r.Capacity.Pods
}
