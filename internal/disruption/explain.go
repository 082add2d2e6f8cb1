package disruption

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// explain says of nodes that stay for want of anything cheaper what keeps their pods from
// going to other nodes, and what the best alternative costs.
func (x *search) explain(g *ground, list []*node) {
	moved := x.moved()
	for _, n := range list {
		if _, told := x.verdicts[n.name]; told || moved[n.name] || x.left[n.name] {
			continue
		}
		v := x.best(g, n)
		x.say(n, v.Code, g.stuck(n, moved)+"; "+v.Detail)
	}
}

// best says what the best alternative to a node costs. One that was not looked for yet,
// because other moves count on the node's room, is looked for now.
func (x *search) best(g *ground, n *node) plan.Verdict {
	if v, ok := x.alternative[n.name]; ok {
		v.Detail += x.spotRemark(n)
		return v
	}
	if slices.ContainsFunc(n.moving, func(p *snapshot.Pod) bool { return p.Buffer != "" }) {
		return plan.Verdict{Code: plan.NothingCheaper, Detail: "no new node stands in for one that CapacityBuffers count on"}
	}
	x.until = x.work + DefaultWork // one look at each offer
	if !slices.ContainsFunc(n.moving, func(p *snapshot.Pod) bool { return g.classOf[p] < 0 }) {
		if r := x.standInFor(g, []*node{n}); r != nil {
			f := &r.add.launch.Chosen
			return plan.Verdict{Code: plan.MovesLater, Detail: fmt.Sprintf("%s in %s (%s) at %s an hour could stand in for it, the node costs %s: other moves come first",
				f.InstanceType, f.Zone, f.CapacityType, plan.Dollars(f.Price), plan.Dollars(n.price))}
		}
	}
	if v, ok := x.alternative[n.name]; ok {
		v.Detail += x.spotRemark(n)
		return v
	}
	return plan.Verdict{Code: plan.NothingCheaper, Detail: "no offer that NodePool " + n.pool.Name + " has within its limits takes its pods" + x.spotRemark(n)}
}

// stuck says why the pods of a node do not go to the others.
func (g *ground) stuck(n *node, moved map[string]bool) string {
	from := g.at[n.name]
	r := &greedy{g: g}
	for _, p := range n.moving {
		c := g.classOf[p]
		if c < 0 {
			return called(p) + " has to be beside another one"
		}
		if why, stuck := r.nowhere(p, c, from, moved); stuck {
			return called(p) + " " + why
		}
	}
	if len(n.moving) == 1 {
		return "other moves count on the room that there is for " + called(n.moving[0])
	}
	return fmt.Sprintf("the others have no room for its %s together", plan.Count(len(n.moving), "pod"))
}

// called is a pod or unit in a sentence.
func called(p *snapshot.Pod) string {
	if p.Buffer != "" {
		return "unit " + p.Ref() + " of a CapacityBuffer"
	}
	return "pod " + p.Ref()
}

// nowhere says why no other node takes a pod; false when one does.
func (r *greedy) nowhere(p *snapshot.Pod, c, from int, moved map[string]bool) (string, bool) {
	g := r.g
	var full, rules, zone, apart, closed int
	for k := range g.p.Nodes {
		switch {
		case k == from || moved[g.p.Nodes[k].Name]:
		case g.x.shut(g.p.Nodes[k].Name):
			closed++
		case !g.p.Classes[c].Nodes.Has(k):
			rules++
		case !g.fits(k, c):
			full++
		case g.bound[c] && g.zone[k] != g.zone[from]:
			zone++
		case g.shy[c] && !r.bears(p, k):
			apart++
		default:
			return "", false
		}
	}
	var parts []string
	for _, part := range []struct {
		n          int
		one, other string
	}{
		{full, "has no room", "have no room"},
		{rules, "is not open to it", "are not open to it"},
		{apart, "holds pods that it keeps apart from", "hold pods that it keeps apart from"},
		{zone, "is in another zone", "are in other zones"},
		{closed, "takes no pods for now", "take no pods for now"},
	} {
		switch {
		case part.n == 1:
			parts = append(parts, "1 "+part.one)
		case part.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.other))
		}
	}
	if len(parts) == 0 {
		return "has no other node to go to", true
	}
	return "fits on no other node (" + strings.Join(parts, ", ") + ")", true
}
