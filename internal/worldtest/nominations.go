package worldtest

import (
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// nominatedTo is the node that a pod was given before, by its status or by the ledger,
// where that node is there and is not going; nil otherwise.
func (j *judge) nominatedTo(p *snapshot.Pod) *nodeView {
	find := func(name string) *nodeView {
		if name == "" {
			return nil
		}
		v := j.nodes[name]
		if v == nil {
			for i := range j.s.NodeClaims {
				if c := &j.s.NodeClaims[i]; c.Name == name && c.NodeName != "" {
					v = j.nodes[c.NodeName]
				}
			}
		}
		if v == nil || v.going {
			return nil
		}
		return v
	}
	if v := find(p.NominatedNode); v != nil && p.NodeName == "" {
		return v
	}
	for _, n := range j.s.Nominations {
		current := n.Until.IsZero() || j.s.Now.Before(n.Until)
		if n.Namespace == p.Namespace && n.Pod == p.Name && current && (n.UID == "" || p.UID == "" || n.UID == p.UID) {
			return find(n.Node)
		}
	}
	return nil
}

// mayRun is refuses for a pod that was given the node before: taints of a node that is
// starting do not count against it, unless the claim declares them.
func (v *nodeView) mayRun(j *judge, p *snapshot.Pod) string {
	if j.nominatedTo(p) == v && len(v.undeclared) > 0 {
		waiting := *v
		waiting.taints = slices.DeleteFunc(slices.Clone(v.taints), func(t snapshot.Taint) bool { return slices.Contains(v.undeclared, t) })
		return waiting.refuses(&p.Spec)
	}
	return v.refuses(&p.Spec)
}

// nominations: a pod that was given a node and fits there keeps it, if no other pod was
// given the same node; and only pods that were given one are said to be promised room.
func (j *judge) nominations() {
	given := map[*nodeView][]*snapshot.Pod{}
	for i := range j.s.Pods {
		p := &j.s.Pods[i]
		if p.NodeName != "" || notPlanned(p) != "" {
			continue
		}
		if v := j.nominatedTo(p); v != nil {
			given[v] = append(given[v], p)
		}
	}
	for _, name := range sortedKeys(j.nodes) {
		v := j.nodes[name]
		if len(given[v]) != 1 {
			continue
		}
		p := given[v][0]
		if v.refuses(&p.Spec) == "" && anyClash(p.Spec.HostPorts, v.ports) == nil && fits(p.Spec.Requests, v.free) && !slices.Contains(j.onNode[name], p) {
			j.fail("pod %s was given node %s, which has room for it, and is not placed there", p.Ref(), name)
		}
	}
	for _, verdict := range j.p.Verdicts {
		if verdict.Code != plan.NominatedElsewhere {
			continue
		}
		ref := verdict.Object[len("pod/"):]
		p := j.pods[ref]
		if p == nil {
			continue
		}
		v := j.nominatedTo(p)
		if v == nil {
			j.fail("pod %s is said to be promised room, but its node is not there", ref)
			continue
		}
		free := v.free
		for i := range j.s.Pods {
			if q := &j.s.Pods[i]; q.NodeName == v.name && !q.Deleting.IsZero() && q.Spec.Priority < p.Spec.Priority {
				free = plus(free, q.Spec.Requests)
			}
		}
		if !fits(p.Spec.Requests, free) {
			j.fail("pod %s is said to be promised room on %s, where it does not fit", ref, v.name)
		}
	}
}
