package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// describe writes what the nearest type fails.
func (w *World) describe(x *explainTable, pool, class int, k *candidate) (plan.Code, string) {
	var code plan.Code
	var parts []string
	say := func(c plan.Code, text string) {
		if code == "" {
			code = c
		}
		parts = append(parts, text)
	}
	var order []blame
	for b := range x.blames {
		if k.n.mask&(1<<b) != 0 {
			order = append(order, x.blames[b])
		}
	}
	slices.SortStableFunc(order, func(a, b blame) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.at, b.at), strings.Compare(a.key, b.key))
	})
	r := &w.Rules[w.Classes[class].Rules]
	for _, b := range order {
		switch b.kind {
		case byTaint:
			say(plan.TaintNotTolerated, "taint "+taintString(&x.t.taints[b.at])+" is not tolerated")
		case byLabel:
			say(w.describeLabel(x, pool, r, b.key, k))
		case byUnusable:
			t := &x.t.u.types[k.typ]
			say(plan.NoInstanceTypeFits, t.Type.Name+": "+t.Unusable)
		case byPort:
			say(w.describePort(x, r, k))
		case byVolume:
			say(plan.VolumeTopology, w.describeVolume(r, b.at, pool))
		case byOffer:
			say(plan.NoOffering, w.describeOffer(x, pool, r, k))
		case byShort:
			say(plan.InsufficientCapacity, w.describeShortage(class, pool))
		}
	}
	asks := w.asks(&w.Classes[class], nil)
	for d, name := range w.Dims {
		need, have := asks[d], x.alloc[k.typ*len(w.Dims)+d]
		if need > have && strings.HasPrefix(name, attachPrefix) {
			say(plan.VolumeLimit, w.describeSlots(x, pool, class, k, &shortfall{name, need, have}))
		} else if need > have {
			say(plan.NoInstanceTypeFits, w.describeShort(x, pool, class, k, &shortfall{name, need, have}))
		}
	}
	return code, strings.Join(parts, "; and ")
}

// describeLabel compares what the pod wants of a label with what the pool gives.
func (w *World) describeLabel(x *explainTable, pool int, r *Rules, key string, k *candidate) (plan.Code, string) {
	if key == "" {
		return plan.RequirementConflict, "the required node affinity has no term with an expression, so no node matches"
	}
	p := &w.Pools[pool]
	var want requirements.Set
	if alts := r.forNew(); len(alts) > 0 {
		for _, q := range alts[k.n.alt] {
			if q.Key() == key {
				want.Add(q)
			}
		}
	}
	if want.Len() == 0 {
		have, _ := p.reqs.Get(key)
		return plan.NoInstanceTypeFits, "the NodePool requires " + have.String()
	}
	wanted, _ := want.Get(key)
	if c := p.all().Compatible(want, requirements.WellKnown); c != nil {
		text := key + ": the pod wants " + c.Want + ", the NodePool has " + c.Have
		if c.Hint != "" {
			text += " (did you mean " + c.Hint + "?)"
		}
		return plan.RequirementConflict, text
	}
	if offerKey(key) {
		return plan.NoOffering, "no available offer with " + wanted.String() + ": the NodePool offers " + list(w.values(p, key))
	}
	if have := w.values(p, key); len(have) > 0 {
		return plan.NoInstanceTypeFits, "no type of the NodePool has " + wanted.String() + ": its types have " + list(have)
	}
	return plan.NoInstanceTypeFits, "no type of the NodePool has " + wanted.String()
}

// values lists the values of a label over the pool's available offers, sorted.
func (w *World) values(p *Pool, key string) []string {
	c := p.u.column(key)
	seen := map[int32]bool{}
	if offerKey(key) {
		for _, o := range p.offers {
			seen[c.ids[o]] = true
		}
	} else {
		for _, t := range p.types {
			seen[c.ids[t]] = true
		}
	}
	delete(seen, absent)
	out := make([]string, 0, len(seen))
	for id := range seen {
		out = append(out, c.values[id])
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(numeric(a), numeric(b)), strings.Compare(a, b)) })
	return out
}

// numeric sorts numbers by value and before everything else.
func numeric(s string) int64 {
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || i > 16 {
			return 1 << 62
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n
}

func list(values []string) string {
	const most = 8
	if len(values) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(values[:most], ", "), len(values)-most)
	}
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(values, ", ")
}

func (w *World) describePort(x *explainTable, r *Rules, k *candidate) (plan.Code, string) {
	for _, d := range x.t.daemons.groups[x.t.daemons.of[k.typ]].daemons {
		dm := &w.daemons[d]
		if p := firstPortConflict(r.Spec.HostPorts, dm.ports); p != nil {
			return plan.HostPortTaken, "host port " + portString(p) + " is taken on every node by DaemonSet " + dm.namespace + "/" + dm.name
		}
	}
	return plan.HostPortTaken, "a host port is taken by a DaemonSet"
}

func (w *World) describeOffer(x *explainTable, pool int, r *Rules, k *candidate) string {
	o := &x.t.u.offers[k.n.offer]
	var wants []string
	if alts := r.forNew(); len(alts) > 0 {
		for _, q := range alts[k.n.alt] {
			if requirements.WellKnown(q.Key()) {
				wants = append(wants, q.String())
			}
		}
	}
	text := "no available offer"
	if len(wants) > 0 {
		text += " with " + strings.Join(wants, ", ")
	}
	text += fmt.Sprintf(": %s %s in zone %s: %s", x.t.u.types[k.typ].Type.Name, o.capacity, o.zone, o.why)
	p := &w.Pools[pool]
	return text + "; the NodePool offers zones " + list(w.values(p, catalog.LabelZone)) + " as " + list(w.values(p, catalog.LabelCapacityType))
}

// describeShort says how much of a resource the nearest type lacks.
func (w *World) describeShort(x *explainTable, pool, class int, k *candidate, s *shortfall) string {
	name := x.t.u.types[k.typ].Type.Name
	amount := amount
	if amount(s.resource, s.need) == amount(s.resource, s.have) {
		amount = plan.Quantity // too near for rounded figures
	}
	after := ""
	if over := x.t.daemons.groups[x.t.daemons.of[k.typ]].requests; over.Get(s.resource) > 0 {
		after = " after daemonsets"
	}
	most, mostType := w.most(x, pool, class, k, s.resource)
	if most == s.have {
		mostType = name // of the largest, the one that is nearest in all
	}
	need := amount(s.resource, s.need) + " " + s.resource
	if s.need >= snapshot.MaxQuantity { // the figure asked for is beyond what is counted
		return fmt.Sprintf("needs %s or more %s; the largest allowed type %s gives %s%s",
			plan.Rounded(s.resource, s.need), s.resource, mostType, amount(s.resource, most), after)
	}
	switch {
	case most <= 0 && s.have <= 0 && after != "":
		return fmt.Sprintf("needs %s; no allowed type has any left%s", need, after) + w.greedy(x.t.daemons.groups[x.t.daemons.of[k.typ]].daemons, s.resource)
	case most <= 0 && s.have <= 0:
		return "needs " + need + "; no allowed type has any" + w.keptOut(x, pool, class, k)
	case most >= s.need:
		return fmt.Sprintf("needs %s with everything else; %s has enough, but the nearest allowed type with the rest, %s, gives %s%s: %s short%s%s",
			need, mostType, name, amount(s.resource, s.have), after, amount(s.resource, s.need-s.have), x.t.u.turnedOut(name, s.resource), w.keptOut(x, pool, class, k))
	}
	return fmt.Sprintf("needs %s; the largest allowed type %s gives %s%s: %s short%s%s",
		need, mostType, amount(s.resource, most), after, amount(s.resource, s.need-most), x.t.u.turnedOut(mostType, s.resource), w.keptOut(x, pool, class, k))
}

// greedy names the DaemonSet, of those given, that takes most of a resource.
func (w *World) greedy(daemons []int32, resource string) string {
	best := int32(-1)
	for _, d := range daemons {
		if best < 0 || w.daemons[d].requests.Get(resource) > w.daemons[best].requests.Get(resource) {
			best = d
		}
	}
	if best < 0 {
		return ""
	}
	d := &w.daemons[best]
	return fmt.Sprintf(": DaemonSet %s/%s takes %s", d.namespace, d.name, amount(resource, d.requests.Get(resource)))
}

// most finds the allowed type that gives most of a resource.
func (w *World) most(x *explainTable, pool, class int, k *candidate, resource string) (int64, string) {
	row := x.rows[w.Classes[class].Rules]
	d := slices.Index(w.Dims, resource)
	best, name := int64(-1), ""
	for i := range row {
		if row[i].offer < 0 || row[i].poolOnly != k.n.poolOnly || row[i].mask&^shortOffer != k.n.mask {
			continue
		}
		if v := x.alloc[i*len(w.Dims)+d]; v > best {
			best, name = v, x.t.u.types[i].Type.Name
		}
	}
	return best, name
}

// keptOut names a requirement of the pool alone that keeps out a type on which
// the pod would fit.
func (w *World) keptOut(x *explainTable, pool, class int, k *candidate) string {
	c := &w.Classes[class]
	row := x.rows[c.Rules]
	need := w.asks(c, nil)
	best := candidate{typ: -1}
	for i := range row {
		n := row[i]
		if n.offer < 0 || n.poolOnly == 0 || n.mask&^n.poolOnly != k.n.mask&^k.n.poolOnly {
			continue
		}
		if m := x.weigh(need, i, n); m.short == 0 && (best.typ < 0 || m.rules < best.rules) {
			best = m
		}
	}
	if best.typ < 0 {
		return ""
	}
	var keys []string
	for b := range x.blames {
		if best.n.poolOnly&(1<<b) != 0 {
			if r, ok := w.Pools[pool].reqs.Get(x.blames[b].key); ok {
				keys = append(keys, r.String())
			}
		}
	}
	slices.Sort(keys)
	return fmt.Sprintf(" (%s would do, but the NodePool requires %s)", x.t.u.types[best.typ].Type.Name, strings.Join(keys, ", "))
}

// all is everything that the pool says about its nodes' labels.
func (p *Pool) all() requirements.Set {
	out := p.reqs.Clone()
	for _, k := range sortedKeys(p.labels) {
		out.Add(requirements.In(k, p.labels[k]))
	}
	for _, o := range p.open {
		out.Add(o.req)
	}
	return out
}

// amount writes a quantity for a sentence: cores with a point, memory rounded.
func amount(resource string, v int64) string {
	if resource != snapshot.CPU {
		return plan.Rounded(resource, v)
	}
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	text := fmt.Sprintf("%s%d.%03d", sign, v/1000, v%1000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
