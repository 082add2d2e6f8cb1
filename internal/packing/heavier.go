package packing

import "slices"

// maxHeavier bounds how often pods go back to heavier pools.
const maxHeavier = 4

// heavier takes nodes apart whose pods a heavier pool has room for after all: a node
// that was closed, or one that became smaller, has given its limit back. It reports
// whether there was one; then the pods are left over, to be placed from the heaviest
// pool down (Karpenter: weight comes before price).
func (s *solver) heavier() bool {
	if !s.limits || len(s.nodes) == 0 {
		return false
	}
	var weights []int32
	for i := range s.p.Pools {
		weights = append(weights, s.p.Pools[i].Weight)
	}
	slices.Sort(weights)
	if weights = slices.Compact(weights); len(weights) < 2 {
		return false
	}
	any := false
	for _, n := range s.nodes {
		if n.dead || n.level == weights[len(weights)-1] {
			continue
		}
		all := true
		for _, cc := range n.contents {
			all = all && s.hostedAbove(cc.Class, n.level)
		}
		if !all {
			continue
		}
		n.dead, any = true, true
		// From now on no node is closed by moving its pods to lighter ones: that would
		// give back the very limit that is about to be used.
		s.uphill = true
		s.count(n, -1)
		for _, cc := range n.contents {
			s.left[cc.Class] += cc.Count
		}
	}
	return any
}

// hostedAbove reports whether a pool of more weight still admits a new node for one pod
// of a class.
func (s *solver) hostedAbove(c int, weight int32) bool {
	cl := &s.p.Classes[c]
	for t := range s.p.Templates {
		tm := &s.p.Templates[t]
		if s.p.Pools[tm.Pool].Weight <= weight || t >= len(cl.Offers) || cl.Offers[t] == nil {
			continue
		}
		plain, exotic := s.templateBins(t, cl.Offers[t])
		for _, b := range append(plain, exotic...) {
			if covers(s.roomOf(b), cl.Need) {
				return true
			}
		}
	}
	return false
}

// fillLeft puts pods that got no place into room that nodes of the plan have in the end.
func (s *solver) fillLeft() {
	for c := range s.left {
		for _, n := range s.nodes {
			if s.left[c] == 0 {
				break
			}
			if !n.dead && s.room(n, s.p.Classes[c].Need) > 0 {
				s.left[c] -= s.take(n, c, s.left[c])
			}
		}
	}
}
