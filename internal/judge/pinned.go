package judge

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/plan"
)

// step puts one pod on the node that the plan has for it.
type step struct {
	pod  *corev1.Pod
	node string
}

// Verdict is what the scheduler says of a plan.
type Verdict struct {
	// Refused are the placements that the scheduler does not accept in any order that
	// was tried, with its reasons; none for a plan that holds.
	Refused []string
	// Orders is how many orders of the pods were tried.
	Orders int
	// Placed counts placements, Daemons the daemonset pods of new nodes among them.
	Placed, Daemons int
}

// Pinned lets the real scheduler check a plan: the plan's nodes join the cluster, and
// every pod, one after the other, is allowed on the node that the plan has for it and
// on no other. Pods that are refused are tried again after the others, as in the
// scheduler's queue, until nothing moves. If pods are left, all is done once more in
// another order, up to the given number of times: a plan holds if some order of its pods
// works.
//
// The scheduler that is returned has seen the last order; stop it.
func Pinned(c *Cluster, p *plan.Plan, nodes []*corev1.Node, seed uint64, orders int) (Verdict, *Scheduler, error) {
	daemons, pods, err := c.steps(p, nodes)
	if err != nil {
		return Verdict{}, nil, err
	}
	v := Verdict{Placed: len(pods), Daemons: len(daemons)}
	r := rand.New(rand.NewPCG(seed, 2))
	late := map[string]int{}
	for {
		s, err := NewScheduler()
		if err != nil {
			return Verdict{}, nil, err
		}
		reorder(pods, v.Orders, late, r)
		left := c.run(s, p, nodes, daemons, pods, v.Orders > 0)
		v.Orders++
		if len(left) == 0 {
			v.Refused = nil
			return v, s, nil
		}
		if v.Orders == 1 || len(left) < len(v.Refused) {
			v.Refused = nil
			for _, l := range left {
				v.Refused = append(v.Refused, fmt.Sprintf("pod %s on %s: %s", name(l.pod), l.node, l.why))
			}
		}
		if v.Orders >= orders {
			return v, s, nil
		}
		s.Stop()
		for _, l := range left {
			late[name(l.pod)]++
		}
	}
}

// reorder makes the n-th order of pods: by name; those with the most rules about other
// pods first; those with the fewest first; then any, those that were left most often
// before all others.
func reorder(pods []step, n int, late map[string]int, r *rand.Rand) {
	switch n {
	case 0:
		return
	case 1, 2:
		slices.SortStableFunc(pods, func(a, b step) int {
			by := cmp.Compare(terms(b.pod), terms(a.pod))
			if n == 2 {
				by = -by
			}
			return cmp.Or(by, strings.Compare(name(a.pod), name(b.pod)))
		})
		return
	}
	r.Shuffle(len(pods), func(i, k int) { pods[i], pods[k] = pods[k], pods[i] })
	slices.SortStableFunc(pods, func(a, b step) int { return cmp.Compare(late[name(b.pod)], late[name(a.pod)]) })
}

// terms counts the rules of a pod about other pods.
func terms(p *corev1.Pod) int {
	n := len(p.Spec.TopologySpreadConstraints)
	eachTerm(p.Spec.Affinity, func(*corev1.PodAffinityTerm) { n++ })
	return n
}

// steps lists what the plan does: daemonset pods of every node first, then its
// placements by name of the pod.
func (c *Cluster) steps(p *plan.Plan, nodes []*corev1.Node) (daemons, pods []step, err error) {
	for _, n := range slices.Concat(c.Nodes, nodes) {
		if going(n) {
			continue
		}
		for _, d := range c.daemons(n) {
			daemons = append(daemons, step{pod: d, node: n.Name})
		}
	}
	to := placesOf(p)
	for ref, node := range to {
		pod, err := c.pod(ref)
		if err != nil {
			return nil, nil, err
		}
		pods = append(pods, step{pod: pod, node: node})
	}
	slices.SortFunc(pods, func(a, b step) int { return strings.Compare(name(a.pod), name(b.pod)) })
	return daemons, pods, nil
}

type refusal struct {
	step
	why string
}

// run goes through one order and returns what could not be placed. With patience every
// pod that was placed gives those before it in the order another chance first.
func (c *Cluster) run(s *Scheduler, p *plan.Plan, nodes []*corev1.Node, daemons, pods []step, patient bool) []refusal {
	c.load(s, nodes)
	// Daemonset pods on nodes that exist wait for nobody either, but one that does not
	// fit there is not the plan's fault.
	launched := map[string]bool{}
	for _, n := range nodes {
		launched[n.Name] = true
	}
	var bad []refusal
	for _, d := range daemons {
		if why := s.Bind(d.pod, d.node); why != "" && launched[d.node] {
			bad = append(bad, refusal{d, why})
		}
	}
	// Pods that are moved leave their node before they come back.
	pods = slices.Clone(pods)
	for i := range pods {
		if pods[i].pod.Spec.NodeName != "" {
			s.remove(pods[i].pod)
			pods[i].pod = fresh(pods[i].pod)
		}
	}
	left := s.settle(pods, patient)
	if len(left) > 0 {
		// Nodes that are going are gone in the end.
		removed := false
		for _, n := range c.Nodes {
			if going(n) && !c.stays(p, n.Name) {
				c.evacuate(s, n.Name)
				s.remove(n)
				removed = true
			}
		}
		if removed {
			var rest []step
			for _, l := range left {
				rest = append(rest, l.step)
			}
			left = s.settle(rest, patient)
		}
	}
	return append(bad, left...)
}

// settle tries pods in turn until all are placed or none moves.
func (s *Scheduler) settle(pods []step, patient bool) []refusal {
	for {
		var left []refusal
		for i, st := range pods {
			why := s.Bind(st.pod, st.node)
			if why != "" {
				left = append(left, refusal{st, why})
			} else if patient && len(left) > 0 {
				for _, rest := range pods[i+1:] {
					left = append(left, refusal{rest, ""})
				}
				break
			}
		}
		if len(left) == 0 || len(left) == len(pods) {
			return left
		}
		pods = pods[:0:0]
		for _, l := range left {
			pods = append(pods, l.step)
		}
	}
}

// fresh is the pod that a controller makes in place of one that was evicted.
func fresh(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	p.DeletionTimestamp = nil
	return p
}

// stays reports whether pods remain on a node that is going because nobody may move
// them.
func (c *Cluster) stays(p *plan.Plan, node string) bool {
	moved := map[string]bool{}
	for _, d := range p.Displaced {
		moved[d.Pod] = true
	}
	for ref, pod := range c.Pods {
		if pod.Spec.NodeName == node && !moved[ref] && pod.Annotations["karpenter.sh/do-not-disrupt"] == "true" {
			return true
		}
	}
	return false
}

// evacuate takes the pods of a node away.
func (c *Cluster) evacuate(s *Scheduler, node string) {
	for _, p := range c.Pods {
		if p.Spec.NodeName == node {
			if now, ok := s.pods.find(p.Namespace, p.Name).(*corev1.Pod); ok && now.Spec.NodeName == node {
				s.remove(now)
			}
		}
	}
}

// join tells a scheduler of a new node.
func (c *Cluster) join(s *Scheduler, n *corev1.Node) {
	s.set(n.DeepCopy())
	if k := c.attachLimit(n); k != nil {
		s.set(k)
	}
}

// load tells a scheduler of the cluster and of more nodes. Pods that wait are not
// told of: they are asked about.
func (c *Cluster) load(s *Scheduler, more []*corev1.Node) {
	for _, o := range c.Others {
		s.set(o.DeepCopyObject())
	}
	for _, k := range c.Claims {
		s.set(k.DeepCopy())
	}
	for _, n := range c.Nodes {
		s.set(n.DeepCopy())
		// What is in flight has no CSINode yet.
		if k := c.attachLimit(n); k != nil && c.inFlight[n.Name] {
			s.set(k)
		}
	}
	for _, n := range more {
		c.join(s, n)
	}
	for _, p := range c.Pods {
		if p.Spec.NodeName != "" {
			s.set(p.DeepCopy())
		}
	}
}
