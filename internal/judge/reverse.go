package judge

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/worldtest"
)

// ruled are the reasons for which a NodePool refuses a pod that the scheduler has a say
// in: it must refuse the pod on every node of the pool. (It knows nothing of limits, or
// of pools that launch nothing.)
var ruled = []plan.Code{
	plan.TaintNotTolerated, plan.RequirementConflict, plan.NoInstanceTypeFits, plan.HostPortTaken, plan.VolumeProblem, plan.VolumeTopology,
	plan.VolumeLimit, plan.VolumeInUse, plan.TopologySpreadUnmet, plan.PodAffinityUnmet, plan.PodAntiAffinityUnmet,
}

// hypothetical is the name of a node that a pool could launch.
const hypothetical = "hypothetical"

// Missed lists the pods that a plan leaves without a place although the scheduler, as
// it stands when the plan is carried out, would take them: on a node that exists, on one
// of those that the plan launches, or on a new one of a pool that is said to have none for
// them. It returns how many questions it asked. Room that a daemonset pod waits for is
// its own.
func (c *Cluster) Missed(s *Scheduler, p *plan.Plan, launched []*corev1.Node) (missed []string, asked int) {
	var there []string
	for _, n := range slices.Concat(c.Nodes, launched) {
		if going(n) {
			continue
		}
		there = append(there, n.Name)
		for _, d := range c.daemons(n) {
			if s.pods.find(d.Namespace, d.Name) == nil {
				d.Spec.NodeName = n.Name
				s.set(d)
			}
		}
	}
	for _, v := range p.Verdicts {
		ref, ok := strings.CutPrefix(v.Object, "pod/")
		pod := c.Pods[ref]
		if !ok || pod == nil || plan.Info(v.Code).Kind == plan.KindNotPlanned {
			continue
		}
		old := pod
		if pod.Spec.NodeName != "" { // it is evicted before it looks for another node
			s.remove(old)
			pod = fresh(pod)
		}
		if len(there) > 0 {
			asked++
			if node, why := s.Refuses(pod, there...); why == "" {
				missed = append(missed, fmt.Sprintf("pod %s (%s) could run on %s", ref, v.Code, node))
			}
		}
		for _, pv := range v.Pools {
			if !slices.Contains(ruled, pv.Code) {
				continue
			}
			for _, sup := range c.supplies[pv.NodePool] {
				asked++
				if c.runsOn(s, pod, sup) {
					missed = append(missed, fmt.Sprintf("pod %s could run on a new node of %s (%s): %s %s %s", ref, pv.NodePool, pv.Code, sup.Type, sup.Zone, sup.Capacity))
					break
				}
			}
		}
		if old.Spec.NodeName != "" {
			s.set(old.DeepCopy())
		}
	}
	return missed, asked
}

// runsOn reports whether the pod could run on a new node of the supply, its daemonset
// pods being there first. Labels that the pool leaves open are what the pod selects.
func (c *Cluster) runsOn(s *Scheduler, pod *corev1.Pod, sup *worldtest.Supply) bool {
	labels := map[string]string{}
	for _, r := range sup.Pool.Requirements {
		if v, ok := pod.Spec.NodeSelector[r.Key]; ok && (r.Operator == "Exists" || r.Operator == "In" && slices.Contains(r.Values, v)) {
			labels[r.Key] = v
		}
	}
	n := machine(hypothetical, labels, sup)
	c.join(s, n)
	var came []*corev1.Pod
	for _, d := range c.daemons(n) {
		if s.Bind(d, hypothetical) == "" {
			came = append(came, d)
		}
	}
	_, why := s.Refuses(pod, hypothetical)
	for _, d := range came {
		s.remove(d)
	}
	s.remove(n)
	if k := c.attachLimit(n); k != nil {
		s.remove(k)
	}
	return why == ""
}
