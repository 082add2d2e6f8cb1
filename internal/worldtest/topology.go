package worldtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// topology: there is an order in which kube-scheduler accepts every placement of the
// plan, whichever of its options each launch becomes.
func (j *judge) topology() {
	if j.plain() {
		return
	}
	for _, variant := range j.variants() {
		b, want := j.board(variant)
		b.reach = func(p *snapshot.Pod, c *snapshot.TopologySpread) []string { return j.reachable(p, c, false) }
		for _, why := range b.seat(want) {
			j.fail("no order in which the scheduler accepts it%s: %s", j.named(variant), why)
		}
	}
	j.preferences()
}

// plain reports that no pod has a rule about other pods, nor volumes.
func (j *judge) plain() bool {
	for i := range j.s.Pods {
		p := &j.s.Pods[i]
		if p.NodeName == "" && notPlanned(p) != "" {
			continue
		}
		if len(p.Spec.Anti) > 0 && !j.skip[aboutAffinity] {
			return false
		}
		if p.NodeName != "" && !j.moves(p) {
			continue
		}
		if len(p.Spec.Spread) > 0 && !j.skip[aboutSpread] || len(p.Spec.Affinity) > 0 && !j.skip[aboutAffinity] ||
			len(p.Spec.Volumes) > 0 && !j.skip[aboutVolumes] || len(p.Spec.Preferred) > 0 && !j.skip[aboutPreferences] {
			return false
		}
	}
	return j.skip[aboutPreferences] || !slices.ContainsFunc(j.s.NodePools, func(p snapshot.NodePool) bool {
		return slices.ContainsFunc(p.Taints, func(t snapshot.Taint) bool { return t.Effect == "PreferNoSchedule" })
	})
}

func (j *judge) placedPods() []*snapshot.Pod {
	var out []*snapshot.Pod
	for _, m := range []map[string][]*snapshot.Pod{j.onNode, j.inLaunch} {
		for _, name := range sortedKeys(m) {
			out = append(out, m[name]...)
		}
	}
	return out
}

func (j *judge) boundPods() []*snapshot.Pod {
	var out []*snapshot.Pod
	for i := range j.s.Pods {
		if p := &j.s.Pods[i]; p.NodeName != "" && !p.Terminal() {
			out = append(out, p)
		}
	}
	return out
}

// variant is which supply each launch becomes, by its index.
type variant []*Supply

// variants are the chosen offers; each launch in turn in every other domain that its
// options lie in; and all launches in their last one.
func (j *judge) variants() []variant {
	base := make(variant, len(j.p.Launches))
	last := make(variant, len(j.p.Launches))
	other := make([][]*Supply, len(j.p.Launches))
	for i := range j.p.Launches {
		l := &j.p.Launches[i]
		pool := j.pools[l.NodePool]
		if pool == nil {
			continue
		}
		base[i] = pool.find(l.Chosen)
		last[i] = base[i]
		if base[i] == nil {
			continue
		}
		keys := j.keysOf(j.inLaunch[l.Name])
		seen := map[string]bool{domainOf(base[i].Labels, keys): true}
		for _, o := range l.Options {
			if sup := pool.find(o); sup != nil && !seen[domainOf(sup.Labels, keys)] {
				seen[domainOf(sup.Labels, keys)] = true
				other[i] = append(other[i], sup)
				last[i] = sup
			}
		}
	}
	out := []variant{base}
	for i := range other {
		for _, sup := range other[i] {
			v := slices.Clone(base)
			v[i] = sup
			out = append(out, v)
		}
	}
	if len(out) > 2 {
		out = append(out, last)
	}
	return out
}

// named says in what a variant differs from the chosen offers.
func (j *judge) named(v variant) string {
	var out []string
	for i, sup := range v {
		if l := &j.p.Launches[i]; sup != nil && (l.Chosen.Zone != sup.Zone || l.Chosen.CapacityType != sup.Capacity || l.Chosen.InstanceType != sup.Type) {
			out = append(out, fmt.Sprintf("%s is %s %s %s", l.Name, sup.Type, sup.Zone, sup.Capacity))
		}
	}
	if out == nil {
		return ""
	}
	return " if " + strings.Join(out, ", ")
}

func (j *judge) keysOf(pods []*snapshot.Pod) []string {
	set := map[string]bool{}
	b := &board{namespaces: j.namespaces()}
	for _, p := range pods {
		for _, k := range b.keysOf(p, j.others) {
			set[k] = true
		}
	}
	return sortedKeys(set)
}

func (j *judge) namespaces() map[string]map[string]string {
	out := map[string]map[string]string{}
	for i := range j.s.Namespaces {
		out[j.s.Namespaces[i].Name] = j.s.Namespaces[i].Labels
	}
	return out
}

// board is the cluster with the plan's nodes, and where the plan wants its pods.
func (j *judge) board(v variant) (*board, []seating) {
	b := newBoard(j.s, j.nodes)
	b.storage = j.storage
	b.skip = j.skip
	var want []seating
	for _, at := range b.sites {
		for _, p := range j.onNode[at.name] {
			want = append(want, seating{p, at})
		}
	}
	for i := range j.p.Launches {
		if v[i] == nil {
			continue
		}
		l := &j.p.Launches[i]
		at := b.planned(l.Name, labelsIn(v[i], l), v[i])
		b.sites = append(b.sites, at)
		for _, p := range j.inLaunch[l.Name] {
			want = append(want, seating{p, at})
		}
	}
	return b, want
}

// reachable are the domains of a spread constraint that the pod could get a node in: a
// domain without a node counts as empty, for a node can be launched there (for
// hostname: one more node). In the narrow sense those where the pod alone would get a
// node; in the broad sense those of every offer that the policies do not exclude.
func (j *judge) reachable(p *snapshot.Pod, c *snapshot.TopologySpread, broad bool) []string {
	memo := fmt.Sprintf("%s %s %s %s %t", p.Ref(), c.TopologyKey, c.NodeAffinityPolicy, c.NodeTaintsPolicy, broad)
	if got, ok := j.reach[memo]; ok {
		return got
	}
	set := map[string]bool{}
	if broad && c.TopologyKey == labelHostname {
		set["one more node"] = true
	}
	for _, name := range sortedKeys(j.pools) {
		v := j.pools[name]
		if v.pool.Replicas != nil {
			continue // a static pool launches none for pods
		}
		for _, sup := range v.supplies {
			for _, labels := range labelings(sup, []*snapshot.Pod{p}) {
				if broad && c.NodeAffinityPolicy != "Ignore" && !selects(&p.Spec, labels, "") ||
					broad && c.NodeTaintsPolicy == "Honor" && untolerated(sup.Pool.Taints, p.Spec.Tolerations) != nil ||
					!broad && (j.strictMinValues(v) || sup.Exotic || !j.within(sup) || j.runs(sup, labels, []*snapshot.Pod{p}) != "") {
					continue
				}
				if d, ok := labelValue(labels, c.TopologyKey); ok {
					set[d] = set[d] || d != unnamed
				} else if c.TopologyKey == labelHostname {
					set["one more node"] = true
				}
			}
		}
	}
	maps.DeleteFunc(set, func(_ string, ok bool) bool { return !ok })
	j.reach[memo] = sortedKeys(set)
	return j.reach[memo]
}

// accepts reports whether the plan without a pod still has an order, and the pod may
// come last on another site. Domains count in the broad sense, so that only what is
// certain is held against a plan.
func (j *judge) accepts(p *snapshot.Pod, name string, extra func(*board) *site) bool {
	b, want := j.board(j.variants()[0])
	b.reach = func(p *snapshot.Pod, c *snapshot.TopologySpread) []string { return j.reachable(p, c, true) }
	var at *site
	if extra != nil {
		at = extra(b)
		b.sites = append(b.sites, at)
	} else if i := slices.IndexFunc(b.sites, func(s *site) bool { return s.name == name }); i >= 0 {
		at = b.sites[i]
	} else {
		return false
	}
	want = slices.DeleteFunc(want, func(s seating) bool { return s.pod == p })
	return b.seat(want) == nil && b.refuses(p, at) == ""
}

// acceptsNew is accepts for a node that the plan does not have. The answer depends on
// the domains that matter to the pod alone, so it is asked once for each of them.
func (j *judge) acceptsNew(p *snapshot.Pod, memo map[string]bool) offerTest {
	if j.plain() {
		return nil
	}
	keys := j.keysOf([]*snapshot.Pod{p})
	return func(sup *Supply, labels map[string]string) bool {
		d := fmt.Sprintf("%s %s %v %v", p.Ref(), domainOf(labels, keys), sup.Pool.Taints, sup.Volumes)
		if got, ok := memo[d]; ok {
			return got
		}
		memo[d] = j.accepts(p, "", func(b *board) *site { return b.planned("one more node", labels, sup) })
		return memo[d]
	}
}

// offerTest says whether an offer with labels would do in place of a launch.
type offerTest func(*Supply, map[string]string) bool

// alike is the test whether an offer would do in place of a launch, for the rules about
// other pods and for preferences: it lies in the same domains, and keeps what is kept.
func (j *judge) alike(l *plan.Launch, chosen *Supply, pods []*snapshot.Pod) offerTest {
	if j.plain() {
		return nil
	}
	keys := j.keysOf(pods)
	have := labelsIn(chosen, l)
	return func(sup *Supply, labels map[string]string) bool {
		return domainOf(labels, keys) == domainOf(have, keys) && !slices.ContainsFunc(pods, func(p *snapshot.Pod) bool {
			t := kept(p, have)
			return t != nil && !termSelects(t.Term, labels, "")
		})
	}
}

// volumesFit says whether the volumes of pods can be attached to one new node.
func (j *judge) volumesFit(pods []*snapshot.Pod, limits map[string]int64) string {
	all := map[string]bool{}
	count := map[string]int64{}
	for _, p := range pods {
		if j.skip[aboutVolumes] {
			break
		}
		for _, u := range j.storage.uses(p) {
			if id, driver := u.id(); !all[id] {
				all[id] = true
				count[driver]++
			}
		}
	}
	for _, driver := range sortedKeys(count) {
		if most, ok := limits[driver]; ok && count[driver] > most {
			return fmt.Sprintf("%d volumes of %s, %d can be attached", count[driver], driver, most)
		}
	}
	return ""
}
