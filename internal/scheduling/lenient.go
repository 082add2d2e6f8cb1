package scheduling

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/packing"
)

// Pack solves a problem. Where minValues are only to be met as far as possible (Karpenter:
// MIN_VALUES_POLICY=BestEffort), pods that too few types can host are packed under
// what these types can bring, and no more: other pods on the node must leave it that.
// Templates of the result are those of the problem.
func (w *World) packOnce(p *packing.Problem) *packing.Result {
	if !w.Snapshot.Settings.MinValuesBestEffort || !slices.ContainsFunc(p.Templates, func(t packing.Template) bool { return len(t.MinValues) > 0 }) {
		return packing.Solve(p)
	}
	l := lenient{p: p, free: make([]bool, len(p.Classes))}
	r := l.best()
	// Limits may leave fewer types than there were at the start: then they decide.
	again := false
	for _, u := range r.Unplaced {
		if !l.free[u.Class] && l.wants(u.Class) {
			l.free[u.Class], again = true, true
		}
	}
	if again {
		if q := l.best(); unplaced(q) < unplaced(r) {
			r = q
		}
	}
	return r
}

func unplaced(r *packing.Result) int {
	n := 0
	for _, u := range r.Unplaced {
		n += u.Count
	}
	return n
}

// lenient lowers minValues class by class.
type lenient struct {
	p    *packing.Problem
	free []bool // classes that minValues do not bind at all
	// least is what the types for a class bring of each of a template's minValues.
	least []map[int][]int
}

func (l *lenient) lower(t int, least []int) bool {
	for k, v := range least {
		if v < l.p.Templates[t].MinValues[k].Min {
			return true
		}
	}
	return false
}

// wants reports whether minValues bind a class on some template.
func (l *lenient) wants(class int) bool {
	for t, bits := range l.p.Classes[class].Offers {
		if bits != nil && len(l.p.Templates[t].MinValues) > 0 {
			return true
		}
	}
	return false
}

// best lets pods that minValues do not hurt use the room on the nodes of those that they
// do. Where that costs such a node more choice than its most demanding pod does, each
// kind keeps to its own.
func (l *lenient) best() *packing.Result {
	l.least = make([]map[int][]int, len(l.p.Classes))
	some := false
	for c := range l.p.Classes {
		for t := range l.p.Templates {
			if t >= len(l.p.Classes[c].Offers) || l.p.Classes[c].Offers[t] == nil || len(l.p.Templates[t].MinValues) == 0 {
				continue
			}
			least, lower := l.achievable(c, t)
			some = some || lower
			if l.least[c] == nil {
				l.least[c] = map[int][]int{}
			}
			l.least[c][t] = least
		}
	}
	apart := l.solve(false)
	if !some {
		return apart
	}
	if together := l.solve(true); l.keeps(together) && (unplaced(together) < unplaced(apart) || unplaced(together) == unplaced(apart) && together.Price < apart.Price) {
		return together
	}
	return apart
}

// keeps reports whether the options of every launch have the values that its most
// demanding pod leaves it.
func (l *lenient) keeps(r *packing.Result) bool {
	for i := range r.Launches {
		n := &r.Launches[i]
		tm := &l.p.Templates[n.Template]
		for k := range tm.MinValues {
			need := tm.MinValues[k].Min
			for _, cc := range n.Contents {
				if least := l.least[cc.Class][n.Template]; k < len(least) {
					need = min(need, least[k])
				}
			}
			values := map[int32]bool{}
			for _, o := range n.Options {
				for _, v := range tm.MinValues[k].Values[tm.Offers[o].Type] {
					values[v] = true
				}
			}
			if len(values) < need {
				return false
			}
		}
	}
	return true
}

// solve packs with a template more for every way in which minValues are lowered. With
// share, classes may also use the templates that are lowered further than they need.
func (l *lenient) solve(share bool) *packing.Result {
	q := *l.p
	q.Templates = slices.Clone(l.p.Templates)
	q.Classes = slices.Clone(l.p.Classes)
	of := make([]int, len(q.Templates)) // the template of the problem
	for t := range of {
		of[t] = t
	}
	made := map[string]int{}
	lowered := map[int][]int{} // by new template: its minValues
	for c := range q.Classes {
		cl := &q.Classes[c]
		for t := range l.p.Templates {
			least := l.least[c][t]
			if least == nil || !l.lower(t, least) {
				continue
			}
			key := fmt.Sprint(t, least)
			to, ok := made[key]
			if !ok {
				to = len(q.Templates)
				made[key] = to
				tm := l.p.Templates[t]
				tm.Name += fmt.Sprintf("~min%v", least)
				tm.MinValues = slices.Clone(tm.MinValues)
				for k := range tm.MinValues {
					tm.MinValues[k].Want, tm.MinValues[k].Min = tm.MinValues[k].Min, least[k]
				}
				q.Templates = append(q.Templates, tm)
				of = append(of, t)
				lowered[to] = least
			}
			offers := make([]packing.Bitset, max(len(cl.Offers), to+1))
			copy(offers, cl.Offers)
			offers[t], offers[to] = nil, l.p.Classes[c].Offers[t]
			cl.Offers = offers
		}
	}
	for c := range q.Classes {
		for to := len(l.p.Templates); share && to < len(q.Templates); to++ {
			t := of[to]
			have := l.least[c][t]
			if have == nil {
				continue
			}
			fits := true
			for k, v := range lowered[to] {
				fits = fits && v <= have[k]
			}
			if fits {
				offers := make([]packing.Bitset, max(len(q.Classes[c].Offers), to+1))
				copy(offers, q.Classes[c].Offers)
				offers[to] = l.p.Classes[c].Offers[t]
				q.Classes[c].Offers = offers
			}
		}
	}
	r := packing.Solve(&q)
	for i := range r.Launches {
		r.Launches[i].Template = of[r.Launches[i].Template]
	}
	for i := range r.Unplaced {
		for k := range r.Unplaced[i].Limits {
			r.Unplaced[i].Limits[k].Template = of[r.Unplaced[i].Limits[k].Template]
		}
	}
	for i := range r.Bounds {
		ts := r.Bounds[i].Templates
		for k := range ts {
			ts[k] = of[ts[k]]
		}
		slices.Sort(ts)
		r.Bounds[i].Templates = slices.Compact(ts)
	}
	return r
}

// achievable is, per minValues of a template, how many values the types bring that can
// host one pod of a class within the pool's limits, up to what is wanted; lower reports
// whether that is too few. Exotic types count only where no other hosts the pod.
func (l *lenient) achievable(class, t int) (least []int, lower bool) {
	cl, tm := &l.p.Classes[class], &l.p.Templates[t]
	left := l.p.Pools[tm.Pool].Remaining
	var plain, exotic []int
	seen := make([]bool, len(tm.Types))
	for o := range tm.Offers {
		ty := tm.Offers[o].Type
		if seen[ty] || !cl.Offers[t].Has(o) || tm.Offers[o].Count > 0 || !covers(tm.Types[ty].Alloc, cl.Need) {
			continue
		}
		if !covers(left, tm.Types[ty].Capacity) {
			continue
		}
		seen[ty] = true
		if tm.Types[ty].Exotic {
			exotic = append(exotic, ty)
		} else {
			plain = append(plain, ty)
		}
	}
	types := plain
	if len(types) == 0 {
		types = exotic
	}
	least = make([]int, len(tm.MinValues))
	for k := range tm.MinValues {
		mv := &tm.MinValues[k]
		values := map[int32]bool{}
		for _, ty := range types {
			for _, v := range mv.Values[ty] {
				values[v] = true
			}
		}
		least[k] = min(mv.Min, len(values))
		if l.free[class] {
			least[k] = min(1, len(values))
		}
		lower = lower || least[k] < mv.Min
	}
	return least, lower && len(types) > 0
}
