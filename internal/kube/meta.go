package kube

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/snapshot"
)

func when(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// lastApplied is kubectl's copy of the whole manifest: long, and decides nothing.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// annotations keeps what can decide: annotations of Kubernetes, Karpenter and
// Kerf. Those of others stay out of saved snapshots.
func annotations(m map[string]string) map[string]string {
	var out map[string]string
	for k, v := range m {
		if k == lastApplied || !ours(k) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}

func ours(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	for _, d := range []string{"kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws", "kerf.sh", "k8s.aws"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

func labels(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

func controller(refs []metav1.OwnerReference) *snapshot.Owner {
	for _, o := range refs {
		if o.Controller != nil && *o.Controller {
			return &snapshot.Owner{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: string(o.UID)}
		}
	}
	return nil
}

func condition(typ, status, reason, message string, generation int64, since metav1.Time) snapshot.Condition {
	return snapshot.Condition{
		Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, Since: when(&since),
	}
}

func metaConditions(in []metav1.Condition) []snapshot.Condition {
	var out []snapshot.Condition
	for _, c := range in {
		out = append(out, condition(c.Type, string(c.Status), c.Reason, c.Message, c.ObservedGeneration, c.LastTransitionTime))
	}
	return out
}

func selector(in *metav1.LabelSelector) *snapshot.LabelSelector {
	if in == nil {
		return nil
	}
	out := &snapshot.LabelSelector{MatchLabels: labels(in.MatchLabels)}
	for _, e := range in.MatchExpressions {
		out.Expressions = append(out.Expressions, snapshot.SelectorRequirement{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
	}
	return out
}

func requirements(in []corev1.NodeSelectorRequirement) []snapshot.SelectorRequirement {
	var out []snapshot.SelectorRequirement
	for _, e := range in {
		out = append(out, snapshot.SelectorRequirement{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
	}
	return out
}

func term(in corev1.NodeSelectorTerm) snapshot.NodeSelectorTerm {
	return snapshot.NodeSelectorTerm{Expressions: requirements(in.MatchExpressions), Fields: requirements(in.MatchFields)}
}

// terms keeps the difference between no selector (nil) and one without terms,
// which matches nothing.
func terms(in *corev1.NodeSelector) []snapshot.NodeSelectorTerm {
	if in == nil {
		return nil
	}
	out := make([]snapshot.NodeSelectorTerm, 0, len(in.NodeSelectorTerms))
	for _, t := range in.NodeSelectorTerms {
		out = append(out, term(t))
	}
	return out
}

func taints(in []corev1.Taint) []snapshot.Taint {
	var out []snapshot.Taint
	for _, t := range in {
		out = append(out, snapshot.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func tolerations(in []corev1.Toleration) []snapshot.Toleration {
	var out []snapshot.Toleration
	for _, t := range in {
		out = append(out, snapshot.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

// merged returns a with what b has beyond it.
func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, b)
	maps.Copy(out, a)
	return out
}
