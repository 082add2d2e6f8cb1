package bound

import (
	"testing"

	"pgregory.net/rapid"
)

func TestContentsByHand(t *testing.T) {
	ten := Column{"ten", Vector{10_000, 10 << 30, 20, 1}, 100}
	for _, c := range []struct {
		name  string
		cols  []Column
		kinds []Kind
		want  int64
	}{
		// Four of six cores: one a node, however much room is left.
		{"one kind that wastes room", []Column{ten}, []Kind{{Vector{6000, 1 << 30, 1}, 4}}, 400},
		// The four cores beside each are filled.
		{"a kind that fills it", []Column{ten}, []Kind{{Vector{6000, 1 << 30, 1}, 4}, {Vector{4000, 1 << 30, 1}, 4}}, 400},
		// Two of four cores beside each of six are too many for the gaps: six more nodes' fifths.
		{"a kind that fills it and is left over", []Column{ten}, []Kind{{Vector{6000, 1 << 30, 1}, 4}, {Vector{2000, 1 << 30, 1}, 18}}, 600},
		{"a smaller type for what is left", []Column{ten, {"six", Vector{6000, 10 << 30, 20, 1}, 65}}, []Kind{{Vector{6000, 1 << 30, 1}, 4}}, 260},
		{"nothing fits", []Column{{"small", Vector{1, 1, 1, 1}, 1}}, []Kind{{Vector{6000, 1 << 30, 1}, 4}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Contents(c.cols, c.kinds)
			// The prices are found in floating point and rounded down.
			if got.Total > c.want || got.Total < c.want-c.want/1000 {
				t.Errorf("%+v, want %d", got, c.want)
			}
		})
	}
}

// drawFilled draws nodes filled with pods of a few kinds at random.
func drawFilled(t *rapid.T, most int) (cols []Column, kinds []Kind, price int64) {
	cols = drawColumns(t)
	for range rapid.IntRange(1, most).Draw(t, "kinds") {
		kinds = append(kinds, Kind{Need: Vector{
			rapid.Int64Range(1, 160).Draw(t, "cpu") * 50, rapid.Int64Range(1, 256).Draw(t, "memory") << 26, 1,
		}})
	}
	for range rapid.IntRange(1, 12).Draw(t, "nodes") {
		c := rapid.SampledFrom(cols).Draw(t, "node")
		left, used := c.Gives, false
		for i := range kinds {
			n := rapid.Int64Range(0, 20).Draw(t, "pods")
			for r, need := range kinds[i].Need {
				if need > 0 {
					n = min(n, left[r]/need)
				}
			}
			for r, need := range kinds[i].Need {
				left[r] -= n * need
			}
			kinds[i].Count += int(n)
			used = used || n > 0
		}
		if used {
			price += c.Price
		}
	}
	return cols, kinds, price
}

// No filled nodes are cheaper than the bound of what they hold. With many kinds the
// smaller ones are cut.
func TestNoFilledNodesAreBelowTheBoundByContents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{4, wholeKinds, 3 * wholeKinds}).Draw(t, "most kinds")
		cols, kinds, price := drawFilled(t, most)
		if got := Contents(cols, kinds); got.Total > price {
			t.Fatalf("%+v, but nodes for %d hold the pods", got, price)
		}
	})
}

// What is proven comes near to the optimum of the relaxation, which is at least that of
// the relaxation over resources.
func TestBoundByContentsIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, kinds, _ := drawFilled(t, 4)
		var needs []Vector
		demand := Vector{Nodes: 0}
		pods := 0
		for _, k := range kinds {
			pods += k.Count
			needs = append(needs, k.Need)
			for r, v := range k.Need {
				demand[r] += v * int64(k.Count)
			}
		}
		if pods == 0 {
			return
		}
		got := Contents(cols, kinds)
		if float64(got.Total) < got.Value*(1-1e-3)-1 {
			t.Fatalf("%+v: proven is far below what was found", got)
		}
		var fit []Column
		for _, c := range cols {
			if c.Gives[CPU] > 0 {
				fit = append(fit, c)
			}
		}
		if cert, err := LP(Tighten(fit, needs), demand); err == nil && float64(got.Total) < float64(cert.Total)*(1-1e-3)-1 {
			t.Fatalf("%+v, the relaxation over resources proves %d", got, cert.Total)
		}
	})
}
