package packing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// capProblem has one template of nodes with room for ten pods at price 10, a smaller
// one for two at price 3, and existing nodes with room for ten.
func capProblem(nodes int, classes ...Class) *Problem {
	p := &Problem{
		Dims: []string{"cpu", "memory", "pods"}, Work: 400_000, Pools: []Pool{{Name: "a"}},
		Templates: []Template{{
			Name:   "a",
			Types:  []Type{{Name: "large", Alloc: []int64{1000, 1000, 20}}, {Name: "small", Alloc: []int64{200, 200, 20}}},
			Offers: []Offer{{Type: 0, Price: 10, Rank: 1}, {Type: 1, Price: 3, Rank: 1}},
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
