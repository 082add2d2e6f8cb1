package scheduling

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Reason is why one pool cannot host a pod of a class.
type Reason struct {
	plan.PoolVerdict
	// Rules is how many rules stand in the way together, Miss how far off the pod
	// is, in parts per million: reasons with fewer rules and a smaller miss are
	// nearer.
	Rules int
	Miss  int64
}

// far orders pools that cannot launch at all after those that a pod nearly fits.
const far = 1 << 20

// Explain says why each pool cannot host one more pod of a class, the nearest
// first. hits are the limits that packing met. The reason is the smallest set of
// rules without which some offer of the pool would take the pod: usually one.
func (w *World) Explain(class int, hits []packing.LimitHit, exhausted bool) []Reason {
	out := make([]Reason, 0, len(w.Pools))
	for i := range w.Pools {
		p := &w.Pools[i]
		r := Reason{PoolVerdict: plan.PoolVerdict{NodePool: p.Spec.Name, Code: p.Code, Detail: p.Detail}, Rules: far}
		if p.Code == "" {
			r = w.explainIn(class, i, hits, exhausted)
			r.NodePool = p.Spec.Name
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Rules, b.Rules), cmp.Compare(a.Miss, b.Miss), strings.Compare(a.NodePool, b.NodePool))
	})
	return out
}

// blame is one rule that keeps a pod away.
type blame struct {
	kind int
	key  string // label, or taint
	at   int    // taint index
}

// Kinds of blame, the order in which a message names them.
const (
	byTaint = iota
	byLabel
	byUnusable
	byPort
	byOffer
)

// explainTable is a pool with every type and offer of the catalogue, allowed or
// not, and what of the pool's own requirements each of them fails.
type explainTable struct {
	t         *Template
	blames    []blame
	bit       map[string]uint64
	keys      []string // of the pool's requirements
	typeFail  []uint64 // by type
	offerFail []uint64 // by offer
	unusable  uint64
	noOffer   uint64
	port      uint64
	tainted   uint64
	rows      map[int][]nearest
}

// nearest is the offer of a type with the fewest failed rules.
type nearest struct {
	mask     uint64 // rules that fail
	poolOnly uint64 // of the pool alone: the pod says nothing about these labels
	alt      int32
	offer    int32
}

func (x *explainTable) add(b blame) uint64 {
	id := fmt.Sprint(b.kind, b.key, b.at)
	if v, ok := x.bit[id]; ok {
		return v
	}
	n := min(len(x.blames), 63) // the rest shares the last bit
	if n == len(x.blames) {
		x.blames = append(x.blames, b)
	}
	x.bit[id] = 1 << n
	return 1 << n
}

func (w *World) table(pool int) *explainTable {
	if x := w.explain[pool]; x != nil {
		return x
	}
	p := &w.Pools[pool]
	u := p.u
	types := make([]int32, len(u.types))
	for i := range types {
		types[i] = int32(i)
	}
	offers := make([]int32, len(u.offers))
	for i := range offers {
		offers[i] = int32(i)
	}
	base := map[string]string{}
	for k, v := range p.labels {
		base[k] = v
	}
	x := &explainTable{
		t: newTemplate(u, p.Spec.Taints, base, types, offers), bit: map[string]uint64{},
		typeFail: make([]uint64, len(types)), offerFail: make([]uint64, len(offers)), rows: map[int][]nearest{},
	}
	x.t.Pool = pool
	for _, o := range p.open {
		if !o.absent {
			base[o.key] = o.def
		}
	}
	x.t.daemons = w.groupDaemons(x.t)
	for _, o := range p.open {
		delete(base, o.key)
	}
	x.unusable = x.add(blame{kind: byUnusable})
	x.noOffer = x.add(blame{kind: byOffer})
	x.port = x.add(blame{kind: byPort})
	for i := range u.types {
		if u.types[i].Unusable != "" {
			x.typeFail[i] |= x.unusable
		}
	}
	for k := range u.offers {
		if u.offers[k].why != "" {
			x.offerFail[k] |= x.noOffer
		}
	}
	for r := range p.reqs.All() {
		bit := x.add(blame{kind: byLabel, key: r.Key()})
		x.keys = append(x.keys, r.Key())
		x.mark(&r, bit, x.typeFail, x.offerFail)
	}
	if w.explain == nil {
		w.explain = map[int]*explainTable{}
	}
	w.explain[pool] = x
	return x
}

// mark sets a bit on the types or offers that a requirement excludes.
func (x *explainTable) mark(r *requirements.Requirement, bit uint64, types, offers []uint64) {
	c := x.t.u.column(r.Key())
	ok := c.table(r, nil)
	list := types
	if offerKey(r.Key()) {
		list = offers
	}
	for i := range list {
		if !ok[c.ids[i]+1] {
			list[i] |= bit
		}
	}
}

// row finds, per type, the offer with the fewest failed rules for a rules-key.
func (w *World) row(pool, rules int) []nearest {
	x := w.table(pool)
	if row, ok := x.rows[rules]; ok {
		return row
	}
	p, r := &w.Pools[pool], &w.Rules[rules]
	row := make([]nearest, len(x.t.types))
	for i := range row {
		row[i].offer = -1
	}
	var common uint64
	for i := range x.t.taints {
		if t := &x.t.taints[i]; t.Effect != preferNoSchedule && !Tolerates(r.Spec.Tolerations, t) {
			common |= x.add(blame{kind: byTaint, at: i})
			x.tainted |= common
		}
	}
	ported := make([]uint64, len(x.t.daemons.groups))
	for i := range ported {
		if firstPortConflict(r.Spec.HostPorts, x.t.daemons.groups[i].ports) != nil {
			ported[i] = x.port
		}
	}
	alts := r.Alternatives
	if len(alts) == 0 {
		alts = [][]requirements.Requirement{nil}
		common |= x.add(blame{kind: byLabel, key: ""})
	}
	for a, alt := range alts {
		base := common
		var spoken uint64 // pool keys that the pod speaks about
		types, offers := slices.Clone(x.typeFail), slices.Clone(x.offerFail)
		for i := range alt {
			q := &alt[i]
			bit := x.add(blame{kind: byLabel, key: q.Key()})
			spoken |= bit
			if v, ok := x.t.label(q.Key()); ok {
				if !q.Has(v) {
					base |= bit
				}
				continue
			}
			if k := slices.IndexFunc(p.open, func(o open) bool { return o.key == q.Key() }); k >= 0 {
				if p.open[k].req.Intersect(*q).Impossible() {
					base |= bit
				}
				continue
			}
			x.mark(q, bit, types, offers)
		}
		var poolKeys uint64
		for _, k := range x.keys {
			poolKeys |= x.add(blame{kind: byLabel, key: k})
		}
		only := poolKeys &^ spoken
		for i := range row {
			tm := base | types[i] | ported[x.t.daemons.of[i]]
			for k := x.t.u.first[i]; k < x.t.u.first[i+1]; k++ {
				n := nearest{mask: tm | offers[k], alt: int32(a), offer: k}
				n.poolOnly = n.mask & only
				if row[i].offer < 0 || n.before(&row[i]) {
					row[i] = n
				}
			}
		}
	}
	x.rows[rules] = row
	return row
}

func (n *nearest) before(o *nearest) bool {
	return cmp.Or(cmp.Compare(bits.OnesCount64(n.poolOnly), bits.OnesCount64(o.poolOnly)),
		cmp.Compare(bits.OnesCount64(n.mask), bits.OnesCount64(o.mask))) < 0
}

// candidate is a type compared with what a pod needs.
type candidate struct {
	typ    int
	n      nearest
	short  []shortfall
	rules  int
	miss   int64
	excess int // pool-only failures
}

// shortfall is one resource of which a type has too little.
type shortfall struct {
	resource   string
	need, have int64
}

func (w *World) explainIn(class, pool int, hits []packing.LimitHit, exhausted bool) Reason {
	c := &w.Classes[class]
	row := w.row(pool, c.Rules)
	x := w.explain[pool]
	best := candidate{typ: -1}
	for i := range row {
		if row[i].offer < 0 {
			continue
		}
		k := w.weigh(x, c, i, row[i])
		if best.typ < 0 || k.before(&best) {
			best = k
		}
	}
	if best.typ < 0 {
		return Reason{PoolVerdict: plan.PoolVerdict{Code: plan.NoInstanceTypeFits, Detail: "the catalogue has no type"}, Rules: far}
	}
	out := Reason{Rules: best.rules, Miss: best.miss}
	if best.rules == 0 {
		return w.explainFree(class, pool, hits, exhausted)
	}
	out.Code, out.Detail = w.describe(x, pool, class, &best)
	return out
}

func (k *candidate) before(o *candidate) bool {
	return cmp.Or(cmp.Compare(k.excess, o.excess), cmp.Compare(k.rules, o.rules), cmp.Compare(k.miss, o.miss)) < 0
}

// Misses of rules that are not a matter of degree, so that reasons can be ordered.
const (
	wholeMiss = 1_000_000
	taintMiss = wholeMiss * 9 / 10 // one toleration mends it
	offerMiss = wholeMiss / 2      // capacity comes and goes
)

func (w *World) weigh(x *explainTable, c *Class, typ int, n nearest) candidate {
	k := candidate{typ: typ, n: n, excess: bits.OnesCount64(n.poolOnly)}
	k.rules = bits.OnesCount64(n.mask)
	k.miss = int64(k.rules)*wholeMiss - int64(bits.OnesCount64(n.mask&x.tainted))*(wholeMiss-taintMiss)
	if n.mask&x.noOffer != 0 {
		k.miss -= wholeMiss - offerMiss
	}
	alloc := &x.t.u.types[typ].Allocatable
	over := &x.t.daemons.groups[x.t.daemons.of[typ]].requests
	for _, d := range w.Dims {
		need := c.Requests.Get(d)
		have := alloc.Get(d) - over.Get(d)
		if need <= have {
			continue
		}
		k.short = append(k.short, shortfall{d, need, have})
		k.rules++
		k.miss += ratio(need-have, need)
	}
	return k
}

// ratio is short/need in parts per million, without overflow.
func ratio(short, need int64) int64 {
	for short > 1<<40 {
		short, need = short>>10, need>>10
	}
	return short * wholeMiss / max(need, 1)
}

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
		case byOffer:
			say(plan.NoOffering, w.describeOffer(x, pool, r, k))
		}
	}
	for i := range k.short {
		say(plan.NoInstanceTypeFits, w.describeShort(x, pool, class, k, &k.short[i]))
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
	if len(r.Alternatives) > 0 {
		for _, q := range r.Alternatives[k.n.alt] {
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
	if len(r.Alternatives) > 0 {
		for _, q := range r.Alternatives[k.n.alt] {
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
	after := ""
	if over := x.t.daemons.groups[x.t.daemons.of[k.typ]].requests; over.Get(s.resource) > 0 {
		after = " after daemonsets"
	}
	most, mostType := w.most(x, pool, class, k, s.resource)
	need := amount(s.resource, s.need) + " " + s.resource
	switch {
	case most <= 0 && s.have <= 0:
		return "needs " + need + "; no allowed type has any" + w.keptOut(x, pool, class, k)
	case most >= s.need:
		return fmt.Sprintf("needs %s with everything else; %s has enough, but the nearest allowed type with the rest, %s, gives %s%s: %s short%s",
			need, mostType, name, amount(s.resource, s.have), after, amount(s.resource, s.need-s.have), w.keptOut(x, pool, class, k))
	}
	return fmt.Sprintf("needs %s; the largest allowed type %s gives %s%s: %s short%s",
		need, name, amount(s.resource, s.have), after, amount(s.resource, s.need-s.have), w.keptOut(x, pool, class, k))
}

// most finds the allowed type that gives most of a resource.
func (w *World) most(x *explainTable, pool, class int, k *candidate, resource string) (int64, string) {
	row := x.rows[w.Classes[class].Rules]
	best, name := int64(-1), ""
	for i := range row {
		if row[i].offer < 0 || row[i].poolOnly != k.n.poolOnly || row[i].mask != k.n.mask {
			continue
		}
		over := x.t.daemons.groups[x.t.daemons.of[i]].requests
		if v := x.t.u.types[i].Allocatable.Get(resource) - over.Get(resource); v > best {
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
	best := candidate{typ: -1}
	for i := range row {
		n := row[i]
		if n.offer < 0 || n.poolOnly == 0 || n.mask&^n.poolOnly != k.n.mask&^k.n.poolOnly {
			continue
		}
		if m := w.weigh(x, c, i, n); len(m.short) == 0 && (best.typ < 0 || m.rules < best.rules) {
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

// explainFree is for a pod that no rule keeps out of the pool: limits, minValues,
// or the search.
func (w *World) explainFree(class, pool int, hits []packing.LimitHit, exhausted bool) Reason {
	best := -1
	for i := range hits {
		if w.Templates[hits[i].Template].Pool != pool || hits[i].Dim < 0 {
			continue
		}
		if best < 0 || hits[i].Needed-hits[i].Left < hits[best].Needed-hits[best].Left {
			best = i
		}
	}
	if best >= 0 {
		h := &hits[best]
		k := w.LimitDims[h.Dim]
		limit := w.Pools[pool].Spec.Limits[k]
		return Reason{Rules: 1, Miss: ratio(h.Needed-h.Left, max(h.Needed, 1)), PoolVerdict: plan.PoolVerdict{Code: plan.LimitReached,
			Detail: fmt.Sprintf("limit %s %s: %s used with this plan, %s left, and the smallest node for the pod takes %s",
				k, amount(k, limit), amount(k, snapshot.Clamp(limit)-h.Left), amount(k, h.Left), amount(k, h.Needed))}}
	}
	if detail := w.minValuesFor(class, pool); detail != "" {
		return Reason{Rules: 1, Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.MinValuesUnmet, Detail: detail}}
	}
	if exhausted {
		return Reason{Rules: 1, Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.StepLimit, Detail: "the search stopped at its work budget before it placed the pod; raise KERF_WORK"}}
	}
	return Reason{Rules: 1, Miss: wholeMiss, PoolVerdict: plan.PoolVerdict{Code: plan.Unschedulable, Detail: "an offer of the pool would take the pod, but the plan did not use it"}}
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
			ok[k] = ok[k] || c.Requests.Fits(rest)
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
				return fmt.Sprintf("%s: minValues %d, but the types that can host the pod bring %d", mv.Key, mv.Min, len(seen))
			}
		}
	}
	return ""
}

// emptyPool says why a pool has no type with an offer.
func (w *World) emptyPool(p *Pool) (plan.Code, string) {
	for r := range p.reqs.All() {
		if r.Impossible() {
			return plan.NoInstanceTypeFits, "the NodePool's requirements on " + r.Key() + " contradict each other: no value satisfies all"
		}
	}
	i := slices.IndexFunc(w.Pools, func(q Pool) bool { return q.Spec == p.Spec })
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
		byOffers = byOffers && (x.blames[b].kind == byOffer || offerKey(x.blames[b].key))
		switch x.blames[b].kind {
		case byUnusable:
			parts = append(parts, x.t.u.types[bestType].Unusable)
		case byOffer:
			code = plan.NoOffering
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
