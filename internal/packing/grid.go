package packing

// grid prices node contents exactly when needs are coarse: with every need a multiple
// of a step per dimension, one table over (cpu steps, memory steps) holds the best
// contents for every smaller node at once.
type grid struct {
	step [2]int64
	size [2]int // cells per dimension, the largest node's steps + 1
	need [][2]int
	best []float64
	pick []uint8 // class + 1 that was added last; 0: nothing
}

// maxGrid bounds the cells of a grid.
const maxGrid = 80_000

// newGrid makes a grid for some bins given best first; it returns nil where a grid would be too large or other dimensions decide.
func newGrid(g *group, bins []int) *grid {
	n := len(g.classes)
	if n == 0 || n > 32 || g.d < 2 || g.capped || g.clash != nil || g.shared != nil {
		return nil
	}
	gr := &grid{need: make([][2]int, n)}
	for b := range g.bins {
		if g.bins[b].allow != nil {
			return nil
		}
	}
	for c := range n {
		for r, v := range g.req(c) {
			switch {
			case r < 2:
				gr.step[r] = gcd(gr.step[r], v)
			case r > 2 && v > 0: // dimension 2 is pods, checked after the fact
				return nil
			}
		}
	}
	if gr.step[0] == 0 || gr.step[1] == 0 {
		return nil
	}
	// As many bins as the table has room for, the best first.
	for _, b := range bins {
		x, y := g.cap(b)[0]/gr.step[0]+1, g.cap(b)[1]/gr.step[1]+1
		if x > maxGrid || y > maxGrid || max(int(x), gr.size[0])*max(int(y), gr.size[1]) > maxGrid {
			continue
		}
		gr.size[0], gr.size[1] = max(int(x), gr.size[0]), max(int(y), gr.size[1])
	}
	if gr.size[0] == 0 {
		return nil
	}
	for c := range n {
		for r := range 2 {
			gr.need[c][r] = int(g.req(c)[r] / gr.step[r])
		}
	}
	gr.best = make([]float64, gr.size[0]*gr.size[1])
	gr.pick = make([]uint8, len(gr.best))
	return gr
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// fill computes the table for prices pi.
func (gr *grid) fill(pi []float64) {
	clear(gr.best)
	clear(gr.pick)
	w := gr.size[1]
	for c, p := range pi {
		if p <= 0 {
			continue
		}
		dx, dy := gr.need[c][0], gr.need[c][1]
		if dx == 0 && dy == 0 {
			continue // bounded by pods alone; the caller's other pricing deals with it
		}
		for x := dx; x < gr.size[0]; x++ {
			row := gr.best[x*w : (x+1)*w]
			from := gr.best[(x-dx)*w : (x-dx+1)*w]
			pick := gr.pick[x*w : (x+1)*w]
			for y := dy; y < w; y++ {
				if v := from[y-dy] + p; v > row[y] {
					row[y] = v
					pick[y] = uint8(c + 1)
				}
			}
		}
	}
}

// value is the best worth for a node; contents follow with trace.
func (gr *grid) at(cap []int64) int {
	x, y := int(cap[0]/gr.step[0]), int(cap[1]/gr.step[1])
	return x*gr.size[1] + y
}

// trace writes the contents behind a cell and reports whether they keep the limits
// on classes and pods. A cell that gained nothing from its own room is the same as
// the nearest smaller one that did.
func (gr *grid) trace(cell int, out []int32, limit []int, pods int64) bool {
	clear(out)
	w := gr.size[1]
	x, y := cell/w, cell%w
	for gr.pick[x*w+y] != 0 {
		c := int(gr.pick[x*w+y]) - 1
		out[c]++
		pods--
		x -= gr.need[c][0]
		y -= gr.need[c][1]
	}
	for c, n := range out {
		if int(n) > limit[c] {
			return false
		}
	}
	return pods >= 0
}
