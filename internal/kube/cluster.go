package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kerf.sh/kerf/internal/snapshot"
)

func (r *reader) addNamespace(n *corev1.Namespace, o object) *fieldError {
	r.snap.Namespaces = append(r.snap.Namespaces, Namespace(n))
	return nil
}

// Namespace converts a namespace. The API server labels each with its name.
func Namespace(n *corev1.Namespace) snapshot.Namespace {
	return snapshot.Namespace{
		Name:   n.Name,
		Labels: merged(labels(n.Labels), map[string]string{corev1.LabelMetadataName: n.Name}),
	}
}

func (r *reader) addLimitRange(l *corev1.LimitRange, o object) *fieldError {
	for i, item := range l.Spec.Limits {
		at := fmt.Sprintf("spec.limits[%d]", i)
		for _, part := range []struct {
			name string
			list corev1.ResourceList
		}{{"default", item.Default}, {"defaultRequest", item.DefaultRequest}, {"max", item.Max}, {"min", item.Min}} {
			if err := negative(part.list, at+"."+part.name); err != nil {
				return err
			}
		}
	}
	out := LimitRange(l)
	out.Namespace = o.namespace
	r.snap.LimitRanges = append(r.snap.LimitRanges, out)
	return nil
}

// LimitRange converts the limits of containers and pods; those of claims do not
// decide about nodes.
func LimitRange(l *corev1.LimitRange) snapshot.LimitRange {
	out := snapshot.LimitRange{Namespace: l.Namespace, Name: l.Name}
	for _, item := range l.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer && item.Type != corev1.LimitTypePod {
			continue
		}
		out.Limits = append(out.Limits, snapshot.LimitRangeItem{
			Type:           string(item.Type),
			Default:        amounts(item.Default),
			DefaultRequest: amounts(item.DefaultRequest),
			Min:            amounts(item.Min),
			Max:            amounts(item.Max),
		})
	}
	return out
}

func (r *reader) addRuntimeClass(c *nodev1.RuntimeClass, o object) *fieldError {
	if c.Overhead != nil {
		if err := negative(c.Overhead.PodFixed, "overhead.podFixed"); err != nil {
			return err
		}
	}
	r.snap.RuntimeClasses = append(r.snap.RuntimeClasses, RuntimeClass(c))
	return nil
}

// RuntimeClass converts a runtime class.
func RuntimeClass(c *nodev1.RuntimeClass) snapshot.RuntimeClass {
	out := snapshot.RuntimeClass{Name: c.Name}
	if c.Overhead != nil {
		out.Overhead = resources(c.Overhead.PodFixed)
	}
	if c.Scheduling != nil {
		out.NodeSelector = labels(c.Scheduling.NodeSelector)
		out.Tolerations = tolerations(c.Scheduling.Tolerations)
	}
	return out
}

func (r *reader) addPriorityClass(c *schedulingv1.PriorityClass, o object) *fieldError {
	r.snap.Priorities = append(r.snap.Priorities, PriorityClass(c))
	return nil
}

// PriorityClass converts a priority class.
func PriorityClass(c *schedulingv1.PriorityClass) snapshot.PriorityClass {
	return snapshot.PriorityClass{
		Name: c.Name, Value: c.Value, GlobalDefault: c.GlobalDefault, PreemptionPolicy: text(c.PreemptionPolicy),
	}
}

func (r *reader) addBudget(b *policyv1.PodDisruptionBudget, o object) *fieldError {
	out := PodDisruptionBudget(b)
	out.Namespace = o.namespace
	r.snap.Budgets = append(r.snap.Budgets, out)
	return nil
}

// PodDisruptionBudget converts a budget. A status counts as present once the
// disruption controller has written it.
func PodDisruptionBudget(b *policyv1.PodDisruptionBudget) snapshot.PodDisruptionBudget {
	return snapshot.PodDisruptionBudget{
		Namespace:          b.Namespace,
		Name:               b.Name,
		Selector:           selector(b.Spec.Selector),
		MinAvailable:       intOrString(b.Spec.MinAvailable),
		MaxUnavailable:     intOrString(b.Spec.MaxUnavailable),
		UnhealthyPolicy:    text(b.Spec.UnhealthyPodEvictionPolicy),
		DisruptionsAllowed: b.Status.DisruptionsAllowed,
		HasStatus:          b.Status.ObservedGeneration > 0 || len(b.Status.Conditions) > 0,
	}
}

func intOrString(v *intstr.IntOrString) string {
	if v == nil {
		return ""
	}
	return v.String()
}
