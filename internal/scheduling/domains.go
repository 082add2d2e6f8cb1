package scheduling

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/requirements"
)

// domains are the values of a topology key: what nodes have it, and what new nodes
// will have, by template and offer.
type domains struct {
	key   string
	names []string
	node  []int32   // by World.Nodes; absent where the label is missing
	offer [][]int32 // by template, by offer
}

// everywhere reports whether every node has the label, and every new one will.
func (d *domains) everywhere() bool {
	missing := func(list []int32) bool { return slices.Contains(list, absent) }
	return !missing(d.node) && !slices.ContainsFunc(d.offer, missing)
}

// domain numbers a topology key; hostnames are no domains but nodes.
func (w *World) domain(key string) int {
	t := w.topo
	if i, ok := t.byKey[key]; ok {
		return i
	}
	d := &domains{key: key, node: make([]int32, len(w.Nodes)), offer: make([][]int32, len(w.Templates))}
	ids := map[string]int32{}
	id := func(v string) int32 {
		i, ok := ids[v]
		if !ok {
			i = int32(len(d.names))
			ids[v] = i
			d.names = append(d.names, v)
		}
		return i
	}
	spread := func(c *column) []int32 { // domain by column value
		out := make([]int32, len(c.values))
		for i, v := range c.values {
			out[i] = id(v)
		}
		return out
	}
	col := w.nodes.column(key)
	to := spread(col)
	for i, v := range col.ids {
		d.node[i] = absent
		if v >= 0 {
			d.node[i] = to[v]
		}
	}
	for k := range w.Templates {
		d.offer[k] = w.Templates[k].domains(key, id)
	}
	t.byKey[key] = len(t.domains)
	t.domains = append(t.domains, d)
	return len(t.domains) - 1
}

// domains numbers what each offer of the template has for a label.
func (t *Template) domains(key string, id func(string) int32) []int32 {
	out := make([]int32, len(t.offers))
	if v, ok := t.label(key); ok {
		k := id(v)
		for o := range out {
			out[o] = k
		}
		return out
	}
	if !offerKey(key) && !t.u.typeKey(key) {
		for o := range out {
			out[o] = absent
		}
		return out
	}
	c := t.u.column(key)
	to := make([]int32, len(c.values))
	for i := range to {
		to[i] = absent
	}
	for o, of := range t.offers {
		i := c.ids[of]
		if !offerKey(key) {
			i = c.ids[t.types[t.offerType[o]]]
		}
		out[o] = absent
		if i < 0 {
			continue
		}
		if to[i] == absent {
			to[i] = id(c.values[i])
		}
		out[o] = to[i]
	}
	return out
}

// cell is where parts of classes are pinned: one domain of each key that matters.
type cell struct {
	dom    []int32 // by domain key; absent where the label is missing
	id     string  // dom, to compare
	offers []packing.Bitset
	nodes  packing.Bitset
}

// open reports whether no key matters in the cell.
func (c *cell) open() bool {
	return !slices.ContainsFunc(c.dom, func(v int32) bool { return v != anyDomain })
}

// anyDomain marks keys that do not matter in a cell.
const anyDomain = int32(-2)

// cellSet are the cells of what a class may use.
type cellSet struct {
	keys  []int
	cells []cell
}

// cells cuts offers and nodes by the domains of some keys; without keys all is one.
func (w *World) cells(offers []packing.Bitset, nodes packing.Bitset, keys []int) *cellSet {
	set := &cellSet{keys: keys}
	if len(keys) == 0 {
		set.cells = []cell{{offers: offers, nodes: nodes}}
		set.cells[0].dom = w.noDomains()
		return set
	}
	doms := w.topo.domains
	scratch := w.noDomains()
	find := func(at func(k int) int32) *cell {
		for _, k := range keys {
			scratch[k] = at(k)
		}
		for i := range set.cells {
			if slices.Equal(set.cells[i].dom, scratch) {
				return &set.cells[i]
			}
		}
		set.cells = append(set.cells, cell{dom: slices.Clone(scratch), id: fmt.Sprint(scratch), offers: make([]packing.Bitset, len(w.Templates))})
		return &set.cells[len(set.cells)-1]
	}
	for t, bits := range offers {
		if bits == nil {
			continue
		}
		bits.Members(func(o int) {
			c := find(func(k int) int32 { return doms[k].offer[t][o] })
			if c.offers[t] == nil {
				c.offers[t] = packing.NewBitset(len(w.Templates[t].offers))
			}
			c.offers[t].Set(o)
		})
	}
	nodes.Members(func(n int) {
		if n >= len(w.Targets) {
			return
		}
		c := find(func(k int) int32 { return doms[k].node[w.Targets[n]] })
		if c.nodes == nil {
			c.nodes = packing.NewBitset(len(w.Targets))
		}
		c.nodes.Set(n)
	})
	// By name, so that ties break by name.
	slices.SortFunc(set.cells, func(a, b cell) int {
		for _, k := range keys {
			if x, y := doms[k].label(a.dom[k]), doms[k].label(b.dom[k]); x != y {
				if x < y {
					return -1
				}
				return 1
			}
		}
		return 0
	})
	return set
}

func (d *domains) label(i int32) string {
	if i < 0 {
		return ""
	}
	return d.names[i]
}

func (w *World) noDomains() []int32 {
	out := make([]int32, len(w.topo.domains))
	for i := range out {
		out[i] = anyDomain
	}
	return out
}

// preferredAlternative reads a preferred node affinity term as an alternative; false when it
// is not valid and so never holds.
func preferredAlternative(r *Rules, i int) ([]requirements.Requirement, bool) {
	t := &r.Spec.Preferred[i].Term
	if len(t.Expressions) == 0 || len(t.Fields) > 0 {
		return nil, false
	}
	out := make([]requirements.Requirement, 0, len(t.Expressions))
	for _, e := range t.Expressions {
		q, err := requirements.New(e)
		if err != nil {
			return nil, false
		}
		out = append(out, q)
	}
	return out, true
}
