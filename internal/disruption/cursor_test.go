package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// walk makes passes with little work until all nodes that the first one did not come to have
// had their turn, each beginning where then says. It returns how many passes that took, and
// what is wrong: a pass that does not say what it left, moves that do not hold, nodes that no
// pass came to.
func walk(s *snapshot.Snapshot, c *catalog.Catalog, work int64, then func(*Result) string) (passes int, bad []string) {
	o := Options{Base: provision.Plan(s, c, provision.Options{}), Work: work, NoFloor: true}
	todo := map[string]bool{}
	for pass := range len(s.Nodes) + 2 {
		r := Propose(s, c, o)
		if bad = append(carriedOut(s, c, r), sound(s, r)...); len(bad) > 0 {
			return pass, append(bad, show(r))
		}
		left := map[string]bool{}
		for _, v := range r.Verdicts {
			if v.Code == plan.MovesLater && strings.HasPrefix(v.Detail, "the work of one pass ended") {
				left[v.Object] = true
			}
		}
		if len(left) != r.Savings.Left || (r.Next == "") != (len(left) == 0) || r.Next != "" && !left["node/"+r.Next] {
			return pass, []string{fmt.Sprintf("pass %d: %d are left, next is %q, left are %v", pass, r.Savings.Left, r.Next, sortedKeys(left))}
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
			return pass, nil
		}
		o.From = then(r)
	}
	return len(s.Nodes) + 2, []string{fmt.Sprintf("never looked at: %v", sortedKeys(todo))}
}

// TestCursor: with however little work to a pass, passes that go on where the last one
// ended come to every node, in as many passes as there are nodes at most; what they move
// holds. Passes that begin anywhere do not (the mutant).
func TestCursor(t *testing.T) {
	ended, starved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawn(t, map[string]string{"budget": "100%"})
		work := rapid.Int64Range(1, 60).Draw(t, "work")
		passes, bad := walk(s, w.Catalog, work, func(r *Result) string { return r.Next })
		ended += passes
		for _, b := range bad {
			t.Errorf("%s\n%s", b, w.Text())
		}
		if _, bad := walk(s, w.Catalog, work, func(*Result) string { return "" }); len(bad) > 0 {
			starved++
		}
	})
	if ended == 0 {
		t.Error("no pass ended before its time")
	}
	if starved == 0 {
		t.Error("passes that begin anywhere come to every node too")
	}
}

// TestFloor: the floor is no higher than what is reachable, and no higher than what the same
// pods cost when they are all planned anew.
func TestFloor(t *testing.T) {
	lower := 0
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawn(t, map[string]string{"budget": "100%"})
		r := Propose(s, w.Catalog, Options{Base: provision.Plan(s, w.Catalog, provision.Options{})})
		if f := r.Savings.Floor; f < 0 || f > r.Savings.After {
			t.Fatalf("the floor is %d, %d is reachable", f, r.Savings.After)
		}
		lower += int(min(1, r.Savings.After-r.Savings.Floor))
		if bad := dearer(s, w.Catalog, r.Savings.Floor, r.Savings.After); bad != "" {
			t.Fatalf("%s\n%s", bad, w.Text())
		}
	})
	if lower == 0 {
		t.Error("the floor was never below what is reachable")
	}
}

// TestFloorMutant: a floor that is what is reachable now is found out.
func TestFloorMutant(t *testing.T) {
	for seed := range uint64(60) {
		w := worldtest.Draw(seed)
		s, _, err := w.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		settle(s, map[string]string{"budget": "0"})
		if now := Propose(s, w.Catalog, Options{}).Savings.Now; dearer(s, w.Catalog, now, now+1) != "" {
			return
		}
	}
	t.Error("nothing was found in any of the worlds")
}

// dearer says that a floor is above what the pods of a snapshot cost when they are planned
// anew on the nodes of others; "" when it is not, or was capped by what is reachable.
func dearer(s *snapshot.Snapshot, c *catalog.Catalog, floor, reachable snapshot.Price) string {
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
	p := provision.Plan(&anew, c, provision.Options{})
	if slices.ContainsFunc(p.Verdicts, func(v plan.Verdict) bool { return strings.HasPrefix(v.Object, "pod/") }) {
		return "" // what cannot run anew is not in the floor either, but may stay where it is
	}
	var price snapshot.Price
	for _, l := range p.Launches {
		price += l.Chosen.Price
	}
	if price < floor && floor != reachable {
		return fmt.Sprintf("planned anew it costs %d, the floor is %d", price, floor)
	}
	return ""
}
