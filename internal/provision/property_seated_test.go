package provision_test

import (
	"fmt"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/worldtest"
)

// Tiny worlds under rules about other pods, held against brute force. The deal of pods
// to domains comes before packing and levels counts, so a plan may have a node more than
// it needs where a skew leaves slack; it is bounded here how often and by how much.
const (
	seatedSeeds = 300
	// Of the worlds where all pods can be placed: at least this share, in percent, at the
	// least price; all of them together at most so many percent of it; none beyond
	// worstSeated percent.
	leastSeated = 85
	totalSeated = 108
	worstSeated = 200
	// lostSeated is in how many worlds a pod may go without a node that brute force finds
	// for it: an early choice of domain is not taken back for every pod.
	lostSeated = 1
)

// seatedCounts is how a planner does in tiny worlds.
type seatedCounts struct {
	worlds, least, lost int
	price, bound        int64
	bad                 []string
}

// add plans a world and compares. Worlds that brute force cannot fill are left out, and
// those where a pod goes to a node that exists: it looks at launches alone.
func (n *seatedCounts) add(name string, w world, plan planner) {
	least, ok := worldtest.CheapestSeated(w.s, w.c)
	p := plan(w.s, w.c)
	if !ok || len(p.Placements) > 0 {
		return
	}
	n.worlds++
	for _, b := range worldtest.Check(w.s, w.c, p) {
		n.bad = append(n.bad, fmt.Sprintf("%s: %s", name, b))
	}
	for _, v := range p.Verdicts {
		if strings.HasPrefix(v.Object, "pod/") {
			n.lost++
			return
		}
	}
	price := p.Summary.LaunchPrice
	n.price, n.bound = n.price+price, n.bound+least
	switch {
	case price == least:
		n.least++
	case price < least:
		n.bad = append(n.bad, fmt.Sprintf("%s: launches cost %d, brute force finds no less than %d", name, price, least))
	case price*100 > least*worstSeated:
		n.bad = append(n.bad, fmt.Sprintf("%s: launches cost %d, brute force finds %d", name, price, least))
	}
}

// judge says what is wrong.
func (n *seatedCounts) judge() []string {
	bad := n.bad
	if n.least*100 < n.worlds*leastSeated {
		bad = append(bad, fmt.Sprintf("%d of %d worlds are at the least price, want %d %%", n.least, n.worlds, leastSeated))
	}
	if n.price*100 > n.bound*totalSeated {
		bad = append(bad, fmt.Sprintf("the worlds cost %d together, brute force %d: more than %d %%", n.price, n.bound, totalSeated))
	}
	if n.lost > lostSeated {
		bad = append(bad, fmt.Sprintf("in %d worlds a pod goes without the node that brute force finds for it", n.lost))
	}
	return bad
}

func seatedBy(t *testing.T, seeds uint64, plan planner) *seatedCounts {
	n := &seatedCounts{}
	for seed := range seeds {
		n.add(fmt.Sprintf("seed %d", seed), drawnWorld(t, worldtest.DrawTiny(seed)), plan)
	}
	return n
}

func TestPropertySeated(t *testing.T) {
	n := seatedBy(t, seatedSeeds, real)
	t.Logf("%d worlds, %d at the least price, %d lose a pod; price / least price %.3f", n.worlds, n.least, n.lost, float64(n.price)/float64(n.bound))
	for _, b := range n.judge() {
		t.Error(b)
	}
}
