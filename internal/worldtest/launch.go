package worldtest

import (
	"cmp"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// maxOptions is what one CreateFleet request may hold.
const maxOptions = 60

// launch checks one launch: every option of it must be able to run its pods.
func (j *judge) launch(l *plan.Launch) {
	pool := j.pools[l.NodePool]
	if pool == nil {
		j.fail("launch %s: NodePool %s does not exist", l.Name, l.NodePool)
		return
	}
	pods := j.inLaunch[l.Name]
	if static := pool.pool.Replicas != nil; static != l.Static {
		j.fail("launch %s: static is %t", l.Name, l.Static)
	} else if len(pods) == 0 && !static {
		j.fail("launch %s has no pods", l.Name)
	}
	if !slices.IsSorted(l.Pods) {
		j.fail("launch %s: pods are not sorted", l.Name)
	}
	j.options(l)
	for _, o := range l.Options {
		sup := pool.find(o)
		if sup == nil {
			j.fail("launch %s: NodePool %s cannot launch option %s %s %s at %d", l.Name, l.NodePool, o.InstanceType, o.Zone, o.CapacityType, o.Price)
			continue
		}
		if why := j.holds(sup, l, pods); why != "" {
			j.fail("launch %s, option %s %s %s: %s", l.Name, o.InstanceType, o.Zone, o.CapacityType, why)
		}
		if o == l.Chosen {
			j.chosen(l, sup, pods)
		}
	}
	j.minValues(l, pool)
}

func (j *judge) options(l *plan.Launch) {
	if n := len(l.Options); n == 0 || n > maxOptions {
		j.fail("launch %s has %d options, want 1 to %d", l.Name, n, maxOptions)
	}
	if !slices.Contains(l.Options, l.Chosen) {
		j.fail("launch %s: the chosen offer is not among the options", l.Name)
	}
	sorted := slices.IsSortedFunc(l.Options, func(a, b plan.Offer) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType),
			cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	if !sorted {
		j.fail("launch %s: options are not sorted by price, type, zone, capacity type", l.Name)
	}
	worst := int64(0)
	limit := j.s.Settings.OptionPriceCap
	for i, o := range l.Options {
		worst = max(worst, o.Price)
		if slices.Contains(l.Options[:i], o) {
			j.fail("launch %s: option %s %s %s twice", l.Name, o.InstanceType, o.Zone, o.CapacityType)
		}
		if rankOf(l.Chosen) == 1 && len(j.pools[l.NodePool].minValues) == 0 && limit > 0 && o.Price*100 > l.Chosen.Price*limit {
			j.fail("launch %s: option %s costs %d, more than %d %% of %d", l.Name, o.InstanceType, o.Price, limit, l.Chosen.Price)
		}
	}
	if worst != l.Worst {
		j.fail("launch %s: worst is %d, the dearest option costs %d", l.Name, l.Worst, worst)
	}
}

func rankOf(o plan.Offer) int {
	if o.CapacityType == "reserved" {
		return 0
	}
	return 1
}

func (v *poolView) find(o plan.Offer) *Supply {
	for _, s := range v.supplies {
		if s.Type == o.InstanceType && s.Zone == o.Zone && s.Capacity == o.CapacityType && s.Price == o.Price && s.Reservation == o.ReservationID {
			return s
		}
	}
	return nil
}

// labelsIn are the labels that a node of the launch has when it is this supply.
func labelsIn(sup *Supply, l *plan.Launch) map[string]string {
	labels := maps.Clone(sup.Labels)
	for k, v := range l.Labels {
		if _, has := labels[k]; !has && !wellKnown(k) {
			labels[k] = v
		}
	}
	return labels
}

// holds says why a node of the supply cannot run the pods together; "" if it can.
func (j *judge) holds(sup *Supply, l *plan.Launch, pods []*snapshot.Pod) string {
	labels := labelsIn(sup, l)
	for _, q := range sup.Pool.Requirements {
		if !wellKnown(q.Key) && !matches(q, labels) {
			return "label " + q.Key + " is not what the NodePool requires"
		}
	}
	for k, v := range l.Labels {
		if have, has := sup.Labels[k]; has && have != v && !wellKnown(k) {
			return "label " + k + "=" + v + " is not what the NodePool gives"
		}
	}
	return j.runs(sup, labels, pods)
}

// runs is holds for a given set of labels.
func (j *judge) runs(sup *Supply, labels map[string]string, pods []*snapshot.Pod) string {
	sum, ports := daemonsOn(j.s, labels, sup.Pool.Taints)
	for _, p := range pods {
		if !selects(&p.Spec, labels, "") {
			return "pod " + p.Ref() + ": node selector or required affinity"
		}
		if t := untolerated(sup.Pool.Taints, p.Spec.Tolerations); t != nil {
			return "pod " + p.Ref() + ": taint " + t.Key
		}
		if anyClash(p.Spec.HostPorts, ports) != nil {
			return "pod " + p.Ref() + ": host port taken"
		}
		ports = append(ports, p.Spec.HostPorts...)
		sum = plus(sum, p.Spec.Requests)
	}
	for _, p := range pods {
		if why := j.storage.zoneRefuses(p, labels, ""); why != "" && !j.skip[aboutVolumes] {
			return "pod " + p.Ref() + ": " + why
		}
	}
	if why := j.volumesFit(pods, sup.Volumes); why != "" {
		return why
	}
	if !fits(sum, sup.Alloc) {
		return "needs " + showResources(sum) + ", allocatable is " + showResources(sup.Alloc)
	}
	return ""
}

// chosen: the offer is the cheapest one of the pool that holds the pods within
// limits, and the figures of the launch are those of that offer.
func (j *judge) chosen(l *plan.Launch, sup *Supply, pods []*snapshot.Pod) {
	alike := j.alike(l, sup, pods)
	does := func(o *Supply) bool {
		return j.holds(o, l, pods) == "" && j.withinLimit(o, sup) && (alike == nil || alike(o, labelsIn(o, l)))
	}
	for _, o := range j.pools[l.NodePool].supplies {
		if o.before(sup) >= 0 {
			break
		}
		if (o.Exotic && !sup.Exotic) || j.usedUp(o) || !does(o) {
			continue
		}
		j.fail("launch %s: chosen is %s %s %s at %d, but %s %s %s at %d holds the same pods", l.Name,
			sup.Type, sup.Zone, sup.Capacity, sup.Counts, o.Type, o.Zone, o.Capacity, o.Counts)
		break
	}
	if sup.Exotic {
		for _, o := range j.pools[l.NodePool].supplies {
			if !o.Exotic && does(o) {
				j.fail("launch %s: %s is exotic although %s holds the pods", l.Name, sup.Type, o.Type)
				break
			}
		}
	}
	if l.Allocatable.CPU != sup.Alloc.CPU || l.Allocatable.Memory != sup.Alloc.Memory || l.Allocatable.Pods != sup.Alloc.Pods {
		j.fail("launch %s: allocatable is given as %s, %s has %s", l.Name, showResources(l.Allocatable), sup.Type, showResources(sup.Alloc))
	}
	daemons, _ := daemonsOn(j.s, labelsIn(sup, l), sup.Pool.Taints)
	sum := daemons
	for _, p := range pods {
		sum = plus(sum, p.Spec.Requests)
	}
	if showResources(l.Requests) != showResources(sum) || showResources(l.Daemons) != showResources(daemons) {
		j.fail("launch %s: requests are given as %s (daemons %s), they are %s (%s)", l.Name,
			showResources(l.Requests), showResources(l.Daemons), showResources(sum), showResources(daemons))
	}
}

// withinLimit reports whether taking o instead of sup keeps the pool's limits.
func (j *judge) withinLimit(o, sup *Supply) bool {
	for name, left := range j.surelyLeft(o.Pool.Name) {
		if name != snapshot.Nodes && o.Size.Get(name) > left+sup.Size.Get(name) {
			return false
		}
	}
	return true
}

func (j *judge) minValues(l *plan.Launch, v *poolView) {
	if j.s.Settings.MinValuesBestEffort {
		j.fewerValues(l, v)
		return
	}
	for _, key := range sortedKeys(v.minValues) {
		want := v.minValues[key]
		distinct := map[string]bool{}
		for _, o := range l.Options {
			if sup := v.find(o); sup != nil && sup.Labels[key] != "" {
				distinct[sup.Labels[key]] = true
			}
		}
		if len(distinct) < want {
			j.fail("launch %s: options have %d values of %s, minValues is %d", l.Name, len(distinct), key, want)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
