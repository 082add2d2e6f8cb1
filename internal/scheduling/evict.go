package scheduling

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// AnnotationDoNotDisrupt keeps a pod, or a node, from being disrupted.
const AnnotationDoNotDisrupt = annotationDoNotDisrupt

// Disrupted is the taint of nodes that are to go.
var Disrupted = snapshot.Taint{Key: taintDisrupted, Effect: noSchedule}

// Reschedulable reports whether a pod that has a node would need another one, were that
// gone (Karpenter: reschedulable pods; a StatefulSet's comes back only when it has gone).
func Reschedulable(p *snapshot.Pod) bool {
	if p.Terminal() || isDaemon(p) || isMirror(p) {
		return false
	}
	return p.Deleting.IsZero() || p.Owner != nil && p.Owner.Kind == "StatefulSet"
}

// Active reports whether a pod has neither finished nor is on its way out.
func Active(p *snapshot.Pod) bool { return !p.Terminal() && p.Deleting.IsZero() }

// DoNotDisrupt reports whether a pod's annotation keeps it where it is: "true" always, a
// positive duration until that long after its start, anything else never.
func DoNotDisrupt(p *snapshot.Pod, now time.Time) bool { return doNotDisrupt(p, now) }

// Evictable reports whether a drain would evict a pod: it is active, does not tolerate the
// taint of nodes that go, and is no static pod.
func Evictable(p *snapshot.Pod) bool {
	if !Active(p) || isMirror(p) {
		return false
	}
	for i := range p.Spec.Tolerations {
		if tolerates(&p.Spec.Tolerations[i], &Disrupted) {
			return false
		}
	}
	return true
}

// Selects reports whether a label selector matches labels; nil matches nothing.
func Selects(s *snapshot.LabelSelector, labels map[string]string) bool { return selects(s, labels) }
