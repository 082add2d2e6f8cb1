package disruption

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// spread reports whether pods of nodes are spread over anything but single nodes.
func spread(s *snapshot.Snapshot, nodes []string) bool {
	return slices.ContainsFunc(s.Pods, func(p snapshot.Pod) bool {
		return slices.Contains(nodes, p.NodeName) && slices.ContainsFunc(p.Spec.Spread, func(t snapshot.TopologySpread) bool {
			return t.TopologyKey != "kubernetes.io/hostname"
		})
	})
}

// TestConfirmed: what is proposed is confirmed when nothing has changed since; else its nodes
// would be tainted and freed again and again. What adds a node may find that none is needed.
// Where pods are spread over zones the deal may be another when fewer pods are dealt, and
// another zone may be right, too.
func TestConfirmed(t *testing.T) {
	moves, replaced := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawn(t, map[string]string{"budget": "100%"})
		season(s, rapid.Uint64Range(0, 1<<20).Draw(t, "seasoning"))
		o := Options{Base: provision.Plan(s, w.Catalog, provision.Options{})}
		r := Propose(s, w.Catalog, o)
		for i := range r.Moves {
			m := &r.Moves[i]
			if spread(s, m.Remove) {
				continue
			}
			moves++
			if len(m.Add) > 0 {
				replaced++
			}
			if got, why := Recheck(s, w.Catalog, o, m.Reason, m.Remove, len(m.Add) > 0 || m.Reason == plan.MoveDrifted); got == nil {
				t.Errorf("%s of %v, which adds %d, is not confirmed: %s %s %s\n%s\n%s", m.Reason, m.Remove, len(m.Add), why.Object, why.Code, why.Detail, show(r), w.Text())
			}
		}
	})
	if moves == 0 || replaced == 0 {
		t.Errorf("%d moves were proposed, %d add a node", moves, replaced)
	}
}
