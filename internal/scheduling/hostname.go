package scheduling

import (
	"slices"

	"kerf.sh/kerf/internal/packing"
)

// hosts is what rules about single nodes (topology key hostname) say of nodes that
// exist, by rules-key.
type hosts struct {
	caps  [][]hostCap
	bits  []packing.Bitset // by target
	zeros []int32
}

// hostCap is the most pods that one node may carry.
type hostCap struct {
	term int32 // of a spread; absent for anti-affinity of a class to itself
	max  int32
	used []int32 // by target
}

// readHosts applies the hostname terms of pods that are planned and of pods that run to
// the nodes that exist. A node takes no more than maxSkew pods of a spread: a new node
// can always be launched, and it has none (Karpenter: the least by hostname is 0).
func (w *World) readHosts() {
	t := w.topo
	h := &w.hosts
	n := len(w.Rules)
	h.caps, h.bits, h.zeros = make([][]hostCap, n), make([]packing.Bitset, n), make([]int32, len(w.Targets))
	target := make([]int32, len(w.Nodes))
	for i := range target {
		target[i] = absent
	}
	for k, i := range w.Targets {
		target[i] = int32(k)
	}
	for r := range n {
		bits := w.allow[r].nodes
		owned := false
		ban := func(node int32) {
			k := target[node]
			if k < 0 || !bits.Has(int(k)) {
				return
			}
			if !owned {
				bits, owned = bits.Clone(), true
			}
			bits.Clear(int(k))
		}
		for _, k := range t.carry[r].anti {
			if !isHostname(t.terms[k].key) {
				continue
			}
			for _, s := range w.selected(k) {
				for _, list := range [...][]int32{t.runs[s].nodes, t.runs[s].dying} {
					for _, node := range list {
						ban(node)
					}
				}
			}
			if w.matches(r, k) {
				h.caps[r] = append(h.caps[r], hostCap{absent, 1, h.zeros})
			}
		}
		for _, k := range t.matched[r] {
			if int(k) < len(t.posts) && isHostname(t.terms[k].key) {
				for _, node := range t.posts[k] {
					ban(node)
				}
			}
		}
		for _, k := range t.carry[r].spread {
			tm := &t.terms[k]
			if !isHostname(tm.key) {
				continue
			}
			used := w.usedOn(k, target)
			if w.matches(r, k) {
				h.caps[r] = append(h.caps[r], hostCap{k, tm.maxSkew, used})
				continue
			}
			for i, v := range used {
				if v > tm.maxSkew {
					ban(int32(w.Targets[i]))
				}
			}
		}
		h.bits[r] = bits
	}
}

// usedOn counts the pods that a spread term selects, by target.
func (w *World) usedOn(k int32, target []int32) []int32 {
	used := make([]int32, len(w.Targets))
	for _, s := range w.selected(k) {
		for _, node := range w.topo.runs[s].nodes {
			if i := target[node]; i >= 0 {
				used[i]++
			}
		}
	}
	return used
}

// most are the caps on units of n pods of a rules-key.
func (h *hosts) most(rules, n int) []hostCap {
	if h.caps == nil {
		return nil
	}
	if n == 1 {
		return h.caps[rules]
	}
	out := slices.Clone(h.caps[rules])
	for i := range out {
		if out[i].term == absent {
			continue
		}
		used := slices.Clone(out[i].used)
		for k := range used {
			used[k] = (used[k] + int32(n) - 1) / int32(n)
		}
		out[i].max, out[i].used = out[i].max/int32(n), used
	}
	return out
}

func (h *hosts) nodes(w *World, rules int) packing.Bitset {
	if h.bits == nil {
		return w.allow[rules].nodes
	}
	return h.bits[rules]
}

// hostConstraints writes the hostname terms between classes as conflicts and caps.
func (w *World) hostConstraints(p *packing.Problem, target []int32) {
	t := w.topo
	carriers := make([][]int32, len(t.terms)) // hard, by term
	soft := make([][]int32, len(t.terms))
	matched := make([][]int32, len(t.terms))
	for i := range w.Classes {
		c := &w.Classes[i]
		for _, m := range c.membersOf() {
			for _, list := range [...][]int32{t.carry[m.rules].anti, t.carry[m.rules].spread} {
				for _, k := range list {
					carriers[k] = append(carriers[k], int32(i))
				}
			}
			for _, k := range t.matched[m.rules] {
				matched[k] = append(matched[k], int32(i))
			}
			if len(c.members) > 1 {
				continue
			}
			steps := w.Rules[m.rules].steps
			for s := c.level; s < len(steps); s++ {
				if steps[s].kind == stepAnti || steps[s].kind == stepSpread {
					soft[steps[s].term] = append(soft[steps[s].term], int32(i))
				}
			}
		}
	}
	apart := func(i, k int32, hard bool) {
		if i != k && w.Classes[i].elsewhere(&w.Classes[k]) {
			return
		}
		a, b := &p.Classes[i].Apart, &p.Classes[k].Apart
		if hard {
			a, b = &p.Classes[i].Conflicts, &p.Classes[k].Conflicts
		}
		if !slices.Contains(*a, k) {
			*a = append(*a, k)
		}
		if !slices.Contains(*b, i) {
			*b = append(*b, i)
		}
	}
	for k := range t.terms {
		tm := &t.terms[k]
		if !isHostname(tm.key) {
			continue
		}
		for _, list := range [...][]int32{carriers[k], soft[k]} {
			hard := len(list) > 0 && len(carriers[k]) > 0 && &list[0] == &carriers[k][0]
			switch tm.kind {
			case antiTerm:
				for _, i := range list {
					for _, o := range matched[k] {
						if hard || !w.relaxed(int(o), int32(k)) {
							apart(i, o, hard)
						}
					}
				}
			case spreadTerm:
				w.spreadCaps(p, int32(k), list, matched[k], hard, target, apart)
			}
		}
	}
}

// relaxed reports whether pods of a class had the same preference and have lost it:
// others keep away from them no more, or nothing would be won.
func (w *World) relaxed(class int, k int32) bool {
	c := &w.Classes[class]
	for i, s := range w.Rules[c.Rules].steps {
		if s.term == k && (s.kind == stepAnti || s.kind == stepSpread) {
			return c.level > i
		}
	}
	return false
}

// spreadCaps makes caps of a hostname spread: one per group of classes that can meet on
// a node. Pods that are counted but do not carry the term share no new node with those that
// do: the term would forbid one of the two orders in which they may come.
func (w *World) spreadCaps(p *packing.Problem, k int32, carriers, matched []int32, hard bool, target []int32, apart func(i, k int32, hard bool)) {
	tm := &w.topo.terms[k]
	if len(carriers) == 0 {
		return
	}
	var used []int32
	if hard && len(w.Targets) > 0 {
		used = w.usedOn(k, target)
	}
	done := make([]bool, len(carriers))
	for a := range carriers {
		if done[a] {
			continue
		}
		cap := packing.Cap{Max: int(tm.maxSkew), Used: used, New: !hard}
		weighted := false
		for b := a; b < len(carriers); b++ {
			c := &w.Classes[carriers[b]]
			if done[b] || b > a && c.elsewhere(&w.Classes[carriers[a]]) {
				continue
			}
			done[b] = true
			n := int32(0)
			for _, m := range c.membersOf() {
				if w.matches(m.rules, k) {
					n += int32(m.n)
				}
			}
			if n == 0 || slices.Contains(cap.Classes, carriers[b]) {
				continue
			}
			weighted = weighted || n > 1
			cap.Classes = append(cap.Classes, carriers[b])
			cap.Weight = append(cap.Weight, n)
		}
		if !weighted {
			cap.Weight = nil
		}
		if len(cap.Classes) > 0 {
			p.Caps = append(p.Caps, cap)
		}
	}
	for _, o := range matched {
		if slices.Contains(carriers, o) || !hard && w.relaxed(int(o), k) {
			continue
		}
		for _, i := range carriers {
			if w.crowds(&w.Classes[o], &w.Classes[i], k) {
				apart(i, o, false)
			}
		}
	}
}

// crowds reports whether pods that a spread counts, but that do not state it, could keep
// pods that do from a node, should they come first.
func (w *World) crowds(counted, carrier *Class, k int32) bool {
	for _, m := range carrier.membersOf() {
		if w.matches(m.rules, k) {
			return true
		}
	}
	n := 0
	for _, m := range counted.membersOf() {
		if w.matches(m.rules, k) {
			n += m.n * counted.Units()
		}
	}
	return n > int(w.topo.terms[k].maxSkew)
}
