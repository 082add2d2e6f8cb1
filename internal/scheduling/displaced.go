package scheduling

import (
	"fmt"
	"strings"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// annotationDoNotDisrupt keeps a pod from being moved: "true", or a duration from
// its start on.
const annotationDoNotDisrupt = snapshot.DoNotDisrupt

// goingNodes are the names of nodes that are being deleted, themselves or by
// their claim: their pods need a place elsewhere.
func goingNodes(s *snapshot.Snapshot) map[string]bool {
	var out map[string]bool
	add := func(name string) {
		if name == "" {
			return
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[name] = true
	}
	byProvider := map[string]bool{}
	for i := range s.NodeClaims {
		if c := &s.NodeClaims[i]; !c.Deleting.IsZero() {
			add(c.NodeName)
			if c.ProviderID != "" {
				byProvider[c.ProviderID] = true
			}
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Deleting.IsZero() || byProvider[n.ProviderID] {
			add(n.Name)
		}
	}
	return out
}

// displaced judges a pod of a node that is going: it is planned as if it were
// pending, or stays where it is and why, or ends with its node (Karpenter:
// currently reschedulable pods).
func (w *World) displaced(p *snapshot.Pod) (planned bool, code plan.Code, why string) {
	if !p.Reschedulable() {
		return false, "", ""
	}
	if doNotDisrupt(p, w.Snapshot.Now) {
		return false, plan.EvictionBlocked, fmt.Sprintf("node %s is going, but annotation %s: %q keeps the pod there",
			p.NodeName, annotationDoNotDisrupt, p.Annotations[annotationDoNotDisrupt])
	}
	if p.Stays() {
		return true, "", "" // nobody asks for its eviction: it ends with its node
	}
	var covering []string
	blocked := ""
	for i := range w.Snapshot.Budgets {
		b := &w.Snapshot.Budgets[i]
		if b.Namespace != p.Namespace || !selects(b.Selector, p.Labels) {
			continue
		}
		covering = append(covering, b.Name)
		if b.MaxUnavailable == "0" || b.MaxUnavailable == "0%" || b.MinAvailable == "100%" {
			blocked = b.Name
		}
	}
	switch {
	case blocked != "":
		return false, plan.EvictionBlocked, fmt.Sprintf("node %s is going, but PodDisruptionBudget %s allows no eviction ever", p.NodeName, blocked)
	case len(covering) > 1:
		return false, plan.EvictionBlocked, fmt.Sprintf("node %s is going, but PodDisruptionBudgets %s cover the pod; more than one refuse every eviction",
			p.NodeName, strings.Join(covering, ", "))
	}
	return true, "", ""
}

// doNotDisrupt reports whether the annotation is active: "true" always, a positive
// duration until that long after the pod's start, anything else never.
func doNotDisrupt(p *snapshot.Pod, now time.Time) bool { return p.Held(now) }
