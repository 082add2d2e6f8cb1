package packing

import "slices"

// ruledSteps bounds the search per offer for contents that rules allow.
const ruledSteps = 4_000

// steepestRuled is the most that contents which rules let share a node are worth at
// prices per pod, as a multiple of what their bin costs, or more.
func (g *group) steepestRuled(priced []ClassPrice, count []int, y []float64) float64 {
	pi := make([]float64, len(priced))
	for c := range pi {
		pi[c] = priced[c].Price
	}
	f := newFiller(g, y)
	f.allow(count)
	worst := 1e-9
	for b := range g.bins {
		price := float64(max(g.prices[b], 1))
		worst = max(worst, f.prove(b, pi, worst*price, ruledSteps)/price)
	}
	return worst
}

// prove is a number that no contents of bin b are worth more than: goal, or more.
func (f *filler) prove(b int, pi []float64, goal float64, steps int) float64 {
	f.open = 0
	if v := f.search(b, pi, goal, steps); v > 0 {
		goal = v
	}
	return max(goal, f.open)
}

// fewPods lowers what bins hold to as many pods as rules let one node carry of the
// launched classes together.
func (s *solver) fewPods(caps []int64, sigs []int, inLaunch []int64) {
	most := int64(0)
	for _, i := range sigs {
		for _, c := range s.sigs[i].classes {
			most += min(inLaunch[c], int64(s.most[c]))
		}
	}
	if r := slices.Index(s.p.Dims, "pods"); r >= 0 {
		for i := r; i < len(caps); i += s.d {
			caps[i] = min(caps[i], most)
		}
	}
}

// wholeMost is up to how many nodes choices of whole nodes are searched for a bound: of
// more there are too many.
const wholeMost = 16

// nodesOf is how many nodes hold classes of some signatures.
func (s *solver) nodesOf(sigs []int) int {
	n := 0
	for _, node := range s.nodes {
		if slices.Contains(sigs, s.sigOf[node.contents[0].Class]) {
			n++
		}
	}
	return n
}
