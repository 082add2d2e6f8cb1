package lifecycle

import (
	"math"
	"slices"
	"strings"
)

// claims finds a node for each pod that waits and has none, in the scheduler's order, as if
// each were bound before the next is tried. Pods that hold a claim keep it, and come first:
// the claim was a write of our own, and says nothing of when they are tried.
func (w *openingWorld) claims(opening map[int]bool) []Claim {
	takes := func(i int) bool { return opening[i] || w.o.Nodes[i].State == NodeOpen }
	names := make([]int, len(w.o.Nodes))
	for i := range names {
		names[i] = i
	}
	slices.SortFunc(names, func(a, b int) int { return strings.Compare(w.o.Nodes[a].Name, w.o.Nodes[b].Name) })
	held := make([]bool, len(w.pods))
	for i := range w.pods {
		p := &w.pods[i]
		if !p.waits() || p.on == "" {
			continue
		}
		n, ours := w.node[p.on]
		// A node that is not ours: preemption promised it.
		held[i] = !ours || takes(n) && p.class.room[n] > 0
		if held[i] && ours {
			p.class.room[n]--
			w.comes(p, n)
		}
	}
	var out []Claim
	for i := range w.pods {
		p := &w.pods[i]
		if !p.waits() || held[i] {
			continue
		}
		n := w.best(p, names, takes)
		if n < 0 {
			continue
		}
		p.class.room[n]--
		w.comes(p, n)
		out = append(out, Claim{p.pod, w.o.Nodes[n].Name})
		p.on = w.o.Nodes[n].Name
	}
	return out
}

// best is the node for a pod. A pod that no spread binds stays with its own. For others it
// is one that bears it, in the domain with the fewest; among those the first by name, so
// that what the scheduler tries first comes to few nodes, which open first. -1 when there
// is none.
func (w *openingWorld) best(p *openingPod, names []int, takes func(int) bool) int {
	if len(p.class.spreads) == 0 && takes(p.home) && p.class.room[p.home] > 0 {
		return p.home
	}
	best, least := -1, math.MaxInt
	for _, n := range names {
		if p.class.room[n] <= 0 || !takes(n) || !w.bears(p, n) {
			continue
		}
		count := 0
		for _, s := range p.class.spreads {
			count += s.counts[w.o.Nodes[n].Labels[s.key]]
		}
		if count < least {
			best, least = n, count
		}
	}
	return best
}

// bears reports whether a pod may be nominated to a node without that another one which is
// nominated there is refused for it.
func (w *openingWorld) bears(p *openingPod, n int) bool {
	for _, s := range p.class.counted {
		if left, ok := s.tight[n]; ok && left <= 0 {
			return false
		}
	}
	for _, s := range p.class.spreads {
		slack := s.slack(w.o.Nodes[n].Labels[s.key])
		if !slices.Contains(p.class.counted, s) {
			slack++ // it does not count itself
		}
		if slack < 0 {
			return false
		}
	}
	return true
}

// comes counts a pod that is nominated to a node.
func (w *openingWorld) comes(p *openingPod, n int) {
	for _, s := range p.class.counted {
		if left, ok := s.tight[n]; ok {
			s.tight[n] = left - 1
		}
	}
	for _, s := range p.class.spreads {
		if left, ok := s.tight[n]; !ok || s.slack(w.o.Nodes[n].Labels[s.key]) < left {
			s.tight[n] = s.slack(w.o.Nodes[n].Labels[s.key])
		}
	}
	for _, s := range p.class.counted {
		s.counts[w.o.Nodes[n].Labels[s.key]]++
	}
}

// exchange writes down what each node is now to take: a pod that is bound, or has a claim,
// belongs to its node, and a pod of its kind that had that place gets the one it leaves. It
// returns how many pods wait for each node then.
func (w *openingWorld) exchange(step *OpeningStep) (waiting []int) {
	want := map[*openingClass]map[int]int{}
	for i := range w.pods {
		p := &w.pods[i]
		if want[p.class] == nil {
			want[p.class] = map[int]int{}
		}
		want[p.class][p.home]++
	}
	at := make([]int, len(w.pods))
	// First those that have their place for certain, then the others at home, then what is left.
	for i := range w.pods {
		p := &w.pods[i]
		at[i] = -1
		if n, ok := w.node[p.on]; ok && want[p.class][n] > 0 {
			at[i] = n
			want[p.class][n]--
		}
	}
	for i := range w.pods {
		if p := &w.pods[i]; at[i] < 0 && want[p.class][p.home] > 0 {
			at[i] = p.home
			want[p.class][p.home]--
		}
	}
	for i := range w.pods {
		p := &w.pods[i]
		for n := 0; at[i] < 0; n++ {
			if want[p.class][n] > 0 {
				at[i] = n
				want[p.class][n]--
			}
		}
	}
	changed := map[int]bool{}
	waiting = make([]int, len(w.o.Nodes))
	for i := range w.pods {
		if w.pods[i].waits() {
			waiting[at[i]]++
		}
		if at[i] != w.pods[i].home {
			changed[at[i]], changed[w.pods[i].home] = true, true
		}
	}
	for n := range changed {
		var pods []Pod
		for i := range w.pods {
			if at[i] == n {
				pods = append(pods, w.pods[i].pod)
			}
		}
		slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
		step.Pods[w.o.Nodes[n].Name] = pods
	}
	return waiting
}
