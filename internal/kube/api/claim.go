package api

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kerf.sh/kerf/internal/snapshot"
)

// ClaimStatus is the status of a NodeClaim, as far as c says something: providerID, node
// name, image, capacity and allocatable, last pod event and conditions.
func ClaimStatus(c *snapshot.NodeClaim) Status {
	s := Status{Conditions: c.Conditions, Fields: map[string]any{}}
	for name, v := range map[string]string{"providerID": c.ProviderID, "nodeName": c.NodeName, "imageID": c.ImageID} {
		if v != "" {
			s.Fields[name] = v
		}
	}
	for name, v := range map[string]snapshot.Resources{"capacity": c.Capacity, "allocatable": c.Allocatable} {
		if q := Quantities(v); q != nil {
			s.Fields[name] = q
		}
	}
	if !c.LastPodEvent.IsZero() {
		s.Fields["lastPodEventTime"] = c.LastPodEvent.UTC().Format(time.RFC3339)
	}
	return s
}

// Quantities writes resources as Kubernetes does: "1500m", "16Gi". What is zero is left
// out.
func Quantities(r snapshot.Resources) map[string]string {
	out := map[string]string{}
	put := func(name string, v int64, f resource.Format) {
		if v != 0 {
			out[name] = resource.NewQuantity(v, f).String()
		}
	}
	if r.CPU != 0 {
		out[snapshot.CPU] = resource.NewMilliQuantity(r.CPU, resource.DecimalSI).String()
	}
	put(snapshot.Memory, r.Memory, resource.BinarySI)
	put(snapshot.EphemeralStorage, r.Ephemeral, resource.BinarySI)
	put(snapshot.Pods, r.Pods, resource.DecimalSI)
	for name, v := range r.Extended {
		put(name, v, resource.DecimalSI)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
