package disruption

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// TestCursor: with however little work to a pass, passes that go on where the last one
// ended come to every node, as many passes as there are nodes at most; what they move holds.
func TestCursor(t *testing.T) {
	ended := 0
	rapid.Check(t, func(t *rapid.T) {
		w := worldtest.Draw(rapid.Uint64Range(0, 1<<32).Draw(t, "seed"))
		s, _, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		settle(s, map[string]string{"budget": "100%"})
		o := Options{Base: provision.Plan(s, w.Catalog, provision.Options{}), Work: rapid.Int64Range(1, 60).Draw(t, "work"), NoFloor: true}
		todo := map[string]bool{}
		for pass := range len(s.Nodes) + 2 {
			r := Propose(s, w.Catalog, o)
			for _, bad := range append(carriedOut(s, w.Catalog, r), sound(s, r)...) {
				t.Fatalf("pass %d: %s\n%s\n%s", pass, bad, show(r), w.Text())
			}
			left := map[string]bool{}
			for _, v := range r.Verdicts {
				if v.Code == plan.MovesLater && strings.HasPrefix(v.Detail, "the work of one pass ended") {
					left[v.Object] = true
				}
			}
			if len(left) != r.Savings.Left || (r.Next == "") != (len(left) == 0) || r.Next != "" && !left["node/"+r.Next] {
				t.Fatalf("pass %d: %d are left, next is %q, left are %v", pass, r.Savings.Left, r.Next, sortedKeys(left))
			}
			if pass == 0 {
				todo = left
			}
			for name := range todo {
				if !left[name] {
					delete(todo, name)
				}
			}
			if len(todo) == 0 {
				return
			}
			ended++
			o.From = r.Next
		}
		t.Fatalf("never looked at: %v\n%s", sortedKeys(todo), w.Text())
	})
	if ended == 0 {
		t.Error("no pass ended before its time")
	}
}

// TestFloor: the floor is no higher than what is reachable, and no higher than what the same
// pods cost when they are all planned anew.
func TestFloor(t *testing.T) {
	lower := 0
	rapid.Check(t, func(t *rapid.T) {
		w := worldtest.Draw(rapid.Uint64Range(0, 1<<32).Draw(t, "seed"))
		s, _, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		settle(s, map[string]string{"budget": "100%"})
		r := Propose(s, w.Catalog, Options{Base: provision.Plan(s, w.Catalog, provision.Options{})})
		if f := r.Savings.Floor; f < 0 || f > r.Savings.After {
			t.Fatalf("the floor is %d, %d is reachable", f, r.Savings.After)
		}
		lower += int(min(1, r.Savings.After-r.Savings.Floor))
		// The same pods, planned anew on the nodes of others.
		anew := *s
		anew.Nodes, anew.NodeClaims, anew.Nominations = nil, nil, nil
		anew.Pods = nil
		mine := map[string]bool{}
		for i := range s.Nodes {
			if s.Nodes[i].Labels[labelNodePool] != "" {
				mine[s.Nodes[i].Name] = true
				continue
			}
			anew.Nodes = append(anew.Nodes, s.Nodes[i])
		}
		for i := range s.Pods {
			p := s.Pods[i]
			switch {
			case p.NodeName != "" && !mine[p.NodeName]:
			case p.NodeName != "" && p.Reschedulable():
				p.NodeName, p.NominatedNode, p.Scheduled = "", "", nil
			default:
				continue
			}
			anew.Pods = append(anew.Pods, p)
		}
		p := provision.Plan(&anew, w.Catalog, provision.Options{})
		if slices.ContainsFunc(p.Verdicts, func(v plan.Verdict) bool { return strings.HasPrefix(v.Object, "pod/") }) {
			return // what cannot run anew is not in the floor either, but may stay where it is
		}
		var price snapshot.Price
		for _, l := range p.Launches {
			price += l.Chosen.Price
		}
		if price < r.Savings.Floor && r.Savings.Floor == r.Savings.After {
			return // the floor was capped by what is reachable
		}
		if price < r.Savings.Floor {
			t.Fatalf("planned anew it costs %d, the floor is %d\n%s", price, r.Savings.Floor, w.Text())
		}
	})
	if lower == 0 {
		t.Error("the floor was never below what is reachable")
	}
}
