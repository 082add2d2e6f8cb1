package scheduling

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// bundle turns required pod affinity by hostname into units that share a node: pods go
// to nodes that run what they look for, or with pending pods that they look for, or, if
// they look for their own kind and none runs, all on one node (kube-scheduler: the
// first pod of a kind may go anywhere).
func (d *dealer) bundle() {
	for at := 0; at < len(d.units); at++ {
		u := d.units[at]
		terms, step := d.together(u)
		if len(terms) == 0 || u.stuck.code != "" {
			continue
		}
		n := sumInts(u.left)
		if step >= 0 { // a preference that some have lost already
			n = sumInts(u.left[:step+1])
		}
		if n == 0 {
			continue
		}
		rest := d.join1(at, u, terms, n, step)
		if rest == 0 {
			continue
		}
		if step >= 0 { // what cannot be kept is lost
			clear(u.left[:step+1])
			u.left[step+1] += rest
			at-- // another preference may want the same
			continue
		}
		// What is left of the unit stays, with the reason.
		u.bundled, u.stuck = true, refusal{plan.PodAffinityUnmet, d.crowded(u, terms)}
	}
	d.units = slices.DeleteFunc(d.units, func(u *unit) bool { return sumInts(u.left) == 0 })
}

// together are the terms that make pods share a node: required ones (step -1), or the
// first preferred one that counts still.
func (d *dealer) together(u *unit) ([]int32, int) {
	w := d.w
	if u.bundled || u.pinned != nil {
		return nil, -1
	}
	r := u.members[0].rules
	terms := w.topo.carry[r].affinity
	if slices.ContainsFunc(terms, func(k int32) bool { return isHostname(w.topo.terms[k].key) }) {
		return terms, -1
	}
	if !d.soft {
		return nil, -1
	}
	for i, s := range w.Rules[r].steps {
		if s.kind == stepAffinity && isHostname(w.topo.terms[s.term].key) && sumInts(u.left[:i+1]) > 0 {
			return []int32{s.term}, i
		}
	}
	return nil, -1
}

// join1 makes bundles of n pods of the unit at a position and returns how many found
// none. Pods that did leave the unit.
func (d *dealer) join1(at int, u *unit, terms []int32, n, step int) int {
	w := d.w
	runs := w.selectedByAll(terms)
	running := d.attraction(terms, u.members[0].rules).total > 0 // what has a place by now included
	if running && d.free != nil {
		n -= d.beside(u, runs, n)
	}
	for i := 0; i < len(d.units) && n > 0; i++ {
		o := d.units[i]
		if i == at || o.stuck.code != "" || o.pinned != nil || sumInts(o.left) == 0 || !slices.ContainsFunc(o.members, func(m member) bool { return w.matchesAll(m.rules, terms) }) {
			continue
		}
		n -= d.attach(u, o, n)
	}
	if n > 0 && !running && w.matchesAll(u.members[0].rules, terms) {
		if k := min(n, d.largest(u, nil)); k > 0 {
			d.split(u, nil, k, 1)
			n -= k
		}
	}
	return n
}

// beside pins up to n pods to nodes that run what they look for.
func (d *dealer) beside(u *unit, runs []int32, n int) int {
	w := d.w
	r := u.members[0].rules
	at := packing.NewBitset(len(w.Targets))
	target := w.targetIndex()
	for _, k := range runs {
		for _, list := range [...][]int32{w.topo.runs[k].nodes, w.topo.runs[k].dying} {
			for _, node := range list {
				if i := target[node]; i >= 0 && w.hosts.nodes(w, r).Has(int(i)) {
					at.Set(int(i))
				}
			}
		}
	}
	need := w.unitNeed(u.members)
	room := 0
	at.Members(func(i int) {
		k := int64(n)
		for dim, v := range need {
			if d.free[i][dim] < 0 {
				k = 0
			} else if v > 0 {
				k = min(k, d.free[i][dim]/v)
			}
		}
		for _, c := range w.hosts.most(r, 1) {
			k = min(k, int64(c.max-c.used[i]))
		}
		room += int(max(k, 0))
	})
	k := min(n, room)
	if k == 0 {
		return 0
	}
	pods := d.give1(u, k)
	d.units = append(d.units, &unit{base: u.base, members: u.members, pods: pods, size: 1, requests: u.requests, left: []int{k}, pinned: at})
	return k
}

// give1 takes k pods out of a unit.
func (d *dealer) give1(u *unit, k int) []int32 {
	pods := u.pods[:k*u.size]
	u.pods = u.pods[k*u.size:]
	for i := range u.left {
		n := min(u.left[i], k)
		u.left[i] -= n
		k -= n
	}
	return pods
}

// attach gives units of o pods of u for company: as evenly as it goes, and no more than
// some node holds.
func (d *dealer) attach(u, o *unit, n int) int {
	hosts := sumInts(o.left)
	most := d.largest(u, o)
	if most == 0 {
		return 0
	}
	given := 0
	per := min(most, (n+hosts-1)/hosts)
	if whole := min(n/per, hosts); whole > 0 {
		d.split(u, o, per, whole)
		given += whole * per
	}
	if rest := min(n-given, most); rest > 0 && sumInts(o.left) > 0 {
		d.split(u, o, rest, 1)
		given += rest
	}
	return given
}

// split makes times bundles of one unit of o (nil: none) and k of u.
func (d *dealer) split(u, o *unit, k, times int) {
	b := &unit{base: u.base, bundled: true, size: k * u.size, requests: scale(u.requests, int64(k))}
	levels := len(u.left)
	if o != nil {
		b.base, b.size = o.base, b.size+o.size
		b.requests = b.requests.Add(o.requests)
		b.members = slices.Clone(o.members)
		levels = len(o.left)
	}
	b.left = make([]int, levels)
	if d.soft {
		b.left[0] = times
	} else {
		b.left[levels-1] = times
	}
	for _, m := range u.members {
		b.members = append(b.members, member{m.class, m.rules, m.n * k})
	}
	for range times {
		if o != nil {
			b.pods = append(b.pods, d.give1(o, 1)...)
		}
		b.pods = append(b.pods, d.give1(u, k)...)
	}
	d.units = append(d.units, b)
}

// largest is how many of u fit on one node beside one of o (nil: nothing).
func (d *dealer) largest(u, o *unit) int {
	w := d.w
	need := w.unitNeed(u.members)
	base := make([]int64, len(need))
	offers := w.allow[u.members[0].rules].widest()
	nodes := w.hosts.nodes(w, u.members[0].rules)
	if o != nil {
		base = w.unitNeed(o.members)
		nodes = nodes.Common(w.nodesOf(o))
		both := slices.Clone(offers)
		for _, m := range o.members {
			more := w.allow[m.rules].widest()
			for t := range both {
				both[t] = both[t].Common(more[t])
			}
		}
		offers = both
	}
	best := 0
	try := func(room []int64) {
		k := int64(len(u.pods))
		for r := range need {
			left := room[r] - base[r]
			if left < 0 || room[r] < 0 {
				return
			}
			if need[r] > 0 {
				k = min(k, left/need[r])
			}
		}
		best = max(best, int(k))
	}
	for t, bits := range offers {
		tm := &w.Templates[t]
		last := int32(-1)
		bits.Members(func(o int) {
			if k := tm.offerType[o]; k != last {
				last = k
				try(w.left(tm, int(k)))
			}
		})
	}
	if d.free != nil {
		nodes.Members(func(i int) {
			if i < len(d.free) {
				try(d.free[i])
			}
		})
	}
	for _, c := range w.hosts.most(u.members[0].rules, 1) {
		best = min(best, int(c.max))
	}
	return best
}

// crowded says why pods find no company.
func (d *dealer) crowded(u *unit, terms []int32) string {
	w := d.w
	k := terms[0]
	for _, t := range terms {
		if isHostname(w.topo.terms[t].key) {
			k = t
		}
	}
	n := 0
	for _, r := range w.selectedByAll(terms) {
		n += len(w.topo.runs[r].nodes) + len(w.topo.runs[r].dying)
	}
	what := describeSelector(w.topo.terms[k].pods.sel)
	if n == 0 && d.largest(u, nil) > 0 && !w.matchesAll(u.members[0].rules, terms) {
		return fmt.Sprintf("podAffinity by hostname: no pod that it selects (%s) runs or is planned where it could join", what)
	}
	if n == 0 {
		return fmt.Sprintf("podAffinity by hostname: its kind (%s) must share one node, and the largest that is allowed is full", what)
	}
	return fmt.Sprintf("podAffinity by hostname: no node that runs a pod which it selects (%s; %s there) has room", what, plan.Count(n, "pod"))
}

func scale(r snapshot.Resources, n int64) snapshot.Resources {
	out := snapshot.Resources{}
	for range n {
		addTo(&out, &r)
	}
	return out
}
