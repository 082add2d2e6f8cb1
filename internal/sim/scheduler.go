package sim

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// scheduler is kube-scheduler: its filters, the nominated node first, and else the node
// with the most room (LeastAllocated). A nomination holds room against others, and is taken
// away when its pod is tried and finds no node. It shares nothing with the planner.
type scheduler struct {
	c    *cluster
	dice dice
}

// place is a node as the scheduler sees it.
type place struct {
	node *item[snapshot.Node]
	free snapshot.Resources
	pods []*snapshot.Pod
	held snapshot.Resources // for pods that wait and are nominated to it
}

// round tries every pod that waits, once.
func (s *scheduler) round() {
	var waiting []*item[snapshot.Pod]
	for _, p := range s.c.pods.all() {
		if p.v.NodeName == "" && p.deleting.IsZero() && len(p.v.Spec.Gates) == 0 && !p.v.Terminal() {
			waiting = append(waiting, p)
		}
	}
	if len(waiting) == 0 {
		return
	}
	places, by := s.places()
	for _, p := range waiting {
		if at := by[p.v.NominatedNode]; at != nil {
			at.held = plus(at.held, p.v.Spec.Requests)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *item[snapshot.Pod]) int {
		return cmp.Or(-cmp.Compare(a.v.Spec.Priority, b.v.Spec.Priority), a.created.Compare(b.created), cmp.Compare(a.key, b.key))
	})
	// Pods that could not be placed are tried again when one that was may have changed that.
	// Equal pods fare the same as long as nothing is bound, so that one of them tells of all.
	for again := true; again; {
		again = false
		known := map[string]*fate{}
		waiting = slices.DeleteFunc(waiting, func(p *item[snapshot.Pod]) bool {
			f := known[classOf(p)]
			if f == nil {
				f = &fate{rules: s.rulesOf(&p.v, places)}
				known[classOf(p)] = f
			}
			own := by[p.v.NominatedNode]
			at := s.choose(&p.v, places, own, f)
			if own != nil {
				own.held = minus(own.held, p.v.Spec.Requests)
			}
			if at == nil {
				if own != nil {
					p.v.NominatedNode = ""
					p.version++
					clear(known)
				}
				return false
			}
			s.bind(p, at)
			clear(known)
			again = again || len(p.v.Spec.Affinity)+len(p.v.Spec.Spread) > 0
			return true
		})
	}
	for _, p := range waiting {
		if p.v.Scheduled == nil || p.v.Scheduled.Status != "False" {
			p.v.Scheduled = &snapshot.Condition{Type: "PodScheduled", Status: "False", Reason: "Unschedulable", Since: s.c.w.now().Truncate(time.Second)}
			p.version++
		}
	}
}

func (s *scheduler) places() (out []*place, by map[string]*place) {
	by = map[string]*place{}
	for _, n := range s.c.nodes.all() {
		at := &place{node: n, free: n.v.Allocatable}
		out = append(out, at)
		by[n.key] = at
	}
	for _, p := range s.c.pods.all() {
		if at := by[p.v.NodeName]; at != nil && !p.v.Terminal() {
			v := p.v
			at.pods = append(at.pods, &v)
			at.free = minus(at.free, v.Spec.Requests)
		}
	}
	return out, by
}

// fate is what is known of equal pods in a round.
type fate struct {
	rules   *rules
	nowhere bool // no node takes one
}

// classOf names what pods have in common that decides: those of one owner are equal, but for
// the pods of DaemonSets.
func classOf(p *item[snapshot.Pod]) string {
	if p.v.Owner == nil || isDaemon(&p.v) {
		return p.key
	}
	return p.v.Namespace + "/" + p.v.Owner.Name
}

func (s *scheduler) choose(p *snapshot.Pod, places []*place, nominated *place, f *fate) *place {
	if nominated != nil && f.rules.allow(nominated, true) {
		return nominated
	}
	if f.nowhere {
		return nil
	}
	if isDaemon(p) { // it has one node to go to
		target := p.Spec.Required[0].Fields[0].Values[0]
		for _, at := range places {
			if at.node.key == target && f.rules.allow(at, false) {
				return at
			}
		}
		return nil
	}
	var best *place
	var score int64
	for _, at := range places {
		if at == nominated || !f.rules.allow(at, false) {
			continue
		}
		if n := room(p, at); best == nil || n > score {
			best, score = at, n
		}
	}
	f.nowhere = best == nil && nominated == nil
	return best
}

// room is the score of a node: the share that stays free of cpu and memory.
func room(p *snapshot.Pod, at *place) int64 {
	a := at.node.v.Allocatable
	if a.CPU == 0 || a.Memory == 0 {
		return 0
	}
	return (at.free.CPU-p.Spec.Requests.CPU)*1000/a.CPU + (at.free.Memory-p.Spec.Requests.Memory)/1024*1000/max(1, a.Memory/1024)
}

func (s *scheduler) bind(p *item[snapshot.Pod], at *place) {
	w := s.c.w
	p.v.NodeName = at.node.key
	now := w.now().Truncate(time.Second)
	p.v.Scheduled = &snapshot.Condition{Type: "PodScheduled", Status: "True", Since: now}
	v := p.v
	at.pods = append(at.pods, &v)
	at.free = minus(at.free, v.Spec.Requests)
	w.stats.PodsBound++
	w.tracef("scheduler binds %s to %s", p.key, at.node.key)
	s.c.pods.touch(p)
	uid := p.uid
	w.after(s.dice.between(500*time.Millisecond, 6*time.Second), func() { s.c.runPod(p.key, uid) })
}

// rules are what one pod may do where, with what has to be counted only once.
type rules struct {
	pod *snapshot.Pod
	// spread are the domains that may take one more, by constraint; far are domains that
	// anti-affinity forbids, near those that affinity demands.
	spread []domains
	far    []domains
	near   []domains
}

// domains are values of a topology key that are allowed, or forbidden.
type domains struct {
	key string
	set map[string]bool
}

func (s *scheduler) rulesOf(p *snapshot.Pod, places []*place) *rules {
	r := &rules{pod: p}
	for i := range p.Spec.Spread {
		c := &p.Spec.Spread[i]
		if c.WhenUnsatisfiable == "ScheduleAnyway" {
			continue
		}
		r.spread = append(r.spread, spreadOf(p, c, places))
	}
	for i := range p.Spec.Anti {
		t := &p.Spec.Anti[i]
		if t.Weight == 0 {
			r.far = append(r.far, domains{t.TopologyKey, domainsWhere(places, t.TopologyKey, func(o *snapshot.Pod) bool { return termSelects(t, p, o) })})
		}
	}
	// What others keep away from them.
	guards := map[string]map[string]bool{}
	for _, at := range places {
		for _, o := range at.pods {
			for i := range o.Spec.Anti {
				t := &o.Spec.Anti[i]
				if t.Weight != 0 || !termSelects(t, o, p) {
					continue
				}
				if v, ok := at.node.v.Labels[t.TopologyKey]; ok {
					if guards[t.TopologyKey] == nil {
						guards[t.TopologyKey] = map[string]bool{}
					}
					guards[t.TopologyKey][v] = true
				}
			}
		}
	}
	for key, set := range guards {
		r.far = append(r.far, domains{key, set})
	}
	for i := range p.Spec.Affinity {
		t := &p.Spec.Affinity[i]
		if t.Weight != 0 {
			continue
		}
		set := domainsWhere(places, t.TopologyKey, func(o *snapshot.Pod) bool { return termSelects(t, p, o) })
		if len(set) == 0 && termSelects(t, p, p) {
			continue // the first of a series
		}
		r.near = append(r.near, domains{t.TopologyKey, set})
	}
	return r
}

func domainsWhere(places []*place, key string, ok func(*snapshot.Pod) bool) map[string]bool {
	out := map[string]bool{}
	for _, at := range places {
		v, has := at.node.v.Labels[key]
		if has && !out[v] && slices.ContainsFunc(at.pods, ok) {
			out[v] = true
		}
	}
	return out
}

// spreadOf are the domains in which one more pod keeps the skew.
func spreadOf(p *snapshot.Pod, c *snapshot.TopologySpread, places []*place) domains {
	counts := map[string]int{}
	for _, at := range places {
		v, ok := at.node.v.Labels[c.TopologyKey]
		if !ok || c.NodeAffinityPolicy != "Ignore" && !selects(&p.Spec, &at.node.v) ||
			c.NodeTaintsPolicy == "Honor" && untolerated(at.node.v.Taints, p.Spec.Tolerations) {
			continue
		}
		counts[v] += 0
		for _, o := range at.pods {
			if o.Namespace == p.Namespace && o.Deleting.IsZero() && selectsLabels(c.Selector, o.Labels) {
				counts[v]++
			}
		}
	}
	least := -1
	for _, n := range counts {
		if least < 0 || n < least {
			least = n
		}
	}
	if c.MinDomains != nil && len(counts) < int(*c.MinDomains) {
		least = 0
	}
	self := 0
	if selectsLabels(c.Selector, p.Labels) {
		self = 1
	}
	out := domains{c.TopologyKey, map[string]bool{}}
	for v, n := range counts {
		if n+self-max(least, 0) <= int(c.MaxSkew) {
			out.set[v] = true
		}
	}
	return out
}

// allow is all filters for one node. held: room there is held for the pod.
func (r *rules) allow(at *place, held bool) bool {
	n, p := &at.node.v, r.pod
	free := minus(at.free, at.held)
	if held {
		free = plus(free, p.Spec.Requests)
	}
	if n.Unschedulable || untolerated(n.Taints, p.Spec.Tolerations) || !fits(p.Spec.Requests, free) || !selects(&p.Spec, n) {
		return false
	}
	for _, d := range r.spread {
		if v, ok := n.Labels[d.key]; !ok || !d.set[v] {
			return false
		}
	}
	for _, d := range r.far {
		if v, ok := n.Labels[d.key]; ok && d.set[v] {
			return false
		}
	}
	for _, d := range r.near {
		if v, ok := n.Labels[d.key]; !ok || !d.set[v] {
			return false
		}
	}
	return true
}

// termSelects reports whether a term of p selects o.
func termSelects(t *snapshot.PodAffinityTerm, p, o *snapshot.Pod) bool {
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		return o.Namespace == p.Namespace && selectsLabels(t.Selector, o.Labels)
	}
	return slices.Contains(t.Namespaces, o.Namespace) && selectsLabels(t.Selector, o.Labels)
}

func selectsLabels(sel *snapshot.LabelSelector, labels map[string]string) bool {
	if sel == nil {
		return false
	}
	for k, v := range sel.MatchLabels {
		if labels[k] != v {
			return false
		}
	}
	return !slices.ContainsFunc(sel.Expressions, func(e snapshot.SelectorRequirement) bool { return !matches(e, labels) })
}

func matches(r snapshot.SelectorRequirement, labels map[string]string) bool {
	v, has := labels[r.Key]
	switch r.Operator {
	case "In":
		return has && slices.Contains(r.Values, v)
	case "NotIn":
		return !has || !slices.Contains(r.Values, v)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	have, err := strconv.Atoi(v)
	if err != nil || len(r.Values) != 1 {
		return false
	}
	bound, err := strconv.Atoi(r.Values[0])
	return err == nil && (r.Operator == "Gt" && have > bound || r.Operator == "Lt" && have < bound)
}

func selects(p *snapshot.PodSpec, n *snapshot.Node) bool {
	for k, want := range p.NodeSelector {
		if v, ok := n.Labels[k]; !ok || v != want {
			return false
		}
	}
	if p.Required == nil {
		return true
	}
	return slices.ContainsFunc(p.Required, func(t snapshot.NodeSelectorTerm) bool {
		if len(t.Expressions)+len(t.Fields) == 0 {
			return false
		}
		for _, e := range t.Expressions {
			if !matches(e, n.Labels) {
				return false
			}
		}
		for _, f := range t.Fields {
			if !matches(f, map[string]string{"metadata.name": n.Name}) {
				return false
			}
		}
		return true
	})
}

// untolerated reports whether a taint keeps a pod away.
func untolerated(taints []snapshot.Taint, ts []snapshot.Toleration) bool {
	return slices.ContainsFunc(taints, func(t snapshot.Taint) bool {
		return t.Effect != "PreferNoSchedule" && !slices.ContainsFunc(ts, func(o snapshot.Toleration) bool { return tolerates(o, t) })
	})
}

func tolerates(t snapshot.Toleration, taint snapshot.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == "Exists" || (t.Operator == "" || t.Operator == "Equal") && t.Key != "" && t.Value == taint.Value
}
