package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

const labelHostname = catalog.LabelHostname

var selects = scheduling.Selects

// underutilized finds nodes that can go because the rest of the cluster has room for their
// pods, or cheaper nodes can be had for them. gone are nodes that other moves remove.
func (x *search) underutilized(used, gone []*node) {
	if len(used) == 0 {
		return
	}
	g := x.newGround(used)
	closed := map[string]bool{}
	for _, n := range gone {
		closed[n.name] = true
	}
	var victims []*node
	for _, n := range used {
		if _, ok := g.at[n.name]; ok {
			victims = append(victims, n)
		}
	}
	found := x.removals(g, victims, closed)
	// Any part of them may go, because none goes to a node that goes: the most saving for
	// the least disruption first.
	slices.SortStableFunc(found, func(a, b removal) int { return compareWorth(a.n.price, a.n.cost, b.n.price, b.n.cost, a.n.name, b.n.name) })
	var chosen []removal
	for _, r := range found {
		if r.n.price <= 0 {
			continue
		}
		if x.take(r.n, plan.MoveUnderutilized) {
			chosen = append(chosen, r)
		}
	}
	for _, r := range x.prove(g, chosen, gone) {
		x.moves = append(x.moves, r.move(g))
	}
}

// compareWorth orders by saving per disruption, the most first; ties by name.
func compareWorth(saveA, costA, saveB, costB int64, nameA, nameB string) int {
	// Integers: a/b > c/d is a*d > c*b, and neither product overflows: prices are below 2^37,
	// costs below 2^35 for any node that exists; what is beyond is compared in floats.
	const small = 1 << 31
	if saveA < small && saveB < small && costA < small && costB < small {
		return cmp.Or(cmp.Compare(saveB*costA, saveA*costB), cmp.Compare(nameA, nameB))
	}
	return cmp.Or(cmp.Compare(float64(saveB)/float64(costB), float64(saveA)/float64(costA)), cmp.Compare(nameA, nameB))
}

func (r *removal) move(g *ground) plan.Move {
	m := plan.Move{
		ID: moveID(plan.MoveUnderutilized, []string{r.n.name}), Reason: plan.MoveUnderutilized, Remove: []string{r.n.name},
		Detail: fmt.Sprintf("other nodes have room for its %s", plan.Count(len(r.to), "pod")), Saving: r.n.price, Cost: r.n.cost,
	}
	for _, h := range r.to {
		m.Placements = append(m.Placements, plan.Placement{Pod: h.pod.Ref(), Node: g.p.Nodes[h.to].Name})
	}
	slices.SortFunc(m.Placements, func(a, b plan.Placement) int { return cmp.Compare(a.Pod, b.Pod) })
	return m
}

// rounds is how often what does not hold is dropped and the rest proved again.
const rounds = 4

// prove asks the planner to carry removals out: it is told where each pod is to go, judges
// that by every rule, and finds another place for pods that may not go there. Nodes whose
// pods have none, or only on a new node, stay.
func (x *search) prove(g *ground, chosen []removal, gone []*node) []removal {
	for range rounds {
		if len(chosen) == 0 {
			return nil
		}
		p := provision.Plan(x.after(g, chosen, gone), x.c, provision.Options{})
		ready := map[string]bool{}
		for _, n := range x.nodes {
			ready[n.name] = n.initialized
		}
		for i := range g.p.Nodes {
			if x.byName[g.p.Nodes[i].Name] == nil {
				ready[g.p.Nodes[i].Name] = true
			}
		}
		where := make(map[string]string, len(p.Displaced))
		for _, d := range p.Displaced {
			where[d.Pod] = d.To
		}
		bad := map[*node]string{}
		for i := range chosen {
			r := &chosen[i]
			for j := range r.to {
				h := &r.to[j]
				to, ok := where[h.pod.Ref()]
				k, there := g.at[to]
				switch {
				case !ok || to == "":
					bad[r.n] = "pod " + h.pod.Ref() + " has no other place: " + reason(p, h.pod)
				case !there || !ready[to]:
					bad[r.n] = "pod " + h.pod.Ref() + " would need a new node"
				default:
					h.to = k
				}
			}
		}
		if len(bad) == 0 {
			return chosen
		}
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(r removal) bool {
			why, out := bad[r.n]
			if out {
				x.say(r.n, plan.PodsWouldNotFit, why)
				x.spend(r.n.pool, plan.MoveUnderutilized, -1)
			}
			return out
		})
	}
	return nil
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

// after is the cluster with nodes on their way out, and their pods promised the nodes that
// were found for them.
func (x *search) after(g *ground, chosen []removal, gone []*node) *snapshot.Snapshot {
	s := *x.s
	s.Nodes = slices.Clone(s.Nodes)
	going := map[string]bool{}
	for _, n := range gone {
		going[n.name] = true
	}
	s.Nominations = slices.Clone(s.Nominations)
	for _, r := range chosen {
		going[r.n.name] = true
		for _, h := range r.to {
			s.Nominations = append(s.Nominations, snapshot.Nomination{
				Namespace: h.pod.Namespace, Pod: h.pod.Name, UID: h.pod.UID, Node: g.p.Nodes[h.to].Name, Until: s.Now.Add(hold),
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
