package bound

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestLPByHand(t *testing.T) {
	small := Column{"small", Vector{1000, 1 << 30, 10, 1}, 100}
	fat := Column{"fat", Vector{1000, 4 << 30, 10, 1}, 160}
	for _, c := range []struct {
		name   string
		cols   []Column
		demand Vector
		want   int64
	}{
		{"one type, CPU decides", []Column{small}, Vector{5000, 1 << 30, 1, 1}, 500},
		{"one type, pods decide", []Column{small}, Vector{1000, 1 << 30, 100, 1}, 1000},
		{"one type, memory decides", []Column{small}, Vector{1000, 8 << 30, 1, 1}, 800},
		{"fractions are sold", []Column{small}, Vector{1500, 1 << 30, 1, 1}, 150},
		// 2 x fat + 2 x small give 4 cores and 10 GiB.
		{"a mix", []Column{small, fat}, Vector{4000, 10 << 30, 1, 1}, 520},
		{"the dear one is not bought", []Column{small, {"dear", Vector{1000, 1 << 30, 10, 1}, 101}}, Vector{7000, 0, 0, 1}, 700},
		{"a useless column is ignored", []Column{{"none", Vector{9000, -1, 10, 1}, 1}, small}, Vector{7000, 1, 1, 1}, 700},
		{"a whole node at least", []Column{small, fat}, Vector{10, 1 << 20, 1, 1}, 100},
		{"nodes asked for", []Column{small, fat}, Vector{10, 1 << 20, 1, 7}, 700},
		{"nothing asked", []Column{small}, Vector{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, err := LP(c.cols, c.demand)
			if err != nil {
				t.Fatal(err)
			}
			// The bound is rounded down, so one micro-dollar may be missing.
			if cert.Total != c.want && cert.Total != c.want-1 {
				t.Errorf("bound %d, want %d (duals %v)", cert.Total, c.want, cert.Duals)
			}
		})
	}
}

func TestNothingFits(t *testing.T) {
	if _, err := LP([]Column{{"none", Vector{1, 0, 1, 1}, 1}}, Vector{1, 1, 1, 1}); err != ErrNothingFits {
		t.Errorf("LP says %v, want %v", err, ErrNothingFits)
	}
	if _, err := Equal([]Column{{"tiny", Vector{1, 1, 1, 1}, 1}}, Vector{2, 1, 1}, 5); err != ErrNothingFits {
		t.Errorf("Equal says %v, want %v", err, ErrNothingFits)
	}
}

func drawColumns(t *rapid.T) []Column {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Column {
		cores := rapid.Int64Range(1, 192).Draw(t, "cores")
		return Column{
			Name:  "t",
			Gives: Vector{cores*1000 - 150, rapid.Int64Range(1, 16).Draw(t, "ratio")*cores<<30 - 192<<20, rapid.Int64Range(4, 737).Draw(t, "pods"), 1},
			Price: cores * rapid.Int64Range(20_000, 90_000).Draw(t, "price per core"),
		}
	}), 1, 60).Draw(t, "columns")
}

// The certificate is feasible in exact arithmetic, it is tight (the best fractional
// purchase costs no more than a millionth above it), and so it is the optimum.
func TestLPIsCertifiedAndTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := drawColumns(t)
		demand := Vector{
			rapid.Int64Range(1, 50_000_000).Draw(t, "cpu"),
			rapid.Int64Range(1, 200_000<<30).Draw(t, "memory"),
			rapid.Int64Range(1, 50_000).Draw(t, "pods"),
			rapid.Int64Range(0, 500).Draw(t, "nodes"),
		}
		cert, err := LP(cols, demand)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cols {
			if w := Worth(c.Gives, cert.Duals); w.Cmp(new(big.Rat).SetInt64(c.Price)) > 0 {
				t.Fatalf("%+v is worth %s", c, w.FloatString(12))
			}
		}
		for r, d := range cert.Duals {
			if d.Sign() < 0 {
				t.Fatalf("dual %d is negative: %v", r, d)
			}
		}
		if low := float64(cert.Total) + 1; cert.Primal > low*(1+1e-6) || cert.Primal < float64(cert.Total)*(1-1e-9) {
			t.Fatalf("bound %d, best fractional purchase %f", cert.Total, cert.Primal)
		}
	})
}

func TestSteepest(t *testing.T) {
	duals := [Rows]*big.Rat{big.NewRat(1, 10), new(big.Rat), big.NewRat(2, 1), big.NewRat(7, 2)}
	cols := []Column{{"a", Vector{100, 1 << 40, 1, 1}, 20}, {"b", Vector{200, 1, 1, 1}, 20}, {"c", Vector{100, 1, 1, 1}, 40}}
	// b is worth 20 + 2 + 3.5.
	if got, name := Steepest(cols, duals); name != "b" || got.Cmp(big.NewRat(51, 40)) != 0 {
		t.Errorf("steepest is %s with %v, want b with 51/40", name, got)
	}
}

// No purchase of whole nodes that holds a random set of pods is cheaper than the
// bound of those pods.
func TestNoPurchaseIsBelowTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := drawColumns(t)
		var demand Vector
		price := int64(0)
		for range rapid.IntRange(1, 8).Draw(t, "nodes") {
			c := rapid.SampledFrom(cols).Draw(t, "node")
			price += c.Price
			share := rapid.Int64Range(1, 100).Draw(t, "use in percent")
			for r := range Rows {
				demand[r] += c.Gives[r] * share / 100
			}
		}
		cert, err := LP(cols, demand)
		if err != nil {
			t.Fatal(err)
		}
		if cert.Total > price {
			t.Fatalf("bound %d, but nodes for %d hold it", cert.Total, price)
		}
	})
}

// The optimum of equal pods is above the relaxation, and no worse than any purchase of
// one type, nor than a greedy one of two.
func TestEqualIsAboveTheRelaxationAndBelowPurchases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// One column hosts every pod, so there is always an answer.
		cols := append(drawColumns(t), Column{"large", Vector{190_000, 700 << 30, 700, 1}, 9_000_000})
		need := Vector{rapid.Int64Range(50, 4000).Draw(t, "cpu"), rapid.Int64Range(64, 16384).Draw(t, "MiB") << 20, 1}
		n := rapid.IntRange(1, 2000).Draw(t, "n")
		best, err := Equal(cols, need, n)
		if err != nil {
			t.Fatal(err)
		}
		pods := int64(n)
		cert, err := LP(cols, Vector{need[CPU] * pods, need[Memory] * pods, pods, 1})
		if err != nil {
			t.Fatal(err)
		}
		if best < cert.Total {
			t.Fatalf("optimum %d is below the relaxation %d", best, cert.Total)
		}
		room := func(c Column) int64 { return min(c.Gives[CPU]/need[CPU], c.Gives[Memory]/need[Memory], c.Gives[Pods]) }
		for _, a := range cols {
			k := room(a)
			if k <= 0 {
				continue
			}
			if whole := (pods + k - 1) / k * a.Price; whole < best {
				t.Fatalf("optimum %d, but nodes of %+v cost %d", best, a, whole)
			}
			for _, b := range cols {
				if rest := pods % k; rest > 0 && room(b) >= rest {
					if mixed := pods/k*a.Price + b.Price; mixed < best {
						t.Fatalf("optimum %d, but %d nodes of %+v and one of %+v cost %d", best, pods/k, a, b, mixed)
					}
				}
			}
		}
	})
}

func TestEqualByHand(t *testing.T) {
	// Two pods for 30, four for 59, five for 60, seven for 100.
	cols := []Column{
		{"two", Vector{2000, 9 << 30, 9, 1}, 30},
		{"five", Vector{5000, 9 << 30, 9, 1}, 60},
		{"seven", Vector{7900, 9 << 30, 9, 1}, 100},
		{"dear five", Vector{5000, 99 << 30, 9, 1}, 61},
		{"four", Vector{4000, 9 << 30, 9, 1}, 59},
	}
	for n, want := range map[int]int64{1: 30, 2: 30, 3: 59, 4: 59, 5: 60, 6: 89, 7: 90, 8: 118, 10: 120, 11: 149, 12: 150} {
		got, err := Equal(cols, Vector{1000, 1 << 30, 1}, n)
		if err != nil || got != want {
			t.Errorf("%d pods cost %d (%v), want %d", n, got, err, want)
		}
	}
}

// brute is the least price of whole nodes that give the demand, by trying them all.
func brute(cols []Column, demand Vector, limit int64) int64 {
	if demand == (Vector{}) {
		return 0
	}
	best := limit
	for i, c := range cols {
		if c.Price >= best {
			continue
		}
		rest := demand
		for r := range rest {
			rest[r] = max(0, rest[r]-c.Gives[r])
		}
		best = min(best, c.Price+brute(cols[i:], rest, best-c.Price))
	}
	return best
}

// With budget enough the search finds the optimum; with less it stays below it.
func TestWholeFindsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Column {
			return Column{"t", Vector{rapid.Int64Range(1, 9).Draw(t, "cpu"), rapid.Int64Range(1, 9).Draw(t, "memory"), rapid.Int64Range(1, 9).Draw(t, "pods"), 1}, rapid.Int64Range(3, 20).Draw(t, "price")}
		}), 1, 8).Draw(t, "columns")
		demand := Vector{rapid.Int64Range(1, 40).Draw(t, "cpu"), rapid.Int64Range(1, 40).Draw(t, "memory"), rapid.Int64Range(1, 40).Draw(t, "pods"), 1}
		want := brute(cols, demand, 1000)
		full := Whole(cols, demand, 1000, 1_000_000)
		if !full.Optimal || full.Total != want {
			t.Fatalf("search says %+v, the optimum is %d", full, want)
		}
		short := Whole(cols, demand, 1000, rapid.IntRange(0, 10).Draw(t, "budget"))
		if short.Total > want || short.Optimal && short.Total != want {
			t.Fatalf("short search says %+v, the optimum is %d", short, want)
		}
		target := rapid.Int64Range(1, 100).Draw(t, "target")
		if cut := Whole(cols, demand, target, 1_000_000); cut.Total != min(want, target) || !cut.Optimal {
			t.Fatalf("search up to %d says %+v, the optimum is %d", target, cut, want)
		}
	})
}

// Pods of the needs that fit a column still fit what Tighten leaves of it.
func TestTightenLosesNoPacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Vector {
			return Vector{rapid.Int64Range(1, 8).Draw(t, "cpu") * 250, rapid.Int64Range(1, 8).Draw(t, "memory") * 128, 1}
		}), 1, 4).Draw(t, "needs")
		col := Column{"t", Vector{rapid.Int64Range(1, 20_000).Draw(t, "cpu"), rapid.Int64Range(1, 20_000).Draw(t, "memory"), rapid.Int64Range(1, 30).Draw(t, "pods"), 1}, 1}
		tight := Tighten([]Column{col}, needs)[0]
		var held Vector
		for range rapid.IntRange(0, 40).Draw(t, "pods") {
			next := held
			for r, v := range rapid.SampledFrom(needs).Draw(t, "pod") {
				next[r] += v
			}
			if next[CPU] <= col.Gives[CPU] && next[Memory] <= col.Gives[Memory] && next[Pods] <= col.Gives[Pods] {
				held = next
			}
		}
		for r := range Rows {
			if held[r] > tight.Gives[r] || tight.Gives[r] > col.Gives[r] {
				t.Fatalf("%v fits %v, but tightened it gives %v", held, col.Gives, tight.Gives)
			}
		}
		if len(needs) == 1 {
			k := min(col.Gives[CPU]/needs[0][CPU], col.Gives[Memory]/needs[0][Memory], col.Gives[Pods])
			if want := (Vector{k * needs[0][CPU], k * needs[0][Memory], k, 1}); tight.Gives != want {
				t.Fatalf("equal pods: tightened to %v, want %v", tight.Gives, want)
			}
		}
	})
}
