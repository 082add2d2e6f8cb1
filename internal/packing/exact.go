package packing

import (
	"math/bits"
	"slices"
)

// Limits of the exhaustive search: 3^exactPods steps a node or market.
const (
	exactPods  = 9
	exactNodes = 24
)

// exact is the exhaustive search over few pods: every split between existing nodes
// and every partition of the rest into new ones.
type exact struct {
	s     *solver
	pod   []int // class by pod
	full  int
	need  [][]int64 // by subset
	clash []int     // by pod: pods it may not share a node with
	apart []int     // by pod: pods it may not share a new node with
	caps  []sum     // caps that concern some pod
	best  []int64   // by subset: least price as one new node
	node  []pnode   // by subset: that node
	// plain says, per pod, that an ordinary type can hold it.
	plain []bool
}

// solveExact solves a small problem exactly and reports whether it did: few pods,
// every pod at home at one weight, no pool limit within reach, no counted offers.
func (s *solver) solveExact() bool {
	total := 0
	for _, n := range s.left {
		if total += n; total > exactPods {
			return false
		}
	}
	if total == 0 || len(s.p.Fixed) > 0 || len(s.p.Nodes) > exactNodes || s.counted() {
		return false
	}
	weight, ok := s.oneWeight()
	if !ok {
		return false
	}
	e := &exact{s: s}
	e.load()
	e.single(weight)
	placedAt, from := e.existing()
	part, cost := e.partition()
	homeless := 0 // no new node can hold them even alone
	for i := range e.pod {
		if e.best[1<<i] < 0 {
			if s.fitsSomewhere(e.pod[i]) {
				return false // limits or minValues keep it out here: other weights may not
			}
			homeless |= 1 << i
		}
	}
	// The most pods placed, then the least price, then the most pods on nodes that
	// exist.
	bestS, bestCost, bestOut := 0, int64(-1), len(e.pod)+1
	for sub := 0; sub <= e.full; sub++ {
		if !placedAt[sub] {
			continue
		}
		out := bits.OnesCount(uint(e.full &^ sub & homeless))
		c := cost[e.full&^sub&^homeless]
		if c < 0 || out > bestOut {
			continue
		}
		more := bits.OnesCount(uint(sub)) - bits.OnesCount(uint(bestS))
		if out < bestOut || c < bestCost || (c == bestCost && more > 0) {
			bestS, bestCost, bestOut = sub, c, out
		}
	}
	if bestCost < 0 {
		return false
	}
	var nodes []*pnode
	for rest := e.full &^ bestS &^ homeless; rest != 0; rest &^= part[rest] {
		n := e.node[part[rest]]
		nodes = append(nodes, &n)
	}
	if !s.nodesFit(nodes) {
		return false
	}
	for _, n := range nodes {
		n.level = weight
		s.count(n, 1)
	}
	s.nodes = nodes
	e.place(from, bestS)
	clear(s.left)
	for i, c := range e.pod {
		if (e.full&^bestS&homeless)&(1<<i) != 0 {
			s.left[c]++
		}
	}
	return true
}

// oneWeight finds the single weight at which all classes open nodes; classes without
// offers have no say.
func (s *solver) oneWeight() (int32, bool) {
	var weight int32
	seen := false
	for c := range s.p.Classes {
		if s.left[c] == 0 {
			continue
		}
		home, ok := s.home(c)
		if !ok {
			continue
		}
		if seen && home != weight {
			return 0, false
		}
		weight, seen = home, true
	}
	return weight, true
}

// home is the heaviest weight of a template that can host one pod of the class.
func (s *solver) home(c int) (int32, bool) {
	if s.most[c] == 0 {
		return 0, false
	}
	cl := &s.p.Classes[c]
	var weight int32
	found := false
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		w := s.p.Pools[tm.Pool].Weight
		if t >= len(cl.Offers) || cl.Offers[t] == nil || (found && w <= weight) {
			continue
		}
		cl.Offers[t].Members(func(o int) {
			if ty := &tm.Types[tm.Offers[o].Type]; covers(ty.Alloc, cl.Need) && s.withinLimits(tm.Pool, ty.Capacity) {
				weight, found = w, true
			}
		})
	}
	return weight, found
}

// fitsSomewhere reports whether any offer that the class allows could hold one pod.
func (s *solver) fitsSomewhere(c int) bool {
	if s.most[c] == 0 {
		return false
	}
	cl := &s.p.Classes[c]
	found := false
	for t := range s.p.Templates {
		if t < len(cl.Offers) && cl.Offers[t] != nil {
			tm := &s.p.Templates[t]
			cl.Offers[t].Members(func(o int) {
				found = found || covers(tm.Types[tm.Offers[o].Type].Alloc, cl.Need)
			})
		}
	}
	return found
}

func (e *exact) load() {
	s := e.s
	for c, n := range s.left {
		for range n {
			e.pod = append(e.pod, c)
		}
	}
	k := len(e.pod)
	e.full = 1<<k - 1
	e.need = make([][]int64, e.full+1)
	e.need[0] = make([]int64, s.d)
	for sub := 1; sub <= e.full; sub++ {
		low := bits.TrailingZeros(uint(sub))
		v := slices.Clone(e.need[sub&(sub-1)])
		for r, x := range s.p.Classes[e.pod[low]].Need {
			v[r] += x
		}
		e.need[sub] = v
	}
	e.clash, e.apart = make([]int, k), make([]int, k)
	for i := range e.pod {
		for j := range e.pod {
			if i != j && slices.Contains(s.p.Classes[e.pod[i]].Conflicts, int32(e.pod[j])) {
				e.clash[i] |= 1 << j
			}
			if i != j && slices.Contains(s.p.Classes[e.pod[i]].Apart, int32(e.pod[j])) {
				e.apart[i] |= 1 << j
			}
		}
	}
	e.loadCaps()
}

// sum is what every subset of pods counts in a cap.
type sum struct {
	cap int32
	of  []int // by subset
}

func (e *exact) loadCaps() {
	for k := range e.s.p.Caps {
		weight := make([]int, len(e.pod))
		some := false
		for i, c := range e.pod {
			for _, r := range e.s.caps(c) {
				if int(r.cap) == k {
					weight[i], some = int(r.weight), true
				}
			}
		}
		if !some {
			continue
		}
		of := make([]int, e.full+1)
		for sub := 1; sub <= e.full; sub++ {
			of[sub] = of[sub&(sub-1)] + weight[bits.TrailingZeros(uint(sub))]
		}
		e.caps = append(e.caps, sum{int32(k), of})
	}
}

// joins reports whether rules between pods let a subset share existing node n.
func (e *exact) joins(sub, n int) bool {
	if quarrel(e.clash, sub) {
		return false
	}
	for i := range e.caps {
		k := e.caps[i].cap
		if cp := &e.s.p.Caps[k]; !cp.New && e.caps[i].of[sub] > 0 && e.caps[i].of[sub]+e.s.carries(k, n) > cp.Max {
			return false
		}
	}
	return true
}

// together reports whether rules between pods let a subset share a new node.
func (e *exact) together(sub int) bool {
	for i := range e.caps {
		if v := e.caps[i].of[sub]; v > 0 && v > e.s.p.Caps[e.caps[i].cap].Max {
			return false
		}
	}
	return !quarrel(e.clash, sub) && !quarrel(e.apart, sub)
}

// quarrel reports whether two pods of a subset are a pair of clash.
func quarrel(clash []int, sub int) bool {
	for i := range clash {
		if sub&(1<<i) != 0 && clash[i]&sub != 0 {
			return true
		}
	}
	return false
}

// single finds, for every subset, the cheapest offer that holds it as one new node.
func (e *exact) single(weight int32) {
	e.best = make([]int64, e.full+1)
	e.node = make([]pnode, e.full+1)
	e.plain = make([]bool, len(e.pod))
	for i := range e.pod {
		e.plain[i] = e.cheapest(1<<i, weight, false)
	}
	for sub := 1; sub <= e.full; sub++ {
		e.best[sub] = -1
		if !e.together(sub) {
			continue
		}
		exotic := false // exotic types only with a pod that has nothing else
		for i := range e.pod {
			if sub&(1<<i) != 0 && !e.plain[i] {
				exotic = true
			}
		}
		e.cheapest(sub, weight, exotic)
	}
}

func (e *exact) cheapest(sub int, weight int32, exotic bool) bool {
	s := e.s
	found := false
	e.best[sub] = -1
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		if s.p.Pools[tm.Pool].Weight != weight {
			continue
		}
		offers := e.offers(sub, t)
		if offers == nil {
			continue
		}
		offers.Members(func(o int) {
			of := &tm.Offers[o]
			ty := &tm.Types[of.Type]
			price := of.Price + s.p.CostPerNode
			if (ty.Exotic && !exotic) || !covers(ty.Alloc, e.need[sub]) {
				return
			}
			if e.best[sub] >= 0 && price >= e.best[sub] {
				return
			}
			book := s.admit(tm, of.Type, e.need[sub], offers)
			if book == nil {
				return
			}
			found = true
			e.best[sub] = price
			e.node[sub] = pnode{template: t, typ: of.Type, offer: o, price: price, offers: offers, use: e.need[sub], book: book, contents: e.contents(sub)}
		})
	}
	return found
}

// offers intersects what the pods of a subset allow of a template; nil if nothing.
func (e *exact) offers(sub, t int) Bitset {
	var out Bitset
	for i, c := range e.pod {
		if sub&(1<<i) == 0 {
			continue
		}
		o := e.s.p.Classes[c].Offers
		if t >= len(o) || o[t] == nil {
			return nil
		}
		if out == nil {
			out = o[t].Clone()
		} else if !out.And(o[t]) {
			return nil
		}
	}
	return out
}

func (e *exact) contents(sub int) []ClassCount {
	var out []ClassCount
	for i, c := range e.pod {
		if sub&(1<<i) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Class == c {
			out[n-1].Count++
		} else {
			out = append(out, ClassCount{c, 1})
		}
	}
	return out
}

// partition finds the cheapest way to cut every subset into new nodes: its price (-1:
// none) and the first node, which holds the subset's lowest pod.
func (e *exact) partition() (part []int, cost []int64) {
	part = make([]int, e.full+1)
	cost = make([]int64, e.full+1)
	for sub := 1; sub <= e.full; sub++ {
		cost[sub] = -1
		low := sub & -sub
		rest := sub &^ low
		for x := rest; ; x = (x - 1) & rest {
			one := x | low
			if p := e.best[one]; p >= 0 && cost[sub&^one] >= 0 {
				if c := p + cost[sub&^one]; cost[sub] < 0 || c < cost[sub] {
					cost[sub], part[sub] = c, one
				}
			}
			if x == 0 {
				break
			}
		}
	}
	return part, cost
}

// existing tells which subsets fit on the nodes there are, and for each node and
// subset what the node itself then holds.
func (e *exact) existing() (can []bool, from [][]int) {
	s := e.s
	can = make([]bool, e.full+1)
	can[0] = true
	for n := range s.p.Nodes {
		fit := make([]bool, e.full+1)
		allowed := 0
		for i, c := range e.pod {
			if s.p.Classes[c].Nodes.Has(n) {
				allowed |= 1 << i
			}
		}
		free := s.p.Nodes[n].Free
		negative := slices.ContainsFunc(free, func(v int64) bool { return v < 0 })
		for sub := 0; sub <= e.full; sub++ {
			fit[sub] = sub == 0 || (!negative && sub&^allowed == 0 && covers(free, e.need[sub]) && e.joins(sub, n))
		}
		next := slices.Clone(can)
		own := make([]int, e.full+1)
		for sub := 1; sub <= e.full; sub++ {
			for x := sub; x > 0; x = (x - 1) & sub {
				if fit[x] && can[sub&^x] && !next[sub] {
					next[sub], own[sub] = true, x
				}
			}
		}
		from = append(from, own)
		can = next
	}
	return can, from
}

// place records the pods that stay on existing nodes.
func (e *exact) place(from [][]int, sub int) {
	for n := len(from) - 1; n >= 0; n-- {
		own := from[n][sub]
		for _, cc := range e.contents(own) {
			e.s.placed = append(e.s.placed, Placed{n, cc.Class, cc.Count})
		}
		sub &^= own
	}
}

// nodesFit reports whether planned nodes keep all limits together.
func (s *solver) nodesFit(nodes []*pnode) bool {
	ok := true
	for _, n := range nodes {
		s.count(n, 1)
	}
	for i := range s.p.Pools {
		for k := range s.p.LimitDims {
			ok = ok && s.capacityLeft(i, k) >= 0
		}
	}
	for _, n := range nodes {
		s.count(n, -1)
	}
	return ok
}

// counted reports whether any template has counted offers.
func (s *solver) counted() bool {
	for t := range s.p.Templates {
		for o := range s.p.Templates[t].Offers {
			if s.p.Templates[t].Offers[o].Count > 0 {
				return true
			}
		}
	}
	return false
}
