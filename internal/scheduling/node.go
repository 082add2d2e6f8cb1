package scheduling

import (
	"cmp"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Node is a node that exists or is in flight, as pods will meet it.
type Node struct {
	Name  string
	Node  *snapshot.Node      // nil: in flight
	Claim *snapshot.NodeClaim // nil: not ours, or its claim is not in the snapshot
	// Launch is what this plan launches for a static pool: neither Node nor claim is
	// there yet. nil for every other node.
	Launch *Static
	Pool   string
	// Initialized nodes are judged by what the Node says. Before that startup and
	// ephemeral taints do not count and missing quantities are the claim's.
	Initialized bool
	Labels      map[string]string
	Taints      []snapshot.Taint
	Capacity    snapshot.Resources // what counts against limits
	Allocatable snapshot.Resources
	// Used is what its pods ask for, Pods their number; Daemons what daemon pods
	// that are not there yet will ask for.
	Used    snapshot.Resources
	Pods    int
	Daemons snapshot.Resources
	Free    snapshot.Resources
	// Nominated are the pods that keep their nomination to it, Promised is the share of
	// Used that they ask for. They do not run yet and are not in Pods.
	Nominated []int32
	Promised  snapshot.Resources
	// Ports are host ports taken by its pods and by daemon pods to come.
	Ports []snapshot.HostPort
	// Closed says why no pod may be put on it; "" = it is a target.
	Closed string

	daemonUse snapshot.Resources
	noRoom    []int32  // shared volumes that it cannot attach
	running   []string // DaemonSets that have a pod there, namespace/name
}

// InFlight reports whether the Node of a claim does not exist yet.
func (n *Node) InFlight() bool { return n.Node == nil && n.Claim != nil }

// readNodes joins nodes and claims, and books the pods on them.
func (w *World) readNodes() {
	s := w.Snapshot
	claims := w.claimsByNode()
	joined := make(map[*snapshot.NodeClaim]bool, len(s.NodeClaims))
	w.Nodes = make([]Node, 0, len(s.Nodes)+len(s.NodeClaims))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		c := claims[i]
		if c != nil {
			joined[c] = true
		}
		w.Nodes = append(w.Nodes, w.existing(n, c))
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if !joined[c] && (c.ClassRef.Group == classGroup || c.ClassRef.Group == "") {
			w.Nodes = append(w.Nodes, w.inFlight(c))
		}
	}
	w.Nodes = append(w.Nodes, w.planned...)
	w.planStatic()
	slices.SortStableFunc(w.Nodes, func(a, b Node) int {
		if (a.Launch != nil) != (b.Launch != nil) {
			return btoi(a.Launch != nil) - btoi(b.Launch != nil)
		}
		if a.Launch != nil {
			return 0 // they are in order
		}
		if a.Initialized != b.Initialized {
			if a.Initialized {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(btoi(a.InFlight()), btoi(b.InFlight())))
	})
	w.bookPods()
	if w.topo != nil {
		w.readRuns()
	}
	w.nodes.init(w.Nodes)
	w.bookDaemons()
	for i := range w.Nodes {
		n := &w.Nodes[i]
		n.Free = n.Allocatable.Sub(n.Used).Sub(n.Daemons)
		if n.Closed == "" && !w.sealed(n) {
			w.Targets = append(w.Targets, i)
		}
	}
	w.bookVolumes()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// claimsByNode finds the claim of every node: by provider id, else by the node's
// name in the claim's status.
func (w *World) claimsByNode() []*snapshot.NodeClaim {
	s := w.Snapshot
	out := make([]*snapshot.NodeClaim, len(s.Nodes))
	if len(s.NodeClaims) == 0 {
		return out
	}
	byProvider := make(map[string]*snapshot.NodeClaim, len(s.NodeClaims))
	byName := make(map[string]*snapshot.NodeClaim, len(s.NodeClaims))
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if c.ProviderID != "" {
			byProvider[c.ProviderID] = c
		}
		if c.NodeName != "" {
			byName[c.NodeName] = c
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.ProviderID != "" {
			out[i] = byProvider[n.ProviderID]
		}
		if c := byName[n.Name]; out[i] == nil && c != nil && (c.ProviderID == "" || n.ProviderID == "") {
			out[i] = c
		}
	}
	return out
}

// existing models a Node object (Karpenter: state node).
func (w *World) existing(n *snapshot.Node, c *snapshot.NodeClaim) Node {
	out := Node{
		Name: n.Name, Node: n, Claim: c, Pool: n.Labels[catalog.LabelNodePool],
		Initialized: n.Labels[labelInitialized] == "true",
		Labels:      n.Labels, Taints: n.Taints, Capacity: n.Capacity, Allocatable: n.Allocatable,
	}
	if c != nil {
		if out.Pool == "" {
			out.Pool = c.Labels[catalog.LabelNodePool]
		}
		if n.Labels[labelRegistered] != "true" {
			out.Labels = claimLabels(c)
			if _, ok := out.Labels[catalog.LabelHostname]; !ok {
				out.Labels[catalog.LabelHostname] = n.Name
			}
			// Taints that the Node has beyond the claim's are seen by the scheduler.
			out.Taints = slices.Clone(c.Taints)
			for i := range n.Taints {
				if !slices.Contains(out.Taints, n.Taints[i]) {
					out.Taints = append(out.Taints, n.Taints[i])
				}
			}
		}
		if !out.Initialized {
			out.Taints = withoutStartup(out.Taints, c.StartupTaints)
		}
		alloc, capacity := c.Allocatable, c.Capacity
		if alloc.IsZero() || capacity.IsZero() {
			least, most := w.openType(c)
			alloc, capacity = orElse(alloc, least), orElse(capacity, most)
		}
		if !out.Initialized {
			out.Allocatable = fill(out.Allocatable, alloc)
		}
		out.Capacity = fill(out.Capacity, capacity)
	}
	if c == nil {
		p := w.pool(out.Pool)
		switch {
		case p == nil:
			out.Initialized = true // not ours: only its own word counts
		case !out.Initialized:
			out.Taints = withoutStartup(out.Taints, p.Spec.StartupTaints)
		}
	}
	if cordon := (snapshot.Taint{Key: taintUnschedulable, Effect: noSchedule}); n.Unschedulable && !slices.Contains(out.Taints, cordon) {
		out.Taints = append(slices.Clone(out.Taints), cordon)
	}
	switch {
	case !n.Deleting.IsZero():
		out.Closed = "it is being deleted"
	case c != nil && !c.Deleting.IsZero():
		out.Closed = "its NodeClaim is being deleted"
	case slices.ContainsFunc(n.Taints, func(t snapshot.Taint) bool { return t.Key == taintDisrupted }):
		out.Closed = "it is chosen for disruption (taint " + taintDisrupted + ")"
	}
	return out
}

// inFlight models a claim whose Node does not exist yet.
func (w *World) inFlight(c *snapshot.NodeClaim) Node {
	out := Node{
		Name: c.Name, Claim: c, Pool: c.Labels[catalog.LabelNodePool],
		Labels: claimLabels(c), Taints: c.Taints, Capacity: c.Capacity, Allocatable: c.Allocatable,
	}
	if out.Allocatable.IsZero() || out.Capacity.IsZero() {
		least, most := w.openType(c)
		out.Allocatable, out.Capacity = orElse(out.Allocatable, least), orElse(out.Capacity, most)
	}
	out.Taints = withoutStartup(c.Taints, c.StartupTaints)
	if !c.Deleting.IsZero() {
		out.Closed = "its NodeClaim is being deleted"
	}
	return out
}

func orElse(r, other snapshot.Resources) snapshot.Resources {
	if r.IsZero() {
		return other
	}
	return r
}

// fill replaces quantities that are missing or zero.
func fill(r, from snapshot.Resources) snapshot.Resources {
	for _, k := range from.Names() {
		if r.Get(k) == 0 {
			r = r.With(k, from.Get(k))
		}
	}
	return r
}

// claimLabels are the labels that the node of a claim will have: those of the
// claim and its requirements that allow one value.
func claimLabels(c *snapshot.NodeClaim) map[string]string {
	out := make(map[string]string, len(c.Labels)+len(c.Requirements))
	for i := range c.Requirements {
		if r := &c.Requirements[i]; r.Operator == requirements.OpIn && len(r.Values) == 1 {
			out[requirements.Normalize(r.Key)] = r.Values[0]
		}
	}
	for k, v := range c.Labels {
		out[k] = v
	}
	return out
}

// withoutStartup drops the taints that go away before the node is initialised.
func withoutStartup(taints, startup []snapshot.Taint) []snapshot.Taint {
	var out []snapshot.Taint
	for i := range taints {
		t := &taints[i]
		if ephemeral(t) || slices.ContainsFunc(startup, func(s snapshot.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect }) {
			continue
		}
		out = append(out, *t)
	}
	return out
}

// bookPods adds up what the pods on every node ask for, those that are nominated to it
// included: they hold their place there.
func (w *World) bookPods() {
	if len(w.Nodes) == 0 {
		return
	}
	index := w.nodeIndex()
	pods := w.Snapshot.Pods
	last, lastName := int32(-1), ""
	for _, k := range w.order {
		p := &pods[k]
		name := p.NodeName
		if name == "" || p.Terminal() {
			continue
		}
		if name != lastName {
			i, ok := index[name]
			if !ok {
				i = -1
			}
			last, lastName = i, name
		}
		if last < 0 {
			continue
		}
		n := &w.Nodes[last]
		if w.topo != nil {
			w.topo.seat(k, last)
		}
		addTo(&n.Used, &p.Spec.Requests)
		n.Pods++
		n.Ports = append(n.Ports, p.Spec.HostPorts...)
		if isDaemon(p) {
			addTo(&n.daemonUse, &p.Spec.Requests)
			n.running = append(n.running, p.Namespace+"/"+p.Owner.Name)
		}
	}
	w.bookNominated(index)
}

// addTo adds in place; dst owns its map.
func addTo(dst, r *snapshot.Resources) {
	dst.CPU = snapshot.Clamp(dst.CPU + snapshot.Clamp(r.CPU))
	dst.Memory = snapshot.Clamp(dst.Memory + snapshot.Clamp(r.Memory))
	dst.Ephemeral = snapshot.Clamp(dst.Ephemeral + snapshot.Clamp(r.Ephemeral))
	dst.Pods = snapshot.Clamp(dst.Pods + snapshot.Clamp(r.Pods))
	for k, v := range r.Extended {
		if dst.Extended == nil {
			dst.Extended = make(map[string]int64, len(r.Extended))
		}
		dst.Extended[k] = snapshot.Clamp(dst.Extended[k] + snapshot.Clamp(v))
	}
}

// bookDaemons adds the daemon pods that a node will get and does not have yet:
// what they ask for in sum, less what runs there, never below zero.
func (w *World) bookDaemons() {
	if len(w.Nodes) == 0 {
		return
	}
	due := make([]snapshot.Resources, len(w.Nodes))
	for d := range w.daemons {
		dm := &w.daemons[d]
		ref := dm.namespace + "/" + dm.name
		bits := w.nodes.match(&dm.rules, func(t *snapshot.Taint) bool { return daemonTolerates(dm.tolerations, t) })
		if bits == nil {
			continue
		}
		if dm.volumes != nil {
			dm.on = bits
		}
		bits.Members(func(i int) {
			addTo(&due[i], &dm.requests)
			if len(dm.ports) > 0 && !slices.Contains(w.Nodes[i].running, ref) {
				w.Nodes[i].Ports = append(w.Nodes[i].Ports, dm.ports...)
			}
		})
	}
	for i := range w.Nodes {
		w.Nodes[i].Daemons = due[i].Sub(w.Nodes[i].daemonUse).Floor()
	}
}

// chargeLimits books nodes and claims on their pools. Nodes that are going count
// until they are gone: their instances still run.
func (w *World) chargeLimits() {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if p := w.pool(n.Pool); p != nil {
			addTo(&p.Used, &n.Capacity)
			p.UsedNodes++
		}
	}
}
