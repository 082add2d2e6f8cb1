package bound

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The search layer by layer agrees with that in depth, which is left to end, about what a
// bin can hold; and with few amounts a layer its bound is no lower.
func TestLayersFindWhatTheSearchInDepthFinds(t *testing.T) {
	more, cut := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 11))
		cores := int64(2 + r.IntN(14))
		p := &program{bins: []Column{{"a", Vector{cores*1000 - 70, cores * int64(1+r.IntN(4)) << 30, 10 + r.Int64N(40), 1}, cores * 20_000}}}
		var prices []float64
		for range 2 + r.IntN(9) {
			need := Vector{int64(1+r.IntN(40)) * 50, int64(1+r.IntN(40)) << 26, 1}
			p.kinds = append(p.kinds, Ruled{Need: need, Count: 9, Most: 1 + r.IntN(3)})
			prices = append(prices, (float64(need[CPU])*12+float64(need[Memory]>>20)*3)*(0.8+0.4*r.Float64()))
		}
		deep := newFilling(p, 0, prices)
		want := deep.search(0, math.MaxInt)
		f := newFilling(p, 0, prices)
		got := f.layers(0, math.MaxInt)
		if !f.found || got < want*(1-1e-9) || f.goal > want*(1+1e-9) {
			t.Fatalf("seed %d: %g at most, %g found; it is %g", seed, got, f.goal, want)
		}
		if got > want*(1+1e-9) {
			more++ // the pods that a node takes at most
		}
		if few := newFilling(p, 0, prices).layers(0, 5); few < want*(1-1e-9) {
			t.Fatalf("seed %d: five amounts a layer bound it by %g, it is %g", seed, few, want)
		} else if few > want*(1+1e-9) {
			cut++
		}
		worth, sum := 0.0, Vector{}
		for i, n := range f.best {
			worth += float64(n) * prices[i]
			for k := range Nodes {
				sum[k] += n * p.kinds[i].Need[k]
			}
			if n > int64(p.kinds[i].Most) {
				t.Fatalf("seed %d: %d of kind %d, the rule lets %d", seed, n, i, p.kinds[i].Most)
			}
		}
		if math.Abs(worth-f.goal) > 1e-9*worth || !holds(p.bins[0].Gives, sum) {
			t.Fatalf("seed %d: found %v, worth %g of %g, which needs %v of %v", seed, f.best, worth, f.goal, sum, p.bins[0].Gives)
		}
	}
	if more > 60 || cut < 60 {
		t.Errorf("%d of 600 bounds were above, %d with few amounts", more, cut)
	}
}
