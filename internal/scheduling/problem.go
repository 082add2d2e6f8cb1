package scheduling

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// allowance is what one rules-key may use.
type allowance struct {
	offers []packing.Bitset // by template; preferences kept
	// relaxed is the same with PreferNoSchedule taints of templates ignored; nil
	// when that makes no difference.
	relaxed []packing.Bitset
	nodes   packing.Bitset // by target
	// preferred are offers cut down by a preferred node affinity term, by the term and
	// whether they are the relaxed ones.
	preferred map[[2]int][]packing.Bitset
}

// Problem is the packing problem of the world. Classes of one rules-key share
// their bitsets.
func (w *World) Problem() *packing.Problem {
	set := w.Snapshot.Settings
	p := &packing.Problem{
		Dims: w.Dims, LimitDims: w.LimitDims,
		CostPerNode: set.CostPerNode, OptionPriceCap: set.OptionPriceCap, Seed: w.Snapshot.Seed, Work: set.Work,
	}
	p.Pools = make([]packing.Pool, len(w.Pools))
	for i := range w.Pools {
		s := w.Pools[i].Spec
		p.Pools[i] = packing.Pool{Name: s.Name, Weight: s.Weight, Remaining: w.remaining(&w.Pools[i])}
	}
	p.Templates = make([]packing.Template, len(w.Templates))
	for i := range w.Templates {
		t := &w.Templates[i]
		if i > 0 && t.alike(&w.Templates[i-1]) {
			// Variants of one pool differ in labels only: they share their tables.
			p.Templates[i] = p.Templates[i-1]
			p.Templates[i].Name = t.Name
			continue
		}
		p.Templates[i] = w.packTemplate(t)
	}
	d := len(w.Dims)
	free := make([]int64, 0, d*len(w.Targets))
	p.Nodes = make([]packing.Node, len(w.Targets))
	for k, i := range w.Targets {
		n := &w.Nodes[i]
		free = w.vector(&n.Free, free)
		p.Nodes[k] = packing.Node{Name: n.Name, Free: free[k*d : (k+1)*d : (k+1)*d]}
	}
	if w.allow == nil {
		w.allowances()
		w.readSteps()
	}
	w.place(p)
	return p
}

func covers(have, need []int64) bool {
	for i := range need {
		if need[i] > have[i] {
			return false
		}
	}
	return true
}

// alike reports whether two templates have the same types, offers and daemon pods.
func (t *Template) alike(o *Template) bool {
	if t.Pool != o.Pool || len(t.offers) != len(o.offers) || len(t.offers) > 0 && &t.offers[0] != &o.offers[0] {
		return false
	}
	return t.kind == o.kind && slices.Equal(t.daemons.of, o.daemons.of) &&
		slices.EqualFunc(t.daemons.groups, o.daemons.groups, func(a, b daemonGroup) bool { return slices.Equal(a.daemons, b.daemons) })
}

func (w *World) packTemplate(t *Template) packing.Template {
	pool := &w.Pools[t.Pool]
	out := packing.Template{Name: t.Name, Pool: t.Pool, Types: make([]packing.Type, len(t.types)), Offers: make([]packing.Offer, len(t.offers))}
	d, l := len(w.Dims), len(w.LimitDims)
	vec := make([]int64, 0, len(t.types)*(d+l))
	daemons := w.daemonVectors(t)
	for i, ti := range t.types {
		r := &t.u.types[ti]
		n := len(vec)
		vec = w.vector(&r.Allocatable, vec)
		over := daemons[int(t.daemons.of[i])*d:]
		for k := range d {
			vec[n+k] -= over[k]
		}
		w.addSlots(vec[n:n+d], t, i)
		for _, k := range w.LimitDims {
			v := int64(1)
			if k != snapshot.Nodes {
				v = r.Capacity.Get(k)
			}
			vec = append(vec, v)
		}
		family, _ := r.Label(catalog.LabelFamily)
		out.Types[i] = packing.Type{
			Name: r.Type.Name, Family: family,
			Alloc: vec[n : n+d : n+d], Capacity: vec[n+d : n+d+l : n+d+l],
			Exotic: r.Exotic && !pool.named,
		}
	}
	markets := make([]packing.Market, len(t.u.markets))
	for i, m := range t.u.markets {
		markets[i] = packing.Market{Zone: m.zone, Capacity: m.capacity, Rank: 1}
		if m.capacity == catalog.Reserved {
			markets[i].Rank, markets[i].Count, markets[i].Reservation = 0, m.count-w.reserved[m.reservation], m.reservation
		}
	}
	for o, of := range t.offers {
		f := &t.u.offers[of]
		out.Offers[o] = packing.Offer{Market: &markets[f.at], Type: int(t.offerType[o]), Price: f.price}
		if len(t.u.setback) > 0 {
			out.Offers[o].Penalty = t.u.penalty(of)
			out.Offers[o].Price += out.Offers[o].Penalty
		}
	}
	out.MinValues = minValues(pool, t)
	return out
}

// minValues lists, per requirement with minValues, which values each type brings.
func minValues(p *Pool, t *Template) []packing.MinValues {
	var out []packing.MinValues
	for r := range p.reqs.All() {
		if r.MinValues() == 0 {
			continue
		}
		mv := packing.MinValues{Key: r.Key(), Min: r.MinValues(), Values: make([][]int32, len(t.types))}
		c := t.u.column(r.Key())
		if offerKey(r.Key()) {
			for o, of := range t.offers {
				id, k := c.ids[of], t.offerType[o]
				if id != absent && !slices.Contains(mv.Values[k], id) {
					mv.Values[k] = append(mv.Values[k], id)
				}
			}
		} else {
			backing := make([]int32, len(t.types))
			for k, ti := range t.types {
				if id := c.ids[ti]; id != absent {
					backing[k] = id
					mv.Values[k] = backing[k : k+1 : k+1]
				}
			}
		}
		out = append(out, mv)
	}
	return out
}

// checkMinValues refuses a pool whose types cannot bring the variety that it asks
// for, whatever the pod.
func (w *World) checkMinValues(p *Pool, t *Template) bool {
	code, detail := w.minValuesUnmet(p, t)
	if code != "" {
		p.refuse(code, detail)
	}
	return code == ""
}

func (w *World) minValuesUnmet(p *Pool, t *Template) (plan.Code, string) {
	if w.Snapshot.Settings.MinValuesBestEffort {
		return "", ""
	}
	for _, mv := range minValues(p, t) {
		seen := map[int32]bool{}
		for _, vs := range mv.Values {
			for _, v := range vs {
				seen[v] = true
			}
		}
		if len(seen) < mv.Min {
			return plan.MinValuesUnmet, fmt.Sprintf("%s: minValues %d, but its types with an offer bring %d", mv.Key, mv.Min, len(seen)) + also(p.Short())
		}
	}
	return "", ""
}

// allowances evaluates every rules-key once.
func (w *World) allowances() {
	w.allow = make([]allowance, len(w.Rules))
	preferring := false
	for i := range w.Templates {
		for k := range w.Templates[i].taints {
			preferring = preferring || w.Templates[i].taints[k].Effect == preferNoSchedule
		}
	}
	every := packing.NewBitset(len(w.Targets))
	for k := range w.Targets {
		every.Set(k)
	}
	targetOf := make([]int32, len(w.Nodes))
	for i := range targetOf {
		targetOf[i] = -1
	}
	for k, i := range w.Targets {
		targetOf[i] = int32(k)
	}
	// Rules that end in the same sets share them: packing recognises shared slices.
	var open *allowance
	for r := range w.Rules {
		rules := &w.Rules[r]
		a := &w.allow[r]
		if rules.refused == "" {
			a.offers, a.relaxed = w.allowOffers(rules, preferring)
		} else {
			a.offers = make([]packing.Bitset, len(w.Templates))
		}
		a.nodes = w.allowNodes(rules, every, targetOf)
		if unrestricted(a.offers, w.Templates) && a.relaxed == nil {
			if open == nil {
				open = a
			}
			a.offers = open.offers
		}
	}
}

// unrestricted reports whether every offer of every template is allowed.
func unrestricted(offers []packing.Bitset, templates []Template) bool {
	for i := range offers {
		if len(templates[i].full) > 0 && (offers[i] == nil || &offers[i][0] != &templates[i].full[0]) {
			return false
		}
	}
	return true
}

func (w *World) allowOffers(r *Rules, preferring bool) (strict, relaxed []packing.Bitset) {
	strict = make([]packing.Bitset, len(w.Templates))
	for i := range w.Templates {
		t := &w.Templates[i]
		if !t.toleratedBy(r.Spec.Tolerations, true) {
			continue
		}
		bits := w.sharedFilter(t, r, t.portFilter(t.match(r), r.Spec.HostPorts))
		if bits == nil {
			continue
		}
		if preferring && !t.toleratedBy(r.Spec.Tolerations, false) {
			if relaxed == nil {
				relaxed = make([]packing.Bitset, len(w.Templates))
			}
			relaxed[i] = bits
			continue
		}
		strict[i] = bits
	}
	if relaxed != nil {
		for i := range strict {
			if strict[i] != nil {
				relaxed[i] = strict[i]
			}
		}
	}
	return strict, relaxed
}

// allowNodes are the targets that rules pass, less those with a host port taken.
func (w *World) allowNodes(r *Rules, every packing.Bitset, targetOf []int32) packing.Bitset {
	if len(w.Targets) == 0 {
		return nil
	}
	bits := w.nodes.match(r, func(t *snapshot.Taint) bool { return Tolerates(r.Spec.Tolerations, t) })
	if bits == nil {
		return nil
	}
	if &bits[0] == &w.nodes.open[0] && len(r.Spec.HostPorts) == 0 && len(r.shared) == 0 {
		return every
	}
	out := packing.NewBitset(len(w.Targets))
	any := false
	bits.Members(func(i int) {
		if k := targetOf[i]; k >= 0 && firstPortConflict(r.Spec.HostPorts, w.Nodes[i].Ports) == nil && !meets(r.shared, w.Nodes[i].noRoom) {
			out.Set(int(k))
			any = true
		}
	})
	if !any {
		return nil
	}
	return out
}

// portConflicts tells packing which classes want the same host port.
func (w *World) portConflicts(p *packing.Problem) {
	var with []int
	for i := range w.Classes {
		if len(w.Rules[w.Classes[i].Rules].Spec.HostPorts) > 0 {
			with = append(with, i)
		}
	}
	for _, i := range with {
		a := w.Rules[w.Classes[i].Rules].Spec.HostPorts
		for _, k := range with {
			if firstPortConflict(a, w.Rules[w.Classes[k].Rules].Spec.HostPorts) != nil {
				p.Classes[i].Conflicts = append(p.Classes[i].Conflicts, int32(k))
			}
		}
	}
}
