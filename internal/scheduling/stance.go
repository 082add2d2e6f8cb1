package scheduling

import (
	"slices"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
)

// counter counts pods by the domains of one key.
type counter struct {
	key   int
	count []int32
	total int32
}

func (c *counter) add(dom []int32) {
	if d := dom[c.key]; d >= 0 {
		c.count[d]++
		c.total++
	}
}

func (c *counter) take(dom []int32) {
	if d := dom[c.key]; d >= 0 {
		c.count[d]--
		c.total--
	}
}

// spreading is one spread term as pods of one rules-key see it: which nodes count
// depends on their own selector (kube-scheduler: nodeAffinityPolicy, nodeTaintsPolicy).
type spreading struct {
	counter
	term    int32
	rules   int32
	self    int32  // 1 when the pods count themselves
	known   []bool // domains that exist for them
	domains int32
	passes  packing.Bitset // nodes that count
}

// least is the count that others are measured against.
func (s *spreading) least(minDomains int32) int32 {
	if s.domains < minDomains {
		return 0
	}
	least := int32(-1)
	for d, ok := range s.known {
		if ok && (least < 0 || s.count[d] < least) {
			least = s.count[d]
		}
	}
	return max(least, 0)
}

// attraction are the required pod affinity terms of a rules-key, or one preferred
// one. Pods count that match all of them together (kube-scheduler).
type attraction struct {
	terms []int32
	by    []counter // one per key that is dealt
	self  bool      // the pods match themselves: the first one may go anywhere
	total int32     // matching pods anywhere
}

// repulsion is one anti-affinity term: where pods are that it selects, and where pods
// are that carry it.
type repulsion struct {
	term              int32
	matched, carriers counter
}

// stance is how pods of one rules-key stand to others, hostname terms left out.
type stance struct {
	spread   []*spreading
	affinity *attraction
	anti     []*repulsion // carried
	kept     []*repulsion // carried by others, about these pods
	steps    []softStance // by step
	// counts are what grows when a pod is dealt.
	counts  []*counter
	attract []*attraction
}

// softStance is what a preference looks at; nothing for steps that are no deal.
type softStance struct {
	spread   *spreading
	affinity *attraction
	anti     *repulsion
}

func (w *World) matches(rules int, term int32) bool {
	_, ok := slices.BinarySearch(w.topo.matched[rules], term)
	return ok
}

func (w *World) matchesAll(rules int, terms []int32) bool {
	for _, k := range terms {
		if !w.matches(rules, k) {
			return false
		}
	}
	return true
}

// stances reads how all rules-keys stand to each other before anything is dealt.
func (d *dealer) stances() {
	w, t := d.w, d.w.topo
	d.stance = make([]stance, len(w.Rules))
	d.anti = map[int32]*repulsion{}
	d.countPending()
	for r := range w.Rules {
		st := &d.stance[r]
		c := &t.carry[r]
		for _, k := range c.spread {
			if !isHostname(t.terms[k].key) && d.binds(k) {
				st.spread = append(st.spread, d.spreading(k, r, c.spread))
			}
		}
		st.affinity = d.attraction(c.affinity, r)
		for _, k := range c.anti {
			if !isHostname(t.terms[k].key) && d.binds(k) {
				st.anti = append(st.anti, d.repulsion(k))
			}
		}
		if !d.soft {
			continue
		}
		st.steps = make([]softStance, len(w.Rules[r].steps))
		for i, s := range w.Rules[r].steps {
			if s.kind == stepNode || s.kind == stepTaint || isHostname(t.terms[s.term].key) {
				continue
			}
			switch s.kind {
			case stepSpread:
				if d.binds(s.term) {
					st.steps[i].spread = d.spreading(s.term, r, []int32{s.term})
				}
			case stepAffinity:
				st.steps[i].affinity = d.attraction([]int32{s.term}, r)
			case stepAnti:
				if d.binds(s.term) {
					st.steps[i].anti = d.repulsion(s.term)
				}
			}
		}
	}
	for k := range t.posts { // guards of pods that run
		if len(t.posts[k]) > 0 && !isHostname(t.terms[k].key) {
			d.repulsion(int32(k))
		}
	}
	for r := range w.Rules {
		st := &d.stance[r]
		for _, k := range t.matched[r] {
			if a := d.anti[k]; a != nil {
				st.counts = append(st.counts, &a.matched)
				st.kept = append(st.kept, a)
			}
		}
		for _, k := range t.carry[r].anti {
			if a := d.anti[k]; a != nil {
				st.counts = append(st.counts, &a.carriers)
			}
		}
		for _, s := range d.spreads {
			if w.matches(r, s.term) && d.overlap(r, int(s.rules)) {
				st.counts = append(st.counts, &s.counter)
			}
		}
		for _, a := range d.attractions {
			if w.matchesAll(r, a.terms) {
				st.attract = append(st.attract, a)
			}
		}
	}
}

// countPending counts the planned pods of every rules-key.
func (d *dealer) countPending() {
	d.pending = make([]int, len(d.w.Rules))
	for i := range d.w.base {
		c := &d.w.base[i]
		d.pending[c.Rules] += len(c.Pods)
	}
}

// binds reports whether a spread or an anti-affinity can ever refuse a pod. Where all
// pods together are too few, those that state it need no domain, and are left free.
func (d *dealer) binds(k int32) bool {
	w, t := d.w, d.w.topo
	tm := &t.terms[k]
	n := 0 // pods that it selects
	for _, r := range w.selected(k) {
		n += len(t.runs[r].nodes) + len(t.runs[r].dying)
	}
	carriers, own := 0, 0
	for r := range w.Rules {
		states := slices.Contains(t.carry[r].anti, k) || slices.ContainsFunc(w.Rules[r].steps, func(s step) bool { return s.kind == stepAnti && s.term == k })
		if w.matches(r, k) {
			n += d.pending[r]
			if states {
				own += d.pending[r]
			}
		}
		if states {
			carriers += d.pending[r]
		}
	}
	if tm.kind == spreadTerm { // it also refuses nodes without the label
		return n > int(tm.maxSkew) || !t.domains[w.domain(tm.key)].everywhere()
	}
	// A pod alone does not keep itself away.
	return n > 0 && (n > own || carriers > own || own > 1)
}

// overlap reports whether pods of rules a may be on nodes that count for rules b.
func (d *dealer) overlap(a, b int) bool {
	if a == b {
		return true
	}
	x, y := d.w.allow[a].widest(), d.w.allow[b].widest()
	for t := range x {
		if x[t] != nil && y[t] != nil && x[t].Intersects(y[t]) {
			return true
		}
	}
	n, m := d.w.allow[a].nodes, d.w.allow[b].nodes
	return n != nil && m != nil && n.Intersects(m)
}

func (d *dealer) newCounter(key string) counter {
	i := d.w.domain(key)
	return counter{key: i, count: make([]int32, len(d.w.topo.domains[i].names))}
}

// spreading counts what runs. A node counts if it passes the pods' own selector (and
// taints, where asked) and has all of the keys.
func (d *dealer) spreading(k int32, rules int, all []int32) *spreading {
	w, t := d.w, d.w.topo
	tm := &t.terms[k]
	s := &spreading{counter: d.newCounter(tm.key), term: k, rules: int32(rules)}
	if w.matches(rules, k) {
		s.self = 1
	}
	dom := t.domains[s.key]
	s.passes = w.counted(rules, tm)
	s.known = make([]bool, len(dom.names))
	know := func(v int32) {
		if v >= 0 && !s.known[v] {
			s.known[v] = true
			s.domains++
		}
	}
	keys := make([]int, 0, len(all))
	for _, o := range all {
		if key := t.terms[o].key; !isHostname(key) {
			keys = append(keys, w.domain(key))
		}
	}
	complete := func(n int) bool {
		return !slices.ContainsFunc(keys, func(key int) bool { return t.domains[key].node[n] < 0 })
	}
	s.passes = s.passes.Clone()
	for n := range w.Nodes {
		if s.passes.Has(n) && !complete(n) {
			s.passes.Clear(n)
		}
	}
	s.passes.Members(func(n int) { know(dom.node[n]) })
	for i, bits := range w.allow[rules].widest() {
		if bits == nil {
			continue
		}
		tm := &w.Templates[i]
		open := 0 // domains that an offer may yet bring
		for _, v := range d.domainsOf(s.key, i) {
			open += btoi(!s.known[v])
		}
		for o := range bits.All() {
			if open == 0 {
				break
			}
			if v := dom.offer[i][o]; v >= 0 && !s.known[v] && d.usable(rules, tm, o) {
				know(v)
				open--
			}
		}
	}
	for _, v := range w.extra[extraKey{k, int32(rules)}] {
		know(v)
	}
	for _, r := range w.selected(k) {
		for _, n := range t.runs[r].nodes {
			if v := dom.node[n]; v >= 0 && s.passes.Has(int(n)) {
				s.count[v]++
				s.total++
			}
		}
	}
	d.spreads = append(d.spreads, s)
	return s
}

// domainsOf lists the domains of a key that a template has offers in.
func (d *dealer) domainsOf(key, template int) []int32 {
	at := [2]int{key, template}
	out, ok := d.offered[at]
	if !ok {
		last := absent
		for _, v := range d.w.topo.domains[key].offer[template] {
			if v != last && v >= 0 && !slices.Contains(out, v) {
				out = append(out, v)
			}
			last = v
		}
		if d.offered == nil {
			d.offered = map[[2]int][]int32{}
		}
		d.offered[at] = out
	}
	return out
}

// usable reports whether some class of the rules-key fits the type of an offer.
func (d *dealer) usable(rules int, t *Template, o int) bool {
	k := t.offerType[o]
	rest := d.w.left(t, int(k))
	for _, need := range d.needs[rules] {
		if covers(rest, need) {
			return true
		}
	}
	return false
}

// counted are the nodes that a spread constraint counts on.
func (w *World) counted(rules int, tm *term) packing.Bitset {
	if len(w.Nodes) == 0 {
		return nil
	}
	r := w.Rules[rules]
	r.Volumes = nil // volumes say nothing about domains
	if tm.ignoreAffinity {
		r.Alternatives = anyAlternative
	}
	bits := w.nodes.match(&r, func(t *snapshot.Taint) bool {
		return !tm.honorTaints || Tolerates(r.Spec.Tolerations, t)
	})
	if bits == nil {
		return packing.NewBitset(len(w.Nodes))
	}
	return bits
}

func (d *dealer) attraction(terms []int32, rules int) *attraction {
	if len(terms) == 0 {
		return nil
	}
	w, t := d.w, d.w.topo
	for _, a := range d.attractions {
		if slices.Equal(a.terms, terms) {
			if w.matchesAll(rules, terms) == a.self {
				return a
			}
		}
	}
	a := &attraction{terms: terms, self: w.matchesAll(rules, terms)}
	var keys []string
	for _, k := range terms {
		if key := t.terms[k].key; !isHostname(key) && !slices.Contains(keys, key) {
			keys = append(keys, key)
			a.by = append(a.by, d.newCounter(key))
		}
	}
	for _, r := range w.selectedByAll(terms) {
		for _, list := range [...][]int32{t.runs[r].nodes, t.runs[r].dying} {
			for _, n := range list {
				a.count(t, n)
			}
		}
	}
	d.attractions = append(d.attractions, a)
	return a
}

// count adds a pod on a node.
func (a *attraction) count(t *topology, node int32) {
	a.total++
	for i := range a.by {
		if v := t.domains[a.by[i].key].node[node]; v >= 0 {
			a.by[i].count[v]++
		}
	}
}

// selectedByAll lists the runs that every one of some terms selects.
func (w *World) selectedByAll(terms []int32) []int32 {
	out := w.selected(terms[0])
	for _, k := range terms[1:] {
		also := w.selected(k)
		var both []int32
		for _, r := range out {
			if slices.Contains(also, r) {
				both = append(both, r)
			}
		}
		out = both
	}
	return out
}

func (d *dealer) repulsion(k int32) *repulsion {
	if a := d.anti[k]; a != nil {
		return a
	}
	w, t := d.w, d.w.topo
	key := t.terms[k].key
	a := &repulsion{term: k, matched: d.newCounter(key), carriers: d.newCounter(key)}
	dom := t.domains[a.matched.key]
	on := func(c *counter, n int32) {
		if v := dom.node[n]; v >= 0 {
			c.count[v]++
			c.total++
		}
	}
	for _, r := range w.selected(k) {
		for _, n := range t.runs[r].nodes {
			on(&a.matched, n)
		}
		for _, n := range t.runs[r].dying {
			on(&a.matched, n)
		}
	}
	for _, n := range t.posts[k] {
		on(&a.carriers, n)
	}
	d.anti[k] = a
	return a
}
