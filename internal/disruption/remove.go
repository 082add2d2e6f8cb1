package disruption

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// removal are nodes that can go because others have room for their pods, or because a
// cheaper one stands in for them.
type removal struct {
	nodes []*node
	to    []hop
	add   *addition // nil: nothing is added
	// instead are removals of some of the nodes that need no addition, for when this one may
	// not be.
	instead []removal
}

// hop is a pod and the target that it goes to: one of the ground's, or the addition.
type hop struct {
	pod *snapshot.Pod
	to  int
}

// added is the target of pods that go to the addition of their removal.
const added = -1

// price and cost are those of the removed nodes.
func (r *removal) price() (sum snapshot.Price) {
	for _, n := range r.nodes {
		sum += n.price
	}
	return sum
}

func (r *removal) cost() (sum int64) {
	for _, n := range r.nodes {
		sum += n.cost
	}
	return sum
}

// saving is what the removal saves.
func (r *removal) saving() snapshot.Price {
	if r.add == nil {
		return r.price()
	}
	return r.price() - r.add.price
}

// gain is what the removal saves when every node has a cost of its own beside its price.
func (x *search) gain(r *removal) snapshot.Price {
	less := int64(len(r.nodes))
	if r.add != nil {
		less--
	}
	return r.saving() + x.o.CostPerNode*less
}

// greedy is one way to empty nodes: from the back of an order, each into the nodes before
// it, the front first.
type greedy struct {
	g    *ground
	free []int64
	// order are targets, those worth keeping most first. place is where a target is in it.
	order, place []int
	closed       []bool // takes no pods
	received     []bool
	start        []int // by class: all targets before it are full for the class
	moved        map[int][]*snapshot.Pod
}

// window is how many targets with room are compared before the tightest is taken.
const window = 24

// removals looks for nodes to empty in several orders, and returns the best of them: those
// that save most.
func (x *search) removals(g *ground, victims []*node, closed map[string]bool) []removal {
	var best []removal
	var most snapshot.Price = -1
	looked := map[*node]bool{}
	for _, worth := range worths {
		if len(looked) > 0 && x.tired() {
			break
		}
		got := x.empty(g, victims, closed, looked, worth)
		var saved snapshot.Price
		for i := range got {
			saved += got[i].price()
		}
		if saved > most {
			most, best = saved, got
		}
	}
	for _, n := range victims {
		if !looked[n] {
			x.left[n.name] = true
		}
	}
	return best
}

// worths say how much a node is worth keeping, at its price, by the size of what it could
// hold and of what it does.
var worths = []func(price, room, contents float64) float64{
	func(price, _, contents float64) float64 { return contents / price },
	func(price, room, contents float64) float64 { return (room + contents) / price },
	func(price, room, contents float64) float64 { return (room + 3*contents) / price },
}

// empty empties nodes in one order.
// looked gets the nodes that it came to.
func (x *search) empty(g *ground, victims []*node, closed map[string]bool, looked map[*node]bool, worth func(price, room, contents float64) float64) []removal {
	n := len(g.p.Nodes)
	r := &greedy{
		g: g, free: slices.Clone(g.free), order: make([]int, n), place: make([]int, n), closed: make([]bool, n), received: make([]bool, n),
		start: make([]int, len(g.need)), moved: map[int][]*snapshot.Pod{},
	}
	g.free, r.free = r.free, g.free // the pass works on the copy
	defer func() { g.free = r.free }()
	value := make([]float64, n)
	for k := range g.p.Nodes {
		r.order[k] = k
		own := x.byName[g.p.Nodes[k].Name]
		r.closed[k] = closed[g.p.Nodes[k].Name] || x.shut(g.p.Nodes[k].Name)
		if own == nil || own.price == 0 || slices.ContainsFunc(own.moving, func(p *snapshot.Pod) bool { _, up := g.classOf[p]; return !up }) {
			value[k] = 1e18 // it costs nothing, or nobody may take it away
			continue
		}
		var room, contents float64
		for d := range g.d {
			room += g.weight[d] * float64(max(0, g.free[k*g.d+d]))
		}
		for _, p := range own.moving {
			if c := g.classOf[p]; c >= 0 {
				contents += float64(g.size[c]) / 1e6
			}
		}
		value[k] = worth(float64(own.price+x.o.CostPerNode), room, contents)
	}
	slices.SortStableFunc(r.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(value[b], value[a]), cmp.Compare(g.p.Nodes[a].Name, g.p.Nodes[b].Name))
	})
	for i, k := range r.order {
		r.place[k] = i
	}
	list := slices.Clone(victims)
	slices.SortStableFunc(list, func(a, b *node) int { return cmp.Compare(r.place[g.at[b.name]], r.place[g.at[a.name]]) })
	x.turn(list)
	var out []removal
	for i, v := range list {
		if i > 0 && x.tired() {
			break
		}
		looked[v] = true
		k := g.at[v.name]
		if r.received[k] {
			continue
		}
		if hops, ok := r.clear(x, v, k); ok {
			r.closed[k] = true
			for _, h := range hops {
				r.received[h.to] = true
			}
			out = append(out, removal{nodes: []*node{v}, to: hops})
		}
	}
	return out
}

// clear finds a place for every pod of a node, or leaves everything as it was.
func (r *greedy) clear(x *search, v *node, from int) ([]hop, bool) {
	g := r.g
	var hops []hop
	for _, p := range g.order(v.moving) {
		c := g.classOf[p]
		to := -1
		if c >= 0 {
			to = r.find(x, p, c, from)
		}
		if to < 0 {
			for _, h := range hops {
				g.lift(h.to, g.classOf[h.pod])
				r.unmove(h)
			}
			return nil, false
		}
		g.put(to, c)
		if g.shy[c] {
			r.moved[to] = append(r.moved[to], p)
		}
		hops = append(hops, hop{p, to})
	}
	return hops, true
}

func (r *greedy) unmove(h hop) {
	if list := r.moved[h.to]; len(list) > 0 {
		r.moved[h.to] = slices.DeleteFunc(list, func(p *snapshot.Pod) bool { return p == h.pod })
	}
}

// find is the target for a pod: of the first that have room, the one where it leaves least.
func (r *greedy) find(x *search, p *snapshot.Pod, c, from int) int {
	g := r.g
	nodes := g.p.Classes[c].Nodes
	best, least, seen := -1, 0.0, 0
	for i := r.start[c]; i < len(r.order); i++ {
		x.work++
		k := r.order[i]
		if k == from || r.closed[k] || !nodes.Has(k) || !g.fits(k, c) {
			if i == r.start[c] && k != from {
				r.start[c]++
			}
			continue
		}
		if g.bound[c] && g.zone[k] != g.zone[from] || g.shy[c] && !r.bears(p, k) {
			continue
		}
		var left float64
		for d := range g.d {
			left += g.weight[d] * float64(g.free[k*g.d+d]-g.need[c][d])
		}
		if best < 0 || left < least {
			best, least = k, left
		}
		if seen++; seen == window {
			break
		}
	}
	return best
}

// bears reports whether a target's pods and a pod that comes put up with each other.
func (r *greedy) bears(p *snapshot.Pod, k int) bool {
	g := r.g
	name := g.p.Nodes[k].Name
	for _, q := range g.repel[name] {
		if covers(q.pod, q.term, p) {
			return false
		}
	}
	own := g.x.byName[name]
	if own == nil {
		return len(p.Spec.Anti) == 0 && len(p.Spec.Spread) == 0
	}
	for _, list := range [][]*snapshot.Pod{own.pods, r.moved[k]} {
		for _, q := range list {
			if !bear(p, q) {
				return false
			}
		}
	}
	return true
}

// bear reports whether a pod may share a node with another one: neither keeps the other
// off, and pods that are spread over nodes are not put together.
func bear(p, q *snapshot.Pod) bool {
	for i := range p.Spec.Anti {
		if t := &p.Spec.Anti[i]; t.Weight == 0 && covers(p, t, q) {
			return false
		}
	}
	for i := range q.Spec.Anti {
		if t := &q.Spec.Anti[i]; t.Weight == 0 && covers(q, t, p) {
			return false
		}
	}
	for i := range p.Spec.Spread {
		t := &p.Spec.Spread[i]
		if t.TopologyKey == labelHostname && p.Namespace == q.Namespace && p != q && selects(t.Selector, q.Labels) {
			return false
		}
	}
	return true
}
