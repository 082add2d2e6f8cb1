package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/snapshot"
)

// The wire of karpenter.sh/v1alpha1.

type nodeOverlay struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     nodeOverlaySpec   `json:"spec"`
	Status   json.RawMessage   `json:"status"` // whether it conflicts with others is computed
}

type nodeOverlaySpec struct {
	Requirements    *[]requirement      `json:"requirements"`
	PriceAdjustment *string             `json:"priceAdjustment"`
	Price           *string             `json:"price"`
	Capacity        corev1.ResourceList `json:"capacity"`
	Weight          *int32              `json:"weight"`
}

// Patterns of the karpenter.sh/v1alpha1 API.
var (
	pricePattern      = regexp.MustCompile(`^\d+(\.\d+)?$`)
	adjustmentPattern = regexp.MustCompile(`^(([+-]\d*\.?\d+)|(\+\d*\.?\d+%)|(-\d{1,2}(\.\d+)?%)|(-100%))$`)
)

// maxOverlayRequirements is the most of them that the API takes.
const maxOverlayRequirements = 100

func (r *reader) addOverlay(n *nodeOverlay, o object) *fieldError {
	if err := n.Spec.check(); err != nil {
		return err
	}
	out := snapshot.NodeOverlay{
		Name: o.name, UID: string(n.Metadata.UID),
		Requirements: ownRequirements(*n.Spec.Requirements), Capacity: amounts(n.Spec.Capacity),
	}
	if n.Spec.Price != nil {
		out.Price = *n.Spec.Price
	}
	if n.Spec.PriceAdjustment != nil {
		out.PriceAdjustment = *n.Spec.PriceAdjustment
	}
	if n.Spec.Weight != nil {
		out.Weight = *n.Spec.Weight
	}
	r.snap.Overlays = append(r.snap.Overlays, out)
	return nil
}

// check refuses what the API server would refuse. What Karpenter finds later, a
// restricted label or a conflict with another overlay, is the planner's to say.
func (s *nodeOverlaySpec) check() *fieldError {
	if s.Requirements == nil {
		return refusedf("spec.requirements", "missing; an empty list selects every offer of every NodePool")
	}
	if n := len(*s.Requirements); n > maxOverlayRequirements {
		return refusedf("spec.requirements", "%d requirements, at most %d are allowed", n, maxOverlayRequirements)
	}
	for i, q := range *s.Requirements {
		if q.MinValues != nil {
			return malformed(fmt.Sprintf("spec.requirements[%d].minValues", i), "unknown field: minValues belongs in a NodePool")
		}
	}
	switch {
	case s.Price != nil && s.PriceAdjustment != nil:
		return refusedf("spec", "price and priceAdjustment exclude each other: keep one")
	case s.Price != nil && !pricePattern.MatchString(*s.Price):
		return refusedf("spec.price", "%q is no price in dollars per hour (write it like \"0.25\")", shorten(*s.Price))
	case s.PriceAdjustment != nil && !adjustmentPattern.MatchString(*s.PriceAdjustment):
		return refusedf("spec.priceAdjustment", "%q is no change of a price: write a sign and dollars per hour (\"+0.1\", \"-0.05\") or a percentage from \"-100%%\" up", shorten(*s.PriceAdjustment))
	case s.Weight != nil && (*s.Weight < 1 || *s.Weight > 10_000):
		return refusedf("spec.weight", "%d is out of bounds: want 1 to 10000, or leave it out (then it counts as 0)", *s.Weight)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Capacity)) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
			return refusedf("spec.capacity", "%s is given by the instance type; an overlay can add extended resources alone", name)
		}
	}
	return negative(s.Capacity, "spec.capacity")
}
