package scheduling

import (
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
)

// dealer gives every pending pod a cell: a domain of each key that some rule about
// other pods looks at. It goes pod by pod and asks of each what kube-scheduler would
// ask at that moment, so that there is an order in which the scheduler accepts them
// all. What is left open (which node) is package packing's.
type dealer struct {
	w *World
	// soft tells that preferences count.
	soft        bool
	units       []*unit
	stance      []stance
	spreads     []*spreading
	attractions []*attraction
	anti        map[int32]*repulsion
	needs       [][][]int64 // by rules-key: what its classes need
	pending     []int       // by rules-key: planned pods
	free        [][]int64   // by target: what the deal leaves there; nil: new nodes only
	setOf       map[setKey]*cellSet
	parts       []*part
	dealt       map[place]int
	costs       *costs
	offered     map[[2]int][]int32 // domains by key and template
}

type setKey struct {
	offers *packing.Bitset
	nodes  *uint64
	keys   string
}

// unit are pods that are dealt alike: those of one class, or bundles of pods that must
// share a node.
type unit struct {
	base     int      // class of its first member
	members  []member // what one unit is made of
	pods     []int32  // unit after unit
	size     int      // pods in one unit
	requests snapshot.Resources
	need     []int64
	// left are the units still to deal, by the number of preferences that they have
	// lost for good.
	left    []int
	keys    []int
	sets    []*cellSet // by level
	costs   map[*cell]int64
	cursors map[*cell]*cursor
	dealt   map[*cell]int
	// counting are the spreads of other pods that count these.
	counting []*spreading
	most     []hostCap // of them on one node
	// pinned units go to these nodes and no other; bundled ones share a node.
	pinned  packing.Bitset
	bundled bool
	stuck   refusal
	rank    int
}

// member are n pods of one class in a unit.
type member struct{ class, rules, n int }

// part are units of one kind that share a cell and have lost the same preferences.
type part struct {
	unit  *unit
	cell  *cell
	level int
	count int
}

// cursor walks the nodes of a cell for one unit; room only gets less.
type cursor struct {
	nodes []int32
	at    int
	taken int32 // units on the node at hand
}

// deal places units until nothing moves any more. A unit that is refused may be
// accepted later: another pod may open its domain.
func (d *dealer) deal() {
	for moved := true; moved; {
		moved = false
		for _, u := range d.units {
			for floor := range u.left {
				for u.left[floor] > 0 && d.one(u, floor) {
					u.left[floor]--
					moved = true
				}
			}
		}
	}
	for _, u := range d.units {
		if sumInts(u.left) > 0 && u.stuck.code == "" {
			u.stuck = d.stuck(u)
		}
	}
}

func sumInts(list []int) int {
	n := 0
	for _, v := range list {
		n += v
	}
	return n
}

// one deals one unit that has lost its first preferences already; it loses more only
// if nothing else will do.
func (d *dealer) one(u *unit, floor int) bool {
	for level := floor; level < len(u.sets); level++ {
		set := u.sets[level]
		if set == nil {
			continue
		}
		var best *cell
		var bestRoom bool
		var bestCost int64
		var bestCrowd int32
		for i := range set.cells {
			c := &set.cells[i]
			if d.full(u, c) {
				continue
			}
			room := d.room(u, c)
			cost := int64(0)
			if !room {
				if cost = d.cost(u, c); cost < 0 {
					continue
				}
			}
			crowd := crowd(u.counting, c.dom)
			if best != nil && !better(room, cost, crowd, u.dealt[c], bestRoom, bestCost, bestCrowd, u.dealt[best]) || !d.admits(u, c, level) {
				continue
			}
			best, bestRoom, bestCost, bestCrowd = c, room, cost, crowd
		}
		if best != nil {
			d.give(u, best, level, bestRoom)
			return true
		}
	}
	return false
}

// better: room that is there before price, then the domain where they crowd out fewer
// pods that must be spread, then the one with fewer of them.
func better(room bool, cost int64, crowd int32, n int, room2 bool, cost2 int64, crowd2 int32, n2 int) bool {
	switch {
	case room != room2:
		return room
	case cost != cost2:
		return cost < cost2
	case crowd != crowd2:
		return crowd < crowd2
	}
	return n < n2
}

// admits asks for every pod of a unit, one after the other.
func (d *dealer) admits(u *unit, c *cell, level int) bool {
	if u.size == 1 {
		t, _ := d.check(u.members[0].rules, c.dom, level)
		return t == nil
	}
	ok, joined := true, 0
	for _, m := range u.members {
		for range m.n {
			if t, _ := d.check(m.rules, c.dom, level); t != nil {
				ok = false
				break
			}
			d.join(m.rules, c.dom)
			joined++
		}
		if !ok {
			break
		}
	}
	for _, m := range u.members {
		for range min(m.n, joined) {
			d.leave(m.rules, c.dom)
			joined--
		}
	}
	return ok
}

func (d *dealer) give(u *unit, c *cell, level int, room bool) {
	for _, m := range u.members {
		for range m.n {
			d.join(m.rules, c.dom)
		}
	}
	if room {
		cur := u.cursors[c]
		free := d.free[cur.nodes[cur.at]]
		for r, v := range u.need {
			free[r] -= v
		}
		cur.taken++
	}
	u.dealt[c]++
	d.filled(u, c)
	for _, p := range d.parts {
		if p.unit == u && p.cell == c && p.level == level {
			p.count++
			return
		}
	}
	d.parts = append(d.parts, &part{u, c, level, 1})
}

// room reports whether a node of the cell that exists has room for one more, as far as
// the deal can tell. It leaves the cursor at that node.
func (d *dealer) room(u *unit, c *cell) bool {
	if c.nodes == nil {
		return false
	}
	cur := u.cursors[c]
	if cur == nil {
		cur = &cursor{}
		c.nodes.Members(func(n int) { cur.nodes = append(cur.nodes, int32(n)) })
		u.cursors[c] = cur
	}
	for ; cur.at < len(cur.nodes); cur.at, cur.taken = cur.at+1, 0 {
		n := cur.nodes[cur.at]
		if !fitsInto(d.free[n], u.need) {
			continue
		}
		ok := true
		for i := range u.most {
			ok = ok && cur.taken+u.most[i].used[n] < u.most[i].max
		}
		if ok {
			return true
		}
	}
	return false
}

// fitsInto: a node with less than nothing of some resource takes no pod.
func fitsInto(free, need []int64) bool {
	for r := range need {
		if free[r] < 0 || free[r] < need[r] {
			return false
		}
	}
	return true
}

// cost is about what one unit costs on new nodes of a cell: the cheapest offer by the
// share of it that the unit takes; -1 when no offer is large enough.
func (d *dealer) cost(u *unit, c *cell) int64 {
	if v, ok := u.costs[c]; ok {
		return v
	}
	v := d.costs.of(u, c)
	u.costs[c] = v
	return v
}

// shareOf is the largest share of a resource that need takes, in parts per million; -1
// when it does not fit.
func shareOf(have, need []int64) int64 {
	share := int64(0)
	for r, v := range need {
		if v > have[r] {
			return -1
		}
		if v > 0 {
			share = max(share, ratio(v, have[r]))
		}
	}
	return share
}
