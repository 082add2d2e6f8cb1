package scheduling

import (
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// nodeSlots are the volumes of one driver that a node that exists can still attach.
type nodeSlots struct {
	node   int
	driver string
	free   int64
	// shared are the volumes that pods may bring, of those that are not there yet;
	// admitted the ones whose slot is set aside. The node is closed to pods of the others.
	shared, admitted []int32
	revised          int
}

// bookVolumes writes what every node can still attach into Node.Free: its limit, less the
// volumes of its pods, each once, and less what is attached for nobody and not gone yet
// (kube-scheduler: NodeVolumeLimits). Shared volumes that pods may bring take their slot
// beforehand, as long as one is left for pods with volumes of their own; reviseSlots
// looks at what was made of that.
func (w *World) bookVolumes() {
	a := w.attach
	if a == nil {
		return
	}
	for _, d := range w.Dims {
		if class, ok := strings.CutPrefix(d, madePrefix); ok {
			for i, n := range a.stockOn(class) {
				w.Nodes[i].Free = w.Nodes[i].Free.With(d, n)
			}
		}
	}
	if len(a.drivers) == 0 {
		return
	}
	csi := make(map[string]*snapshot.CSINode, len(w.Snapshot.CSINodes))
	for i := range w.Snapshot.CSINodes {
		csi[w.Snapshot.CSINodes[i].Name] = &w.Snapshot.CSINodes[i]
	}
	stale := a.stale()
	reach := make([]packing.Bitset, len(a.shared))
	for s := range a.shared {
		reach[s] = a.reach(func(r *Rules) bool { return containsInt(r.shared, int32(s)) })
	}
	for _, driver := range a.drivers {
		private := a.reach(func(r *Rules) bool { return r.slots[attachPrefix+driver] > 0 && len(r.shared) == 0 })
		for i := range w.Nodes {
			n := &w.Nodes[i]
			on := a.on(n)
			free := a.nodeLimit(n, csi[n.Name], driver) - a.daemonVolumes(n, i, driver)
			for key := range on {
				if key.driver == driver {
					free--
				}
			}
			for key := range stale[n.Name] {
				if key.driver == driver && !on[key] {
					free--
				}
			}
			slots := nodeSlots{node: i, driver: driver, free: max(free, 0)}
			spare := slots.free
			if private.Has(i) {
				spare--
			}
			for s := range a.shared {
				if key := a.shared[s].key; key.driver != driver || on[key] || !reach[s].Has(i) {
					continue
				}
				slots.shared = append(slots.shared, int32(s))
				if spare > 0 {
					spare--
					slots.admitted = append(slots.admitted, int32(s))
				}
			}
			a.apply(&slots)
			if len(slots.shared) > 0 {
				a.booked = append(a.booked, slots)
			}
		}
	}
}

// apply writes what a node can attach of a driver.
func (a *attachments) apply(s *nodeSlots) {
	n := &a.w.Nodes[s.node]
	n.Free = n.Free.With(attachPrefix+s.driver, s.free-int64(len(s.admitted)))
	n.noRoom = slices.DeleteFunc(n.noRoom, func(v int32) bool { return containsInt(s.shared, v) })
	for _, v := range s.shared {
		if !containsInt(s.admitted, v) {
			n.noRoom = append(n.noRoom, v)
		}
	}
}

// on are the volumes that the pods of a node attach.
func (a *attachments) on(n *Node) map[attachKey]bool {
	m := a.runningOn()[n.Name]
	if m == nil && n.InFlight() && n.Claim.NodeName != "" {
		m = a.runningOn()[n.Claim.NodeName]
	}
	return m
}

// stale are the volumes that are attached to every node, for whatever pod.
func (a *attachments) stale() map[string]map[attachKey]bool {
	out := map[string]map[attachKey]bool{}
	for i := range a.w.Snapshot.Attachments {
		at := &a.w.Snapshot.Attachments[i]
		pv := a.v.volumes[at.Volume]
		if pv == nil || pv.Handle == "" || at.Attacher == "" {
			continue
		}
		if out[at.Node] == nil {
			out[at.Node] = map[attachKey]bool{}
		}
		out[at.Node][attachKey{at.Attacher, pv.Handle}] = true
	}
	return out
}

// nodeLimit is the attach limit of a node: what its CSINode says; before the driver has
// said anything, what it will say, by the node's type.
func (a *attachments) nodeLimit(n *Node, c *snapshot.CSINode, driver string) int64 {
	if c != nil {
		if limit, ok := c.Drivers[driver]; ok {
			if limit < 0 {
				return unlimited
			}
			return limit
		}
	}
	name := instanceType(n.Labels)
	at, known := slices.BinarySearchFunc(a.w.Catalog.Types, name, func(t catalog.InstanceType, name string) int { return strings.Compare(t.Name, name) })
	class := a.w.class(n.Labels[catalog.LabelNodeClass])
	if class == nil && n.Claim != nil {
		class = a.w.class(n.Claim.ClassRef.Name)
	}
	if known {
		return a.limit(&a.w.Catalog.Types[at], class, driver)
	}
	if name != "" {
		return a.limit(&catalog.InstanceType{Name: name}, class, driver)
	}
	return a.openLimit(n, class, driver)
}

// openLimit is for a claim whose type is not known: the least of the types it allows.
func (a *attachments) openLimit(n *Node, class *snapshot.NodeClass, driver string) int64 {
	if n.Claim == nil || class == nil {
		return unlimited
	}
	reqs, err := requirements.Parse(n.Claim.Requirements)
	u, uerr := a.w.universe(class)
	if err != nil || uerr != nil {
		return unlimited
	}
	least := unlimited
	for i := range u.types {
		if u.types[i].Unusable == "" && typeAllowed(u, int32(i), reqs) {
			least = min(least, a.limit(u.types[i].Type, class, driver))
		}
	}
	return least
}

// reach are the nodes where pods under some of the rules may run.
func (a *attachments) reach(of func(*Rules) bool) packing.Bitset {
	w := a.w
	out := packing.NewBitset(len(w.Nodes))
	for r := range w.Rules {
		if rules := &w.Rules[r]; of(rules) {
			w.nodes.match(rules, func(t *snapshot.Taint) bool { return Tolerates(rules.Spec.Tolerations, t) }).Members(out.Set)
		}
	}
	return out
}

// daemonVolumes are the volumes of daemon pods that a node will get and has not yet.
func (a *attachments) daemonVolumes(n *Node, i int, driver string) int64 {
	sum := int64(0)
	for d := range a.w.daemons {
		dm := &a.w.daemons[d]
		if k := dm.volumes[driver]; k > 0 && dm.on.Has(i) && !slices.Contains(n.running, dm.namespace+"/"+dm.name) {
			sum += k
		}
	}
	return sum
}

// readDaemonVolumes counts the volumes of daemon pods, by driver.
func (w *World) readDaemonVolumes() {
	if w.attach == nil {
		return
	}
	for d := range w.daemons {
		dm := &w.daemons[d]
		if len(dm.rules.Spec.Volumes) == 0 {
			continue
		}
		p := &snapshot.Pod{Namespace: dm.namespace, Name: dm.name, Spec: *dm.rules.Spec}
		seen := map[attachKey]bool{}
		for k := range p.Spec.Volumes {
			c, _ := w.volumes.claim(p, &p.Spec.Volumes[k])
			if c == nil {
				continue
			}
			if key := w.volumes.attached(c); w.attach.limited[key.driver] != "" && !seen[key] {
				seen[key] = true
				if dm.volumes == nil {
					dm.volumes = map[string]int64{}
				}
				dm.volumes[key.driver]++
			}
		}
	}
}
