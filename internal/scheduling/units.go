package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
)

// newDealer deals the pods that some rule about other pods, or a preference, touches.
// rest holds them by class; exist tells whether nodes that exist are looked at.
func (w *World) newDealer(soft, exist bool, rest [][]int32) *dealer {
	d := &dealer{w: w, soft: soft, setOf: map[setKey]*cellSet{}, dealt: map[place]int{}, costs: newCosts(w), needs: make([][][]int64, len(w.Rules))}
	for i := range w.base {
		c := &w.base[i]
		d.needs[c.Rules] = append(d.needs[c.Rules], w.needs(c, nil))
	}
	d.stances()
	if exist {
		d.free = make([][]int64, len(w.Targets))
		for k, i := range w.Targets {
			d.free[k] = w.vector(&w.Nodes[i].Free, nil)
		}
	}
	for i, pods := range rest {
		if len(pods) == 0 || !w.touched(i) {
			continue
		}
		c := &w.base[i]
		d.units = append(d.units, &unit{
			base: i, members: []member{{i, c.Rules, 1}}, pods: pods, size: 1, requests: c.Requests,
			left: w.floorsOf(i, len(pods), soft),
		})
	}
	return d
}

// ready bundles what must share a node and finds the cells of every unit. What has a
// place already must be counted by then.
func (d *dealer) ready() *dealer {
	d.bundle()
	for _, u := range d.units {
		d.prepare(u)
	}
	d.order()
	return d
}

// floorsOf spreads n pods of a class over the preferences that they have lost for good.
// Where preferences do not count, all are lost.
func (w *World) floorsOf(class, n int, soft bool) []int {
	steps := len(w.Rules[w.base[class].Rules].steps)
	out := make([]int, steps+1)
	if !soft {
		out[steps] = n
		return out
	}
	lost := w.floors[class] // by level, from 1 on
	for level := len(lost) - 1; level > 0; level-- {
		k := min(lost[level], n)
		out[level] += k
		n -= k
	}
	out[0] += n
	return out
}

// prepare finds the cells of a unit.
func (d *dealer) prepare(u *unit) {
	w := d.w
	u.need = w.unitNeed(u.members)
	u.costs, u.cursors, u.dealt = map[*cell]int64{}, map[*cell]*cursor{}, map[*cell]int{}
	u.keys = d.keysOf(u)
	u.counting = d.counting(u.members)
	var key strings.Builder
	fmt.Fprint(&key, u.keys)
	var nodes packing.Bitset
	if d.free != nil {
		if nodes = w.nodesOf(u); u.pinned != nil {
			nodes = u.pinned
		}
		for _, m := range u.members {
			u.most = append(u.most, w.hosts.most(m.rules, m.n)...)
		}
	}
	if u.stuck.code != "" {
		return
	}
	u.sets = make([]*cellSet, len(u.left))
	for level := range u.sets {
		if u.left[level] == 0 && (!d.soft || sumInts(u.left[:level]) == 0) {
			continue
		}
		offers := make([]packing.Bitset, len(w.Templates))
		if u.pinned == nil {
			offers = w.offersOf(u, level)
		}
		k := setKey{keys: key.String()}
		if len(offers) > 0 {
			k.offers = &offers[0]
		}
		if len(nodes) > 0 {
			k.nodes = &nodes[0]
		}
		set := d.setOf[k]
		if set == nil {
			set = w.cells(offers, nodes, u.keys)
			d.setOf[k] = set
		}
		u.sets[level] = set
	}
}

// keysOf are the keys whose domain matters for a unit.
func (d *dealer) keysOf(u *unit) []int {
	seen := map[int]bool{}
	for _, m := range u.members {
		st := &d.stance[m.rules]
		for _, s := range st.spread {
			seen[s.key] = true
		}
		for _, c := range st.counts {
			seen[c.key] = true
		}
		for _, a := range st.attract {
			for i := range a.by {
				seen[a.by[i].key] = true
			}
		}
		if st.affinity != nil {
			for i := range st.affinity.by {
				seen[st.affinity.by[i].key] = true
			}
		}
		for _, a := range st.anti {
			seen[a.matched.key] = true
		}
		for i := range st.steps {
			switch s := &st.steps[i]; {
			case s.spread != nil:
				seen[s.spread.key] = true
			case s.anti != nil:
				seen[s.anti.matched.key] = true
			case s.affinity != nil:
				for k := range s.affinity.by {
					seen[s.affinity.by[k].key] = true
				}
			}
		}
	}
	out := make([]int, 0, len(seen))
	for k := range seen {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// offersOf are the offers that every member of a unit allows.
func (w *World) offersOf(u *unit, level int) []packing.Bitset {
	out := w.offersAt(u.members[0].rules, level)
	if len(u.members) == 1 || out == nil {
		return out
	}
	both := slices.Clone(out)
	for _, m := range u.members[1:] {
		more := w.allow[m.rules].widest()
		for t := range both {
			both[t] = both[t].Common(more[t])
		}
	}
	return both
}

// nodesOf are the nodes that every member of a unit allows.
func (w *World) nodesOf(u *unit) packing.Bitset {
	out := w.hosts.nodes(w, u.members[0].rules)
	for _, m := range u.members[1:] {
		out = out.Common(w.hosts.nodes(w, m.rules))
	}
	return out
}

// order puts units first that others wait for, then those without a choice, then those
// that keep others away, then those with the least choice.
func (d *dealer) order() {
	d.rank()
	choice := func(u *unit) int {
		for i := len(u.sets) - 1; i >= 0; i-- {
			if u.sets[i] != nil {
				return len(u.sets[i].cells)
			}
		}
		return 0
	}
	free := func(u *unit) int {
		if choice(u) == 1 {
			return 0
		}
		return 1
	}
	guards := func(u *unit) int {
		for _, m := range u.members {
			if len(d.stance[m.rules].anti) > 0 {
				return 0
			}
		}
		return 1
	}
	slices.SortStableFunc(d.units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(free(a), free(b)), cmp.Compare(guards(a), guards(b)), cmp.Compare(choice(a), choice(b)), cmp.Compare(a.base, b.base))
	})
}

// rank counts how many units have to come before: pods that want to be near others
// come after them.
func (d *dealer) rank() {
	for range d.units { // as long as something moves, and no longer than a chain is
		moved := false
		for _, u := range d.units {
			for _, m := range u.members {
				a := d.stance[m.rules].affinity
				if a == nil {
					continue
				}
				for _, o := range d.units {
					if o != u && !d.w.wants(o, u) && d.answers(o, a) && u.rank <= o.rank && o.rank < len(d.units) {
						u.rank = o.rank + 1
						moved = true
					}
				}
			}
		}
		if !moved {
			break
		}
	}
}

// answers reports whether pods of a unit are what an affinity looks for.
func (d *dealer) answers(u *unit, a *attraction) bool {
	return slices.ContainsFunc(u.members, func(m member) bool { return d.w.matchesAll(m.rules, a.terms) })
}

// wants reports whether pods of u have a required affinity to pods of o.
func (w *World) wants(u, o *unit) bool {
	for _, m := range u.members {
		terms := w.topo.carry[m.rules].affinity
		if len(terms) > 0 && slices.ContainsFunc(o.members, func(n member) bool { return w.matchesAll(n.rules, terms) }) {
			return true
		}
	}
	return false
}
