package kube

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/snapshot"
)

// addPod keeps a pod. A live pod (it has a UID or a status) went through
// admission and is taken as it is; a manifest gets its defaults at the end, when
// the LimitRanges and classes of all files are known.
func (r *reader) addPod(p *corev1.Pod, o object) *fieldError {
	if err := checkSpec(&p.Spec, "spec"); err != nil {
		return err
	}
	pod := Pod(p)
	pod.Namespace, pod.Name = o.namespace, o.name
	r.snap.Pods = append(r.snap.Pods, pod)
	if !live(p) {
		r.draft(o, needsOf(&p.Spec), "spec", draftPod, len(r.snap.Pods))
	}
	return nil
}

// Pod converts a pod that went through admission.
func Pod(p *corev1.Pod) snapshot.Pod {
	need := needsOf(&p.Spec)
	need.resize(&p.Status)
	out := snapshot.Pod{
		Namespace:     p.Namespace,
		Name:          p.Name,
		UID:           string(p.UID),
		Labels:        labels(p.Labels),
		Annotations:   annotations(p.Annotations),
		Owner:         controller(p.OwnerReferences),
		Created:       when(&p.CreationTimestamp),
		Deleting:      when(p.DeletionTimestamp),
		Spec:          podSpec(&p.Spec),
		NodeName:      p.Spec.NodeName,
		NominatedNode: p.Status.NominatedNodeName,
		Phase:         string(p.Status.Phase),
		Started:       when(p.Status.StartTime),
	}
	out.Spec.Requests = need.requests()
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodScheduled:
			out.Scheduled = podCondition(c)
		case corev1.PodReady:
			out.Ready = podCondition(c)
		}
	}
	return out
}

func podCondition(c corev1.PodCondition) *snapshot.Condition {
	out := condition(string(c.Type), string(c.Status), c.Reason, c.Message, c.ObservedGeneration, c.LastTransitionTime)
	return &out
}

// podSpec converts what decides where a pod may run, its requests left out.
func podSpec(s *corev1.PodSpec) snapshot.PodSpec {
	out := snapshot.PodSpec{
		NodeSelector:     labels(s.NodeSelector),
		Tolerations:      tolerations(s.Tolerations),
		HostPorts:        hostPorts(s),
		SchedulerName:    schedulerName(s.SchedulerName),
		PriorityClass:    s.PriorityClassName,
		TerminationGrace: s.TerminationGracePeriodSeconds,
	}
	if s.Priority != nil {
		out.Priority = *s.Priority
	}
	if s.RuntimeClassName != nil {
		out.RuntimeClass = *s.RuntimeClassName
	}
	if a := s.Affinity; a != nil {
		if a.NodeAffinity != nil {
			if req := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
				out.Required = terms(req)
				if len(out.Required) == 0 {
					out.Required = []snapshot.NodeSelectorTerm{{}} // matches nothing
				}
			}
			for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				out.Preferred = append(out.Preferred, snapshot.PreferredTerm{Weight: p.Weight, Term: term(p.Preference)})
			}
		}
		if pa := a.PodAffinity; pa != nil {
			out.Affinity = affinity(pa.RequiredDuringSchedulingIgnoredDuringExecution, pa.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if pa := a.PodAntiAffinity; pa != nil {
			out.Anti = affinity(pa.RequiredDuringSchedulingIgnoredDuringExecution, pa.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for _, c := range s.TopologySpreadConstraints {
		out.Spread = append(out.Spread, snapshot.TopologySpread{
			MaxSkew:            c.MaxSkew,
			TopologyKey:        c.TopologyKey,
			WhenUnsatisfiable:  string(c.WhenUnsatisfiable),
			Selector:           selector(c.LabelSelector),
			MinDomains:         c.MinDomains,
			NodeAffinityPolicy: text(c.NodeAffinityPolicy),
			NodeTaintsPolicy:   text(c.NodeTaintsPolicy),
			MatchLabelKeys:     c.MatchLabelKeys,
		})
	}
	for _, v := range s.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out.Volumes = append(out.Volumes, snapshot.Volume{Name: v.Name, Claim: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			spec := claimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
			out.Volumes = append(out.Volumes, snapshot.Volume{Name: v.Name, Ephemeral: &spec})
		}
	}
	for _, c := range s.ResourceClaims {
		out.ResourceClaims = append(out.ResourceClaims, c.Name)
	}
	for _, g := range s.SchedulingGates {
		out.Gates = append(out.Gates, g.Name)
	}
	return out
}

// schedulerName drops the default, so that manifests and live pods are equal.
func schedulerName(s string) string {
	if s == corev1.DefaultSchedulerName {
		return ""
	}
	return s
}

func text[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

func affinity(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []snapshot.PodAffinityTerm {
	var out []snapshot.PodAffinityTerm
	for i := range required {
		out = append(out, affinityTerm(&required[i], 0))
	}
	for i := range preferred {
		// A weight of 0 would read as required; the API takes 1 to 100.
		out = append(out, affinityTerm(&preferred[i].PodAffinityTerm, max(1, preferred[i].Weight)))
	}
	return out
}

func affinityTerm(t *corev1.PodAffinityTerm, weight int32) snapshot.PodAffinityTerm {
	return snapshot.PodAffinityTerm{
		Weight:            weight,
		TopologyKey:       t.TopologyKey,
		Selector:          selector(t.LabelSelector),
		Namespaces:        t.Namespaces,
		NamespaceSelector: selector(t.NamespaceSelector),
		MatchLabelKeys:    t.MatchLabelKeys,
		MismatchLabelKeys: t.MismatchLabelKeys,
	}
}

// hostPorts lists the host ports of containers and sidecars, without doubles.
// With hostNetwork every container port is a host port.
func hostPorts(s *corev1.PodSpec) []snapshot.HostPort {
	var out []snapshot.HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			port := p.HostPort
			if port == 0 && s.HostNetwork {
				port = p.ContainerPort
			}
			if port == 0 {
				continue
			}
			h := snapshot.HostPort{IP: p.HostIP, Protocol: string(p.Protocol), Port: port}
			if h.IP == "0.0.0.0" {
				h.IP = ""
			}
			if h.Protocol == string(corev1.ProtocolTCP) {
				h.Protocol = ""
			}
			out = append(out, h)
		}
	}
	for i := range s.InitContainers {
		if sidecar(&s.InitContainers[i]) {
			add(&s.InitContainers[i])
		}
	}
	for i := range s.Containers {
		add(&s.Containers[i])
	}
	slices.SortFunc(out, func(a, b snapshot.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return slices.Compact(out)
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// checkSpec refuses requests below zero and containers of one name, as the API
// server does.
func checkSpec(s *corev1.PodSpec, field string) *fieldError {
	seen := map[string]string{}
	for _, part := range []struct {
		name string
		list []corev1.Container
	}{{"initContainers", s.InitContainers}, {"containers", s.Containers}} {
		for i := range part.list {
			at, name := fmt.Sprintf("%s.%s[%d]", field, part.name, i), part.list[i].Name
			if first, ok := seen[name]; ok && name != "" {
				return refusedf(at+".name", "%q is also the name of %s", name, first)
			}
			seen[name] = at
		}
	}
	each := func(list []corev1.Container, name string) *fieldError {
		for i := range list {
			at := fmt.Sprintf("%s.%s[%d].resources", field, name, i)
			if err := negative(list[i].Resources.Requests, at+".requests"); err != nil {
				return err
			}
			if err := negative(list[i].Resources.Limits, at+".limits"); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(s.InitContainers, "initContainers"); err != nil {
		return err
	}
	if err := each(s.Containers, "containers"); err != nil {
		return err
	}
	if s.Resources != nil {
		if err := negative(s.Resources.Requests, field+".resources.requests"); err != nil {
			return err
		}
		if err := negative(s.Resources.Limits, field+".resources.limits"); err != nil {
			return err
		}
	}
	return negative(s.Overhead, field+".overhead")
}
