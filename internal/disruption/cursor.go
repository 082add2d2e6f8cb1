package disruption

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/plan"
)

// A search that runs out of work names the node at which the next one begins. That one goes
// through the nodes by name from there, all around: whatever does not fit one pass has its
// turn in one of the next. A search that begins nowhere takes those first that promise most.

// turn orders nodes as the pass looks at them, where it begins at one; else it leaves them
// as they are.
func (x *search) turn(list []*node) {
	if x.o.From != "" {
		slices.SortFunc(list, x.byTurn)
	}
}

func (x *search) byTurn(a, b *node) int {
	later := func(n *node) int {
		if n.name < x.o.From {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(later(a), later(b)), cmp.Compare(a.name, b.name))
}

// spare gives the next part of the search some of the work: share in percent of all.
func (x *search) spare(share int64) { x.until = x.work + max(1, x.o.Work/100*share) }

// tired reports whether the part of the search that is under way has used up its work.
func (x *search) tired() bool { return x.work >= x.until }

// next is the node at which the next pass begins: the first one in turn that this one has
// not come to, "" when there is none. They are told so.
func (x *search) next() (name string, left int) {
	var first *node
	moved := x.moved()
	for _, n := range x.nodes {
		if !x.left[n.name] || moved[n.name] {
			continue
		}
		if _, told := x.verdicts[n.name]; told {
			continue
		}
		if left++; first == nil || x.byTurn(n, first) < 0 {
			first = n
		}
		x.say(n, plan.MovesLater, "the work of one pass ended before its turn: the next pass goes on from there")
	}
	if first == nil {
		return "", 0
	}
	return first.name, left
}
