package judge

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // the API's defaults
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
)

// gate is what the API server does to a pod before it is stored: the API's defaults,
// the LimitRanger and RuntimeClass plugins, which are Kubernetes' own, and the merging
// of label keys into selectors.
type gate struct {
	plugins []admission.MutationInterface
}

func newGate(objs []runtime.Object) (*gate, error) {
	o := newObjects()
	for _, obj := range objs {
		switch obj.(type) {
		case *corev1.LimitRange, *nodev1.RuntimeClass:
			o.set(obj)
		}
	}
	limits, err := limitranger.NewLimitRanger(nil)
	if err != nil {
		return nil, fmt.Errorf("start LimitRanger: %w", err)
	}
	classes := runtimeclass.NewRuntimeClass()
	limits.SetExternalKubeInformerFactory(o.factory)
	limits.SetExternalKubeClientSet(o.client)
	classes.SetExternalKubeInformerFactory(o.factory)
	classes.SetExternalKubeClientSet(o.client)
	return &gate{plugins: []admission.MutationInterface{limits, classes}}, nil
}

// admit returns the pod as it would be stored.
func (g *gate) admit(p *corev1.Pod) (*corev1.Pod, error) {
	p = p.DeepCopy()
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault
	}
	if p.UID == "" {
		p.UID = types.UID("uid-" + p.Namespace + "-" + p.Name)
	}
	p.Spec.SchedulerName = corev1.DefaultSchedulerName // Karpenter plans for every scheduler alike
	legacyscheme.Scheme.Default(p)
	internal := &core.Pod{}
	if err := legacyscheme.Scheme.Convert(p, internal, nil); err != nil {
		return nil, fmt.Errorf("convert pod %s: %w", p.Name, err)
	}
	a := admission.NewAttributesRecord(internal, nil, corev1.SchemeGroupVersion.WithKind("Pod"), p.Namespace, p.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	for _, plugin := range g.plugins {
		if err := plugin.Admit(context.Background(), a, nil); err != nil {
			return nil, fmt.Errorf("admit pod %s: %w", p.Name, err)
		}
	}
	out := &corev1.Pod{}
	if err := legacyscheme.Scheme.Convert(internal, out, nil); err != nil {
		return nil, fmt.Errorf("convert pod %s: %w", p.Name, err)
	}
	out.Status = p.Status
	for i := range out.Spec.TopologySpreadConstraints {
		c := &out.Spec.TopologySpreadConstraints[i]
		c.LabelSelector = withKeys(c.LabelSelector, p.Labels, c.MatchLabelKeys, nil)
	}
	eachTerm(out.Spec.Affinity, func(t *corev1.PodAffinityTerm) {
		t.LabelSelector = withKeys(t.LabelSelector, p.Labels, t.MatchLabelKeys, t.MismatchLabelKeys)
	})
	return out, nil
}

// withKeys is what the API server makes of matchLabelKeys and mismatchLabelKeys when
// a pod is created: requirements of the selector on the pod's own values.
func withKeys(s *metav1.LabelSelector, labels map[string]string, match, mismatch []string) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := s.DeepCopy()
	add := func(keys []string, op metav1.LabelSelectorOperator) {
		for _, k := range keys {
			if v, ok := labels[k]; ok {
				out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
			}
		}
	}
	add(match, metav1.LabelSelectorOpIn)
	add(mismatch, metav1.LabelSelectorOpNotIn)
	return out
}

// eachTerm visits the pod affinity and anti-affinity terms.
func eachTerm(a *corev1.Affinity, f func(*corev1.PodAffinityTerm)) {
	if a == nil {
		return
	}
	visit := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			f(&required[i])
		}
		for i := range preferred {
			f(&preferred[i].PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		visit(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		visit(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}
