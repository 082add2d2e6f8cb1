package scheduling

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// explainFree is for a pod that no rule keeps out of the pool: limits, minValues,
// or the search. No rule stands in the way, so such a pool is nearer than others.
func (w *World) explainFree(class, pool int, hits []packing.LimitHit, exhausted bool) Reason {
	best := -1
	for i := range hits {
		if w.Templates[hits[i].Template].Pool != pool || hits[i].Dim < 0 {
			continue
		}
		if best < 0 || over(&hits[i]) < over(&hits[best]) {
			best = i
		}
	}
	if best >= 0 {
		h := &hits[best]
		k := w.LimitDims[h.Dim]
		limit := w.Pools[pool].Spec.Limits[k]
		return Reason{Miss: over(h), PoolVerdict: plan.PoolVerdict{Code: plan.LimitReached,
			Detail: fmt.Sprintf("limit %s %s: %s used with this plan%s, %s left, and the smallest node for the pod takes %s%s",
				k, amount(k, limit), amount(k, snapshot.Clamp(limit)-h.Left), w.goingIn(pool), amount(k, h.Left), amount(k, h.Needed), w.choiceIn(pool))}}
	}
	if detail := w.minValuesFor(class, pool); detail != "" {
		return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.MinValuesUnmet, Detail: detail}}
	}
	if detail := w.portTakenIn(class, pool); detail != "" {
		return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.HostPortTaken, Detail: detail}}
	}
	if detail := w.roomBesideDaemons(class, pool); detail != "" {
		return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.NoInstanceTypeFits, Detail: detail}}
	}
	if detail := w.reservedOnly(class, pool); detail != "" {
		return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.NoOffering, Detail: detail}}
	}
	if detail := w.minValuesTogether(class, pool); detail != "" {
		return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.MinValuesUnmet, Detail: detail}}
	}
	if exhausted {
		return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.StepLimit, Detail: "the search stopped at its work budget before it placed the pod; raise KERF_WORK"}}
	}
	return Reason{Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.Unschedulable, Detail: "an offer of the pool would take the pod, but the plan did not use it"}}
}

// over is how far a limit is exceeded, as a share of what a node takes, so that
// limits of different resources compare.
func over(h *packing.LimitHit) int64 {
	return ratio(snapshot.Clamp(h.Needed)-snapshot.Clamp(h.Left), max(h.Needed, 1))
}

// goingIn tells how many nodes of a pool are going and still count.
func (w *World) goingIn(pool int) string {
	n := 0
	for i := range w.Nodes {
		if w.Nodes[i].Pool == w.Pools[pool].Spec.Name && w.Nodes[i].Closed != "" {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	if n == 1 {
		return " (1 node that is going counts until it is gone)"
	}
	return fmt.Sprintf(" (%d nodes that are going count until they are gone)", n)
}

// minValuesFor says which minValues the types that take a pod of the class miss.
func (w *World) minValuesFor(class, pool int) string {
	if w.Snapshot.Settings.MinValuesBestEffort {
		return ""
	}
	c := &w.Classes[class]
	p := &w.Pools[pool]
	for ti := range w.Templates {
		t := &w.Templates[ti]
		if t.Pool != pool || w.allow == nil || w.allow[c.Rules].offers[ti] == nil {
			continue
		}
		ok := make([]bool, len(t.types))
		w.allow[c.Rules].offers[ti].Members(func(o int) {
			k := t.offerType[o]
			rest := t.u.types[t.types[k]].Allocatable.Sub(t.daemons.groups[t.daemons.of[k]].requests)
			ok[k] = ok[k] || c.Requests.Fits(rest) && w.slotsFit(c, t, int(k))
		})
		for _, mv := range minValues(p, t) {
			seen := map[int32]bool{}
			for k := range ok {
				if ok[k] {
					for _, v := range mv.Values[k] {
						seen[v] = true
					}
				}
			}
			if len(seen) < mv.Min {
				return fmt.Sprintf("%s: minValues %d, but the types that can host the pod bring %d", mv.Key, mv.Min, len(seen)) + also(p.Short())
			}
		}
	}
	return ""
}

// portTakenIn names the DaemonSet that has the host port of a pod on every node that the
// pod's own choice of an open label leads to.
func (w *World) portTakenIn(class, pool int) string {
	r := &w.Rules[w.Classes[class].Rules]
	if len(r.Spec.HostPorts) == 0 {
		return ""
	}
	text := ""
	for ti := range w.Templates {
		t := &w.Templates[ti]
		if t.Pool != pool || !t.toleratedBy(r.Spec.Tolerations, true) {
			continue
		}
		bits := t.match(r)
		if bits == nil {
			continue
		}
		if t.portFilter(bits, r.Spec.HostPorts) != nil {
			return ""
		}
		for i := range t.daemons.groups {
			for _, d := range t.daemons.groups[i].daemons {
				if p := firstPortConflict(r.Spec.HostPorts, w.daemons[d].ports); p != nil && text == "" {
					text = "host port " + portString(p) + " is taken on every node by DaemonSet " + w.daemons[d].namespace + "/" + w.daemons[d].name
				}
			}
		}
	}
	return text
}

// roomBesideDaemons names the type that comes nearest to hosting a pod, where the pod's
// own choice of an open label brings daemon pods that other nodes of the pool have not.
func (w *World) roomBesideDaemons(class, pool int) string {
	c := &w.Classes[class]
	r := &w.Rules[c.Rules]
	text, least := "", int64(-1)
	for ti := range w.Templates {
		t := &w.Templates[ti]
		if t.Pool != pool || !t.toleratedBy(r.Spec.Tolerations, true) {
			continue
		}
		bits := t.match(r)
		if bits == nil {
			continue
		}
		fits := false
		bits.Members(func(o int) {
			k := t.offerType[o]
			rest := t.u.types[t.types[k]].Allocatable.Sub(t.daemons.groups[t.daemons.of[k]].requests)
			r := c.Requests.Missing(rest)
			if r == "" {
				fits = true
				return
			}
			need, have := c.Requests.Get(r), rest.Get(r)
			if miss := ratio(need-have, need); least < 0 || miss < least {
				least = miss
				text = fmt.Sprintf("needs %s %s; %s gives %s beside its daemon pods", amount(r, need), r, t.u.types[t.types[k]].Type.Name, amount(r, have))
			}
		})
		if fits {
			return ""
		}
	}
	return text
}

// choiceIn remarks that a node counts as the largest of the types that minValues wants.
func (w *World) choiceIn(pool int) string {
	if !w.Snapshot.Settings.MinValuesBestEffort && slices.ContainsFunc(w.Pools[pool].Spec.Requirements, func(r snapshot.SelectorRequirement) bool { return r.MinValues > 0 }) {
		return " with the choice of types that minValues wants"
	}
	return ""
}

// minValuesTogether is for a pod whose types bring enough values, one requirement at a
// time, but no single node can have them all as options: its limits leave too few, or
// the types that one requirement needs take those of another.
func (w *World) minValuesTogether(class, pool int) string {
	if w.Snapshot.Settings.MinValuesBestEffort {
		return ""
	}
	var parts []string
	for r := range w.Pools[pool].reqs.All() {
		if r.MinValues() > 0 {
			parts = append(parts, fmt.Sprintf("%s: minValues %d", r.Key(), r.MinValues()))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := "no node for the pod has a choice of types with " + strings.Join(parts, " and ")
	var limits []string
	for _, k := range w.LimitDims {
		if _, ok := w.Pools[pool].Spec.Limits[k]; ok {
			limits = append(limits, k)
		}
	}
	if len(limits) > 0 {
		text += " within what is left of limit " + strings.Join(limits, ", ")
	}
	return text
}

// emptyPool says why a pool has no type with an offer.
func (w *World) emptyPool(p *Pool) (plan.Code, string) {
	for r := range p.reqs.All() {
		if r.Impossible() {
			return plan.NoInstanceTypeFits, "the NodePool's requirements on " + r.Key() + " contradict each other: no value satisfies all"
		}
	}
	i := slices.IndexFunc(w.Pools, func(q Pool) bool { return q.Spec == p.Spec })
	if len(p.short) > 0 {
		return plan.InsufficientCapacity, p.Short() + "; the NodePool has no other"
	}
	x := w.table(i)
	best, bestType, bestOffer := uint64(0), -1, int32(-1)
	for t := range x.typeFail {
		for k := x.t.u.first[t]; k < x.t.u.first[t+1]; k++ {
			m := x.typeFail[t] | x.offerFail[k]
			if bestType < 0 || bits.OnesCount64(m) < bits.OnesCount64(best) {
				best, bestType, bestOffer = m, t, k
			}
		}
	}
	if bestType < 0 {
		return plan.NoInstanceTypeFits, "the catalogue has no type with an offer"
	}
	o := &x.t.u.offers[bestOffer]
	name := x.t.u.types[bestType].Type.Name
	code := plan.NoInstanceTypeFits
	var parts []string
	byOffers := true
	for b := range x.blames {
		if best&(1<<b) == 0 {
			continue
		}
		byOffers = byOffers && (x.blames[b].kind == byOffer || x.blames[b].kind == byShort || offerKey(x.blames[b].key))
		switch x.blames[b].kind {
		case byUnusable:
			parts = append(parts, x.t.u.types[bestType].Unusable)
		case byOffer:
			code = plan.NoOffering
			parts = append(parts, o.why)
		case byShort:
			parts = append(parts, o.why)
		case byLabel:
			r, _ := p.reqs.Get(x.blames[b].key)
			parts = append(parts, "the NodePool requires "+r.String())
		}
	}
	if byOffers {
		code = plan.NoOffering
	}
	return code, fmt.Sprintf("no type with an available offer is left; the nearest, %s %s in zone %s, fails: %s", name, o.capacity, o.zone, strings.Join(parts, "; "))
}
