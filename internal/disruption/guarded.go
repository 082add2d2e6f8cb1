package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// guarded are how many pods of a node each PodDisruptionBudget covers, that its drain would
// have to ask it about.
func (x *search) guarded(n *node) map[*snapshot.PodDisruptionBudget]int32 {
	var out map[*snapshot.PodDisruptionBudget]int32
	for _, p := range n.pods {
		if len(x.budgets[p.Namespace]) == 0 || !p.Evictable() {
			continue
		}
		for _, b := range x.covering(p) {
			if !b.HasStatus || b.UnhealthyPolicy == "AlwaysAllow" && p.Ready != nil && p.Ready.Status == "False" {
				continue
			}
			if out == nil {
				out = map[*snapshot.PodDisruptionBudget]int32{}
			}
			out[b]++
		}
	}
	return out
}

// asking is what nodes on their way out ask of a PodDisruptionBudget, and the first of them.
type asking struct {
	pods int32
	node string
}

// crowded says which PodDisruptionBudget has no room for another node, because its pods on
// nodes that go before take it up. A node that is the first one of a budget may go, however
// many of its pods it has: they leave one after the other.
func (x *search) crowded(n *node) string {
	if x.asked == nil {
		x.asked = map[*snapshot.PodDisruptionBudget]asking{}
		for _, o := range x.nodes {
			if o.going {
				x.ask(o, 1)
			}
		}
	}
	var full []string
	for b, pods := range x.guarded(n) {
		if a := x.asked[b]; a.pods > 0 && a.pods+pods > b.DisruptionsAllowed {
			full = append(full, fmt.Sprintf("PodDisruptionBudget %s lets %d go at a time, and pods of %s go first", b.Name, b.DisruptionsAllowed, cmp.Or(a.node, "others")))
		}
	}
	if len(full) == 0 {
		return ""
	}
	return slices.Min(full)
}

// ask has the pods of a node ask their budgets, or not any more (-1).
func (x *search) ask(n *node, times int32) {
	for b, pods := range x.guarded(n) {
		a := x.asked[b]
		if a.node == "" && times > 0 {
			a.node = n.name
		}
		if a.pods += times * pods; a.pods <= 0 {
			a = asking{}
		}
		x.asked[b] = a
	}
}

// release gives back what a node that stays after all has taken.
func (x *search) release(n *node) {
	x.spend(n.pool, -1)
	x.ask(n, -1)
}
