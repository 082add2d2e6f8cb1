package sim

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"kerf.sh/kerf/internal/snapshot"
)

// resources reads quantities as a status has them.
func resources(in map[string]any) (snapshot.Resources, error) {
	var out snapshot.Resources
	for name, v := range in {
		text, ok := v.(string)
		if !ok {
			return out, fmt.Errorf("%s: %v is no quantity", name, v)
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		n := q.Value()
		if name == snapshot.CPU {
			n = q.MilliValue()
		}
		out = out.With(name, n)
	}
	return out, nil
}

// plus is the sum of resources.
func plus(a, b snapshot.Resources) snapshot.Resources {
	return minus(a, minus(snapshot.Resources{}, b))
}

// minus is what is left of resources; it may be below zero.
func minus(a, b snapshot.Resources) snapshot.Resources {
	out := snapshot.Resources{CPU: a.CPU - b.CPU, Memory: a.Memory - b.Memory, Ephemeral: a.Ephemeral - b.Ephemeral, Pods: a.Pods - b.Pods}
	if len(a.Extended)+len(b.Extended) > 0 {
		out.Extended = map[string]int64{}
		for n, v := range a.Extended {
			out.Extended[n] += v
		}
		for n, v := range b.Extended {
			out.Extended[n] -= v
		}
	}
	return out
}

// fits reports whether a request fits what is free: only what is asked for is looked at.
func fits(need, free snapshot.Resources) bool {
	for _, n := range need.Names() {
		if need.Get(n) > free.Get(n) {
			return false
		}
	}
	return true
}
