package worldtest

import (
	"cmp"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// byWeight are the preferred node affinity terms, heaviest first.
func byWeight(p *snapshot.Pod) []snapshot.PreferredTerm {
	out := slices.Clone(p.Spec.Preferred)
	slices.SortStableFunc(out, func(a, b snapshot.PreferredTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// kept is the heaviest preferred node affinity term that labels satisfy, or nil.
func kept(p *snapshot.Pod, labels map[string]string) *snapshot.PreferredTerm {
	for _, t := range byWeight(p) {
		if termSelects(t.Term, labels, "") {
			return &t
		}
	}
	return nil
}

// preferences: on new nodes a preference is kept, or the plan says that it is not; and
// it is kept where a node of the pod's own would keep all of them.
func (j *judge) preferences() {
	if j.s.Settings.IgnorePreferences || j.skip[aboutPreferences] {
		return
	}
	v := j.variants()[0]
	b, want := j.board(v)
	b.reach = func(p *snapshot.Pod, c *snapshot.TopologySpread) []string { return j.reachable(p, c, false) }
	for _, at := range b.sites {
		at.pods = slices.Clone(at.bound)
	}
	for _, s := range want {
		s.at.pods = append(s.at.pods, s.pod)
	}
	for i := range j.p.Launches {
		l := &j.p.Launches[i]
		if v[i] == nil || l.Static {
			continue // a static pool's node is there whatever the pods, as one that exists
		}
		at := b.sites[slices.IndexFunc(b.sites, func(s *site) bool { return s.name == l.Name })]
		for _, p := range j.inLaunch[l.Name] {
			if p.Buffer != "" {
				continue // to units the launches of pods are nodes that are there
			}
			why := j.disliked(b, p, at)
			switch {
			case why == "":
			case !j.relaxed(l, p):
				j.fail("pod %s of launch %s: %s, and the plan does not say so", p.Ref(), l.Name, why)
			default:
				memo := map[string]bool{}
				fits := j.acceptsNew(p, memo)
				for _, name := range sortedKeys(j.pools) {
					pool := j.pools[name]
					if j.strictMinValues(pool) || prefersNot(pool.pool, p) {
						continue
					}
					sup := j.hosts(pool, []*snapshot.Pod{p}, true, func(sup *Supply, labels map[string]string) bool {
						terms := byWeight(p)
						if len(terms) > 0 && !termSelects(terms[0].Term, labels, "") || !fits(sup, labels) {
							return false
						}
						return j.likes(p, sup, labels)
					})
					if sup != nil {
						j.fail("pod %s of launch %s: %s, although %s of NodePool %s in %s would keep all preferences", p.Ref(), l.Name, why, sup.Type, name, sup.Zone)
						break
					}
				}
			}
		}
	}
}

// likes reports whether no preference of the pod about other pods is hurt on a new node.
func (j *judge) likes(p *snapshot.Pod, sup *Supply, labels map[string]string) bool {
	b, want := j.board(j.variants()[0])
	b.reach = func(p *snapshot.Pod, c *snapshot.TopologySpread) []string { return j.reachable(p, c, true) }
	at := b.planned("one more node", labels, sup)
	b.sites = append(b.sites, at)
	for _, s := range b.sites {
		s.pods = slices.Clone(s.bound)
	}
	for _, s := range want {
		if s.pod != p {
			s.at.pods = append(s.at.pods, s.pod)
		}
	}
	at.pods = append(at.pods, p)
	return j.disliked(b, p, at) == ""
}

// disliked names a preference of a pod that its place hurts, as far as that is
// certain whatever the order in which pods were placed: pods that came later without
// minding are not the plan's fault.
func (j *judge) disliked(b *board, p *snapshot.Pod, at *site) string {
	if terms := byWeight(p); len(terms) > 0 && !termSelects(terms[0].Term, at.labels, "") {
		return "its heaviest preferred node affinity is not kept"
	}
	if t := softTaint(at.taints, p); t != nil {
		return "it does not tolerate taint " + t.Key + ", which is PreferNoSchedule"
	}
	for i := range p.Spec.Spread {
		c := &p.Spec.Spread[i]
		if c.WhenUnsatisfiable != "ScheduleAnyway" || j.onNodes(b, p, c, at) {
			continue
		}
		at.pods = slices.DeleteFunc(at.pods, func(o *snapshot.Pod) bool { return o == p })
		why := b.skewed(p, at, c, []snapshot.TopologySpread{*c})
		at.pods = append(at.pods, p)
		if why != "" {
			return "preferred " + why
		}
	}
	one := *p
	for _, t := range p.Spec.Affinity {
		if t.Weight == 0 {
			continue
		}
		t.Weight = 0
		one.Spec.Affinity = []snapshot.PodAffinityTerm{t}
		if why := b.affinityRefuses(&one, at); why != "" {
			return "preferred " + why
		}
	}
	for _, t := range p.Spec.Anti {
		if t.Weight == 0 {
			continue
		}
		o := b.inDomain(at, t.TopologyKey, func(o *snapshot.Pod) bool {
			return o != p && b.termSelectsPod(&t, p, o) && (o.NodeName != "" && j.nodes[o.NodeName] != nil && !j.moves(o) || !j.eased(o) && minds(b, o, p, t.TopologyKey))
		})
		if o != nil {
			return "preferred anti-affinity over " + t.TopologyKey + ": pod " + o.Ref() + " is there"
		}
	}
	return ""
}

// onNodes reports whether the plan puts pods that a constraint counts on nodes that
// exist, where preferences do not count.
func (j *judge) onNodes(b *board, p *snapshot.Pod, c *snapshot.TopologySpread, at *site) bool {
	for _, name := range sortedKeys(j.onNode) {
		if slices.ContainsFunc(j.onNode[name], func(o *snapshot.Pod) bool { return o.Namespace == p.Namespace && spreadSelects(c, p, o) }) {
			return true
		}
	}
	// Pods that are counted and do not mind may come later.
	d, _ := labelValue(at.labels, c.TopologyKey)
	for _, s := range b.sites {
		if e, ok := labelValue(s.labels, c.TopologyKey); !ok || e != d {
			continue
		}
		for _, o := range s.pods {
			if o.NodeName == "" && o.Namespace == p.Namespace && spreadSelects(c, p, o) &&
				!slices.ContainsFunc(o.Spec.Spread, func(u snapshot.TopologySpread) bool { return u.TopologyKey == c.TopologyKey && u.MaxSkew <= c.MaxSkew }) {
				return true
			}
		}
	}
	return false
}

// eased reports whether the plan dropped preferences of pods in the launch of o.
func (j *judge) eased(o *snapshot.Pod) bool {
	return slices.ContainsFunc(j.p.Launches, func(l plan.Launch) bool {
		return len(l.Relaxed) > 0 && slices.Contains(j.inLaunch[l.Name], o)
	})
}

// minds reports whether o has an anti-affinity against p over the same key itself.
func minds(b *board, o, p *snapshot.Pod, key string) bool {
	return slices.ContainsFunc(o.Spec.Anti, func(t snapshot.PodAffinityTerm) bool { return t.TopologyKey == key && b.termSelectsPod(&t, o, p) })
}

func (j *judge) moves(p *snapshot.Pod) bool {
	v := j.nodes[p.NodeName]
	return v != nil && v.deleting && movable(j.s, p)
}

func softTaint(taints []snapshot.Taint, p *snapshot.Pod) *snapshot.Taint {
	for i, t := range taints {
		if t.Effect == "PreferNoSchedule" && !slices.ContainsFunc(p.Spec.Tolerations, func(o snapshot.Toleration) bool { return tolerates(o, t) }) {
			return &taints[i]
		}
	}
	return nil
}

// relaxed reports whether the plan says that it dropped a preference for the pod: in
// its launch, or in a warning about the pod or its kind.
func (j *judge) relaxed(l *plan.Launch, p *snapshot.Pod) bool {
	return len(l.Relaxed) > 0 || slices.ContainsFunc(j.p.Warnings, func(w plan.Warning) bool {
		return w.Code == plan.PreferenceRelaxed && (strings.Contains(w.Object, p.Ref()) || strings.HasPrefix(w.Object, "pod/"))
	})
}
