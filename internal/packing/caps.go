package packing

import (
	"math"
	"slices"
)

// This file holds the rules that limit which pods one node may carry together, beside
// resources: classes in conflict, classes that are kept apart, and caps. None of them
// gets easier by more pods: what a node may carry, it may carry less of.

// noMost is the most of a class on one node where no rule limits it.
const noMost = math.MaxInt32

// capRef is the part of a class in a cap.
type capRef struct {
	cap    int32
	weight int32
}

// weightOf is what a pod of Classes[i] counts.
func (c *Cap) weightOf(i int) int32 {
	if c.Weight == nil {
		return 1
	}
	return c.Weight[i]
}

// indexRules lists the caps by class, and the most of each class on one new node.
func (s *solver) indexRules() {
	if len(s.p.Caps) > 0 {
		s.capsOf = make([][]capRef, len(s.p.Classes))
		s.carried = make([][]int32, len(s.p.Caps))
	}
	for k := range s.p.Caps {
		for i, c := range s.p.Caps[k].Classes {
			if w := s.p.Caps[k].weightOf(i); w > 0 {
				s.capsOf[c] = append(s.capsOf[c], capRef{int32(k), w})
			}
		}
	}
	s.most = make([]int32, len(s.p.Classes))
	for c := range s.most {
		s.most[c] = noMost
		if cl := &s.p.Classes[c]; slices.Contains(cl.Conflicts, int32(c)) || slices.Contains(cl.Apart, int32(c)) {
			s.most[c] = 1
		}
		for _, r := range s.caps(c) {
			s.most[c] = min(s.most[c], int32(max(s.p.Caps[r.cap].Max, 0))/r.weight)
		}
	}
}

// caps are the caps that class c counts in.
func (s *solver) caps(c int) []capRef {
	if s.capsOf == nil {
		return nil
	}
	return s.capsOf[c]
}

// carries is what an existing node carries of a cap.
func (s *solver) carries(k int32, node int) int {
	if held := s.carried[k]; held != nil {
		return int(held[node])
	}
	if used := s.p.Caps[k].Used; node < len(used) {
		return int(used[node])
	}
	return 0
}

// nodeAllows is how many more pods of a class an existing node may carry as far as
// conflicts and caps go, k at most.
func (s *solver) nodeAllows(node, c, k int) int {
	if s.clashed[node][c] {
		return 0
	}
	if slices.Contains(s.p.Classes[c].Conflicts, int32(c)) {
		k = min(k, 1)
	}
	for _, r := range s.caps(c) {
		if cp := &s.p.Caps[r.cap]; !cp.New {
			k = min(k, (cp.Max-s.carries(r.cap, node))/int(r.weight))
		}
	}
	return max(k, 0)
}

// carry records k pods of a class on an existing node.
func (s *solver) carry(node, c, k int) {
	if cl := &s.p.Classes[c]; len(cl.Conflicts) > 0 {
		if s.clashed[node] == nil {
			s.clashed[node] = map[int]bool{}
		}
		for _, o := range cl.Conflicts {
			s.clashed[node][int(o)] = true
		}
	}
	for _, r := range s.caps(c) {
		cp := &s.p.Caps[r.cap]
		if cp.New {
			continue
		}
		if s.carried[r.cap] == nil {
			s.carried[r.cap] = make([]int32, len(s.p.Nodes))
			copy(s.carried[r.cap], cp.Used)
		}
		s.carried[r.cap][node] += int32(k) * r.weight
	}
}

// newAllows is how many more pods of class c a planned node may carry as far as
// conflicts, classes kept apart and caps go, k at most.
func (s *solver) newAllows(n *pnode, c, k int) int {
	cl := &s.p.Classes[c]
	k = min(k, int(s.most[c]))
	for _, list := range [...][]int32{cl.Conflicts, cl.Apart} {
		for _, o := range list {
			if _, ok := n.find(int(o)); ok {
				return 0
			}
		}
	}
	for _, r := range s.caps(c) {
		cp := &s.p.Caps[r.cap]
		held := 0
		for i, o := range cp.Classes {
			if at, ok := n.find(int(o)); ok {
				held += n.contents[at].Count * int(cp.weightOf(i))
			}
		}
		k = min(k, (cp.Max-held)/int(r.weight))
	}
	return max(k, 0)
}

// sharedCap is a cap over several classes of a group, by their index in the group.
type sharedCap struct {
	max     int32
	classes []int32
	weight  []int32
}

// loadRules copies the rules between pods on a new node that concern the group: the
// most of each class, the pairs that may not meet, and the caps over several classes.
func (g *group) loadRules(s *solver) {
	n := len(g.classes)
	g.most = make([]int32, n)
	paired := false
	for i, c := range g.classes {
		g.most[i] = s.most[c]
		paired = paired || len(s.p.Classes[c].Conflicts)+len(s.p.Classes[c].Apart) > 0
		g.capped = g.capped || s.most[c] != noMost
	}
	if !paired && len(s.p.Caps) == 0 {
		return
	}
	local := make([]int32, len(s.p.Classes)) // index in the group + 1
	for i, c := range g.classes {
		local[c] = int32(i) + 1
	}
	if paired {
		g.clash = make([][]int32, n)
		some := false
		for i, c := range g.classes {
			for _, list := range [...][]int32{s.p.Classes[c].Conflicts, s.p.Classes[c].Apart} {
				for _, o := range list {
					if j := local[o] - 1; int(o) != c && j >= 0 && !slices.Contains(g.clash[i], j) {
						g.clash[i] = append(g.clash[i], j)
						some = true
					}
				}
			}
		}
		if !some {
			g.clash = nil
		}
	}
	for k := range s.p.Caps {
		cp := &s.p.Caps[k]
		sc := sharedCap{max: int32(cp.Max)}
		for i, c := range cp.Classes {
			if w := cp.weightOf(i); local[c] > 0 && w > 0 {
				sc.classes = append(sc.classes, local[c]-1)
				sc.weight = append(sc.weight, w)
			}
		}
		if len(sc.classes) > 1 {
			g.share(sc)
		}
	}
}

// share adds a cap over several classes.
func (g *group) share(sc sharedCap) {
	if g.sharedOf == nil {
		g.sharedOf = make([][]capRef, len(g.classes))
	}
	for i, c := range sc.classes {
		g.sharedOf[c] = append(g.sharedOf[c], capRef{int32(len(g.shared)), sc.weight[i]})
	}
	g.shared = append(g.shared, sc)
}

// ruled reports whether rules between pods say more about class c than its most.
func (g *group) ruled(c int32) bool {
	return (g.clash != nil && len(g.clash[c]) > 0) || (g.shared != nil && len(g.sharedOf[c]) > 0)
}

// allows is how many more pods of class c may join contents, as far as rules between
// pods go.
func (g *group) allows(a []int32, c int32) int32 {
	k := g.most[c] - a[c]
	if g.clash != nil {
		for _, o := range g.clash[c] {
			if a[o] > 0 {
				return 0
			}
		}
	}
	if g.shared != nil {
		for _, r := range g.sharedOf[c] {
			sc := &g.shared[r.cap]
			left := sc.max
			for i, o := range sc.classes {
				left -= a[o] * sc.weight[i]
			}
			k = min(k, left/r.weight)
		}
	}
	return max(k, 0)
}

// permits reports whether a node may carry contents, as far as rules between pods go.
func (g *group) permits(a []int32) bool {
	for c, n := range a {
		if n == 0 {
			continue
		}
		if n > g.most[c] {
			return false
		}
		if g.clash != nil {
			for _, o := range g.clash[c] {
				if a[o] > 0 {
					return false
				}
			}
		}
	}
	for i := range g.shared {
		left := g.shared[i].max
		for k, o := range g.shared[i].classes {
			left -= a[o] * g.shared[i].weight[k]
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// forced is the least number of new nodes that rules between pods alone ask for: count
// pods of each class that sum says.
func (s *solver) forced(classes []int, count func(c int) int64) int64 {
	n := int64(0)
	for _, c := range classes {
		if k := count(c); k > 0 && s.most[c] > 0 {
			n = max(n, (k+int64(s.most[c])-1)/int64(s.most[c]))
		}
	}
	if len(s.p.Caps) == 0 {
		return n
	}
	in := make([]bool, len(s.p.Classes))
	for _, c := range classes {
		in[c] = true
	}
	for k := range s.p.Caps {
		cp := &s.p.Caps[k]
		sum := int64(0)
		for i, c := range cp.Classes {
			if in[c] {
				sum += count(int(c)) * int64(cp.weightOf(i))
			}
		}
		if m := int64(cp.Max); m > 0 {
			n = max(n, (sum+m-1)/m)
		}
	}
	return n
}
