package scheduling

import (
	"encoding/binary"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// topology is what the rules that look at other pods say: topology spread, pod
// affinity and anti-affinity. It is nil in a world without such rules, which then
// costs nothing.
//
// Rules about zones, capacity types and other labels that many nodes share are dealt
// (deal.go): each pod gets a domain, and its class is cut into parts that are pinned
// to one. Rules about single nodes become caps, conflicts and bundles of the packing
// problem (hostname.go, bundle.go).
type topology struct {
	labels map[string]map[string]string // of namespaces
	terms  []term
	byID   map[string]int32
	index  map[pick][]int32 // terms
	id     []byte           // scratch of intern
	keys   []string         // pod labels that some term reads
	// carry holds, by rules-key, what the pods themselves demand, matched the terms that
	// select them, ascending.
	carry   []carried
	matched [][]int32 // renumbered by adopt once the classes are known
	running
	domains []*domains
	byKey   map[string]int
}

// pick is what all pods have that a term selects: a namespace, unless it selects in several,
// and one label, if it names any.
type pick struct {
	wide                  bool
	namespace, key, value string
}

// term is one rule, the same for all pods that state it alike.
type term struct {
	kind termKind
	key  string
	pods matcher
	// maxSkew and what follows belong to spread.
	maxSkew, minDomains int32
	ignoreAffinity      bool // nodeAffinityPolicy Ignore
	honorTaints         bool // nodeTaintsPolicy Honor
}

type termKind uint8

const (
	spreadTerm termKind = iota
	affinityTerm
	antiTerm
)

// carried is what pods of one rules-key demand, as terms.
type carried struct {
	spread, affinity, anti []int32
	steps                  []step
}

func (c *carried) hard() bool { return len(c.spread)+len(c.affinity)+len(c.anti) > 0 }

// step is a preference, dropped as a whole when it cannot be kept. Steps are in the
// order in which they are dropped (Karpenter: preferred pod affinity, preferred pod
// anti-affinity and preferred node affinity, each the heaviest first, then
// ScheduleAnyway, at last PreferNoSchedule).
type step struct {
	kind stepKind
	term int32 // of a pod affinity, anti-affinity or spread
	// node is the index of a preferred node affinity term.
	node int
}

type stepKind uint8

const (
	stepAffinity stepKind = iota
	stepAnti
	stepNode
	stepSpread
	stepTaint
)

func isHostname(key string) bool { return key == catalog.LabelHostname }

// hasTopology reports whether a pod states a rule about other pods.
func hasTopology(s *snapshot.PodSpec) bool { return len(s.Spread)+len(s.Affinity)+len(s.Anti) > 0 }

// groupBy says by which labels pending pods are to be told apart: those that some
// rule in play reads.
func (w *World) groupBy() GroupBy {
	s := w.Snapshot
	keys := map[string]bool{}
	var last *snapshot.PodSpec
	any := false
	read := func(spec *snapshot.PodSpec, anti bool) {
		if last != nil && sameTopology(last, spec) {
			return
		}
		last, any = spec, true
		if !anti {
			for i := range spec.Spread {
				selectorKeys(keys, spec.Spread[i].Selector)
				for _, k := range spec.Spread[i].MatchLabelKeys {
					keys[k] = true
				}
			}
			affinityKeys(keys, spec.Affinity)
		}
		affinityKeys(keys, spec.Anti)
	}
	for _, i := range w.pending {
		if hasTopology(&s.Pods[i].Spec) {
			read(&s.Pods[i].Spec, false)
		}
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; len(p.Spec.Anti) > 0 && p.NodeName != "" && !p.Terminal() {
			read(&p.Spec, true)
		}
	}
	if !any || len(w.pending) == 0 {
		return GroupBy{Extra: w.profileOf}
	}
	w.topo = &topology{
		labels: map[string]map[string]string{}, byID: map[string]int32{}, index: map[pick][]int32{},
		keys: sortedKeys(keys), byKey: map[string]int{},
	}
	for i := range s.Namespaces {
		w.topo.labels[s.Namespaces[i].Name] = s.Namespaces[i].Labels
	}
	return GroupBy{Labels: w.topo.keys, Namespace: true, Extra: w.profileOf, Merge: w.mergeRules}
}

func affinityKeys(into map[string]bool, list []snapshot.PodAffinityTerm) {
	for i := range list {
		selectorKeys(into, list[i].Selector)
		for _, k := range list[i].MatchLabelKeys {
			into[k] = true
		}
		for _, k := range list[i].MismatchLabelKeys {
			into[k] = true
		}
	}
}

func sameTopology(a, b *snapshot.PodSpec) bool {
	return sameSet(a.Spread, b.Spread, sameSpread) && sameSet(a.Affinity, b.Affinity, sameAffinity) && sameSet(a.Anti, b.Anti, sameAffinity)
}

// mergeRules reads the terms of every rules-key, given a pod of each, and joins the
// keys that no term tells apart: most pods of a cluster are of that kind.
func (w *World) mergeRules(rep, extra []int32) []int32 {
	t, pods := w.topo, w.Snapshot.Pods
	carry := make([]carried, len(rep))
	for r, i := range rep {
		carry[r] = w.readTerms(&pods[i])
	}
	w.readGuards()
	to := make([]int32, len(rep))
	byHash := map[uint64][]int32{} // coarse keys
	var first []int32              // fine key of each coarse one
	for r, i := range rep {
		p := &pods[i]
		matched := t.matching(p)
		h := hashRules(p, &GroupBy{})
		for _, k := range matched {
			h = mix(h, uint64(k)+31)
		}
		if extra != nil {
			h = mix(h, uint64(extra[r]))
		}
		free := len(matched) == 0 && !hasTopology(&p.Spec)
		if !free {
			h = mix(h, hashString(p.Namespace))
		}
		c := int32(-1)
		for _, k := range byHash[h] {
			q := &pods[rep[first[k]]]
			if (extra == nil || extra[r] == extra[first[k]]) && slices.Equal(t.matched[k], matched) && sameRules(p, q, &GroupBy{Namespace: !free}) && sameCarried(&carry[r], &t.carry[k]) {
				c = k
				break
			}
		}
		if c < 0 {
			c = int32(len(first))
			first = append(first, int32(r))
			byHash[h] = append(byHash[h], c)
			t.matched = append(t.matched, matched)
			t.carry = append(t.carry, carry[r])
		}
		to[r] = c
	}
	return to
}

func sameCarried(a, b *carried) bool {
	return slices.Equal(a.spread, b.spread) && slices.Equal(a.affinity, b.affinity) && slices.Equal(a.anti, b.anti) && slices.Equal(a.steps, b.steps)
}

// matching lists the terms that select a pod.
func (t *topology) matching(p *snapshot.Pod) []int32 {
	var out []int32
	look := func(at pick) {
		for _, k := range t.index[at] {
			if t.terms[k].pods.matches(p, t.labels) {
				out = append(out, k)
			}
		}
	}
	for _, at := range [...]pick{{namespace: p.Namespace}, {wide: true}} {
		look(at)
		for _, k := range t.keys {
			if v, ok := p.Labels[k]; ok {
				look(pick{at.wide, at.namespace, k, v})
			}
		}
	}
	slices.Sort(out)
	return out
}

// readTerms interns what a pod demands and prefers.
func (w *World) readTerms(p *snapshot.Pod) carried {
	var c carried
	keep := !w.Snapshot.Settings.IgnorePreferences
	add := func(list []int32, k int32) []int32 {
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
		return list
	}
	for _, i := range byWeight(p.Spec.Affinity) {
		a := &p.Spec.Affinity[i]
		k := w.topo.intern(term{kind: affinityTerm, key: a.TopologyKey, pods: affinityMatcher(p, a)})
		if a.Weight == 0 {
			c.affinity = add(c.affinity, k)
		} else if keep {
			c.steps = append(c.steps, step{kind: stepAffinity, term: k})
		}
	}
	for _, i := range byWeight(p.Spec.Anti) {
		a := &p.Spec.Anti[i]
		k := w.topo.intern(term{kind: antiTerm, key: a.TopologyKey, pods: affinityMatcher(p, a)})
		if a.Weight == 0 {
			c.anti = add(c.anti, k)
		} else if keep {
			c.steps = append(c.steps, step{kind: stepAnti, term: k})
		}
	}
	for i := range p.Spec.Spread {
		s := &p.Spec.Spread[i]
		tm := term{
			kind: spreadTerm, key: s.TopologyKey, pods: spreadMatcher(p, s), maxSkew: s.MaxSkew,
			ignoreAffinity: s.NodeAffinityPolicy == "Ignore", honorTaints: s.NodeTaintsPolicy == "Honor",
		}
		if s.MinDomains != nil {
			tm.minDomains = *s.MinDomains
		}
		k := w.topo.intern(tm)
		if s.WhenUnsatisfiable != "ScheduleAnyway" {
			c.spread = add(c.spread, k)
		} else if keep {
			c.steps = append(c.steps, step{kind: stepSpread, term: k})
		}
	}
	slices.Sort(c.spread)
	slices.Sort(c.affinity)
	slices.Sort(c.anti)
	slices.SortStableFunc(c.steps, func(a, b step) int { return int(a.kind) - int(b.kind) })
	return c
}

// byWeight lists terms heaviest first, ties as written; required ones have weight 0.
func byWeight(list []snapshot.PodAffinityTerm) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return int(list[b].Weight) - int(list[a].Weight) })
	return out
}

func (t *topology) intern(tm term) int32 {
	tm.key = requirements.Normalize(tm.key)
	b := binary.AppendVarint(t.id[:0], int64(tm.kind))
	b = appendString(b, tm.key)
	b = tm.pods.appendID(b)
	b = binary.AppendVarint(b, int64(tm.maxSkew))
	b = binary.AppendVarint(b, int64(tm.minDomains))
	b = append(b, byte(btoi(tm.ignoreAffinity)), byte(btoi(tm.honorTaints)))
	t.id = b
	if k, ok := t.byID[string(b)]; ok {
		return k
	}
	k := int32(len(t.terms))
	t.byID[string(b)] = k
	t.terms = append(t.terms, tm)
	at := pick{wide: true}
	if n := tm.pods.namespaces; len(n) == 1 && tm.pods.spaces == nil {
		at = pick{namespace: n[0]}
	}
	if s := tm.pods.sel; s != nil && len(s.MatchLabels) > 0 {
		at.key = firstKey(s.MatchLabels)
		at.value = s.MatchLabels[at.key]
	}
	t.index[at] = append(t.index[at], k)
	return k
}

// adopt puts what is known of rules-keys in the order that grouping gave them.
func (t *topology) adopt(key []int32) {
	carry, matched := make([]carried, len(key)), make([][]int32, len(key))
	for r, k := range key {
		carry[r], matched[r] = t.carry[k], t.matched[k]
	}
	t.carry, t.matched = carry, matched
}
