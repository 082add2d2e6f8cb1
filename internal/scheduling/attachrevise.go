package scheduling

import (
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
)

// maxSlotRevisions bounds how often a node's slots are given to others.
const maxSlotRevisions = 2

// reviseSlots gives slots of nodes that exist to pods that packing found no room for
// there: those set aside for shared volumes that nobody brought, and those that pods with
// volumes of their own left. It reports whether anything is different.
func (w *World) reviseSlots(r *packing.Result) bool {
	a := w.attach
	if a == nil || len(a.booked) == 0 {
		return false
	}
	wanting := w.wanting(r)
	if len(wanting) == 0 {
		return false
	}
	left := map[int][]int64{} // by node, what the solution leaves
	for k := range a.booked {
		if n := a.booked[k].node; left[n] == nil {
			left[n] = w.vector(&w.Nodes[n].Free, nil)
		}
	}
	brought := map[int][]int32{}
	for _, p := range r.Placed {
		i := w.Targets[p.Node]
		if left[i] == nil {
			continue
		}
		c := &w.Classes[p.Class]
		for d, v := range w.needs(c, nil) {
			left[i][d] -= v * int64(p.Count)
		}
		for _, m := range c.membersOf() {
			brought[i] = append(brought[i], w.Rules[m.rules].shared...)
		}
	}
	can := make([]packing.Bitset, len(wanting))
	for k, class := range wanting {
		can[k] = a.reach(func(r *Rules) bool { return r == &w.Rules[w.Classes[class].Rules] })
	}
	changed := false
	for k := range a.booked {
		s := &a.booked[k]
		if s.revised == maxSlotRevisions {
			continue
		}
		var there []int32
		for _, v := range s.shared {
			if containsInt(brought[s.node], v) {
				there = append(there, v)
			}
		}
		spare := a.slotsOn(s, left[s.node], there)
		admitted := there
		for k, class := range wanting {
			if can[k].Has(s.node) && spare > 0 {
				admitted, spare = w.admit(s, class, left[s.node], admitted, spare)
			}
		}
		slices.Sort(admitted)
		if !slices.Equal(admitted, s.admitted) {
			s.admitted = admitted
			s.revised++
			a.apply(s)
			changed = true
		}
	}
	if changed {
		w.readNodesAgain()
	}
	return changed
}

// wanting are the classes that have pods on new nodes or nowhere, ascending.
func (w *World) wanting(r *packing.Result) []int {
	set := map[int]bool{}
	for _, u := range r.Unplaced {
		set[u.Class] = true
	}
	for i := range r.Launches {
		for _, c := range r.Launches[i].Contents {
			set[c.Class] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// slotsOn is how many volumes a node could attach beside those that a solution puts there.
func (a *attachments) slotsOn(s *nodeSlots, left []int64, there []int32) int64 {
	if d := slices.Index(a.w.Dims, attachPrefix+s.driver); d >= 0 { // slots set aside are not in it
		return left[d] + int64(len(s.admitted)-len(there))
	}
	return s.free - int64(len(there))
}

// admit gives a pod of a class its slots on a node, if it has room for the pod otherwise.
func (w *World) admit(s *nodeSlots, class int, left []int64, admitted []int32, spare int64) ([]int32, int64) {
	c := &w.Classes[class]
	takes := int64(0)
	for d, v := range w.needs(c, nil) {
		switch {
		case w.Dims[d] == attachPrefix+s.driver:
			takes = v
		case strings.HasPrefix(w.Dims[d], attachPrefix):
		case v > left[d]:
			return admitted, spare
		}
	}
	var brings []int32
	for _, m := range c.membersOf() {
		for _, v := range w.Rules[m.rules].shared {
			if containsInt(s.shared, v) && !containsInt(admitted, v) && !containsInt(brings, v) {
				brings = append(brings, v)
			}
		}
	}
	if takes += int64(len(brings)); takes > spare {
		return admitted, spare
	}
	return append(admitted, brings...), spare - takes
}

// readNodesAgain finds the nodes that pods with shared volumes may run on once more.
func (w *World) readNodesAgain() {
	every := packing.NewBitset(len(w.Targets))
	for k := range w.Targets {
		every.Set(k)
	}
	index := w.targetIndex()
	for r := range w.Rules {
		if len(w.Rules[r].shared) > 0 {
			w.allow[r].nodes = w.allowNodes(&w.Rules[r], every, index)
		}
	}
	w.hosts.bits = nil
}
