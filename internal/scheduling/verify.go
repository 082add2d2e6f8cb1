package scheduling

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/packing"
)

// verification is what a check of a result found.
type verification struct {
	excess map[int]int // by class: units that the scheduler would refuse
	opened []opened    // domains that new nodes open for a spread that did not know them
}

// opened is a domain that a node of the plan makes known to a spread.
type opened struct {
	extraKey
	domain int32
}

// item are units of a class in one place.
type item struct {
	class, left int
	dom         []int32
	at          int
}

// verify goes through a result as the scheduler would: pod after pod, those that are
// refused once more after the others. What is left at the end is excess.
//
// Revise and Enforce both ask about one result: it is gone through once.
func (w *World) verify(r *packing.Result) *verification {
	if w.verified.result == r {
		return w.verified.found
	}
	v := &verification{excess: map[int]int{}}
	w.verified.result, w.verified.found = r, v
	d := w.newDealer(false, false, make([][]int32, len(w.base)))
	var items []item
	dom := map[[2]int][]int32{}
	for _, pl := range r.Placed {
		if w.Classes[pl.Class].dealt {
			items = append(items, item{class: pl.Class, left: pl.Count, dom: w.nodeDomains(w.Targets[pl.Node])})
		}
	}
	for i := range r.Launches {
		l := &r.Launches[i]
		k := [2]int{l.Template, l.Chosen}
		if dom[k] == nil {
			dom[k] = w.offerDomains(l.Template, l.Chosen)
			v.opened = append(v.opened, d.opens(l.Template, l.Chosen, dom[k])...)
		}
		for _, c := range l.Contents {
			if w.Classes[c.Class].dealt {
				items = append(items, item{class: c.Class, left: c.Count, dom: dom[k]})
			}
		}
	}
	d.enterAll(items)
	for i := range items {
		if items[i].left > 0 {
			v.excess[items[i].class] += items[i].left
		}
	}
	if len(v.excess) == 0 {
		v.opened = nil
	}
	return v
}

// enterAll lets pods in as long as any may. Those that no spread counts but their own go
// first. Of the others, which also count for pods that they are not, one at a time follows, where there are fewest: they raise the
// least that the spread pods are measured against, and not the most.
func (d *dealer) enterAll(items []item) {
	var strict, free []*item
	counted := make([][]*spreading, len(items))
	for i := range items {
		it := &items[i]
		c := &d.w.Classes[it.class]
		it.at = i
		for _, s := range d.counting(c.membersOf()) {
			if it.dom[s.key] >= 0 {
				counted[i] = append(counted[i], s)
			}
		}
		if counted[i] == nil {
			strict = append(strict, it)
		} else {
			free = append(free, it)
		}
	}
	for moved := true; moved; {
		moved = false
		waiting := false
		for _, it := range strict {
			if it.left > 0 && d.enter(&d.w.Classes[it.class], it.dom) {
				it.left--
				moved = true
			}
			waiting = waiting || it.left > 0
		}
		if moved && waiting {
			continue
		}
		slices.SortStableFunc(free, func(a, b *item) int { return cmp.Compare(crowd(counted[a.at], a.dom), crowd(counted[b.at], b.dom)) })
		for _, it := range free {
			if it.left > 0 && d.enter(&d.w.Classes[it.class], it.dom) {
				it.left--
				moved = true
				if waiting && len(counted[it.at]) > 0 {
					break
				}
			}
		}
	}
}

// counting are the spreads that count pods of a unit without being theirs.
func (d *dealer) counting(members []member) []*spreading {
	var out []*spreading
	for _, m := range members {
		for _, s := range d.spreads {
			if d.w.matches(m.rules, s.term) && !slices.Contains(d.w.topo.carry[m.rules].spread, s.term) {
				out = append(out, s)
			}
		}
	}
	return out
}

// crowd is the most pods that any spread counts in the domain of a pod; 0 for pods that
// none counts.
func crowd(counted []*spreading, dom []int32) int32 {
	n := int32(0)
	for _, s := range counted {
		if v := dom[s.key]; v >= 0 {
			n = max(n, s.count[v])
		}
	}
	return n
}

// enter joins a unit if every pod of it is admitted, preferences left out.
func (d *dealer) enter(c *Class, dom []int32) bool {
	const noPreference = 1 << 30
	members := c.membersOf()
	done := 0
	for _, m := range members {
		for range m.n {
			if t, _ := d.check(m.rules, dom, noPreference); t != nil {
				for _, b := range members {
					for range min(b.n, done) {
						d.leave(b.rules, dom)
						done--
					}
				}
				return false
			}
			d.join(m.rules, dom)
			done++
		}
	}
	return true
}

// offerDomains are the domains of a new node.
func (w *World) offerDomains(template, offer int) []int32 {
	out := make([]int32, len(w.topo.domains))
	for k, dm := range w.topo.domains {
		out[k] = dm.offer[template][offer]
	}
	return out
}

// opens makes every spread know a new node that counts for it, and says which did not.
func (d *dealer) opens(template, offer int, dom []int32) []opened {
	w := d.w
	var out []opened
	for _, s := range d.spreads {
		v := dom[s.key]
		if v < 0 || s.known[v] || !w.countsFor(s, template, offer) {
			continue
		}
		s.known[v] = true
		s.domains++
		out = append(out, opened{extraKey{s.term, s.rules}, v})
	}
	return out
}

// countsFor reports whether a new node counts for a spread.
func (w *World) countsFor(s *spreading, template, offer int) bool {
	tm, t := &w.topo.terms[s.term], &w.Templates[template]
	r := w.Rules[s.rules]
	if tm.honorTaints && !t.toleratedBy(r.Spec.Tolerations, true) {
		return false
	}
	r.Volumes = nil
	if tm.ignoreAffinity {
		r.Alternatives = anyAlternative
	}
	return t.match(&r).Has(offer)
}
