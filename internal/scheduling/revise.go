package scheduling

import (
	"fmt"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Revise looks at what packing made of a problem and reports whether the next Problem
// is another one. Pods without a place lose a preference (Karpenter: relaxation, one
// preference at a time); where rules about other pods say how pods must be spread, the
// deal is done again with what was found out: how many find room in a domain, and which
// domains new nodes will open.
func (w *World) Revise(r *packing.Result) bool {
	changed := w.relax(r)
	changed = w.reviseSlots(r) || changed
	if w.topo == nil || len(w.topo.terms) == 0 {
		return changed
	}
	v := w.verify(r)
	for i := range v.opened {
		changed = w.open(v.opened[i]) || changed
	}
	if changed {
		return true
	}
	return w.lower(r, v)
}

// relax takes a preference from every pod without a place.
func (w *World) relax(r *packing.Result) bool {
	any := false
	for _, u := range r.Unplaced {
		c := &w.Classes[u.Class]
		steps := len(w.Rules[c.Rules].steps)
		if steps == 0 || c.level >= steps || c.members != nil {
			continue
		}
		i := c.base
		for len(w.floors[i]) <= steps {
			w.floors[i] = append(w.floors[i], 0)
		}
		w.floors[i][c.level] = max(0, w.floors[i][c.level]-u.Count)
		w.floors[i][c.level+1] += u.Count
		any = true
	}
	return any
}

// lower sets ceilings where pods found no room, so that the next deal puts them
// elsewhere or not at all: a domain that holds few keeps all others down.
func (w *World) lower(r *packing.Result, v *verification) bool {
	if w.ceiling == nil {
		w.ceiling = map[place]int{}
	}
	if w.lowerBy(r, nil) {
		return true
	}
	return len(v.excess) > 0 && w.lowerBy(r, v.excess)
}

func (w *World) lowerBy(r *packing.Result, excess map[int]int) bool {
	missing := make([]int, len(w.Classes))
	limited := make([]bool, len(w.Classes))
	for _, u := range r.Unplaced {
		missing[u.Class] += u.Count
		for _, h := range u.Limits {
			limited[u.Class] = limited[u.Class] || h.Dim >= 0
		}
		if c := &w.Classes[u.Class]; c.dealt && limited[u.Class] {
			if w.hits == nil {
				w.hits = map[int][]packing.LimitHit{}
			}
			w.hits[c.base] = u.Limits
		}
	}
	for c, n := range excess {
		missing[c] += n
		limited[c] = true
	}
	total := map[int]int{}
	short := map[int]bool{}
	changed := false
	for i := range w.Classes {
		c := &w.Classes[i]
		if !c.dealt || c.cell == nil {
			continue
		}
		b := c.base
		total[b] += c.Units() - missing[i]
		if missing[i] == 0 || c.cell.open() {
			continue
		}
		if limited[i] {
			short[b] = true
			continue
		}
		changed = w.setCeiling(place{b, c.cell.id}, c.Units()-missing[i]) || changed
	}
	for b := range short {
		changed = w.setCeiling(place{b, ""}, total[b]) || changed
	}
	return changed
}

func (w *World) setCeiling(at place, n int) bool {
	if old, ok := w.ceiling[at]; ok && old <= n {
		return false
	}
	w.ceiling[at] = n
	return true
}

// Hits are the limits that keep pods of a class from new nodes: those that packing met,
// or met in an earlier round for pods that were not dealt again.
func (w *World) Hits(class int, hits []packing.LimitHit) []packing.LimitHit {
	c := &w.Classes[class]
	if len(hits) > 0 || !c.dealt || c.cell != nil {
		return hits
	}
	return w.hits[c.base]
}

// open makes a domain known to a spread: a node of the plan will be there.
func (w *World) open(o opened) bool {
	if w.extra == nil {
		w.extra = map[extraKey][]int32{}
	}
	for _, v := range w.extra[o.extraKey] {
		if v == o.domain {
			return false
		}
	}
	w.extra[o.extraKey] = append(w.extra[o.extraKey], o.domain)
	return true
}

// Enforce takes out of a result what the scheduler would refuse in any order, so that a
// plan never breaks a rule, whatever the search did. It changes the result.
func (w *World) Enforce(p *packing.Problem, r *packing.Result) {
	if w.topo == nil || len(w.topo.terms) == 0 {
		return
	}
	v := w.verify(r)
	for c := range w.Classes {
		n := v.excess[c]
		if n == 0 {
			continue
		}
		w.Classes[c].stuck = refusal{plan.TopologySpreadUnmet, "the plan found no arrangement in which the scheduler would take it: other pods of its kind have no room where they would have to be"}
		r.Take(p, c, n)
	}
}

// Relaxations lists the preferences that pods of a class have lost on nodes of a
// template, as sentences.
func (w *World) Relaxations(class, template int) []string {
	c := &w.Classes[class]
	r := &w.Rules[c.Rules]
	var out []string
	for i := range min(c.level, len(r.steps)) {
		s := &r.steps[i]
		switch s.kind {
		case stepTaint:
			if !w.Templates[template].toleratedBy(r.Spec.Tolerations, false) {
				out = append(out, "PreferNoSchedule taints do not count")
			}
		case stepNode:
			out = append(out, "preferred node affinity dropped: "+termString(&r.Spec.Preferred[s.node].Term))
		case stepSpread:
			out = append(out, "ScheduleAnyway spread over "+w.topo.terms[s.term].key+" dropped")
		case stepAffinity:
			out = append(out, fmt.Sprintf("preferred pod affinity by %s dropped: %s", w.topo.terms[s.term].key, describeSelector(w.topo.terms[s.term].pods.sel)))
		case stepAnti:
			out = append(out, fmt.Sprintf("preferred pod anti-affinity by %s dropped: %s", w.topo.terms[s.term].key, describeSelector(w.topo.terms[s.term].pods.sel)))
		}
	}
	return out
}

func termString(t *snapshot.NodeSelectorTerm) string {
	out := ""
	for i := range t.Expressions {
		e := &t.Expressions[i]
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%s %s %v", e.Key, e.Operator, e.Values)
	}
	return out
}
