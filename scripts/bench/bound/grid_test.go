package bound

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The table agrees with the search in depth, which is left to end, about what every bin
// can hold.
func TestTheGridFindsWhatTheSearchInDepthFinds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 13))
		p := &program{}
		for range 1 + r.IntN(3) {
			cores := int64(2 + r.IntN(14))
			p.bins = append(p.bins, Column{"a", Vector{cores*1000 - 70, cores * int64(1+r.IntN(4)) << 30, 1000, 1}, cores * 20_000})
		}
		var prices []float64
		for range 2 + r.IntN(9) {
			need := Vector{int64(1+r.IntN(40)) * 50, int64(1+r.IntN(40)) << 26, 1}
			p.kinds = append(p.kinds, Ruled{Need: need, Count: 9, Most: 1 + r.IntN(3)})
			prices = append(prices, (float64(need[CPU])*12+float64(need[Memory]>>20)*3)*(0.8+0.4*r.Float64()))
		}
		g := newGrid(p)
		if g == nil {
			t.Fatalf("seed %d: no table", seed)
		}
		g.fill(prices)
		for b := range p.bins {
			want := newFilling(p, b, prices).search(0, math.MaxInt)
			got, take, pods := g.holds(b)
			worth, sum := 0.0, Vector{}
			for i, n := range take {
				worth += float64(n) * prices[i]
				for k := range Nodes {
					sum[k] += n * p.kinds[i].Need[k]
				}
				if n > int64(p.kinds[i].Most) {
					t.Fatalf("seed %d: %d of kind %d, the rule lets %d", seed, n, i, p.kinds[i].Most)
				}
			}
			if math.Abs(got-want) > 1e-9*want || math.Abs(worth-want) > 1e-9*want || !holds(p.bins[b].Gives, sum) || pods != sum[Pods] {
				t.Fatalf("seed %d: %g, %v is worth %g; it is %g", seed, got, take, worth, want)
			}
		}
	}
}

// The program of thirty deployments that spread over hosts, and of what nodes of the
// usual types give them, ends at its optimum: what is proved is what the best mix that was
// found costs. Without the table the proof stays short of it.
func TestFillProvesTheOptimumOfAProgramOfThirtyKinds(t *testing.T) {
	var kinds []Ruled
	for _, k := range [][4]int64{ // millicores, MiB, pods, most on a node
		{250, 512, 3, 2}, {50, 64, 8, 3}, {50, 256, 4, 2}, {500, 768, 3, 2}, {200, 384, 2, 1},
		{250, 256, 5, 1}, {250, 768, 3, 3}, {50, 128, 3, 1}, {100, 384, 11, 3}, {200, 1024, 3, 1},
		{500, 384, 3, 3}, {2000, 12288, 4, 1}, {200, 1536, 3, 1}, {50, 128, 2, 1}, {200, 512, 2, 1},
		{200, 1536, 2, 2}, {100, 768, 5, 2}, {2000, 12288, 6, 2}, {200, 128, 3, 2}, {50, 64, 4, 1},
		{500, 128, 2, 2}, {100, 768, 2, 2}, {500, 1536, 2, 2}, {1000, 2048, 3, 2}, {100, 1024, 1, 2},
		{500, 3072, 1, 3}, {2000, 4096, 3, 3}, {250, 768, 2, 1}, {50, 256, 2, 3}, {200, 384, 3, 1},
	} {
		kinds = append(kinds, Ruled{Vector{k[0], k[1] << 20, 1}, float64(k[2]), int(k[3])})
	}
	var columns []Column
	for _, c := range [][4]int64{ // price, millicores, MiB, pods
		{34000, 750, 1152, 6}, {38500, 750, 3072, 6}, {43470, 750, 832, 38}, {48920, 750, 2688, 38}, {50400, 750, 6848, 6},
		{67000, 750, 2816, 10}, {68000, 1750, 2816, 27}, {76080, 750, 6912, 6}, {76500, 1750, 2880, 27}, {77000, 1750, 6592, 27},
		{86000, 1750, 6656, 27}, {86940, 1750, 2496, 52}, {89020, 1750, 2560, 52}, {97840, 1750, 6272, 52}, {100000, 1750, 6784, 18},
		{100550, 1750, 6336, 52}, {100800, 1750, 14208, 27}, {113000, 1750, 14272, 27}, {131970, 1750, 13952, 52}, {136000, 3750, 6272, 52},
		{153000, 3750, 6336, 52}, {154000, 3750, 13888, 52}, {172000, 3750, 13952, 52}, {201600, 3750, 29056, 52}, {226000, 3750, 29120, 52},
		{272000, 7750, 13888, 52}, {306000, 7750, 13952, 52}, {308000, 7750, 29056, 52}, {344000, 7750, 29120, 52}, {403200, 7750, 59328, 52},
		{452000, 7750, 59392, 52}, {544000, 15700, 27072, 52}, {612000, 15700, 27136, 52}, {616000, 15700, 57408, 52}, {688000, 15700, 57472, 52},
		{806400, 15700, 80640, 52}, {1088000, 23850, 57408, 52}, {1224000, 23850, 57472, 52}, {1232000, 23850, 80640, 52},
	} {
		columns = append(columns, Column{"a", Vector{c[1], c[2] << 20, c[3], 1}, c[0]})
	}
	f, ok := Fill(columns, kinds)
	if total := float64(f.Total(kinds)); !ok || total < f.Value*(1-1e-5) {
		t.Errorf("proved %.0f, the best mix found costs %.0f", total, f.Value)
	}
}
