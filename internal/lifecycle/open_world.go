package lifecycle

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// openingWorld is an Opening, looked up.
type openingWorld struct {
	o       *Opening
	node    map[string]int
	pods    []openingPod // of the nodes, in the scheduler's order
	classes map[string]*openingClass
	spreads map[string]*openingSpread
	waiting []int // by node: how many of its pods wait
	tie     ties
}

// openingPod is a pod of a node of the opening.
type openingPod struct {
	*snapshot.Pod
	pod     Pod
	version uint64
	class   *openingClass
	home    int    // the node that lists it
	on      string // the node where it runs, or is nominated to
}

func (p *openingPod) waits() bool { return p.NodeName == "" }

// openingClass are pods that are alike to the scheduler.
type openingClass struct {
	// room is how many more of them each node is to take, by index.
	room    map[int]int
	spreads []*openingSpread // that bind them, over anything but single nodes
	counted []*openingSpread // that count them
}

// openingSpread is a hard topology spread, shared by all pods that carry it.
type openingSpread struct {
	key     string
	skew    int
	counts  map[string]int // pods by domain
	domains map[string]bool
	ns      string
	sel     *snapshot.LabelSelector
	fold    map[string]string // matchLabelKeys with the values of the carrier
	// tight is how many more pods that are counted may be nominated to a node, by index,
	// before one that is already is refused.
	tight map[int]int
}

const hostnameKey = "kubernetes.io/hostname"

func newOpeningWorld(o *Opening) *openingWorld {
	w := &openingWorld{
		o: o, node: map[string]int{}, classes: map[string]*openingClass{}, spreads: map[string]*openingSpread{},
		waiting: make([]int, len(o.Nodes)), tie: newTies(len(o.Nodes)),
	}
	for i := range o.Nodes {
		w.node[o.Nodes[i].Name] = i
	}
	w.list()
	w.count()
	return w
}

// list finds the pods of the nodes. A pod that is listed twice belongs to the first node by
// name; one that is not there any more to none.
func (w *openingWorld) list() {
	type key struct{ ns, name, uid string }
	read := make(map[key]*OpeningPod, len(w.o.Pods))
	for i := range w.o.Pods {
		p := &w.o.Pods[i]
		read[key{p.Namespace, p.Name, p.UID}] = p
	}
	order := slices.Collect(maps.Values(w.node))
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(w.o.Nodes[a].Name, w.o.Nodes[b].Name) })
	for _, i := range order {
		for _, p := range w.o.Nodes[i].Pods {
			k := key{p.Namespace, p.Name, p.UID}
			r := read[k]
			if r == nil || r.Terminal() || !r.Deleting.IsZero() {
				continue
			}
			delete(read, k)
			c := w.class(r.Pod)
			c.room[i]++
			if r.NodeName == "" {
				w.waiting[i]++
			}
			w.pods = append(w.pods, openingPod{Pod: r.Pod, pod: p, version: r.Version, class: c, home: i, on: cmp.Or(r.NodeName, r.NominatedNode)})
		}
	}
	slices.SortStableFunc(w.pods, func(a, b openingPod) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.version, b.version))
	})
	for i := range w.pods {
		p := &w.pods[i]
		if n, ok := w.node[p.NodeName]; ok && !p.waits() {
			p.class.room[n]--
		}
	}
}

// class finds what is known of pods like this one: of one controller, with the same labels
// and spec. A pod without a controller is like no other.
func (w *openingWorld) class(p *snapshot.Pod) *openingClass {
	owner := p.Name
	if p.Owner != nil {
		owner = p.Owner.UID + "/" + p.Owner.Name
	}
	spec, err := json.Marshal(&p.Spec)
	if err != nil {
		spec = []byte(p.Name) // a spec that cannot be written is like no other
	}
	labels := ""
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		labels += k + "=" + p.Labels[k] + ","
	}
	id := p.Namespace + "/" + owner + "/" + labels + string(spec)
	c := w.classes[id]
	if c != nil {
		return c
	}
	c = &openingClass{room: map[int]int{}}
	w.classes[id] = c
	for i := range p.Spec.Spread {
		t := &p.Spec.Spread[i]
		if t.WhenUnsatisfiable == "DoNotSchedule" && t.TopologyKey != hostnameKey {
			c.spreads = append(c.spreads, w.spread(p, t))
		}
	}
	return c
}

func (w *openingWorld) spread(p *snapshot.Pod, t *snapshot.TopologySpread) *openingSpread {
	fold := map[string]string{}
	for _, k := range t.MatchLabelKeys {
		if v, ok := p.Labels[k]; ok {
			fold[k] = v
		}
	}
	id, err := json.Marshal([]any{p.Namespace, t.TopologyKey, t.MaxSkew, t.Selector, fold})
	if err != nil {
		id = []byte(p.Ref())
	}
	s := w.spreads[string(id)]
	if s == nil {
		s = &openingSpread{
			key: t.TopologyKey, skew: int(t.MaxSkew), ns: p.Namespace, sel: t.Selector, fold: fold,
			counts: map[string]int{}, domains: map[string]bool{}, tight: map[int]int{},
		}
		w.spreads[string(id)] = s
	}
	return s
}

func (s *openingSpread) selects(p *snapshot.Pod) bool {
	if p.Namespace != s.ns || !s.sel.Selects(p.Labels) {
		return false
	}
	for k, v := range s.fold {
		if p.Labels[k] != v {
			return false
		}
	}
	return true
}

// count finds how many pods of each spread run in each domain, which classes they count,
// and which nodes they tie: all that pods of one spread are to come to.
func (w *openingWorld) count() {
	spreads := make([]*openingSpread, 0, len(w.spreads))
	for _, id := range slices.Sorted(maps.Keys(w.spreads)) {
		spreads = append(spreads, w.spreads[id])
	}
	seen := map[*openingClass]bool{}
	last := map[*openingSpread]int{}
	for i := range w.pods {
		p := &w.pods[i]
		if !seen[p.class] {
			seen[p.class] = true
			for _, s := range spreads {
				if s.selects(p.Pod) {
					p.class.counted = append(p.class.counted, s)
				}
			}
		}
		for _, s := range p.class.spreads {
			if n := &w.o.Nodes[p.home]; n.Labels[s.key] != "" {
				s.domains[n.Labels[s.key]] = true
			}
			if !p.waits() || !slices.Contains(p.class.counted, s) {
				continue
			}
			if was, ok := last[s]; ok {
				w.tie.join(was, p.home)
			}
			last[s] = p.home
		}
	}
	for i := range w.o.Pods {
		p := &w.o.Pods[i]
		if p.NodeName == "" || p.Terminal() || !p.Deleting.IsZero() {
			continue
		}
		labels := w.o.Labels[p.NodeName]
		if n, ok := w.node[p.NodeName]; ok {
			labels = w.o.Nodes[n].Labels
		}
		for _, s := range spreads {
			if d := labels[s.key]; d != "" && s.selects(p.Pod) {
				s.counts[d]++
			}
		}
	}
}

// slack is how many pods may be nominated to a node of a domain beside one that comes next
// there, before that one is refused; negative when it is refused anyway. One pod by which
// the domain is behind does not count: it may come before.
func (s *openingSpread) slack(domain string) int {
	least := math.MaxInt32
	for d := range s.domains {
		if d != domain {
			least = min(least, s.counts[d])
		}
	}
	behind := least - s.counts[domain]
	if behind > 0 {
		behind--
	}
	return s.skew - 1 + behind
}
