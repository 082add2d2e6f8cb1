package disruption

import (
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// house puts the units of CapacityBuffers that the plan of the same snapshot has on nodes
// there as pods: their room goes with their node only where there is other room for them.
// Units with rules about their neighbours, and those that a pod on the cluster keeps off its
// node, hold the node: the scheduler does not see units, so what is found for such would not
// be what it is next time.
func (x *search) house() {
	x.housed, x.buffered = map[string]bool{}, map[string]string{}
	if x.o.Base == nil || len(x.s.Buffers) == 0 {
		return
	}
	nodes := make(map[string]bool, len(x.s.Nodes))
	for i := range x.s.Nodes {
		nodes[x.s.Nodes[i].Name] = true
	}
	on := map[string]string{}
	for _, p := range x.o.Base.Placements {
		if nodes[p.Node] {
			on[p.Pod] = p.Node
		}
	}
	units, _ := scheduling.Buffers(x.s)
	s := *x.s
	s.Buffers = nil
	s.Pods = make([]snapshot.Pod, len(x.s.Pods), len(x.s.Pods)+len(units))
	copy(s.Pods, x.s.Pods)
	fixed := map[string]bool{} // by buffer
	asked := map[string]bool{}
	for i := range units {
		u := units[i]
		node := on[u.Ref()]
		if node == "" {
			continue
		}
		if key := u.Namespace + "/" + u.Buffer; !asked[key] {
			asked[key], fixed[key] = true, particular(&u, x.s.Pods)
		}
		if fixed[u.Namespace+"/"+u.Buffer] && x.buffered[node] == "" {
			x.buffered[node] = u.Ref()
		}
		// Nothing sees a unit but its room.
		u.NodeName, u.Phase, u.Labels, u.Annotations = node, "Running", nil, nil
		u.Spec.Spread, u.Spec.Affinity, u.Spec.Anti = nil, nil, nil
		s.Pods = append(s.Pods, u)
		x.housed[u.Ref()] = true
	}
	x.s = &s
}

// particular reports whether a unit has a rule about the pods beside it, or a pod has one
// about it.
func particular(u *snapshot.Pod, pods []snapshot.Pod) bool {
	if len(u.Spec.Spread)+len(u.Spec.Affinity)+len(u.Spec.Anti) > 0 {
		return true
	}
	for i := range pods {
		p := &pods[i]
		for k := range p.Spec.Anti {
			if t := &p.Spec.Anti[k]; t.Weight == 0 && p.Active() && covers(p, t, u) {
				return true
			}
		}
	}
	return false
}
