package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Nominated is a pod that waits for a node which it was given before, by a plan or by
// the scheduler. It is not planned again: its room is kept.
type Nominated struct {
	Pod  int32  // index in Snapshot.Pods
	Node string // name of the node, or of the claim in flight
}

// nominationGrace is how long after its launch a node that is not initialised yet may
// carry taints which the pods that wait for it do not tolerate (Karpenter: a claim
// that has not registered after 15 minutes is given up).
const nominationGrace = 15 * time.Minute

// promise is a nomination that is to be settled.
type promise struct {
	pod   int32
	node  int // in World.Nodes
	until time.Time
}

// settleNominations decides which nominations hold. One that does leaves the pod out
// of planning and books its room; where the node is gone, is going or has no room, the
// pod is pending like any other.
func (w *World) settleNominations() {
	s := w.Snapshot
	remembered := w.remembered()
	var waiting []int32
	for _, i := range w.pending {
		p := &s.Pods[i]
		if p.Buffer == "" && (p.NominatedNode != "" && p.NodeName == "" || remembered[i] != nil) {
			waiting = append(waiting, i)
		}
	}
	if len(waiting) == 0 {
		return
	}
	sketch := w.sketch()
	index := sketch.nodeIndex()
	var list []promise
	for _, i := range waiting {
		p := &s.Pods[i]
		at, known := index[p.NominatedNode]
		if p.NodeName != "" || p.NominatedNode == "" {
			known = false
		}
		var until time.Time
		if n := remembered[i]; n != nil && !known {
			at, known = index[n.Node]
			until = n.Until
		} else if n != nil {
			until = n.Until
		}
		if known {
			list = append(list, promise{i, int(at), until})
		}
	}
	// Who is more important, or was there first by name, keeps the room.
	slices.SortStableFunc(list, func(a, b promise) int { return cmp.Compare(s.Pods[b.pod].Spec.Priority, s.Pods[a.pod].Spec.Priority) })
	kept := map[int32]bool{}
	seats := tenantsOf(s)
	for _, n := range list {
		if !seats.taken(&s.Pods[n.pod], sketch.Nodes[n.node].Name) && sketch.keeps(w, n) {
			kept[n.pod] = true
		}
	}
	if len(kept) == 0 {
		return
	}
	slices.SortFunc(w.Nominated, func(a, b Nominated) int { return cmp.Compare(a.Pod, b.Pod) })
	w.promised = make(map[int32]string, len(kept))
	for _, n := range list {
		if kept[n.pod] {
			w.promised[n.pod] = sketch.Nodes[n.node].Name
			if remembered[n.pod] != nil {
				w.kept++
			}
		}
	}
	w.pending = slices.DeleteFunc(w.pending, func(i int32) bool {
		if kept[i] && s.Pods[i].NodeName != "" {
			w.Displaced--
		}
		return kept[i]
	})
}

// remembered are the ledger's nominations that hold at this time, by pod.
func (w *World) remembered() map[int32]*snapshot.Nomination {
	s := w.Snapshot
	if len(s.Nominations) == 0 {
		return nil
	}
	byRef := make(map[[2]string]int32, len(w.pending))
	for _, i := range w.pending {
		if p := &s.Pods[i]; p.Buffer == "" {
			byRef[[2]string{p.Namespace, p.Name}] = i
		}
	}
	out := map[int32]*snapshot.Nomination{}
	for k := range s.Nominations {
		n := &s.Nominations[k]
		i, ok := byRef[[2]string{n.Namespace, n.Pod}]
		if !ok || !n.Until.IsZero() && !s.Now.Before(n.Until) {
			continue
		}
		p := &s.Pods[i]
		if n.UID != "" && p.UID != "" && n.UID != p.UID {
			continue // it was made anew since
		}
		if had := out[i]; had == nil || n.Outlasts(had) {
			out[i] = n
		}
	}
	return out
}

// sketch is the world without its pending pods: the nodes, and what is free on them.
func (w *World) sketch() *World {
	s := *w.Snapshot
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p snapshot.Pod) bool { return p.NodeName == "" })
	s.Settings.StaticCapacity = false // what is not there yet was given to nobody
	out := &World{Snapshot: &s, Catalog: w.Catalog, universes: w.universes, Dims: []string{snapshot.CPU, snapshot.Memory, snapshot.Pods}}
	out.order = podOrder(s.Pods)
	out.setLimitDims()
	out.readDaemons()
	out.readPools()
	out.readNodes()
	return out
}

// nodeIndex finds nodes by the names that a nomination may use: the node's, and its
// claim's.
func (w *World) nodeIndex() map[string]int32 {
	out := make(map[string]int32, len(w.Nodes))
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Claim != nil {
			out[n.Claim.Name] = int32(i)
			if n.InFlight() && n.Claim.NodeName != "" {
				out[n.Claim.NodeName] = int32(i)
			}
		}
	}
	for i := range w.Nodes { // a node's own name comes first
		out[w.Nodes[i].Name] = int32(i)
	}
	return out
}

// keeps reports whether a nomination holds, and books its room on the sketch. into
// gets the verdict or the placement.
func (w *World) keeps(into *World, pr promise) bool {
	p := &into.Snapshot.Pods[pr.pod]
	n := &w.Nodes[pr.node]
	if n.Closed != "" {
		return false
	}
	rules := compileRules(&p.Spec)
	if !n.selectedBy(&rules) || firstPortConflict(p.Spec.HostPorts, n.Ports) != nil {
		return false
	}
	for i := range n.Taints {
		t := &n.Taints[i]
		if t.Effect == preferNoSchedule || Tolerates(p.Spec.Tolerations, t) {
			continue
		}
		until, starting := n.mayWait(t, pr.until)
		if !starting || !into.Snapshot.Now.Before(until) {
			return false
		}
		into.warn("node/"+n.Name, plan.UndeclaredStartupTaint, fmt.Sprintf(
			"taint %s is not declared in NodePool %s; the pods that the node was launched for wait for it to go, until %s: if it goes by itself, list it under spec.template.spec.startupTaints",
			taintString(t), n.Pool, until.UTC().Format("15:04:05")))
	}
	if p.Spec.Requests.Fits(n.Free) {
		into.Nominated = append(into.Nominated, Nominated{pr.pod, n.Name})
	} else {
		leaving := w.leaving(n.Name, p.Spec.Priority)
		if !p.Spec.Requests.Fits(n.Free.Add(leaving)) {
			return false
		}
		into.Skipped = append(into.Skipped, plan.Verdict{Object: "pod/" + p.Ref(), Code: plan.NominatedElsewhere,
			Detail: "the scheduler has nominated node " + n.Name + ", where it makes room by preempting other pods"})
	}
	n.Free = n.Free.Sub(p.Spec.Requests)
	n.Ports = append(n.Ports, p.Spec.HostPorts...)
	return true
}

// mayWait reports whether a node is only starting and a taint on it is not one that
// its claim declares, and until when pods wait for that taint to go.
func (n *Node) mayWait(t *snapshot.Taint, until time.Time) (time.Time, bool) {
	if n.Initialized || n.Claim == nil || slices.ContainsFunc(n.Claim.Taints, func(c snapshot.Taint) bool { return c.Key == t.Key && c.Effect == t.Effect }) {
		return time.Time{}, false
	}
	if until.IsZero() {
		until = n.Claim.Created.Add(nominationGrace)
	}
	return until, true
}

// selectedBy reports whether the node's labels satisfy one of the alternatives.
func (n *Node) selectedBy(r *Rules) bool {
	return slices.ContainsFunc(r.Alternatives, func(alt []requirements.Requirement) bool {
		for i := range alt {
			v, ok := n.label(alt[i].Key())
			if !satisfied(&alt[i], v, ok) {
				return false
			}
		}
		return true
	})
}

// leaving is what pods of lower priority that are being deleted still hold of a node:
// the room that preemption makes.
func (w *World) leaving(node string, priority int32) snapshot.Resources {
	var sum snapshot.Resources
	for i := range w.Snapshot.Pods {
		p := &w.Snapshot.Pods[i]
		if p.NodeName == node && !p.Deleting.IsZero() && !p.Terminal() && p.Spec.Priority < priority {
			addTo(&sum, &p.Spec.Requests)
		}
	}
	return sum
}

// bookNominated books pods on the nodes that they are nominated to. To rules about
// other pods they are there already.
func (w *World) bookNominated(index map[string]int32) {
	if len(w.promised) == 0 {
		return
	}
	for _, k := range w.order {
		name, ok := w.promised[k]
		if !ok {
			continue
		}
		n := &w.Nodes[index[name]]
		p := &w.Snapshot.Pods[k]
		if w.topo != nil {
			w.topo.seat(k, index[name])
		}
		n.Nominated = append(n.Nominated, k)
		addTo(&n.Promised, &p.Spec.Requests)
		addTo(&n.Used, &p.Spec.Requests)
		n.Ports = append(n.Ports, p.Spec.HostPorts...)
	}
}
