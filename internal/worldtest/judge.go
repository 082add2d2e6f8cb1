package worldtest

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// judge holds one plan and everything it is judged with.
type judge struct {
	s     *snapshot.Snapshot
	c     *catalog.Catalog
	p     *plan.Plan
	pools map[string]*poolView
	nodes map[string]*nodeView
	pods  map[string]*snapshot.Pod
	// onNode and inLaunch are the pods that the plan adds, displaced ones included.
	onNode   map[string][]*snapshot.Pod
	inLaunch map[string][]*snapshot.Pod
	left     map[string]map[string]int64 // limits after the plan
	skip     map[kindOfRule]bool
	storage  *storage
	others   []*snapshot.Pod // pods that the plan places, and those that run
	reach    map[string][]string
	bad      []string
}

func (j *judge) fail(format string, args ...any) {
	j.bad = append(j.bad, fmt.Sprintf(format, args...))
}

// Check returns every rule that the plan breaks, one line each; nothing when the
// plan is sound. It covers the accounting of pods, launches and their options,
// existing nodes, limits, weights, and refusals of pods that do fit.
//
// Kinds of rules that plans do not keep yet (notYet) are left out.
func Check(s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan) []string {
	return check(newJudge(s, c, p))
}

// CheckAll is Check with the rules that plans do not keep yet.
func CheckAll(s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan) []string {
	j := newJudge(s, c, p)
	j.skip = nil
	return check(j)
}

// kindOfRule are rules that Check may leave out.
type kindOfRule string

const (
	aboutSpread      kindOfRule = "topology spread"
	aboutAffinity    kindOfRule = "pod affinity and anti-affinity"
	aboutVolumes     kindOfRule = "volumes"
	aboutPreferences kindOfRule = "preferences"
)

// notYet are the kinds of rules that plans do not keep yet.
var notYet = map[kindOfRule]bool{}

func check(j *judge) []string {
	p := j.p
	j.accounting()
	j.nominations()
	j.static()
	j.buffers()
	j.reservations()
	j.existing()
	for i := range p.Launches {
		j.launch(&p.Launches[i])
	}
	j.limits()
	j.topology()
	j.weights()
	j.refusals()
	j.existingFirst()
	j.shortages()
	return j.bad
}

// CheckLaunches is Check for large plans: accounting, launches, limits and existing
// nodes, without the searches that take the square of their number.
func CheckLaunches(s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan) []string {
	j := newJudge(s, c, p)
	j.accounting()
	j.nominations()
	j.static()
	j.buffers()
	j.reservations()
	j.existing()
	for i := range p.Launches {
		j.launch(&p.Launches[i])
	}
	j.limits()
	j.topology()
	return j.bad
}

// emptyPlan is the plan of a judge that is only asked what could be.
var emptyPlan = &plan.Plan{}

func newJudge(s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan) *judge {
	j := &judge{
		s: s, c: c, p: p, pools: views(s, c), nodes: map[string]*nodeView{}, pods: map[string]*snapshot.Pod{},
		onNode: map[string][]*snapshot.Pod{}, inLaunch: map[string][]*snapshot.Pod{},
		storage: newStorage(s), skip: notYet, reach: map[string][]string{},
	}
	for _, v := range nodeViews(s, c) {
		j.nodes[v.name] = v
	}
	for i := range s.Pods {
		j.pods[s.Pods[i].Ref()] = &s.Pods[i]
	}
	list := units(s)
	for i := range list {
		j.pods[list[i].Ref()] = &list[i]
	}
	for i := range p.Launches {
		for _, ref := range p.Launches[i].Pods {
			j.addTo(j.inLaunch, p.Launches[i].Name, ref)
		}
	}
	for _, pl := range p.Placements {
		j.addTo(j.onNode, pl.Node, pl.Pod)
	}
	for _, d := range p.Displaced {
		if _, ok := j.nodes[d.To]; ok {
			j.addTo(j.onNode, d.To, d.Pod)
		} else {
			j.addTo(j.inLaunch, d.To, d.Pod)
		}
	}
	j.others = slices.Concat(j.placedPods(), j.boundPods())
	j.settleZones()
	return j
}

func (j *judge) addTo(m map[string][]*snapshot.Pod, where, ref string) {
	pod := j.pods[ref]
	if pod == nil {
		j.fail("%s gets pod %s, which does not exist", where, ref)
		return
	}
	if !slices.Contains(m[where], pod) {
		m[where] = append(m[where], pod)
	}
}

// notPlanned gives the code of a pod that is not to be planned at all, "" for a
// pending one.
func notPlanned(p *snapshot.Pod) plan.Code {
	switch {
	case p.Terminal():
		return plan.Finished
	case !p.Deleting.IsZero():
		return plan.BeingDeleted
	case p.Owner != nil && p.Owner.Kind == "DaemonSet":
		return plan.DaemonSetPod
	case p.Owner != nil && p.Owner.Kind == "Node", p.Annotations["kubernetes.io/config.mirror"] != "":
		return plan.MirrorPod
	case len(p.Spec.Gates) > 0:
		return plan.SchedulingGated
	case len(p.Spec.ResourceClaims) > 0:
		return plan.ResourceClaims
	case p.Scheduled != nil && p.Scheduled.Reason != "" && p.Scheduled.Reason != "Unschedulable":
		if p.Scheduled.Reason == "SchedulingGated" {
			return plan.SchedulingGated
		}
		return plan.NotUnschedulable
	}
	return ""
}

// accounting: every pod without a node is in exactly one place, and pods that are
// not to be planned have the verdict that says so.
func (j *judge) accounting() {
	seen := map[string][]string{}
	note := func(ref, where string) { seen[ref] = append(seen[ref], where) }
	for i := range j.p.Launches {
		for _, ref := range j.p.Launches[i].Pods {
			note(ref, j.p.Launches[i].Name)
		}
	}
	for _, pl := range j.p.Placements {
		note(pl.Pod, pl.Node)
	}
	verdict := map[string]plan.Code{}
	for _, v := range j.p.Verdicts {
		if ref, ok := strings.CutPrefix(v.Object, "pod/"); ok {
			note(ref, "a verdict")
			verdict[ref] = v.Code
		}
	}
	displaced := map[string]bool{}
	for _, d := range j.p.Displaced {
		displaced[d.Pod] = true
	}
	pending := 0
	for _, pod := range j.s.Pods {
		ref := pod.Ref()
		if pod.NodeName != "" {
			going := j.nodes[pod.NodeName] != nil && j.nodes[pod.NodeName].going
			moves := j.moves(&pod)
			switch {
			case len(seen[ref]) > 0 && !going:
				j.fail("pod %s runs on %s, yet the plan has it in %v", ref, pod.NodeName, seen[ref])
			case moves && (len(seen[ref]) > 1 || len(seen[ref]) == 0 && !displaced[ref]):
				j.fail("pod %s runs on %s, which is going, and the plan has it in %v", ref, pod.NodeName, seen[ref])
			}
			continue
		}
		if len(seen[ref]) != 1 {
			j.fail("pod %s is in %d places: %v", ref, len(seen[ref]), seen[ref])
		}
		if code := notPlanned(&pod); code == "" && verdict[ref] == plan.NominatedElsewhere {
			continue // nominations judges it
		} else if code == "" {
			pending++
		} else if verdict[ref] != code {
			j.fail("pod %s is not to be planned (%s), yet its verdict is %q", ref, code, verdict[ref])
		}
	}
	if j.p.Summary.PendingPods != pending {
		j.fail("summary counts %d pending pods, there are %d", j.p.Summary.PendingPods, pending)
	}
	if j.p.Summary.Launches != len(j.p.Launches) {
		j.fail("summary counts %d launches, there are %d", j.p.Summary.Launches, len(j.p.Launches))
	}
	var price, worst int64
	for _, l := range j.p.Launches {
		price += l.Chosen.Price
		worst += l.Worst
	}
	if j.p.Summary.LaunchPrice != price || j.p.Summary.LaunchPriceWorst != worst {
		j.fail("summary prices %d (worst %d), launches add up to %d (%d)",
			j.p.Summary.LaunchPrice, j.p.Summary.LaunchPriceWorst, price, worst)
	}
	if price > 0 && j.p.Summary.LaunchLowerBound > price {
		j.fail("lower bound %d is above the price %d", j.p.Summary.LaunchLowerBound, price)
	}
}

// existing: what is placed on a node passes its filters, its resources and ports.
func (j *judge) existing() {
	for _, name := range sortedKeys(j.onNode) {
		v := j.nodes[name]
		if v == nil {
			j.fail("placement on node %s, which does not exist", name)
			continue
		}
		var sum snapshot.Resources
		ports := slices.Clone(v.ports)
		for _, p := range j.onNode[name] {
			if why := v.mayRun(j, p); why != "" {
				j.fail("pod %s may not run on node %s: %s", p.Ref(), name, why)
			}
			if c := anyClash(p.Spec.HostPorts, ports); c != nil {
				j.fail("pod %s on node %s: host port %d is taken", p.Ref(), name, c.Port)
			}
			ports = append(ports, p.Spec.HostPorts...)
			sum = plus(sum, p.Spec.Requests)
		}
		if !fits(sum, v.free) {
			j.fail("node %s: %s placed, only %s free", name, showResources(sum), showResources(v.free))
		}
	}
}

// wouldMove reports whether a pod of a launch could be on the node instead, by the
// rules about other pods, without leaving the domains that these are about.
func (j *judge) wouldMove(p *snapshot.Pod, l *plan.Launch, v *nodeView) bool {
	return j.wouldJoin(p, l, v.name, v.labels)
}

func (j *judge) wouldJoin(p *snapshot.Pod, l *plan.Launch, name string, labels map[string]string) bool {
	if j.plain() {
		return true
	}
	keys := j.keysOf([]*snapshot.Pod{p})
	return domainOf(labels, keys) == domainOf(l.Labels, keys) && j.accepts(p, name, nil)
}

// afterPlan is what is free on a node, and its ports, when the plan is done.
func (j *judge) afterPlan(v *nodeView) (snapshot.Resources, []snapshot.HostPort) {
	free, ports := v.free, slices.Clone(v.ports)
	for _, p := range j.onNode[v.name] {
		free = minus(free, p.Spec.Requests)
		ports = append(ports, p.Spec.HostPorts...)
	}
	return free, ports
}

// existingFirst: no pod of a launch would fit a node that is there anyway.
func (j *judge) existingFirst() {
	for _, name := range sortedKeys(j.nodes) {
		v := j.nodes[name]
		free, ports := j.afterPlan(v)
		for _, l := range j.p.Launches {
			if l.Static {
				continue // it is launched whatever the pods
			}
			forPods := slices.ContainsFunc(j.inLaunch[l.Name], func(p *snapshot.Pod) bool { return p.Buffer == "" })
			for _, p := range j.inLaunch[l.Name] {
				if p.Buffer != "" && forPods {
					continue // units are not the cause of the launch
				}
				if v.refuses(&p.Spec) == "" && anyClash(p.Spec.HostPorts, ports) == nil && fits(p.Spec.Requests, free) && j.wouldMove(p, &l, v) {
					j.fail("pod %s of launch %s fits node %s (%s free)", p.Ref(), l.Name, name, showResources(free))
				}
			}
		}
	}
}

func showResources(r snapshot.Resources) string {
	var b strings.Builder
	for _, n := range r.Names() {
		v := r.Get(n)
		switch n {
		case snapshot.CPU:
			fmt.Fprintf(&b, "cpu %dm ", v)
		case snapshot.Memory, snapshot.EphemeralStorage:
			fmt.Fprintf(&b, "%s %dMi ", n, v>>20)
		default:
			fmt.Fprintf(&b, "%s %d ", n, v)
		}
	}
	return strings.TrimSpace(b.String())
}
