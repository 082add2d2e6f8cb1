package disruption

import (
	"slices"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// rounds is how often what does not hold is dropped and the rest proved again.
const rounds = 4

// prove asks the planner to carry removals out: it is told where each pod is to go, judges
// that by every rule, and finds another place for pods that may not go there. Nodes whose
// pods have none, or only on another new node, stay.
func (x *search) prove(g *ground, chosen []removal, gone []*node) []removal {
	for range rounds {
		if len(chosen) == 0 {
			return nil
		}
		p := provision.Plan(x.after(g, chosen, gone), x.c, provision.Options{})
		where := make(map[string]string, len(p.Displaced))
		for _, d := range p.Displaced {
			where[d.Pod] = d.To
		}
		var kept []removal
		dropped := false
		for _, r := range chosen {
			why := x.holds(g, &r, where, p)
			if why == "" {
				kept = append(kept, r)
				continue
			}
			dropped = true
			kept = append(kept, r.instead...)
			for _, n := range r.nodes {
				if !slices.ContainsFunc(r.instead, func(o removal) bool { return slices.Contains(o.nodes, n) }) {
					x.say(n, plan.PodsWouldNotFit, why)
					x.release(n)
				}
			}
		}
		if !dropped {
			return kept
		}
		chosen = kept
	}
	return nil
}

// holds says why a removal does not hold in a plan that carries it out, "" when it does:
// then its hops are where the plan puts the pods.
func (x *search) holds(g *ground, r *removal, where map[string]string, p *plan.Plan) string {
	for j := range r.to {
		h := &r.to[j]
		ref := h.pod.Ref()
		to, ok := where[ref]
		switch {
		case !ok || to == "":
			return "pod " + ref + " has no other place: " + reason(p, h.pod)
		case r.add != nil && to == r.add.launch.Name:
			if h.to != added {
				return "pod " + ref + " would need more than a cheaper node has"
			}
			continue
		}
		k, there := g.at[to]
		switch {
		case !there:
			return "pod " + ref + " would need a new node"
		case !x.settled(to):
			return "pod " + ref + " would need node " + to + ", which is not initialized yet"
		}
		h.to = k
	}
	if r.add != nil && !slices.ContainsFunc(r.to, func(h hop) bool { return h.to == added }) {
		r.add = nil // it turns out that the others have room
	}
	return ""
}

// reason is why a plan has no place for a pod.
func reason(p *plan.Plan, pod *snapshot.Pod) string {
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; v.Object == "pod/"+pod.Ref() {
			return v.Detail
		}
	}
	return "it may not be moved"
}

// hold is how long a nomination that only serves a proof lasts.
const hold = time.Hour

// after is the cluster with nodes on their way out, additions on their way in, and pods
// promised the nodes that were found for them.
func (x *search) after(g *ground, chosen []removal, gone []*node) *snapshot.Snapshot {
	s := *x.s
	s.Nodes, s.NodeClaims, s.Nominations = slices.Clone(s.Nodes), slices.Clone(s.NodeClaims), slices.Clone(s.Nominations)
	s.NodeClaims, s.Nominations = append(s.NodeClaims, x.incoming...), append(s.Nominations, x.promises...)
	going := map[string]bool{}
	for _, n := range gone {
		going[n.name] = true
	}
	for i := range chosen {
		r := &chosen[i]
		for _, n := range r.nodes {
			going[n.name] = true
		}
		if r.add != nil {
			s.NodeClaims = append(s.NodeClaims, r.add.claim(s.Now))
		}
		for _, h := range r.to {
			if h.pod.Buffer != "" {
				continue // nobody promises a unit anything: it has to have room after all pods
			}
			s.Nominations = append(s.Nominations, snapshot.Nomination{
				Namespace: h.pod.Namespace, Pod: h.pod.Name, UID: h.pod.UID, Node: g.nameOf(r, h), Until: s.Now.Add(hold),
			})
		}
	}
	for i := range s.Nodes {
		if going[s.Nodes[i].Name] {
			s.Nodes[i].Deleting = s.Now
		}
	}
	return &s
}
