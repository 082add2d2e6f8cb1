package packing

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// capProblem has one template of nodes with room for ten pods at price 10, a smaller
// one for two at price 3, and existing nodes with room for ten.
func capProblem(nodes int, classes ...Class) *Problem {
	p := &Problem{
		Dims: []string{"cpu", "memory", "pods"}, Work: 400_000, Pools: []Pool{{Name: "a"}},
		Templates: []Template{{
			Name:   "a",
			Types:  []Type{{Name: "large", Alloc: []int64{1000, 1000, 20}}, {Name: "small", Alloc: []int64{200, 200, 20}}},
			Offers: []Offer{{Type: 0, Price: 10, Market: &Market{Rank: 1}}, {Type: 1, Price: 3, Market: &Market{Rank: 1}}},
		}},
	}
	for range nodes {
		p.Nodes = append(p.Nodes, Node{Name: "n", Free: []int64{1000, 1000, 20}})
	}
	both := NewBitset(2)
	both.Set(0)
	both.Set(1)
	for _, c := range classes {
		c.Need, c.Offers, c.Nodes = []int64{100, 100, 1}, []Bitset{both}, NewBitset(nodes)
		for i := range nodes {
			c.Nodes.Set(i)
		}
		p.Classes = append(p.Classes, c)
	}
	return p
}

func TestCapsCountWhatOtherClassesPutOnANode(t *testing.T) {
	// Twelve pods: too many for the exhaustive search. Node 0 carries one already.
	p := capProblem(2, Class{Count: 6}, Class{Count: 6})
	p.Caps = []Cap{{Max: 4, Classes: []int32{0, 1}, Used: []int32{1, 0}}}
	r := Solve(p)
	if err := verify(p, r); err != nil {
		t.Fatal(err)
	}
	if want := []Placed{{0, 0, 3}, {1, 0, 3}, {1, 1, 1}}; !cmp.Equal(r.Placed, want) {
		t.Errorf("placed %v, want %v", r.Placed, want)
	}
	if r.Price != 9 || len(r.Unplaced) > 0 {
		t.Errorf("price %d with %v left out; the five pods that are left take three small nodes", r.Price, r.Unplaced)
	}
}

func TestPreferencesHoldOnNewNodesOnly(t *testing.T) {
	p := capProblem(1, Class{Count: 16, Apart: []int32{1}}, Class{Count: 2, Apart: []int32{0}})
	p.Caps = []Cap{{Max: 3, Classes: []int32{0}, New: true}}
	r := Solve(p)
	if err := verify(p, r); err != nil {
		t.Fatal(err)
	}
	if want := []Placed{{0, 0, 10}}; !cmp.Equal(r.Placed, want) {
		t.Errorf("placed %v, want %v", r.Placed, want)
	}
	// Six at three a node, and two apart from them: on large nodes 20, on small ones 9.
	if r.Price > 12 {
		t.Errorf("price %d for %v, 12 is possible", r.Price, r.Launches)
	}
}

func TestAClassThatNoNodeMayCarrySpoilsNoOther(t *testing.T) {
	p := capProblem(0, Class{Count: 3}, Class{Count: 30})
	p.Caps = []Cap{{Max: 1, Classes: []int32{0}, Weight: []int32{2}}}
	r := Solve(p)
	if err := verify(p, r); err != nil {
		t.Fatal(err)
	}
	if r.Price != 30 || len(r.Unplaced) != 1 || r.Unplaced[0].Class != 0 || r.Unplaced[0].Count != 3 {
		t.Errorf("price %d, left out %v; want 30 and the three pods that weigh too much", r.Price, r.Unplaced)
	}
}

func TestForcedNodesRaiseTheBound(t *testing.T) {
	p := capProblem(0, Class{Count: 20}, Class{Count: 4})
	p.Caps = []Cap{{Max: 4, Classes: []int32{0, 1}, Weight: []int32{1, 2}}}
	r := Solve(p)
	if err := verify(p, r); err != nil {
		t.Fatal(err)
	}
	// 28 at four a node: seven nodes, for 24 pods in room.
	if len(r.Bounds) != 1 || r.Bounds[0].Demand[3] != 7 {
		t.Fatalf("bounds %+v, want seven forced nodes", r.Bounds)
	}
}

// TestPricesUnderRulesProveTheBound tries all contents that rules allow against the
// prices per pod of bounds.
func TestPricesUnderRulesProveTheBound(t *testing.T) {
	proofs := 0
	check := func(t *rapid.T) {
		p := draw(t, size{types: 6, classes: 4, perClass: 12, templates: 1, conflicts: true, caps: true})
		r := Solve(p)
		if err := verify(p, r); err != nil {
			t.Fatalf("%v\n%s", err, describe(p))
		}
		launched := make([]int, len(p.Classes))
		for _, l := range r.Launches {
			for _, cc := range l.Contents {
				launched[cc.Class] += cc.Count
			}
		}
		for _, b := range r.Bounds {
			if b.Kind != BoundContents {
				continue
			}
			proofs++
			total := 0.0
			for _, cp := range b.Prices {
				total += cp.Price * float64(launched[cp.Class])
			}
			if float64(b.Total) > total {
				t.Fatalf("total %d, prices come to %g", b.Total, total)
			}
			tm := &p.Templates[0]
			m := map[int]int{}
			var try func(i int, worth float64)
			try = func(i int, worth float64) {
				if !mayShare(p, m) {
					return
				}
				if i == len(b.Prices) {
					for o, of := range tm.Offers {
						if holdsAll(p, tm, o, m) && worth > float64(of.Price)*(1+1e-9) {
							t.Fatalf("%v on offer %d is worth %g, it costs %d\n%s", m, o, worth, of.Price, describe(p))
						}
					}
					return
				}
				c := b.Prices[i].Class
				for n := 0; n <= launched[c]; n++ {
					m[c] = n
					try(i+1, worth+float64(n)*b.Prices[i].Price)
				}
				m[c] = 0
			}
			try(0, 0)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 4 { // few of them have such bounds
			check(t)
		}
	})
	if proofs < 20 {
		t.Errorf("only %d bounds stood on prices per pod", proofs)
	}
}

func mayShare(p *Problem, m map[int]int) bool {
	for k := range p.Caps {
		if held, some := capSum(p, k, m, -1); some && held > p.Caps[k].Max {
			return false
		}
	}
	for a, n := range m {
		for _, b := range append(slices.Clone(p.Classes[a].Conflicts), p.Classes[a].Apart...) {
			if n > 0 && m[int(b)] > 0 && (int(b) != a || n > 1) {
				return false
			}
		}
	}
	return true
}

func holdsAll(p *Problem, tm *Template, o int, m map[int]int) bool {
	for d := range p.Dims {
		sum := int64(0)
		for c, n := range m {
			sum += p.Classes[c].Need[d] * int64(n)
		}
		if sum > tm.Types[tm.Offers[o].Type].Alloc[d] {
			return false
		}
	}
	for c, n := range m {
		if n > 0 && (p.Classes[c].Offers[0] == nil || !p.Classes[c].Offers[0].Has(o)) {
			return false
		}
	}
	return true
}

func TestEqualPodsUnderACapHaveTheirBound(t *testing.T) {
	// Twelve pods at most two on a node: six small nodes at 3.
	p := capProblem(0, Class{Count: 12})
	p.Templates[0].Types[1].Alloc = []int64{400, 400, 20}
	p.Caps = []Cap{{Max: 2, Classes: []int32{0}}}
	r := Solve(p)
	if err := verify(p, r); err != nil {
		t.Fatal(err)
	}
	if r.Price != 18 || len(r.Bounds) != 1 || r.Bounds[0].Total < 17 {
		t.Errorf("price %d, bounds %+v; want 18 and a bound that says so", r.Price, r.Bounds)
	}
}
