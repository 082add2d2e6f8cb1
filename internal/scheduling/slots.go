package scheduling

import (
	"strings"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
)

// Needs is what a unit of a class takes on a node: what it asks for, and the volumes that
// it alone attaches there.
func (w *World) Needs(class int) snapshot.Resources {
	c := &w.Classes[class]
	out := c.Requests
	for _, m := range c.membersOf() {
		for k, n := range w.Rules[m.rules].slots {
			out = out.With(k, out.Get(k)+n*int64(m.n))
		}
	}
	return out
}

// needs is Needs as a vector by Dims, appended to out.
func (w *World) needs(c *Class, out []int64) []int64 {
	n := len(out)
	out = w.vector(&c.Requests, out)
	if w.attach == nil {
		return out
	}
	for _, m := range c.membersOf() {
		if slots := w.Rules[m.rules].slots; slots != nil {
			for k, d := range w.Dims {
				out[n+k] += slots[d] * int64(m.n)
			}
		}
	}
	return out
}

// asks is needs with the volumes that other pods use too: what one unit of the class
// takes on a node of its own.
func (w *World) asks(c *Class, out []int64) []int64 {
	n := len(out)
	out = w.needs(c, out)
	var shared []int32
	for _, m := range c.membersOf() {
		for _, s := range w.Rules[m.rules].shared {
			if containsInt(shared, s) {
				continue
			}
			shared = append(shared, s)
			for k, d := range w.Dims {
				if d == attachPrefix+w.attach.shared[s].key.driver {
					out[n+k]++
				}
			}
		}
	}
	return out
}

// addSlots writes what a type of a template can attach into its vector by Dims: the
// limit, less the volumes of daemon pods, less the shared volumes that nodes of this kind
// can have.
func (w *World) addSlots(vec []int64, t *Template, i int) {
	if w.attach == nil {
		return
	}
	for k, d := range w.Dims {
		if driver, ok := strings.CutPrefix(d, attachPrefix); ok {
			vec[k] = max(0, w.slotsLeft(t, i, driver))
		}
	}
}

// slotsLeft is how many volumes of a driver a type of a template has left; negative when
// it cannot even have the shared ones.
func (w *World) slotsLeft(t *Template, i int, driver string) int64 {
	n := w.attach.limit(t.u.types[t.types[i]].Type, t.u.class, driver) - w.attach.taken(t.kind, driver)
	for _, d := range t.daemons.groups[t.daemons.of[i]].daemons {
		n -= w.daemons[d].volumes[driver]
	}
	return n
}

// slotsFit reports whether a type of a template can attach the volumes of a unit.
func (w *World) slotsFit(c *Class, t *Template, i int) bool {
	if w.attach == nil {
		return true
	}
	need := w.needs(c, nil)
	for k, d := range w.Dims {
		if driver, ok := strings.CutPrefix(d, attachPrefix); ok && need[k] > max(0, w.slotsLeft(t, i, driver)) {
			return false
		}
	}
	return true
}

// kinds is how many kinds of node a template comes in: one per set of shared volumes that
// pods have together.
func (w *World) kinds() int {
	if w.attach == nil {
		return 1
	}
	return len(w.attach.sets)
}

// sharedFilter cuts offers down to types that can attach every shared volume of this
// kind of node, for pods that have some; nil when nothing is left.
func (w *World) sharedFilter(t *Template, r *Rules, bits packing.Bitset) packing.Bitset {
	if len(r.shared) == 0 || bits == nil {
		return bits
	}
	set := w.attach.sets[t.kind]
	for _, s := range r.shared {
		if !containsInt(set, s) {
			return nil
		}
	}
	room := make([]bool, len(t.types))
	all := true
	for i := range room {
		room[i] = true
		for _, s := range set {
			room[i] = room[i] && w.slotsLeft(t, i, w.attach.shared[s].key.driver) >= 0
		}
		all = all && room[i]
	}
	if all {
		return bits
	}
	out := packing.NewBitset(len(t.offers))
	bits.Members(func(o int) {
		if room[t.offerType[o]] {
			out.Set(o)
		}
	})
	if out.Empty() {
		return nil
	}
	return out
}

// meets reports whether two lists share an element.
func meets(a, b []int32) bool {
	for _, x := range a {
		if containsInt(b, x) {
			return true
		}
	}
	return false
}

func containsInt(list []int32, x int32) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}
