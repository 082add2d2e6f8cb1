package judge

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kerf.sh/kerf/internal/snapshot"
)

func quantity(name string, v int64) resource.Quantity {
	switch name {
	case snapshot.CPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case snapshot.Memory, snapshot.EphemeralStorage:
		return *resource.NewQuantity(v, resource.BinarySI)
	}
	return *resource.NewQuantity(v, resource.DecimalSI)
}

func resourceList(r snapshot.Resources) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, n := range r.Names() {
		out[corev1.ResourceName(n)] = quantity(n, r.Get(n))
	}
	return out
}

// resources is the way back.
func resources(l corev1.ResourceList) snapshot.Resources {
	var out snapshot.Resources
	for name, q := range l {
		v := q.Value()
		if name == corev1.ResourceCPU {
			v = q.MilliValue()
		}
		out = out.With(string(name), v)
	}
	return out
}

// podOf writes a pod of a snapshot as an object; one container asks for everything.
func podOf(p *snapshot.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID), Labels: maps.Clone(p.Labels), Annotations: maps.Clone(p.Annotations),
			CreationTimestamp: metav1.NewTime(p.Created),
		},
		Spec:   podSpec(&p.Spec),
		Status: corev1.PodStatus{Phase: corev1.PodPhase(p.Phase), NominatedNodeName: p.NominatedNode},
	}
	if !p.Deleting.IsZero() {
		t := metav1.NewTime(p.Deleting)
		out.DeletionTimestamp = &t
	}
	if o := p.Owner; o != nil {
		yes := true
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID), Controller: &yes}}
	}
	out.Spec.NodeName = p.NodeName
	return out
}

func podSpec(p *snapshot.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{
		NodeSelector: maps.Clone(p.NodeSelector), Affinity: affinity(p), Tolerations: tolerations(p.Tolerations),
		SchedulerName: corev1.DefaultSchedulerName, PriorityClassName: p.PriorityClass,
	}
	r := p.Requests
	r.Pods = 0
	out.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: resourceList(r)}}}
	if p.Priority != 0 {
		out.Priority = &p.Priority
	}
	for _, g := range p.Gates {
		out.SchedulingGates = append(out.SchedulingGates, corev1.PodSchedulingGate{Name: g})
	}
	for _, h := range p.HostPorts {
		proto := corev1.Protocol(h.Protocol)
		if proto == "" {
			proto = corev1.ProtocolTCP
		}
		out.Containers[0].Ports = append(out.Containers[0].Ports, corev1.ContainerPort{
			HostPort: h.Port, ContainerPort: h.Port, Protocol: proto, HostIP: h.IP,
		})
	}
	for _, s := range p.Spread {
		out.TopologySpreadConstraints = append(out.TopologySpreadConstraints, spread(s))
	}
	return out
}

func spread(s snapshot.TopologySpread) corev1.TopologySpreadConstraint {
	out := corev1.TopologySpreadConstraint{
		MaxSkew: s.MaxSkew, TopologyKey: s.TopologyKey, WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(s.WhenUnsatisfiable),
		LabelSelector: labelSelector(s.Selector), MinDomains: s.MinDomains, MatchLabelKeys: s.MatchLabelKeys,
	}
	policy := func(name string) *corev1.NodeInclusionPolicy {
		if name == "" {
			return nil
		}
		p := corev1.NodeInclusionPolicy(name)
		return &p
	}
	out.NodeAffinityPolicy, out.NodeTaintsPolicy = policy(s.NodeAffinityPolicy), policy(s.NodeTaintsPolicy)
	return out
}

func labelSelector(s *snapshot.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := &metav1.LabelSelector{MatchLabels: maps.Clone(s.MatchLabels)}
	for _, e := range s.Expressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: slices.Clone(e.Values),
		})
	}
	return out
}

func tolerations(ts []snapshot.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range ts {
		out = append(out, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect),
		})
	}
	return out
}

func nodeTerm(t snapshot.NodeSelectorTerm) corev1.NodeSelectorTerm {
	requirements := func(rs []snapshot.SelectorRequirement) []corev1.NodeSelectorRequirement {
		var out []corev1.NodeSelectorRequirement
		for _, r := range rs {
			out = append(out, corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: slices.Clone(r.Values)})
		}
		return out
	}
	return corev1.NodeSelectorTerm{MatchExpressions: requirements(t.Expressions), MatchFields: requirements(t.Fields)}
}

func nodeTerms(ts []snapshot.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	out := []corev1.NodeSelectorTerm{}
	for _, t := range ts {
		out = append(out, nodeTerm(t))
	}
	return out
}

func affinity(p *snapshot.PodSpec) *corev1.Affinity {
	out := &corev1.Affinity{}
	if p.Required != nil || len(p.Preferred) > 0 {
		out.NodeAffinity = &corev1.NodeAffinity{}
		if p.Required != nil {
			out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: nodeTerms(p.Required)}
		}
		for _, t := range p.Preferred {
			out.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(out.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: t.Weight, Preference: nodeTerm(t.Term)})
		}
	}
	if len(p.Affinity) > 0 {
		out.PodAffinity = &corev1.PodAffinity{}
		out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, out.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = podTerms(p.Affinity)
	}
	if len(p.Anti) > 0 {
		out.PodAntiAffinity = &corev1.PodAntiAffinity{}
		out.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, out.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = podTerms(p.Anti)
	}
	if *out == (corev1.Affinity{}) {
		return nil
	}
	return out
}

func podTerms(ts []snapshot.PodAffinityTerm) (required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for _, t := range ts {
		term := corev1.PodAffinityTerm{
			TopologyKey: t.TopologyKey, LabelSelector: labelSelector(t.Selector), Namespaces: slices.Clone(t.Namespaces),
			NamespaceSelector: labelSelector(t.NamespaceSelector), MatchLabelKeys: t.MatchLabelKeys, MismatchLabelKeys: t.MismatchLabelKeys,
		}
		if t.Weight > 0 {
			preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: t.Weight, PodAffinityTerm: term})
		} else {
			required = append(required, term)
		}
	}
	return required, preferred
}
