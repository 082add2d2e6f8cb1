package packing

import "slices"

// fillExisting puts pods on nodes that exist or are in flight: classes that no
// offer can host first, the smallest first so that the most of them run; then the
// others as given (largest first); nodes in their order. A class
// that did not fit a node never fits it later, so afterwards no pod that is left
// fits any node.
func (s *solver) fillExisting() {
	n := len(s.p.Nodes)
	if n == 0 {
		return
	}
	s.free = make([][]int64, n)
	for i := range s.p.Nodes {
		s.free[i] = slices.Clone(s.p.Nodes[i].Free)
	}
	s.clashed = make([]map[int]bool, n)
	s.fix()
	finders := map[*uint64]*finder{}
	pass := func(homeless bool) {
		for i := range s.p.Classes {
			c := i
			if homeless {
				c = len(s.p.Classes) - 1 - i
			}
			cl := &s.p.Classes[c]
			if s.left[c] == 0 || len(cl.Nodes) == 0 || s.homeless(c) != homeless {
				continue
			}
			f := finders[&cl.Nodes[0]]
			if f == nil {
				f = newFinder(s, cl.Nodes)
				finders[&cl.Nodes[0]] = f
			}
			s.fillClass(c, f)
		}
	}
	pass(true)
	pass(false)
}

// homeless reports whether no template allows the class at all.
func (s *solver) homeless(c int) bool {
	for _, o := range s.p.Classes[c].Offers {
		if o != nil {
			return false
		}
	}
	return true
}

func (s *solver) fillClass(c int, f *finder) {
	cl := &s.p.Classes[c]
	from := 0
	for s.left[c] > 0 {
		slot := f.next(from, cl.Need)
		if slot < 0 {
			return
		}
		from = slot + 1
		node := f.nodes[slot]
		k := s.nodeAllows(node, c, s.left[c])
		for r, need := range cl.Need {
			if need > 0 {
				k = min(k, int(s.free[node][r]/need))
			}
		}
		if k <= 0 {
			continue
		}
		for r, need := range cl.Need {
			s.free[node][r] -= int64(k) * need
		}
		f.refresh(slot)
		s.left[c] -= k
		s.placed = append(s.placed, Placed{node, c, k})
		s.carry(node, c, k)
	}
}

// finder finds the first node of a list with enough room: a tree of component-wise
// maxima. Other finders may take room away, so maxima can be too high; leaves are
// checked against the truth and corrected.
type finder struct {
	s     *solver
	nodes []int
	size  int
	top   []int64 // 2*size*d
}

func newFinder(s *solver, set Bitset) *finder {
	f := &finder{s: s}
	set.Members(func(i int) {
		if i < len(s.free) {
			f.nodes = append(f.nodes, i)
		}
	})
	f.size = 1
	for f.size < len(f.nodes) {
		f.size *= 2
	}
	f.top = make([]int64, 2*f.size*s.d)
	for i := range f.top {
		f.top[i] = -1
	}
	for slot := range f.nodes {
		copy(f.at(f.size+slot), f.leaf(slot))
	}
	for i := f.size - 1; i > 0; i-- {
		f.pull(i)
	}
	return f
}

func (f *finder) at(i int) []int64 { return f.top[i*f.s.d : (i+1)*f.s.d] }

// leaf is the room of a node; a negative component means that nothing fits.
func (f *finder) leaf(slot int) []int64 {
	free := f.s.free[f.nodes[slot]]
	for _, v := range free {
		if v < 0 {
			return f.s.nothing()
		}
	}
	return free
}

func (s *solver) nothing() []int64 {
	for i := range s.scratch {
		s.scratch[i] = -1
	}
	return s.scratch
}

func (f *finder) pull(i int) {
	a, b, t := f.at(2*i), f.at(2*i+1), f.at(i)
	for r := range t {
		t[r] = max(a[r], b[r])
	}
}

func (f *finder) refresh(slot int) {
	i := f.size + slot
	copy(f.at(i), f.leaf(slot))
	for i >>= 1; i > 0; i >>= 1 {
		f.pull(i)
	}
}

// next is the first slot >= from whose node has room for need, -1 if none.
func (f *finder) next(from int, need []int64) int {
	return f.search(1, 0, f.size, from, need)
}

func (f *finder) search(i, lo, hi, from int, need []int64) int {
	if hi <= from || lo >= len(f.nodes) || !covers(f.at(i), need) {
		return -1
	}
	if hi-lo == 1 {
		if covers(f.leaf(lo), need) {
			return lo
		}
		f.refresh(lo)
		return -1
	}
	mid := (lo + hi) / 2
	if r := f.search(2*i, lo, mid, from, need); r >= 0 {
		return r
	}
	return f.search(2*i+1, mid, hi, from, need)
}
