package worldtest

import (
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// movable reports whether a pod of a node that is being deleted needs a place
// elsewhere: it does not belong to the node, is not going itself (other than a pod of
// a StatefulSet, which comes back under its name), and may be evicted.
func movable(s *snapshot.Snapshot, p *snapshot.Pod) bool {
	if p.Terminal() || p.Owner != nil && (p.Owner.Kind == "DaemonSet" || p.Owner.Kind == "Node") || p.Annotations["kubernetes.io/config.mirror"] != "" {
		return false
	}
	if !p.Deleting.IsZero() && (p.Owner == nil || p.Owner.Kind != "StatefulSet") {
		return false
	}
	if v := p.Annotations["karpenter.sh/do-not-disrupt"]; v == "true" {
		return false
	} else if d, err := time.ParseDuration(v); err == nil && d > 0 && (p.Started.IsZero() || s.Now.Before(p.Started.Add(d))) {
		return false
	}
	budgets := 0
	for _, b := range s.Budgets {
		if b.Namespace != p.Namespace || !selectsLabels(b.Selector, p.Labels) {
			continue
		}
		if budgets++; budgets > 1 || b.MaxUnavailable == "0" || b.MaxUnavailable == "0%" || b.MinAvailable == "100%" {
			return false
		}
	}
	return true
}
