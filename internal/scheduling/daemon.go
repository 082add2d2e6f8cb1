package scheduling

import (
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
)

// daemon is the pod that a DaemonSet puts on every node it matches.
type daemon struct {
	namespace, name string
	rules           Rules
	requests        snapshot.Resources
	ports           []snapshot.HostPort
	tolerations     []snapshot.Toleration
	volumes         map[string]int64 // that a pod of it attaches, by driver
	on              packing.Bitset   // nodes that it runs on, if it has volumes
}

// readDaemons takes per DaemonSet the newest live pod, which carries what
// admission added, with the node affinity of the template (the live pod's names
// its own node); without a live pod the template itself.
func (w *World) readDaemons() {
	s := w.Snapshot
	w.daemons = make([]daemon, len(s.DaemonSets))
	if len(s.DaemonSets) == 0 {
		return
	}
	type key struct{ namespace, name string }
	newest := make(map[key]*snapshot.Pod, len(s.DaemonSets))
	for _, i := range w.order {
		p := &s.Pods[i]
		if !isDaemon(p) || p.Terminal() || !p.Deleting.IsZero() {
			continue
		}
		k := key{p.Namespace, p.Owner.Name}
		if q := newest[k]; q == nil || p.Created.After(q.Created) {
			newest[k] = p
		}
	}
	for i := range s.DaemonSets {
		ds := &s.DaemonSets[i]
		spec := ds.Template.Spec
		if p := newest[key{ds.Namespace, ds.Name}]; p != nil {
			spec = p.Spec
			spec.Required = ds.Template.Spec.Required
		}
		w.daemons[i] = daemon{
			namespace: ds.Namespace, name: ds.Name,
			rules: compileRules(&spec), requests: spec.Requests, ports: spec.HostPorts, tolerations: spec.Tolerations,
		}
		if w.daemons[i].requests.Pods == 0 {
			w.daemons[i].requests.Pods = 1
		}
	}
}

// daemonGroups splits the types of a template by the daemon pods that a node of
// them carries.
type daemonGroups struct {
	of     []int32 // group, by position in the template's types
	groups []daemonGroup
}

// daemonGroup is a set of daemon pods.
type daemonGroup struct {
	daemons  []int32
	requests snapshot.Resources
	ports    []snapshot.HostPort
}

// groupDaemons finds the daemon pods of every type of a template. A daemon pod
// that only some zones of a type would carry is counted everywhere: the zone is
// not known before launch.
func (w *World) groupDaemons(t *Template) daemonGroups {
	g := daemonGroups{of: make([]int32, len(t.types)), groups: []daemonGroup{{}}}
	passes := make([]bool, len(t.types))
	for d := range w.daemons {
		dm := &w.daemons[d]
		if !t.toleratedBy(dm.tolerations, true) {
			continue
		}
		bits := t.match(&dm.rules)
		if bits == nil {
			continue
		}
		clear(passes)
		bits.Members(func(o int) { passes[t.offerType[o]] = true })
		split := map[int32]int32{}
		for i := range passes {
			if !passes[i] {
				continue
			}
			old := g.of[i]
			n, ok := split[old]
			if !ok {
				n = int32(len(g.groups))
				split[old] = n
				was := &g.groups[old]
				g.groups = append(g.groups, daemonGroup{
					daemons:  append(append(make([]int32, 0, len(was.daemons)+1), was.daemons...), int32(d)),
					requests: was.requests.Add(dm.requests),
					ports:    append(append([]snapshot.HostPort(nil), was.ports...), dm.ports...),
				})
			}
			g.of[i] = n
		}
	}
	return g
}

// portFilter clears the offers whose types carry a daemon pod with a host port
// that the pod wants too; nil when nothing is left.
func (t *Template) portFilter(bits packing.Bitset, ports []snapshot.HostPort) packing.Bitset {
	if bits == nil || len(ports) == 0 {
		return bits
	}
	taken := make([]bool, len(t.daemons.groups))
	any := false
	for i := range t.daemons.groups {
		taken[i] = firstPortConflict(ports, t.daemons.groups[i].ports) != nil
		any = any || taken[i]
	}
	if !any {
		return bits
	}
	out := packing.NewBitset(len(t.offerType))
	bits.Members(func(o int) {
		if !taken[t.daemons.of[t.offerType[o]]] {
			out.Set(o)
		}
	})
	if out.Empty() {
		return nil
	}
	return out
}
