package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// mostReplaced is how many nodes one new node stands in for at most.
	mostReplaced = 8
	// mostTypes is how many types a launch may name.
	mostTypes = 60
)

// addition is a node that stands in for others.
type addition struct {
	launch plan.Launch
	pool   *snapshot.NodePool
	price  snapshot.Price
	// least is what it has for pods whichever option it becomes, most what it takes from
	// limits.
	least, most snapshot.Resources
}

// claim is the addition as a NodeClaim on its way.
func (a *addition) claim(now time.Time) snapshot.NodeClaim {
	return snapshot.NodeClaim{
		Name: a.launch.Name, UID: a.launch.Name, Labels: a.launch.Labels, Taints: a.pool.Taints, StartupTaints: a.pool.StartupTaints,
		ClassRef: a.pool.ClassRef, Capacity: a.most, Allocatable: a.least, Created: now,
	}
}

// offers are those of a pool's template, cheapest first.
type offers struct {
	t     int // template
	order []int
}

// replacements looks for cheaper nodes that stand in for one or several, among nodes that
// neither go nor take pods of those that do.
func (x *search) replacements(g *ground, victims []*node, found []removal) []removal {
	busy := map[string]bool{}
	for _, r := range found {
		for _, n := range r.nodes {
			busy[n.name] = true
		}
		for _, h := range r.to {
			busy[g.p.Nodes[h.to].Name] = true
		}
	}
	byPool := map[string][]*node{}
	for _, n := range victims {
		if !busy[n.name] && !slices.ContainsFunc(n.moving, func(p *snapshot.Pod) bool { return g.classOf[p] < 0 }) {
			byPool[n.pool.Name] = append(byPool[n.pool.Name], n)
		}
	}
	var out []removal
	for t := range g.p.Templates {
		x.spare(25 / int64(max(1, len(byPool))))
		if g.p.Templates[t].Name != g.w.Pools[g.p.Templates[t].Pool].Spec.Name {
			continue // a variant of a pool: pods that ask for its labels stay where they are
		}
		list := byPool[g.p.Templates[t].Name]
		if len(list) == 0 {
			continue
		}
		o := g.offersOf(t)
		left := slices.Clone(g.p.Pools[g.p.Templates[t].Pool].Remaining)
		out = append(out, x.replaceIn(g, o, list, left)...)
	}
	return out
}

func (g *ground) offersOf(t int) *offers {
	tm := &g.p.Templates[t]
	o := &offers{t: t, order: make([]int, len(tm.Offers))}
	for i := range o.order {
		o.order[i] = i
	}
	slices.SortStableFunc(o.order, func(a, b int) int { return cmp.Compare(tm.Offers[a].Price, tm.Offers[b].Price) })
	return o
}

// replaceIn finds replacements in one pool: groups of nodes with the most waste first, each
// grown while that saves more for what it disrupts.
func (x *search) replaceIn(g *ground, o *offers, list []*node, left []int64) []removal {
	waste := map[*node]float64{}
	for _, n := range list {
		var contents float64
		for _, p := range n.moving {
			contents += float64(g.size[g.classOf[p]]) / 1e6
		}
		waste[n] = float64(n.price) / max(contents, 1e-9)
	}
	slices.SortStableFunc(list, func(a, b *node) int { return cmp.Or(cmp.Compare(waste[b], waste[a]), cmp.Compare(a.name, b.name)) })
	x.turn(list)
	done := map[*node]bool{}
	var out []removal
	for i, n := range list {
		if done[n] {
			continue
		}
		if i > 0 && x.tired() {
			x.left[n.name] = true
			continue
		}
		group, best, at := []*node{n}, x.standIn(g, o, []*node{n}, left), 1
		for _, m := range list[i+1:] {
			if len(group) == mostReplaced {
				break
			}
			if done[m] || g.zone[g.at[m.name]] != g.zone[g.at[n.name]] {
				continue
			}
			group = append(group, m)
			next := x.standIn(g, o, group, left)
			if next != nil && (best == nil || compareWorth(x.gain(next), next.cost(), x.gain(best), best.cost()) < 0) {
				best, at = next, len(group)
			}
			if len(group)-at >= 3 {
				break // it has not become better for a while
			}
		}
		if best == nil {
			continue
		}
		for _, m := range best.nodes {
			done[m] = true
		}
		for d, name := range g.p.LimitDims {
			if left[d] < packing.NoLimit {
				left[d] -= limited(&best.add.most, name)
			}
		}
		out = append(out, *best)
	}
	return out
}

func limited(r *snapshot.Resources, name string) int64 {
	if name == snapshot.Nodes {
		return 1
	}
	return r.Get(name)
}

// standIn is the cheapest node that takes the pods of a group and saves enough; nil when
// there is none. It says what the best alternative would have cost.
func (x *search) standIn(g *ground, o *offers, group []*node, left []int64) *removal {
	r := removal{nodes: slices.Clone(group)}
	need := make([]int64, g.d)
	zone, classes := "", map[int]bool{}
	for _, n := range group {
		for _, p := range n.moving {
			if p.Buffer != "" {
				return nil // others plan a launch for it as soon as the node is on its way out
			}
			c := g.classOf[p]
			if c < 0 {
				return nil
			}
			classes[c] = true
			for d, v := range g.need[c] {
				need[d] += v
			}
			if g.bound[c] {
				zone = n.zone
			}
			if g.shy[c] && len(group) > 1 {
				return nil // pods that are particular about their neighbours stay alone
			}
			r.to = append(r.to, hop{p, added})
		}
	}
	tm := &g.p.Templates[o.t]
	price := r.price()
	below := price + x.o.CostPerNode*int64(len(group)-1) // no option costs as much as what goes
	limit := price - max(x.o.MinSaving, mulShare(price, x.o.MinSavingShare)) + x.o.CostPerNode*int64(len(group)-1)
	spot := x.spotRule(group)
	var options []int
	var types []int
	cheapest := snapshot.Price(-1)
	for _, k := range o.order {
		f := &tm.Offers[k]
		x.work++
		if cheapest >= 0 && (f.Price > limit || f.Price >= below || !spot.wide() && f.Price*100 > cheapest*x.s.Settings.OptionPriceCap) {
			break
		}
		if zone != "" && f.Zone != zone || f.Rank == 0 || !fitsIn(need, tm.Types[f.Type].Alloc) || tm.Types[f.Type].Exotic || !within(&tm.Types[f.Type], left) {
			continue
		}
		if spot.refuses(f) || !g.allow(classes, o.t, k) {
			continue
		}
		if cheapest < 0 {
			cheapest = f.Price
			if f.Price >= below || f.Price > limit {
				if len(group) == 1 {
					x.tellNothing(group[0], g, o.t, k, price)
				}
				return nil
			}
		}
		if !slices.Contains(types, f.Type) {
			if len(types) == mostTypes {
				continue
			}
			types = append(types, f.Type)
		}
		options = append(options, k)
	}
	if options, types = spot.keep(tm, options, types); len(options) == 0 || !x.variety(tm, types) {
		return nil
	}
	r.add = x.addition(g, o.t, options, &r)
	return &r
}

// tellNothing says what the best alternative to a node costs.
func (x *search) tellNothing(n *node, g *ground, t, k int, price snapshot.Price) {
	f := g.w.Templates[t].Offer(k)
	best := fmt.Sprintf("the best alternative costs %s an hour (%s in %s, %s), the node %s", plan.Dollars(f.Price), f.InstanceType, f.Zone, f.CapacityType, plan.Dollars(price))
	if share := g.w.Templates[t].Setback(k); share > 0 {
		best += fmt.Sprintf("; what went wrong lately counts against it, as if it were %s dearer", plan.Percent(share))
	}
	code := plan.NothingCheaper
	if f.Price < price {
		code = plan.SavingTooSmall
	}
	x.alternative[n.name] = plan.Verdict{Code: code, Detail: best}
}

func mulShare(price snapshot.Price, share int64) snapshot.Price {
	return price/micro*share + price%micro*share/micro
}

func fitsIn(need, alloc []int64) bool {
	for d, v := range need {
		if v > alloc[d] {
			return false
		}
	}
	return true
}

func within(t *packing.Type, left []int64) bool {
	for d, v := range t.Capacity {
		if v > left[d] {
			return false
		}
	}
	return true
}

// allow reports whether all classes may use an offer.
func (g *ground) allow(classes map[int]bool, t, k int) bool {
	for c := range classes {
		if b := g.p.Classes[c].Offers[t]; b == nil || !b.Has(k) {
			return false
		}
	}
	return true
}

// addition is the node to launch for a removal.
func (x *search) addition(g *ground, t int, options []int, r *removal) *addition {
	tm := &g.w.Templates[t]
	pool := g.w.Pools[tm.Pool]
	a := &addition{pool: pool.Spec}
	names := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		names[i] = n.name
	}
	slices.Sort(names)
	chosen := options[0]
	a.price = tm.Offer(chosen).Price
	a.launch = plan.Launch{
		Name: pool.Spec.Name + "-for-" + strings.Join(names, "+"), NodePool: pool.Spec.Name, NodeClass: pool.Class.Name,
		Labels: common(tm, options), Daemons: tm.Daemons(chosen), Allocatable: tm.Type(chosen).Allocatable, Chosen: tm.Offer(chosen),
	}
	a.launch.Requests = a.launch.Daemons
	for i, k := range options {
		f := tm.Offer(k)
		a.launch.Options = append(a.launch.Options, f)
		a.launch.Worst = max(a.launch.Worst, f.Price)
		ty := tm.Type(k)
		if i == 0 {
			a.least = ty.Allocatable
		} else {
			a.least = a.least.Min(ty.Allocatable)
		}
		a.most = a.most.Max(ty.Capacity)
	}
	for _, h := range r.to {
		a.launch.Pods = append(a.launch.Pods, h.pod.Ref())
		a.launch.Requests = a.launch.Requests.Add(h.pod.Spec.Requests)
	}
	slices.Sort(a.launch.Pods)
	slices.SortStableFunc(a.launch.Options, func(p, q plan.Offer) int {
		return cmp.Or(cmp.Compare(p.Price, q.Price), strings.Compare(p.InstanceType, q.InstanceType), strings.Compare(p.Zone, q.Zone), strings.Compare(p.CapacityType, q.CapacityType))
	})
	return a
}

// common are the labels that a node has whichever option it becomes.
func common(tm *scheduling.Template, options []int) map[string]string {
	out := tm.NodeLabels(options[0])
	for _, k := range options[1:] {
		other := tm.NodeLabels(k)
		for key, v := range out {
			if other[key] != v {
				delete(out, key)
			}
		}
	}
	delete(out, catalog.LabelHostname)
	return out
}
