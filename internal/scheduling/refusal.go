package scheduling

import (
	"fmt"

	"kerf.sh/kerf/internal/plan"
)

// refusal is why a pod may not be in a domain.
type refusal struct {
	code   plan.Code
	detail string
}

// check says whether one pod of a rules-key may join a domain of every key, preferences
// from level on included; 0 = it may, else the term in the way + 1.
func (d *dealer) check(rules int, dom []int32, level int) (*term, int32) {
	st, t := &d.stance[rules], d.w.topo
	for _, s := range st.spread {
		if !s.admits(&t.terms[s.term], dom) {
			return &t.terms[s.term], dom[s.key]
		}
	}
	if a := st.affinity; a != nil && !a.admits(dom) {
		return &t.terms[a.terms[0]], absent
	}
	for _, a := range st.anti {
		if v := dom[a.matched.key]; v >= 0 && a.matched.count[v] > 0 {
			return &t.terms[a.term], v
		}
	}
	for _, a := range st.kept {
		if v := dom[a.carriers.key]; v >= 0 && a.carriers.count[v] > 0 {
			return &t.terms[a.term], v
		}
	}
	for i := level; i < len(st.steps); i++ {
		s := &st.steps[i]
		switch {
		case s.spread != nil && !s.spread.admits(&t.terms[s.spread.term], dom):
			return &t.terms[s.spread.term], absent
		case s.affinity != nil && !s.affinity.admits(dom):
			return &t.terms[s.affinity.terms[0]], absent
		case s.anti != nil:
			if v := dom[s.anti.matched.key]; v >= 0 && s.anti.matched.count[v] > 0 {
				return &t.terms[s.anti.term], v
			}
		}
	}
	return nil, absent
}

func (s *spreading) admits(t *term, dom []int32) bool {
	v := dom[s.key]
	return v >= 0 && s.count[v]+s.self-s.least(t.minDomains) <= t.maxSkew
}

// admits: the domain has a matching pod for every key, or nobody matches anywhere and
// the pod matches itself.
func (a *attraction) admits(dom []int32) bool {
	for i := range a.by {
		if dom[a.by[i].key] < 0 {
			return false
		}
	}
	if a.total == 0 {
		return a.self
	}
	for i := range a.by {
		if a.by[i].count[dom[a.by[i].key]] == 0 {
			return false
		}
	}
	return true
}

// join records a pod of a rules-key in a domain of every key; leave takes it back.
func (d *dealer) join(rules int, dom []int32) {
	st := &d.stance[rules]
	for _, c := range st.counts {
		c.add(dom)
	}
	for _, a := range st.attract {
		a.total++
		for i := range a.by {
			a.by[i].add(dom)
		}
	}
}

func (d *dealer) leave(rules int, dom []int32) {
	st := &d.stance[rules]
	for _, c := range st.counts {
		c.take(dom)
	}
	for _, a := range st.attract {
		a.total--
		for i := range a.by {
			a.by[i].take(dom)
		}
	}
}

// describe says what of a term keeps one more pod out of a cell.
func (d *dealer) describe(rules int, c *cell) refusal {
	t := d.w.topo
	tm, v := d.check(rules, c.dom, len(d.stance[rules].steps))
	if tm == nil {
		return refusal{}
	}
	st := &d.stance[rules]
	switch tm.kind {
	case spreadTerm:
		for _, s := range st.spread {
			if &t.terms[s.term] != tm {
				continue
			}
			dm := t.domains[s.key]
			if v < 0 {
				return refusal{plan.TopologySpreadUnmet, fmt.Sprintf("its nodes have no label %s", tm.key)}
			}
			least := s.least(tm.minDomains)
			note := ""
			if s.domains < tm.minDomains {
				note = fmt.Sprintf(" (minDomains is %d, and there are %d)", tm.minDomains, s.domains)
			} else {
				for k, ok := range s.known {
					if ok && s.count[k] == least {
						note = " in " + dm.names[k]
						break
					}
				}
			}
			return refusal{plan.TopologySpreadUnmet, fmt.Sprintf("would have %d pods against %d%s, and maxSkew is %d", s.count[v]+s.self, least, note, tm.maxSkew)}
		}
	case affinityTerm:
		return refusal{plan.PodAffinityUnmet, fmt.Sprintf("no pod that podAffinity selects (%s) is there", describeSelector(tm.pods.sel))}
	case antiTerm:
		return refusal{plan.PodAntiAffinityUnmet, fmt.Sprintf("a pod is there that podAntiAffinity keeps apart (%s)", describeSelector(tm.pods.sel))}
	}
	return refusal{plan.Unschedulable, ""}
}
