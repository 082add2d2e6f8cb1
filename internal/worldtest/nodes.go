package worldtest

import (
	"maps"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// nodeView is a node that exists or is in flight, as pods see it.
type nodeView struct {
	name     string
	pool     string
	labels   map[string]string
	taints   []snapshot.Taint
	alloc    snapshot.Resources
	size     snapshot.Resources
	free     snapshot.Resources // after bound pods and daemonset pods still to come
	ports    []snapshot.HostPort
	going    bool             // being deleted, or about to be: takes no pods
	deleting bool             // being deleted: its pods need another place
	volumes  map[string]int64 // attach limits of a node that has not said its own, by driver
	cordoned bool
	// undeclared are taints of a node that is starting which its claim does not declare.
	undeclared []snapshot.Taint
}

func nodeViews(s *snapshot.Snapshot, c *catalog.Catalog) []*nodeView {
	var out []*nodeView
	claimed := map[string]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		claim := claimFor(s, n)
		if claim != nil {
			claimed[claim.Name] = true
		}
		out = append(out, viewOfNode(n, claim))
	}
	for i := range s.NodeClaims {
		if cl := &s.NodeClaims[i]; !claimed[cl.Name] && cl.NodeName == "" {
			out = append(out, viewOfClaim(s, c, cl))
		}
	}
	for _, v := range out {
		settle(s, v)
		v.expectVolumes(s, c)
	}
	return out
}

func claimFor(s *snapshot.Snapshot, n *snapshot.Node) *snapshot.NodeClaim {
	for i := range s.NodeClaims {
		cl := &s.NodeClaims[i]
		if cl.NodeName == n.Name || (cl.ProviderID != "" && cl.ProviderID == n.ProviderID) {
			return cl
		}
	}
	return nil
}

func viewOfNode(n *snapshot.Node, claim *snapshot.NodeClaim) *nodeView {
	v := &nodeView{
		name: n.Name, pool: n.Labels[labelPool], labels: maps.Clone(n.Labels), taints: n.Taints,
		alloc: n.Allocatable, size: n.Capacity, cordoned: n.Unschedulable, deleting: !n.Deleting.IsZero(),
	}
	if v.labels == nil {
		v.labels = map[string]string{}
	}
	if _, ok := v.labels[labelHostname]; !ok {
		v.labels[labelHostname] = n.Name
	}
	if claim != nil {
		v.deleting = v.deleting || !claim.Deleting.IsZero()
		if v.pool == "" {
			v.pool = claim.Labels[labelPool]
		}
	}
	// A node without a claim counts as initialised: nothing says what it waits for.
	if claim != nil && n.Labels[labelInit] != "true" {
		v.alloc = fill(v.alloc, claim, func(c *snapshot.NodeClaim) snapshot.Resources { return c.Allocatable })
		v.size = fill(v.size, claim, func(c *snapshot.NodeClaim) snapshot.Resources { return c.Capacity })
		v.taints = startingTaints(claim, v.taints)
		for _, t := range v.taints {
			if !slices.ContainsFunc(claim.Taints, func(c snapshot.Taint) bool { return c.Key == t.Key && c.Effect == t.Effect }) {
				v.undeclared = append(v.undeclared, t)
			}
		}
	}
	return v
}

// fill takes quantities from the claim that an uninitialised node does not show yet.
func fill(r snapshot.Resources, claim *snapshot.NodeClaim, from func(*snapshot.NodeClaim) snapshot.Resources) snapshot.Resources {
	if claim == nil {
		return r
	}
	o := from(claim)
	for _, n := range o.Names() {
		if r.Get(n) == 0 {
			r = r.With(n, o.Get(n))
		}
	}
	return r
}

// startingTaints leaves out what goes by itself before a node is initialised.
func startingTaints(claim *snapshot.NodeClaim, ts []snapshot.Taint) []snapshot.Taint {
	return slices.DeleteFunc(slices.Clone(ts), func(t snapshot.Taint) bool {
		return ephemeral(t) || slices.ContainsFunc(claim.StartupTaints, func(u snapshot.Taint) bool {
			return u.Key == t.Key && u.Effect == t.Effect
		})
	})
}

func viewOfClaim(s *snapshot.Snapshot, c *catalog.Catalog, cl *snapshot.NodeClaim) *nodeView {
	v := &nodeView{
		name: cl.Name, pool: cl.Labels[labelPool], labels: maps.Clone(cl.Labels),
		taints: startingTaints(cl, cl.Taints),
		alloc:  cl.Allocatable, size: cl.Capacity, deleting: !cl.Deleting.IsZero(),
	}
	if v.labels == nil {
		v.labels = map[string]string{}
	}
	for _, r := range cl.Requirements {
		if _, has := v.labels[stable(r.Key)]; !has && r.Operator == "In" && len(r.Values) == 1 {
			v.labels[stable(r.Key)] = r.Values[0]
		}
	}
	if v.alloc.IsZero() {
		v.alloc, v.size = openSize(s, c, cl, v.labels)
	}
	return v
}

// openSize is what a claim that is not launched yet is sure to have (the least of
// each resource over its possible types) and may take of a limit (the most).
func openSize(s *snapshot.Snapshot, c *catalog.Catalog, cl *snapshot.NodeClaim, labels map[string]string) (least, most snapshot.Resources) {
	class := classOf(s, &snapshot.NodePool{ClassRef: cl.ClassRef})
	if class == nil {
		return
	}
	rs, err := c.Resolve(class, s.Settings)
	if err != nil {
		return
	}
	relearn(s, class, rs)
	first := true
	change := overlays(s, c)
	for _, r := range rs {
		for name, n := range change.extra[[2]string{cl.Labels[labelPool], r.Type.Name}] {
			r.Capacity, r.Allocatable = r.Capacity.With(name, n), r.Allocatable.With(name, n)
		}
		ofType := r.Labels()
		all := maps.Clone(ofType)
		for k, v := range labels {
			if _, has := all[k]; !has {
				all[k] = v
			}
		}
		ok := labels[labelType] == "" || labels[labelType] == r.Type.Name
		for _, q := range cl.Requirements {
			if q.Key == labelType || ofType[q.Key] != "" {
				ok = ok && matches(q, all)
			}
		}
		if !ok {
			continue
		}
		if first {
			least, most, first = r.Allocatable, r.Capacity, false
			continue
		}
		most = most.Max(r.Capacity)
		less := snapshot.Resources{}
		for _, n := range least.Names() {
			less = less.With(n, min(least.Get(n), r.Allocatable.Get(n)))
		}
		least = less
	}
	return
}

// settle works out what is left of a node: allocatable less the pods bound to it and
// the daemonset pods that it will still get.
func settle(s *snapshot.Snapshot, v *nodeView) {
	v.going = v.deleting
	for _, t := range v.taints {
		v.going = v.going || t.Key == "karpenter.sh/disrupted"
	}
	var used, due snapshot.Resources
	here := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName != v.name || p.Terminal() {
			continue
		}
		used = plus(used, p.Spec.Requests)
		v.ports = append(v.ports, p.Spec.HostPorts...)
		if p.Owner != nil && p.Owner.Kind == "DaemonSet" {
			here[p.Namespace+"/"+p.Owner.Name] = true
		}
	}
	for i := range s.DaemonSets {
		d := &s.DaemonSets[i]
		if !here[d.Namespace+"/"+d.Name] && daemonRuns(&d.Template.Spec, v.labels, v.taints, v.name) {
			due = plus(due, d.Template.Spec.Requests)
			v.ports = append(v.ports, d.Template.Spec.HostPorts...)
		}
	}
	v.free = minus(minus(v.alloc, used), due)
}

// refuses says why a pod may not run on the node, resources and ports left out; ""
// means that the rules allow it.
func (v *nodeView) refuses(p *snapshot.PodSpec) string {
	switch {
	case v.going:
		return "the node is going"
	case v.cordoned && untolerated([]snapshot.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}}, p.Tolerations) != nil:
		return "the node is cordoned"
	case !selects(p, v.labels, v.name):
		return "node selector or required affinity"
	}
	if t := untolerated(v.taints, p.Tolerations); t != nil {
		return "taint " + t.Key
	}
	return ""
}
