package bound

import (
	"math"
	"math/rand/v2"
	"testing"
)

// smallRuled draws few kinds and columns.
func smallRuled(r *rand.Rand) ([]Column, []Ruled) {
	var columns []Column
	for i := range 2 + r.IntN(4) {
		cores := int64(1 + r.IntN(6))
		columns = append(columns, Column{Name: string(rune('a' + i)), Gives: Vector{cores*1000 - 70, cores * int64(1+r.IntN(4)) << 30, int64(2 + r.IntN(6)), 1}, Price: cores*20_000 + int64(r.IntN(9_000))})
	}
	var kinds []Ruled
	for range 1 + r.IntN(3) {
		kinds = append(kinds, Ruled{Need: Vector{int64(1+r.IntN(4)) * 250, int64(1+r.IntN(4)) << 29, 1}, Count: float64(1 + r.IntN(3)), Most: 1 + r.IntN(3)})
	}
	return columns, kinds
}

// cheapest is the least price of whole nodes, by every division of the pods.
func cheapest(columns []Column, kinds []Ruled) float64 {
	counts := make([]int, len(kinds))
	for i, k := range kinds {
		counts[i] = int(k.Count)
	}
	memo := map[[3]int]float64{}
	var solve func(left [3]int) float64
	solve = func(left [3]int) float64 {
		if left == ([3]int{}) {
			return 0
		}
		if v, ok := memo[left]; ok {
			return v
		}
		best := math.Inf(1)
		forFillings(columns, kinds, left, func(take [3]int, price int64) {
			rest := left
			for i, n := range take {
				rest[i] -= n
			}
			if rest != left {
				best = min(best, float64(price)+solve(rest))
			}
		})
		memo[left] = best
		return best
	}
	var all [3]int
	copy(all[:], counts)
	return solve(all)
}

// forFillings calls f for every filling that rules allow, on every column that holds it.
func forFillings(columns []Column, kinds []Ruled, left [3]int, f func(take [3]int, price int64)) {
	var take [3]int
	var choose func(i int)
	choose = func(i int) {
		if i == len(kinds) {
			var sum Vector
			for k, n := range take[:len(kinds)] {
				for r := range sum {
					sum[r] += int64(n) * kinds[k].Need[r]
				}
			}
			for _, c := range columns {
				if holds(c.Gives, sum) {
					f(take, c.Price)
				}
			}
			return
		}
		for n := 0; n <= min(left[i], kinds[i].Most); n++ {
			take[i] = n
			choose(i + 1)
		}
		take[i] = 0
	}
	choose(0)
}

func TestFillIsABoundAndItsPricesProveIt(t *testing.T) {
	proved, tight := 0, 0
	for seed := range uint64(400) {
		columns, kinds := smallRuled(rand.New(rand.NewPCG(seed, 7)))
		f, ok := Fill(columns, kinds)
		least := cheapest(columns, kinds)
		if ok == math.IsInf(least, 1) {
			t.Fatalf("seed %d: ok is %v, the least price %g", seed, ok, least)
		}
		if !ok {
			continue
		}
		proved++
		var all [3]int
		for i, k := range kinds {
			all[i] = int(k.Count)
		}
		forFillings(columns, kinds, all, func(take [3]int, price int64) {
			worth := 0.0
			for i, n := range take[:len(kinds)] {
				worth += f.PerPod[i] * float64(n)
			}
			if worth > float64(price) {
				t.Fatalf("seed %d: %v is worth %g and costs %d", seed, take, worth, price)
			}
		})
		total := float64(f.Total(kinds))
		if total > least {
			t.Fatalf("seed %d: bound %g above the least price %g", seed, total, least)
		}
		if f.Value < total || f.Value > total*(1+1e-5)+1 {
			t.Fatalf("seed %d: proved %g, the best mix found costs %g", seed, total, f.Value)
		}
		if total > least*0.999 {
			tight++
		}
	}
	if proved < 200 || tight < 30 {
		t.Errorf("%d bounds, %d of them the optimum", proved, tight)
	}
}

// Ten kinds, one of each a node: there are as many nodes as pods of a kind.
func TestFillSeesTheNodesThatRulesForce(t *testing.T) {
	columns := []Column{{"a", Vector{4000, 16 << 30, 50, 1}, 100_000}, {"b", Vector{1000, 4 << 30, 50, 1}, 30_000}}
	kinds := []Ruled{{Vector{100, 1 << 28, 1}, 7, 1}, {Vector{200, 1 << 28, 1}, 7, 1}}
	f, ok := Fill(columns, kinds)
	if !ok || f.Total(kinds) < 7*30_000-1 {
		t.Errorf("bound %d, want 210000", f.Total(kinds))
	}
}

func TestTableauSolvesAProgram(t *testing.T) {
	// max 3x + 2y, x + y <= 4, x + 3y <= 6, x <= 3: at (3, 1).
	s := newTableau([][]float64{{1, 1}, {1, 3}, {1, 0}}, []float64{4, 6, 3}, []float64{3, 2})
	s.run()
	x, y := s.primal(), s.dual()
	if math.Abs(s.value()-11) > 1e-9 || math.Abs(x[0]-3) > 1e-9 || math.Abs(x[1]-1) > 1e-9 {
		t.Errorf("value %g at %v", s.value(), x)
	}
	if want := []float64{2, 0, 1}; math.Abs(y[0]-want[0])+math.Abs(y[1]-want[1])+math.Abs(y[2]-want[2]) > 1e-9 {
		t.Errorf("duals %v, want %v", y, want)
	}
}
