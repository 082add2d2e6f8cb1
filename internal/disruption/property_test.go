package disruption

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// TestMovesHold: in drawn clusters with rules of every kind, all moves together leave every
// pod with a place that breaks no rule, none goes to a node that goes, budgets are kept,
// every node is in one move or has one verdict, and what a move saves is what it says.
func TestMovesHold(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		w := worldtest.Draw(rapid.Uint64Range(0, 1<<32).Draw(t, "seed"))
		s, _, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		budget := rapid.SampledFrom([]string{"100%", "50%", "10%", "1", "0"}).Draw(t, "budget")
		settle(s, map[string]string{"budget": budget})
		season(s, rapid.Uint64Range(0, 1<<20).Draw(t, "seasoning"))
		r := Propose(s, w.Catalog, Options{Base: provision.Plan(s, w.Catalog, provision.Options{})})
		moved += len(r.Moves)
		for _, bad := range append(carriedOut(s, w.Catalog, r), append(sound(s, r), touched(s, r)...)...) {
			t.Errorf("%s\n%s\n%s", bad, show(r), w.Text())
		}
	})
	if moved == 0 {
		t.Error("nothing was moved in any world")
	}
}

// drawn is a world with what its nodes and pools say, as settle reads it.
func drawn(t *rapid.T, says map[string]string) (*worldtest.World, *snapshot.Snapshot) {
	w := worldtest.Draw(rapid.Uint64Range(0, 1<<32).Draw(t, "seed"))
	s, _, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	settle(s, says)
	return w, s
}

// sound says what is wrong with a result by itself.
func sound(s *snapshot.Snapshot, r *Result) []string {
	var out []string
	seen := map[string]int{}
	var saved snapshot.Price
	for i := range r.Moves {
		m := &r.Moves[i]
		saved += m.Saving
		if m.Reason == plan.MoveUnderutilized && m.Saving <= 0 {
			out = append(out, m.ID+" saves nothing")
		}
		for _, n := range m.Remove {
			seen["node/"+n]++
		}
	}
	for _, v := range r.Verdicts {
		seen[v.Object]++
		if plan.Info(v.Code).Code == "" || v.Detail == "" {
			out = append(out, v.Object+": code "+string(v.Code)+" has no row, or no detail")
		}
	}
	for name, n := range seen {
		if n != 1 {
			out = append(out, name+" is in several moves or verdicts")
		}
	}
	if len(seen) != r.Savings.Considered {
		out = append(out, "not every node has a move or a verdict")
	}
	if r.Savings.After < 0 || r.Savings.Floor < 0 { // S-28
		out = append(out, "a cluster costs less than nothing")
	}
	if r.Savings.Now-saved != r.Savings.After {
		out = append(out, "the sum of savings is another")
	}
	slices.Sort(out)
	return out
}

// TestSame: the same cluster in another order gives the same moves.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawn(t, nil)
		first := show(Propose(s, w.Catalog, Options{}))
		other := *s
		other.Nodes, other.Pods, other.NodeClaims = slices.Clone(s.Nodes), slices.Clone(s.Pods), slices.Clone(s.NodeClaims)
		slices.Reverse(other.Nodes)
		slices.Reverse(other.Pods)
		slices.Reverse(other.NodeClaims)
		other.Normalize()
		if again := show(Propose(&other, w.Catalog, Options{})); again != first {
			t.Errorf("first:\n%s\nthen:\n%s", first, again)
		}
	})
}
