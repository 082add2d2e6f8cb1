package kube

import (
	"maps"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kerf.sh/kerf/internal/snapshot"
)

// amount converts a quantity of a resource into the unit of snapshot.Resources,
// rounding up as Kubernetes does and saturating at snapshot.MaxQuantity.
func amount(name string, q resource.Quantity) int64 {
	scale := int64(1)
	if name == snapshot.CPU {
		scale = 1000
	}
	if v, ok := q.AsInt64(); ok {
		if v > snapshot.MaxQuantity/scale {
			return snapshot.MaxQuantity
		}
		if v < -snapshot.MaxQuantity/scale {
			return -snapshot.MaxQuantity
		}
		return v * scale
	}
	// value = unscaled x 10^-decimals
	d := q.AsDec()
	decimals := int64(d.Scale())
	if decimals < -100 {
		return snapshot.MaxQuantity * int64(d.Sign())
	}
	unscaled := new(big.Int).Mul(d.UnscaledBig(), big.NewInt(scale))
	ten := big.NewInt(10)
	if decimals <= 0 {
		unscaled.Mul(unscaled, new(big.Int).Exp(ten, big.NewInt(-decimals), nil))
	} else {
		divisor := new(big.Int).Exp(ten, big.NewInt(decimals), nil)
		rest := new(big.Int)
		unscaled.QuoRem(unscaled, divisor, rest)
		unscaled.Add(unscaled, big.NewInt(int64(rest.Sign()))) // away from zero
	}
	if !unscaled.IsInt64() {
		return snapshot.MaxQuantity * int64(unscaled.Sign())
	}
	return snapshot.Clamp(unscaled.Int64())
}

// amounts converts a resource list, by name; nil when it is empty.
func amounts(list corev1.ResourceList) map[string]int64 {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]int64, len(list))
	for name, q := range list {
		out[string(name)] = amount(string(name), q)
	}
	return out
}

// resources converts a resource list.
func resources(list corev1.ResourceList) snapshot.Resources { return sum(amounts(list)) }

func sum(m map[string]int64) snapshot.Resources {
	var r snapshot.Resources
	for name, v := range m {
		switch name {
		case snapshot.CPU:
			r.CPU = v
		case snapshot.Memory:
			r.Memory = v
		case snapshot.EphemeralStorage:
			r.Ephemeral = v
		case snapshot.Pods:
			r.Pods = v
		default:
			if v == 0 {
				continue // as good as absent
			}
			if r.Extended == nil {
				r.Extended = map[string]int64{}
			}
			r.Extended[name] = v
		}
	}
	return r
}

// negative names the first resource, by name, of which less than nothing is asked.
func negative(list corev1.ResourceList, field string) *fieldError {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			return refusedf(join(field, string(name)), "%s is negative", q.String())
		}
	}
	return nil
}
