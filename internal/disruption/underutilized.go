package disruption

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
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
	totals := x.totals()
	x.spare(75)
	// What is not worth its disruption stands in nobody's way.
	found := slices.DeleteFunc(x.removals(g, victims, closed), func(r removal) bool { return !x.scores(&r, totals) })
	replaced := x.replacements(g, victims, found)
	found = append(x.merged(g, victims, found), replaced...)
	// Any part of them may go, because none goes to a node that goes: the most saving for
	// the least disruption first.
	slices.SortStableFunc(found, func(a, b removal) int {
		return cmp.Or(compareWorth(x.gain(&a), a.cost(), x.gain(&b), b.cost()), cmp.Compare(a.nodes[0].name, b.nodes[0].name))
	})
	var chosen []removal
	takes := func(r *removal) bool {
		ok := x.gain(r) > 0 && x.scores(r, totals) && x.takeAll(r.nodes)
		if ok {
			chosen = append(chosen, *r)
		}
		return ok
	}
	for i := range found {
		r := &found[i]
		var silent []*node // nothing was said of them before
		for _, n := range r.nodes {
			if _, said := x.verdicts[n.name]; !said && r.instead != nil {
				silent = append(silent, n)
			}
		}
		if takes(r) {
			continue
		}
		for _, n := range silent {
			delete(x.verdicts, n.name) // what is done instead says more
		}
		for k := range r.instead {
			takes(&r.instead[k])
		}
	}
	for _, r := range x.prove(g, chosen, gone) {
		x.moves = append(x.moves, r.move(g))
		for _, h := range r.to {
			if h.to != added {
				if n := x.byName[g.p.Nodes[h.to].Name]; n != nil {
					x.say(n, plan.ReceivesPods, "it takes pods of "+r.nodes[0].name)
				}
			}
		}
	}
	x.explain(g, victims)
}

// takeAll takes nodes from their budgets, all or none.
func (x *search) takeAll(nodes []*node) bool {
	for i, n := range nodes {
		if x.take(n, plan.MoveUnderutilized) {
			continue
		}
		for _, m := range nodes[:i] {
			x.release(m)
			x.say(m, plan.BudgetExhausted, "it would go together with "+n.name+", for which a budget has no room")
		}
		return false
	}
	return true
}

// compareWorth orders by saving per disruption, the most first.
func compareWorth(saveA, costA, saveB, costB int64) int {
	return compareProducts(saveB, costA, saveA, costB)
}

// compareProducts compares a*b with c*d, none of them negative, whatever their size.
func compareProducts(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	h2, l2 := bits.Mul64(uint64(max(c, 0)), uint64(max(d, 0)))
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// total is what a pool's nodes cost, in money and in disruption.
type total struct {
	price snapshot.Price
	cost  int64
}

func (x *search) totals() map[string]total {
	out := map[string]total{}
	for _, n := range x.nodes {
		if n.pool != nil {
			t := out[n.pool.Name]
			out[n.pool.Name] = total{t.price + n.price, t.cost + n.cost}
		}
	}
	return out
}

// scores reports whether a move is worth its disruption in every pool of policy Balanced
// (Karpenter: its share of the pool's cost is at least half its share of the pool's
// disruption; savings of a move over several pools count by price).
func (x *search) scores(r *removal, totals map[string]total) bool {
	price := r.price()
	by := map[string]total{}
	for _, n := range r.nodes {
		if n.pool.Disruption.ConsolidationPolicy == balanced {
			t := by[n.pool.Name]
			by[n.pool.Name] = total{t.price + n.price, t.cost + n.cost}
		}
	}
	for name, mine := range by {
		all := totals[name]
		if price == 0 || all.price == 0 || all.cost == 0 {
			return false
		}
		// The saving is shared by price: whole * mine / price, none above price.
		hi, lo := bits.Mul64(uint64(max(0, min(r.saving(), price))), uint64(mine.price))
		share, _ := bits.Div64(hi, lo, uint64(price))
		saving := int64(share)
		if compareProducts(2*saving, all.cost, mine.cost, all.price) < 0 {
			for _, n := range r.nodes {
				x.say(n, plan.ScoreTooLow, fmt.Sprintf("saving %s an hour is less than half as much of what NodePool %s costs as the disruption is of all of it", plan.Dollars(r.saving()), name))
			}
			return false
		}
	}
	return true
}

// move is a removal as a plan shows it.
func (r *removal) move(g *ground) plan.Move {
	m := plan.Move{Reason: plan.MoveUnderutilized, Saving: r.saving(), Cost: r.cost()}
	for _, n := range r.nodes {
		m.Remove = append(m.Remove, n.name)
	}
	slices.Sort(m.Remove)
	m.ID = moveID(m.Reason, m.Remove)
	for _, h := range r.to {
		m.Placements = append(m.Placements, plan.Placement{Pod: h.pod.Ref(), Node: g.nameOf(r, h)})
	}
	slices.SortFunc(m.Placements, func(a, b plan.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	m.Detail = "other nodes have room for " + plan.CountMoved(m.Placements)
	if r.add != nil {
		m.Detail = fmt.Sprintf("%s in %s (%s) at %s an hour stands in for %s at %s", r.add.launch.Chosen.InstanceType, r.add.launch.Chosen.Zone,
			r.add.launch.Chosen.CapacityType, plan.Dollars(r.add.price), plan.Count(len(r.nodes), "node"), plan.Dollars(r.price()))
		m.Add = []plan.Launch{r.add.launch}
	}
	return m
}

// nameOf is the node that a pod of a removal goes to.
func (g *ground) nameOf(r *removal, h hop) string {
	if h.to == added {
		return r.add.launch.Name
	}
	return g.p.Nodes[h.to].Name
}
