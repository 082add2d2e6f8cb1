package scheduling

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// touched reports whether a class has to be dealt: a rule about other pods is about it,
// or it has preferences.
func (w *World) touched(class int) bool {
	r := w.base[class].Rules
	if len(w.Rules[r].steps) > 0 {
		return true
	}
	if w.topo == nil || r >= len(w.topo.carry) {
		return false
	}
	return w.topo.carry[r].hard() || len(w.topo.matched[r]) > 0
}

// place turns the classes of the snapshot into those of the problem: as they are, or cut
// into parts with a domain each. Preferences count on new nodes only, so nodes that
// exist are filled before they are looked at.
func (w *World) place(p *packing.Problem) {
	w.Classes = w.Classes[:0:0]
	deal, soft := false, false
	for i := range w.base {
		deal = deal || w.touched(i)
		soft = soft || len(w.Rules[w.base[i].Rules].steps) > 0
	}
	if !deal {
		w.Classes = append(w.Classes, w.base...)
		w.pack(p)
		return
	}
	if w.topo == nil {
		w.topo = &topology{carry: make([]carried, len(w.Rules)), matched: make([][]int32, len(w.Rules)), byKey: map[string]int{}}
	}
	w.registerDomains()
	if w.hosts.bits == nil {
		w.readHosts()
	}
	rest := make([][]int32, len(w.base))
	for i := range w.base {
		rest[i] = w.base[i].Pods
	}
	var gone []Class
	var fixed []packing.Placed
	if soft && len(w.Targets) > 0 {
		d := w.newDealer(false, rest).ready()
		d.deal()
		w.assemble(d, rest)
		w.pack(p)
		placed := packing.Fill(p)
		gone, fixed = w.settle(placed, rest)
	}
	d := w.newDealer(soft, rest)
	for k := range fixed {
		d.settled(&gone[fixed[k].Class], fixed[k])
	}
	d.ready().deal()
	w.assemble(d, rest)
	n := len(w.Classes)
	w.Classes = append(w.Classes, gone...)
	w.pack(p)
	for i := range fixed {
		fixed[i].Class += n
	}
	p.Fixed = fixed
	for c := range w.Classes[:n] {
		if soft && len(w.Targets) > 0 { // filled already
			p.Classes[c].Nodes = nil
		}
	}
}

// registerDomains numbers the topology keys of all terms, so that cells have one entry
// for each.
func (w *World) registerDomains() {
	for k := range w.topo.terms {
		if key := w.topo.terms[k].key; !isHostname(key) {
			w.domain(key)
		}
	}
}

// settle takes pods that have a place on a node out of rest, and returns them as classes
// of their own.
func (w *World) settle(placed []packing.Placed, rest [][]int32) ([]Class, []packing.Placed) {
	var classes []Class
	var fixed []packing.Placed
	of := map[int]int{} // class now -> position in classes
	taken := make([]int, len(w.Classes))
	gone := map[int32]bool{}
	for _, p := range placed {
		c := &w.Classes[p.Class]
		k, ok := of[p.Class]
		if !ok {
			k = len(classes)
			of[p.Class] = k
			one := *c
			one.Pods = nil
			classes = append(classes, one)
		}
		pods := c.Pods[taken[p.Class]*c.PodsPerUnit() : (taken[p.Class]+p.Count)*c.PodsPerUnit()]
		taken[p.Class] += p.Count
		classes[k].Pods = append(classes[k].Pods, pods...)
		for _, i := range pods {
			gone[i] = true
		}
		fixed = append(fixed, packing.Placed{Node: p.Node, Class: k, Count: p.Count})
	}
	if len(gone) == 0 {
		return nil, nil
	}
	for i := range rest {
		rest[i] = slices.DeleteFunc(slices.Clone(rest[i]), func(pod int32) bool { return gone[pod] })
	}
	return classes, fixed
}

// settled counts pods that have a place on a node already.
func (d *dealer) settled(c *Class, p packing.Placed) {
	dom := d.w.nodeDomains(d.w.Targets[p.Node])
	for range p.Count {
		for _, m := range c.membersOf() {
			for range m.n {
				d.join(m.rules, dom)
			}
		}
	}
}

// nodeDomains are the domains of a node.
func (w *World) nodeDomains(node int) []int32 {
	out := make([]int32, len(w.topo.domains))
	for k, dm := range w.topo.domains {
		out[k] = dm.node[node]
	}
	return out
}

// membersOf are the pods of one unit of the class.
func (c *Class) membersOf() []member {
	if c.members != nil {
		return c.members
	}
	return []member{{rules: c.Rules, n: 1}}
}

// elsewhere reports whether two classes can never share a node, because their domains
// differ.
func (c *Class) elsewhere(o *Class) bool {
	if c.cell == nil || o.cell == nil {
		return false
	}
	for k, v := range c.cell.dom {
		if u := o.cell.dom[k]; v != anyDomain && u != anyDomain && u != v {
			return true
		}
	}
	return false
}

// assemble writes what was dealt as classes, in the order of the classes it came from.
func (w *World) assemble(d *dealer, rest [][]int32) {
	parts := map[*unit][]*part{}
	for _, p := range d.parts {
		parts[p.unit] = append(parts[p.unit], p)
	}
	units := make([][]*unit, len(w.base))
	for _, u := range d.units {
		units[u.base] = append(units[u.base], u)
	}
	w.Classes = w.Classes[:0:0]
	for i := range w.base {
		c := &w.base[i]
		if !w.touched(i) {
			if len(rest[i]) > 0 {
				one := *c
				one.Pods = rest[i]
				w.Classes = append(w.Classes, one)
			}
			continue
		}
		for _, u := range units[i] {
			from := 0
			add := func(n int) *Class {
				w.Classes = append(w.Classes, Class{
					Rules: u.members[0].rules, Requests: u.requests, Pods: u.pods[from : from+n*u.size : from+n*u.size],
					base: u.base, dealt: true,
				})
				from += n * u.size
				k := &w.Classes[len(w.Classes)-1]
				if u.size > 1 {
					k.Unit, k.members = u.size, u.members
				}
				return k
			}
			for _, p := range parts[u] {
				k := add(p.count)
				k.cell, k.level = p.cell, p.level
			}
			if n := sumInts(u.left); n > 0 {
				k := add(n)
				k.stuck, k.level = u.stuck, len(u.left)-1
			}
		}
	}
}

// pack writes the classes into the problem.
func (w *World) pack(p *packing.Problem) {
	d := len(w.Dims)
	p.Classes = make([]packing.Class, len(w.Classes))
	p.Caps, p.Fixed = nil, nil
	need := make([]int64, 0, d*len(w.Classes))
	for i := range w.Classes {
		c := &w.Classes[i]
		need = w.classNeed(c, need)
		k := &p.Classes[i]
		k.Count, k.Need = c.Units(), need[i*d:(i+1)*d:(i+1)*d]
		switch {
		case !c.dealt:
			a := &w.allow[c.Rules]
			k.Offers, k.Nodes = a.offers, a.nodes
		case c.cell != nil:
			k.Offers, k.Nodes = c.cell.offers, c.cell.nodes
		default:
			k.Offers = make([]packing.Bitset, len(w.Templates))
		}
	}
	w.portConflicts(p)
	if w.topo != nil && len(w.topo.terms) > 0 {
		w.hostConstraints(p, w.targetIndex())
	}
}

// classNeed is what one unit of a class needs.
func (w *World) classNeed(c *Class, out []int64) []int64 {
	if c.members == nil {
		return w.needs(c, out)
	}
	return append(out, w.unitNeed(c.members)...)
}

// unitNeed is what the members of a unit need together.
func (w *World) unitNeed(members []member) []int64 {
	out := make([]int64, len(w.Dims))
	for _, m := range members {
		for r, v := range w.needs(&w.base[m.class], nil) {
			out[r] += v * int64(m.n)
		}
	}
	return out
}

// targetIndex is the position in Targets by node; absent for nodes that take no pod.
func (w *World) targetIndex() []int32 {
	out := make([]int32, len(w.Nodes))
	for i := range out {
		out[i] = absent
	}
	for k, i := range w.Targets {
		out[i] = int32(k)
	}
	return out
}

// left is what daemon pods leave of a type of a template, by Dims.
func (w *World) left(t *Template, typ int) []int64 {
	if t.room == nil {
		t.room = make([][]int64, len(t.types))
	}
	if t.room[typ] == nil {
		r := t.u.types[t.types[typ]].Allocatable.Sub(t.daemons.groups[t.daemons.of[typ]].requests)
		v := w.vector(&r, nil)
		w.addSlots(v, t, typ)
		t.room[typ] = v
	}
	return t.room[typ]
}

// offersAt are the offers that pods of a rules-key allow when they have lost so many
// preferences: the heaviest node affinity that is left counts.
func (w *World) offersAt(rules, level int) []packing.Bitset {
	a, r := &w.allow[rules], &w.Rules[rules]
	out := a.offers
	node := -1
	for i, s := range r.steps {
		if s.kind == stepTaint && level > i {
			out = a.relaxed
		}
		if s.kind == stepNode && i >= level && node < 0 {
			node = s.node
		}
	}
	if node < 0 || out == nil {
		return out
	}
	key := [2]int{node, 0}
	if len(out) > 0 && a.relaxed != nil && &out[0] == &a.relaxed[0] {
		key[1] = 1
	}
	if got, ok := a.preferred[key]; ok {
		return got
	}
	alt, ok := preferredAlternative(r, node)
	got := make([]packing.Bitset, len(out))
	if ok {
		want := Rules{Spec: r.Spec, Alternatives: [][]requirements.Requirement{alt}}
		for t := range out {
			if out[t] != nil {
				got[t] = out[t].Common(w.Templates[t].match(&want))
			}
		}
	}
	if a.preferred == nil {
		a.preferred = map[[2]int][]packing.Bitset{}
	}
	a.preferred[key] = got
	return got
}

// widest are the offers that count when every preference is lost.
func (a *allowance) widest() []packing.Bitset {
	if a.relaxed != nil {
		return a.relaxed
	}
	return a.offers
}

// readSteps lists the preferences of every rules-key in the order in which they go.
func (w *World) readSteps() {
	for r := range w.Rules {
		rules := &w.Rules[r]
		rules.steps = nil
		var deal []step
		if w.topo != nil && r < len(w.topo.carry) {
			deal = w.topo.carry[r].steps
		}
		for _, s := range deal {
			if s.kind < stepNode {
				rules.steps = append(rules.steps, s)
			}
		}
		if !w.Snapshot.Settings.IgnorePreferences && rules.refused == "" {
			for _, i := range preferredByWeight(rules.Spec) {
				rules.steps = append(rules.steps, step{kind: stepNode, node: i})
			}
		}
		for _, s := range deal {
			if s.kind > stepNode {
				rules.steps = append(rules.steps, s)
			}
		}
		if w.allow[r].relaxed != nil {
			rules.steps = append(rules.steps, step{kind: stepTaint})
		}
	}
}

// preferredByWeight lists the preferred node affinity terms, heaviest first.
func preferredByWeight(spec *snapshot.PodSpec) []int {
	out := make([]int, len(spec.Preferred))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(spec.Preferred[b].Weight, spec.Preferred[a].Weight) })
	return out
}

// anyAlternative is what a pod without selector and affinity asks of a node.
var anyAlternative = [][]requirements.Requirement{nil}
