package packing

// bulkSpread packs chunks of about chunkPods pods each, all of the same make-up, on
// the whole nodes of the resource program. What does not fit stays in left. It also
// returns the share of the nodes' worth that stayed empty.
func (s *solver) bulkSpread(g *group, left []int, total int, out []pattern) ([]pattern, float64) {
	chunks := max(1, total/chunkPods)
	n := len(left)
	whole := make([]int, n) // per chunk, where every chunk gets the same
	odd := make([]int, n)
	odds := 0
	for c, k := range left {
		whole[c], odd[c] = k/chunks, k%chunks
		odds += odd[c]
	}
	// Pods whose class has fewer pods than there are chunks are dealt out in turn.
	same := odds*10 < total
	share := make([]int, n)
	var sp *spreader
	var bins []int
	next := 0
	empty := 0.0
	for k := range chunks {
		if same && k > 0 {
			break
		}
		copy(share, whole)
		if !same {
			next = k
			for _, c := range g.bySize() {
				if odd[c] > 0 {
					// chunk k takes every chunks-th of the odd pods
					for i := range odd[c] {
						if (next+i)%chunks == 0 {
							share[c]++
						}
					}
					next += odd[c]
				}
			}
		}
		_, df := g.demandOf(share)
		y := duals(g.d, g.caps, g.prices, df)
		x := primal(g, df, y)
		bins = bins[:0]
		for b := len(x) - 1; b >= 0; b-- {
			for range int(x[b]) {
				bins = append(bins, b)
			}
		}
		if len(bins) == 0 {
			return out, empty
		}
		g.holdBack(share, bins, y, total64(df, y))
		_, df = g.demandOf(share)
		sp = newSpreader(g, y)
		sp.small = 0.004 * total64(df, y)
		lost := s.spreadBest(sp, bins, share)
		room, put := 0.0, total64(df, y)-lost
		for _, b := range bins {
			room += worth(g.d, g.cap(b), y)
		}
		if k == 0 && put < room {
			empty = 1 - put/room
		}
		times := 1
		if same {
			times = chunks
		}
		ps := sp.patterns(nil)
		for _, p := range ps {
			for range times {
				out = append(out, p)
			}
			for _, cc := range p.cc {
				left[cc.Class] -= cc.Count * times
			}
		}
	}
	return out, empty
}

// holdBack takes a fair sample out of share: the part that whole nodes cannot take.
// Without it the rest would be the smallest pods alone, which run out of pod slots.
func (g *group) holdBack(share, bins []int, y []float64, all float64) {
	room := 0.0
	for _, b := range bins {
		room += worth(g.d, g.cap(b), y)
	}
	back := 0.99 - room/all
	if back <= 0 {
		return
	}
	due := 0.0
	for _, c := range g.bySize() {
		due += float64(back * float64(share[c]))
		n := int(due)
		n = min(n, share[c])
		share[c] -= n
		due -= float64(n)
	}
}
