package snapshot

import "time"

// DoNotDisrupt is the annotation that keeps a pod, or a node, from being disrupted.
const DoNotDisrupt = "karpenter.sh/do-not-disrupt"

// Disrupted is the taint of nodes that are to go.
var Disrupted = Taint{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}

// Daemon reports whether a DaemonSet controls the pod.
func (p *Pod) Daemon() bool { return p.Owner != nil && p.Owner.Kind == "DaemonSet" }

// Mirror reports whether the pod stands for a static pod of a kubelet.
func (p *Pod) Mirror() bool {
	if p.Owner != nil && p.Owner.Kind == "Node" {
		return true
	}
	_, ok := p.Annotations["kubernetes.io/config.mirror"]
	return ok
}

// Active reports whether a pod has neither finished nor is on its way out.
func (p *Pod) Active() bool { return !p.Terminal() && p.Deleting.IsZero() }

// Reschedulable reports whether a pod that has a node would need another one, were that
// gone (Karpenter: reschedulable pods; a StatefulSet's comes back only when it has gone).
func (p *Pod) Reschedulable() bool {
	if p.Terminal() || p.Daemon() || p.Mirror() {
		return false
	}
	return p.Deleting.IsZero() || p.Owner != nil && p.Owner.Kind == "StatefulSet"
}

// Held reports whether the annotation do-not-disrupt keeps the pod where it is: "true"
// always, a positive duration until that long after its start, anything else never.
func (p *Pod) Held(now time.Time) bool {
	v, ok := p.Annotations[DoNotDisrupt]
	if !ok {
		return false
	}
	if v == "true" {
		return true
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return false
	}
	return p.Started.IsZero() || now.Before(p.Started.Add(d))
}

// Stays reports whether a drain leaves the pod alone: it tolerates the taint of nodes that
// go, or is a static pod.
func (p *Pod) Stays() bool {
	if p.Mirror() {
		return true
	}
	for i := range p.Spec.Tolerations {
		if p.Spec.Tolerations[i].Tolerates(&Disrupted) {
			return true
		}
	}
	return false
}

// Evictable reports whether a drain would evict the pod now.
func (p *Pod) Evictable() bool { return p.Active() && !p.Stays() }
