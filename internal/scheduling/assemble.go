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
		w.pack(p, nil)
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
	gone := w.fill(p, rest)
	d := w.newDealer(soft, false, rest)
	d.settle(gone)
	d.ready().deal()
	w.assemble(d, rest)
	w.pack(p, gone)
	for c := range w.Classes[:len(w.Classes)-len(gone)] {
		if len(w.Targets) > 0 { // filled already
			p.Classes[c].Nodes = nil
		}
	}
}

// seated are units of one class that have a place on nodes that exist.
type seated struct {
	class  Class
	placed []packing.Placed // Class left out
}

// fill puts pods on nodes that exist and takes them out of rest. The deal only guesses at
// the room there, so it is done again for what is left as long as something finds room.
func (w *World) fill(p *packing.Problem, rest [][]int32) []seated {
	var gone []seated
	if len(w.Targets) == 0 {
		return nil
	}
	for range maxFills {
		d := w.newDealer(false, true, rest)
		d.settle(gone)
		d.ready().deal()
		w.assemble(d, rest)
		w.pack(p, gone)
		placed := packing.Fill(p)[len(p.Fixed):]
		if len(placed) == 0 {
			break
		}
		gone = append(gone, w.seat(placed, rest)...)
	}
	return gone
}

// maxFills bounds how often nodes that exist are filled in one round.
const maxFills = 6

// registerDomains numbers the topology keys of all terms, so that cells have one entry
// for each.
func (w *World) registerDomains() {
	for k := range w.topo.terms {
		if key := w.topo.terms[k].key; !isHostname(key) {
			w.domain(key)
		}
	}
}

// seat takes pods that have found a place on a node out of rest.
func (w *World) seat(placed []packing.Placed, rest [][]int32) []seated {
	var out []seated
	of := map[int]int{} // class -> position in out
	taken := make([]int, len(w.Classes))
	gone := map[int32]bool{}
	for _, p := range placed {
		c := &w.Classes[p.Class]
		k, ok := of[p.Class]
		if !ok {
			k = len(out)
			of[p.Class] = k
			one := *c
			one.Pods = nil
			out = append(out, seated{class: one})
		}
		n := c.PodsPerUnit()
		pods := c.Pods[taken[p.Class]*n : (taken[p.Class]+p.Count)*n]
		taken[p.Class] += p.Count
		out[k].class.Pods = append(out[k].class.Pods, pods...)
		out[k].placed = append(out[k].placed, p)
		for _, i := range pods {
			gone[i] = true
		}
	}
	for i := range rest {
		rest[i] = slices.DeleteFunc(slices.Clone(rest[i]), func(pod int32) bool { return gone[pod] })
	}
	return out
}

// settle counts pods that have a place on a node already.
func (d *dealer) settle(gone []seated) {
	for i := range gone {
		c := &gone[i].class
		need := d.w.classNeed(c, nil)
		for _, p := range gone[i].placed {
			dom := d.w.nodeDomains(d.w.Targets[p.Node])
			for range p.Count {
				for _, m := range c.membersOf() {
					for range m.n {
						d.join(m.rules, dom)
					}
				}
			}
			if d.free != nil {
				for r, v := range need {
					d.free[p.Node][r] -= v * int64(p.Count)
				}
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

// pack writes the classes into the problem, those that have a place last.
func (w *World) pack(p *packing.Problem, gone []seated) {
	d := len(w.Dims)
	var fixed []packing.Placed
	for i := range gone {
		for _, f := range gone[i].placed {
			f.Class = len(w.Classes)
			fixed = append(fixed, f)
		}
		w.Classes = append(w.Classes, gone[i].class)
	}
	p.Classes = make([]packing.Class, len(w.Classes))
	p.Caps, p.Fixed = nil, fixed
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
	d := len(w.Dims)
	if t.room == nil {
		t.room = make([]int64, 0, d*len(t.types))
		daemons := w.daemonVectors(t)
		for i := range t.types {
			t.room = w.vector(&t.u.types[t.types[i]].Allocatable, t.room)
			for k := range d {
				t.room[i*d+k] -= daemons[int(t.daemons.of[i])*d+k]
			}
			w.addSlots(t.room[i*d:], t, i)
		}
	}
	return t.room[typ*d : (typ+1)*d : (typ+1)*d]
}

// daemonVectors is what each group of daemon pods of a template takes, by Dims.
func (w *World) daemonVectors(t *Template) []int64 {
	out := make([]int64, 0, len(w.Dims)*len(t.daemons.groups))
	for i := range t.daemons.groups {
		out = w.vector(&t.daemons.groups[i].requests, out)
	}
	return out
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
