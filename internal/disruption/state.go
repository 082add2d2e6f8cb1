package disruption

import "time"

// State is what the NodeClaim of a node is to say about its disruption.
type State struct {
	Node, Claim string
	// Consolidatable: it is initialized, and no pod has come or gone for as long as its
	// NodePool asks for (Karpenter: condition Consolidatable, taken away otherwise).
	Consolidatable bool
	// PodEvent is when a pod last came or went, where the NodeClaim does not know that yet;
	// zero where it does.
	PodEvent time.Time
	// Drift is why it is not what is asked for any more, "" = it is; DriftDetail says more
	// (Karpenter: condition Drifted with the kind as its reason). Asked is false where that
	// was no question, because the node is on its way out.
	Drift, DriftDetail string
	Asked              bool
}

// podEventStep is how much later than what a NodeClaim says a pod has to have come or gone
// for it to be told (Karpenter: same).
const podEventStep = 10 * time.Second

// states are those of nodes with a NodeClaim, by node.
func (x *search) states() []State {
	var out []State
	for _, n := range x.nodes {
		if n.claim == nil {
			continue
		}
		s := State{Node: n.name, Claim: n.claim.Name, Consolidatable: x.consolidatable(n)}
		for _, p := range n.pods {
			if at := x.podEvent(p); at.After(s.PodEvent) && at.Sub(n.claim.LastPodEvent) >= podEventStep {
				s.PodEvent = at
			}
		}
		if d, ok := x.stale[n.name]; ok {
			s.Drift, s.DriftDetail, s.Asked = d[0], d[1], true
		}
		out = append(out, s)
	}
	return out
}

func (x *search) consolidatable(n *node) bool {
	if !n.initialized || n.pool == nil || n.pool.Replicas != nil || n.pool.Disruption.ConsolidateAfter == never {
		return false
	}
	after, err := time.ParseDuration(n.pool.Disruption.ConsolidateAfter)
	return err != nil || x.s.Now.Sub(x.quietSince(n)) >= after
}
