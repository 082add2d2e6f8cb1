package bound

// This file computes what every bin can hold at the most in one table: for each amount of
// processors and memory the dearest choice of pods within it. No amount is left out, so it
// has no width that ends it; it pays where pods are few and amounts with them.

// gridCells is the largest table, in amounts times kinds.
const gridCells = 40_000_000

// grid is such a table.
type grid struct {
	p       *program
	unit    [2]int64
	cpu     int // amounts of processors, from 0
	mem     int
	worth   []float64 // by cpu*mem amounts
	chosen  [][]uint8 // by kind, then amount: how many pods of it the dearest choice has
	highest []int     // by kind, how many a node may have
}

// newGrid lays the table out; nil where it would be too large.
func newGrid(p *program) *grid {
	g := &grid{p: p}
	var all, room [2]int64
	for i, k := range p.kinds {
		most := int64(0)
		for b := range p.bins {
			most = max(most, p.most(b, i))
		}
		if most > 255 {
			return nil
		}
		g.highest = append(g.highest, int(most))
		for r := range g.unit {
			g.unit[r] = gcd(g.unit[r], k.Need[r])
			all[r] += most * k.Need[r]
		}
	}
	for r := range g.unit {
		g.unit[r] = max(1, g.unit[r])
		for _, b := range p.bins {
			room[r] = max(room[r], b.Gives[r])
		}
		room[r] = min(room[r], all[r])/g.unit[r] + 1
	}
	if room[0] > gridCells || room[1] > gridCells/room[0]/int64(max(1, len(p.kinds))) {
		return nil
	}
	g.cpu, g.mem = int(room[0]), int(room[1])
	g.worth = make([]float64, g.cpu*g.mem)
	for range p.kinds {
		g.chosen = append(g.chosen, make([]uint8, g.cpu*g.mem))
	}
	return g
}

// fill computes the table for prices per pod. From the largest amount down, so that what
// smaller ones hold is still that of the kinds before.
func (g *grid) fill(prices []float64) {
	clear(g.worth)
	for i, k := range g.p.kinds {
		clear(g.chosen[i])
		c, m := int(k.Need[CPU]/g.unit[0]), int(k.Need[Memory]/g.unit[1])
		step := c*g.mem + m
		if prices[i] <= 0 || g.highest[i] == 0 {
			continue
		}
		for x := g.cpu - 1; x >= 0; x-- {
			for y := g.mem - 1; y >= 0; y-- {
				at := x*g.mem + y
				best, n := g.worth[at], 0
				for j := 1; j <= g.highest[i] && j*c <= x && j*m <= y; j++ {
					if v := g.worth[at-j*step] + float64(j)*prices[i]; v > best {
						best, n = v, j
					}
				}
				g.worth[at], g.chosen[i][at] = best, uint8(n)
			}
		}
	}
}

// holds is what the pods of a bin can be worth at the most, how many of each kind that is,
// and how many pods. That a node takes so many pods at most is not looked at.
func (g *grid) holds(bin int) (worth float64, take []int64, pods int64) {
	room := &g.p.bins[bin].Gives
	x, y := min(int(room[CPU]/g.unit[0]), g.cpu-1), min(int(room[Memory]/g.unit[1]), g.mem-1)
	worth = g.worth[x*g.mem+y]
	take = make([]int64, len(g.p.kinds))
	for i := len(g.p.kinds) - 1; i >= 0; i-- {
		n := int(g.chosen[i][x*g.mem+y])
		take[i], pods = int64(n), pods+int64(n)*g.p.kinds[i].Need[Pods]
		x -= n * int(g.p.kinds[i].Need[CPU]/g.unit[0])
		y -= n * int(g.p.kinds[i].Need[Memory]/g.unit[1])
	}
	return worth, take, pods
}
