package scheduling

import (
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// running is what terms need to know of pods that have a node.
type running struct {
	seats  []seat
	guards map[int32][]int32 // by pod: the anti-affinity terms that it guards its place with
	runs   []run
	hits   [][]int32 // by term: the runs that it selects; nil = not asked yet
	posts  [][]int32 // by term: the nodes of its guards
}

// seat is a pod on a node of World.Nodes.
type seat struct{ pod, node int32 }

// run is a set of pods with a node that every selector in play treats alike.
type run struct {
	rep   int32
	nodes []int32 // one entry a pod
	dying []int32 // the same for pods that are being deleted
}

// readGuards interns the required anti-affinity of pods that run: it keeps others
// away, whatever those say themselves.
func (w *World) readGuards() {
	t, s := w.topo, w.Snapshot
	t.guards = map[int32][]int32{}
	type known struct {
		rep   *snapshot.Pod
		terms []int32
	}
	byHash := map[uint64][]known{}
	same := func(p, q *snapshot.Pod) bool {
		return p.Namespace == q.Namespace && sameSet(p.Spec.Anti, q.Spec.Anti, sameAffinity) && t.sameKeys(p, q)
	}
	var last known
	for _, i := range w.order {
		p := &s.Pods[i]
		if len(p.Spec.Anti) == 0 || p.NodeName == "" || p.Terminal() {
			continue
		}
		if last.rep == nil || !same(last.rep, p) {
			h := mix(t.hashLabels(p), hashAffinity(p.Spec.Anti))
			list := byHash[h]
			k := slices.IndexFunc(list, func(o known) bool { return same(o.rep, p) })
			if k < 0 {
				one := known{rep: p}
				for n := range p.Spec.Anti {
					if a := &p.Spec.Anti[n]; a.Weight == 0 {
						one.terms = append(one.terms, t.intern(term{kind: antiTerm, key: a.TopologyKey, pods: affinityMatcher(p, a)}))
					}
				}
				byHash[h] = append(list, one)
				last = one
			} else {
				last = list[k]
			}
		}
		if len(last.terms) > 0 {
			t.guards[i] = last.terms
		}
	}
}

// hashLabels hashes what selectors in play see of a pod.
func (t *topology) hashLabels(p *snapshot.Pod) uint64 {
	h := hashString(p.Namespace)
	for _, k := range t.keys {
		if v, ok := p.Labels[k]; ok {
			h = mix(h, mix(hashString(k), hashString(v)))
		}
	}
	return h
}

// sameKeys reports whether no selector in play tells two pods apart by label.
func (t *topology) sameKeys(p, q *snapshot.Pod) bool {
	return !slices.ContainsFunc(t.keys, func(k string) bool {
		v, ok := p.Labels[k]
		o, have := q.Labels[k]
		return ok != have || v != o
	})
}

// seat records that a pod is on a node.
func (t *topology) seat(pod, node int32) { t.seats = append(t.seats, seat{pod, node}) }

// readRuns sorts seated pods by what selectors see. Pods that are planned to move do
// not count where they are.
func (w *World) readRuns() {
	t, s := w.topo, w.Snapshot
	moving := map[int32]bool{}
	if w.Displaced > 0 {
		for _, i := range w.pending {
			if s.Pods[i].NodeName != "" {
				moving[i] = true
			}
		}
	}
	t.posts = make([][]int32, len(t.terms))
	t.hits = make([][]int32, len(t.terms))
	byHash := map[uint64][]int32{}
	last := int32(-1)
	for _, at := range t.seats {
		if moving[at.pod] {
			continue
		}
		for _, k := range t.guards[at.pod] {
			t.posts[k] = append(t.posts[k], at.node)
		}
		p := &s.Pods[at.pod]
		r := last
		if r < 0 || !t.sameRun(p, &s.Pods[t.runs[r].rep]) {
			h := t.hashLabels(p)
			r = -1
			for _, k := range byHash[h] {
				if t.sameRun(p, &s.Pods[t.runs[k].rep]) {
					r = k
					break
				}
			}
			if r < 0 {
				r = int32(len(t.runs))
				t.runs = append(t.runs, run{rep: at.pod})
				byHash[h] = append(byHash[h], r)
			}
			last = r
		}
		if p.Deleting.IsZero() {
			t.runs[r].nodes = append(t.runs[r].nodes, at.node)
		} else {
			t.runs[r].dying = append(t.runs[r].dying, at.node)
		}
	}
	t.seats = nil
}

func (t *topology) sameRun(p, q *snapshot.Pod) bool {
	return p.Namespace == q.Namespace && t.sameKeys(p, q)
}

// selected lists the runs that a term selects.
func (w *World) selected(k int32) []int32 {
	t := w.topo
	if t.hits[k] == nil {
		list := []int32{}
		for r := range t.runs {
			if t.terms[k].pods.matches(&w.Snapshot.Pods[t.runs[r].rep], t.labels) {
				list = append(list, int32(r))
			}
		}
		t.hits[k] = list
	}
	return t.hits[k]
}
