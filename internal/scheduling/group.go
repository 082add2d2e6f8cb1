package scheduling

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// Class is a set of pods that are the same to every rule and ask for the same.
type Class struct {
	Rules int // index in World.Rules
	// Requests is what one pod asks for, pods=1 included.
	Requests snapshot.Resources
	// Pods are indices in Snapshot.Pods, in the order of names.
	Pods []int32
	// Unit is how many pods must share a node: the class is a list of such bundles, one
	// after the other in Pods, and Requests is what a bundle asks for. 0 counts as 1.
	Unit int

	base    int      // class of the snapshot that it was cut from
	members []member // of a bundle
	cell    *cell    // where dealing has pinned it; nil: nowhere
	level   int      // preferences that its pods have lost
	stuck   refusal  // why dealing found no place
	dealt   bool
}

// Units is how many bundles the class has.
func (c *Class) Units() int { return len(c.Pods) / c.PodsPerUnit() }

// PodsPerUnit is how many pods one bundle has; 1 for an ordinary class.
func (c *Class) PodsPerUnit() int { return max(1, c.Unit) }

// Groups are the planned pods as classes.
type Groups struct {
	// Rep holds, per rules-key, a pod that has these rules; Key is its number in what
	// GroupBy.Merge returned.
	Rep     []int32
	Key     []int32
	Classes []Class
}

// GroupBy is what keeps pods apart besides their own rules and requests.
type GroupBy struct {
	// Labels are the pod labels that some selector in play can see; pods that differ
	// in others are equal. Namespace tells that some selector is in play at all.
	Labels    []string
	Namespace bool
	// Extra keeps pods with different numbers apart, by position in the list; nil:
	// nothing does.
	Extra []int32
	// Merge maps every rules-key, given a pod that has it and its extra number, to the
	// number of a coarser one, counted from 0 in the order of the keys; nil: they stay as
	// they are.
	Merge func(rep, extra []int32) []int32
}

// Group sorts pods into classes: largest CPU first, then largest memory, then the
// name of the first pod. list holds indices in pods, in the order of names.
//
// It allocates per class and once per call, never per pod.
func Group(pods []snapshot.Pod, list []int32, by GroupBy) Groups {
	var g Groups
	of, extra := g.groupRules(pods, list, by)
	if by.Merge != nil {
		g.merge(of, by.Merge(g.Rep, extra))
	}
	type entry struct {
		rep   int32 // pod
		rules int32
		count int32
		next  int32 // of the same hash; -1 = none
	}
	var (
		entries []entry
		classes = map[uint64]int32{}
	)
	for n, i := range list {
		p := &pods[i]
		r := of[n]
		h := mix(hashRequests(&p.Spec.Requests), uint64(r))
		head, ok := classes[h]
		if !ok {
			head = -1
		}
		c := head
		for ; c >= 0; c = entries[c].next {
			if e := &entries[c]; e.rules == r && sameRequests(&p.Spec.Requests, &pods[e.rep].Spec.Requests) {
				break
			}
		}
		if c < 0 {
			c = int32(len(entries))
			entries = append(entries, entry{rep: i, rules: r, next: head})
			classes[h] = c
		}
		entries[c].count++
		of[n] = c
	}
	// Entries are in the order of their first pod, so that a stable order by size
	// breaks ties by name. Positions are sorted, not classes, which are large.
	order := make([]sortKey, len(entries))
	for c := range entries {
		r := &pods[entries[c].rep].Spec.Requests
		order[c] = sortKey{r.CPU, r.Memory, int32(c)}
	}
	slices.SortFunc(order, func(a, b sortKey) int {
		return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory), cmp.Compare(a.entry, b.entry))
	})
	g.Classes = make([]Class, len(entries))
	place := make([]int32, len(entries))
	backing := make([]int32, 0, len(list))
	for i := range order {
		e := &entries[order[i].entry]
		place[order[i].entry] = int32(i)
		k := len(backing)
		backing = backing[:k+int(e.count)]
		g.Classes[i] = Class{Rules: int(e.rules), Requests: pods[e.rep].Spec.Requests, Pods: backing[k:k:len(backing)]}
	}
	for n, i := range list {
		c := &g.Classes[place[of[n]]]
		c.Pods = append(c.Pods, i)
	}
	g.renumber()
	return g
}

// groupRules finds the rules-key of every pod of the list; extra are the numbers of the
// rules-keys in GroupBy.Extra.
func (g *Groups) groupRules(pods []snapshot.Pod, list []int32, by GroupBy) (of, extra []int32) {
	var (
		next  []int32
		rules = map[uint64]int32{}
	)
	of = make([]int32, len(list))
	lastHash, last, x := uint64(0), int32(-1), int32(0)
	for n, i := range list {
		p := &pods[i]
		h := hashRules(p, &by)
		if by.Extra != nil {
			x = by.Extra[n]
			h = mix(h, uint64(x))
		}
		same := func(r int32) bool { return (extra == nil || extra[r] == x) && sameRules(p, &pods[g.Rep[r]], &by) }
		r := last
		if r < 0 || h != lastHash || !same(r) {
			head, ok := rules[h]
			if !ok {
				head = -1
			}
			for r = head; r >= 0 && !same(r); r = next[r] {
			}
			if r < 0 {
				r = int32(len(g.Rep))
				g.Rep = append(g.Rep, i)
				next = append(next, head)
				if by.Extra != nil {
					extra = append(extra, x)
				}
				rules[h] = r
			}
			lastHash, last = h, r
		}
		of[n] = r
	}
	return of, extra
}

// merge makes coarser rules-keys; the first pod of each stands for it.
func (g *Groups) merge(of, to []int32) {
	var rep []int32
	for r, i := range g.Rep {
		if int(to[r]) == len(rep) {
			rep = append(rep, i)
		}
	}
	g.Rep = rep
	for n := range of {
		of[n] = to[of[n]]
	}
}

// sortKey orders a class.
type sortKey struct {
	cpu, memory int64
	entry       int32
}

// renumber puts rules-keys in the order in which the sorted classes use them.
func (g *Groups) renumber() {
	to := make([]int, len(g.Rep))
	rep := make([]int32, 0, len(g.Rep))
	g.Key = make([]int32, 0, len(g.Rep))
	for i := range g.Classes {
		c := &g.Classes[i]
		if to[c.Rules] == 0 {
			rep = append(rep, c.Pods[0])
			g.Key = append(g.Key, int32(c.Rules))
			to[c.Rules] = len(rep)
		}
		c.Rules = to[c.Rules] - 1
	}
	g.Rep = rep
}

func comparePods(a, b *snapshot.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
