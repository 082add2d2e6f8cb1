package worldtest

import (
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// limitsLeft is what the plan leaves of every limit: each launch takes the most
// that any of its options would, and one node.
func (j *judge) limitsLeft() map[string]map[string]int64 {
	if j.left != nil {
		return j.left
	}
	j.left = map[string]map[string]int64{}
	for name, v := range j.pools {
		left := maps.Clone(v.left)
		for _, n := range j.nodes {
			if n.pool == name && !n.going {
				take(left, n.size)
			}
		}
		for _, l := range j.p.Launches {
			if l.NodePool != name {
				continue
			}
			var most snapshot.Resources
			for _, o := range l.Options {
				if sup := v.find(o); sup != nil {
					most = most.Max(sup.Size)
				}
			}
			take(left, most)
		}
		j.left[name] = left
	}
	return j.left
}

func take(left map[string]int64, r snapshot.Resources) {
	for name := range left {
		if name == snapshot.Nodes {
			left[name]--
		} else {
			left[name] -= r.Get(name)
		}
	}
}

// limits: launches keep within what is left of each limit; a pool that was beyond
// its limit before launches nothing.
func (j *judge) limits() {
	for _, l := range j.p.Launches {
		left := j.limitsLeft()[l.NodePool]
		for _, name := range sortedKeys(left) {
			if left[name] < 0 {
				j.fail("launch %s: limit %s of NodePool %s is exceeded by %d", l.Name, name, l.NodePool, -left[name])
			}
		}
	}
}

// surelyLeft is limitsLeft with nodes that are going counted too: a plan may count
// them until they are gone.
func (j *judge) surelyLeft(pool string) map[string]int64 {
	left := maps.Clone(j.limitsLeft()[pool])
	for _, n := range j.nodes {
		if n.pool == pool && n.going {
			take(left, n.size)
		}
	}
	return left
}

// within reports whether one more node of the supply keeps the pool's limits.
func (j *judge) within(sup *Supply) bool {
	left := j.surelyLeft(sup.Pool.Name)
	take(left, sup.Size)
	for _, v := range left {
		if v < 0 {
			return false
		}
	}
	return true
}

// hosts returns the cheapest supply of a pool that runs the pods together on a node
// of their own (within limits when asked), or nil. Open custom labels that the pods
// say nothing of may take any value, so it must work with each. What test refuses is
// left out; nil refuses nothing.
func (j *judge) hosts(v *poolView, pods []*snapshot.Pod, limits bool, test offerTest) *Supply {
	if v.pool.Replicas != nil {
		return nil // static
	}
	for _, exotic := range []bool{false, true} {
		for _, sup := range v.supplies {
			if sup.Exotic != exotic || j.usedUp(sup) || (limits && !j.within(sup)) {
				continue
			}
			chosen, works := 0, 0
			for _, labels := range labelings(sup, pods) {
				if !selectsAll(pods, labels) {
					continue
				}
				chosen++
				if j.runs(sup, labels, pods) == "" && (test == nil || test(sup, labels)) {
					works++
				}
			}
			if works > 0 && works == chosen {
				return sup
			}
		}
	}
	return nil
}

func selectsAll(pods []*snapshot.Pod, labels map[string]string) bool {
	return !slices.ContainsFunc(pods, func(p *snapshot.Pod) bool { return !selects(&p.Spec, labels, "") })
}

// weights: every launch holds a pod that no heavier pool could host within limits,
// and is no dearer than those pods alone need.
func (j *judge) weights() {
	for _, l := range j.p.Launches {
		own := j.pools[l.NodePool]
		if own == nil || l.Static {
			continue // no pod is its cause
		}
		var owners []*snapshot.Pod
		for _, p := range j.inLaunch[l.Name] {
			heavier := false
			for _, v := range j.pools {
				heavier = heavier || v.pool.Weight > own.pool.Weight && !j.strictMinValues(v) && !prefersNot(v.pool, p) &&
					j.hosts(v, []*snapshot.Pod{p}, true, j.alone(&l, own, p)) != nil
			}
			if !heavier {
				owners = append(owners, p)
			}
		}
		if len(owners) == 0 {
			j.fail("launch %s: a heavier NodePool than %s could host each of its pods", l.Name, l.NodePool)
			continue
		}
		if len(owners) == len(j.inLaunch[l.Name]) || j.strictMinValues(own) {
			continue // minValues may ask for a larger choice than the pods alone
		}
		chosen := own.find(l.Chosen)
		if chosen == nil {
			continue
		}
		if least := j.hosts(own, owners, false, j.alike(&l, chosen, owners)); least != nil && least.Counts < chosen.Counts && j.withinLimit(least, chosen) {
			j.fail("launch %s costs %d, its own pods need only %s at %d: enlarged for pods of a heavier NodePool",
				l.Name, l.Chosen.Price, least.Type, least.Price)
		}
	}
}

// alone is the test whether a pod of a launch could have a node of its own instead, in
// the domains where it is now.
func (j *judge) alone(l *plan.Launch, own *poolView, p *snapshot.Pod) offerTest {
	chosen := own.find(l.Chosen)
	if j.plain() || chosen == nil {
		return nil
	}
	alike, fits := j.alike(l, chosen, []*snapshot.Pod{p}), j.acceptsNew(p, map[string]bool{})
	return func(sup *Supply, labels map[string]string) bool { return alike(sup, labels) && fits(sup, labels) }
}

// prefersNot reports whether the pool has a PreferNoSchedule taint that the pod does
// not tolerate: such a pool comes after those that have none.
func prefersNot(p *snapshot.NodePool, pod *snapshot.Pod) bool {
	for _, t := range p.Taints {
		if t.Effect == "PreferNoSchedule" && !slices.ContainsFunc(pod.Spec.Tolerations, func(o snapshot.Toleration) bool { return tolerates(o, t) }) {
			return true
		}
	}
	return false
}

// judged are the verdicts that say that no room could be had: for these the judge
// looks for room itself.
var judged = map[plan.Code]bool{
	plan.Unschedulable: true, plan.NoInstanceTypeFits: true, plan.RequirementConflict: true, plan.NoOffering: true,
	plan.InsufficientCapacity: true, plan.TaintNotTolerated: true, plan.LimitReached: true, plan.HostPortTaken: true, plan.NoNodePool: true,
	plan.TopologySpreadUnmet: true, plan.PodAffinityUnmet: true, plan.PodAntiAffinityUnmet: true,
	plan.VolumeTopology: true, plan.VolumeLimit: true, plan.VolumeInUse: true, plan.StepLimit: true,
}

// refusals: a pod that was refused fits nowhere when the plan is done, and a pool
// that refuses it does not host it.
func (j *judge) refusals() {
	for _, verdict := range j.p.Verdicts {
		ref, ok := strings.CutPrefix(verdict.Object, "pod/")
		pod := j.pods[ref]
		if !ok || pod == nil || !judged[verdict.Code] {
			continue
		}
		if pod.NodeName != "" {
			continue
		}
		plain := j.plain()
		for _, name := range sortedKeys(j.nodes) {
			v := j.nodes[name]
			free, ports := j.afterPlan(v)
			if v.refuses(&pod.Spec) == "" && anyClash(pod.Spec.HostPorts, ports) == nil && fits(pod.Spec.Requests, free) &&
				(plain || j.accepts(pod, name, nil)) {
				j.fail("pod %s is refused (%s) but fits node %s", ref, verdict.Code, name)
			}
		}
		for _, name := range sortedKeys(j.pools) {
			v := j.pools[name]
			if sup := j.hosts(v, []*snapshot.Pod{pod}, true, j.acceptsNew(pod, map[string]bool{})); sup != nil && !j.strictMinValues(v) {
				j.fail("pod %s is refused (%s) but NodePool %s could host it on %s in %s", ref, verdict.Code, name, sup.Type, sup.Zone)
			}
		}
		for _, l := range j.p.Launches {
			if v := j.pools[l.NodePool]; v != nil && !j.strictMinValues(v) {
				sup := v.find(l.Chosen)
				if sup != nil && j.holds(sup, &l, append(slices.Clone(j.inLaunch[l.Name]), pod)) == "" && (plain || j.accepts(pod, l.Name, nil)) {
					j.fail("pod %s is refused (%s) but launch %s has room for it", ref, verdict.Code, l.Name)
				}
			}
		}
	}
}

// strictMinValues reports whether a pool may refuse a pod only because too few
// different types are left.
func (j *judge) strictMinValues(v *poolView) bool {
	for _, n := range v.minValues {
		if n > 0 && !j.s.Settings.MinValuesBestEffort {
			return true
		}
	}
	return false
}
