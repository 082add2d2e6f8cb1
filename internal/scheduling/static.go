package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Static is a node that a static NodePool is short of (Karpenter: spec.replicas). It
// is launched whether pods need it or not, so to pods it is as good as there.
type Static struct {
	Pool     int
	Template *Template // of no other node
	Offer    int       // the cheapest that the pool allows, in the template
	// among are the offers that are left; nil = all that the template has. They are of a
	// launch that a plan has put pods on before.
	among []int
}

// static reports whether the pool keeps a fixed number of nodes and is in order.
func (p *Pool) static() bool { return p.Code == plan.NodePoolStatic && p.u != nil }

// readStatic refuses a static pool to pods, once everything else about it is in order.
func (w *World) readStatic(p *Pool) {
	if p.Code != "" {
		return
	}
	n := plan.Count(int(min(*p.Spec.Replicas, 1<<30)), "node")
	if w.Snapshot.Settings.StaticCapacity {
		p.refuse(plan.NodePoolStatic, fmt.Sprintf("a static pool keeps %s whatever the pods, and none of them takes the pod", n))
		return
	}
	p.refuse(plan.NodePoolStatic, fmt.Sprintf("a static pool keeps %s and launches none for pods", n))
}

// planStatic adds the nodes that static pools are short of: as many as spec.replicas
// is above those that are there or in flight, within limits.nodes.
func (w *World) planStatic() {
	if !w.Snapshot.Settings.StaticCapacity {
		for i := range w.Pools {
			if p := &w.Pools[i]; p.Spec.Replicas != nil && *p.Spec.Replicas > 0 && p.Code == plan.NodePoolStatic {
				w.warn("nodepool/"+p.Spec.Name, plan.FeatureOff, gateOff("spec.replicas", "StaticCapacity"))
			}
		}
		return
	}
	for i := range w.Pools {
		p := &w.Pools[i]
		if p.Spec.Replicas == nil {
			continue
		}
		if !p.static() {
			w.judgeStatic(p, p.Code, p.Detail)
			continue
		}
		running, going, total := w.staticNodes(p.Spec.Name)
		want := *p.Spec.Replicas - running
		if running+going >= *p.Spec.Replicas {
			continue // those too many are taken away by a move
		}
		if limit, ok := p.Spec.Limits[snapshot.Nodes]; ok && want > limit-total {
			w.judgeStatic(p, plan.LimitReached, fmt.Sprintf("spec.replicas is %d and %d are there; limit nodes %d leaves room for %d of the %d that are missing",
				*p.Spec.Replicas, running, limit, max(0, limit-total), want))
			want = max(0, limit-total)
		}
		if want > maxStatic {
			w.judgeStatic(p, plan.StepLimit, fmt.Sprintf("%d nodes are missing, %d are launched in one plan", want, maxStatic))
			want = maxStatic
		}
		w.launchStatic(i, int(want))
	}
}

// maxStatic is the most nodes of a static pool that one plan launches.
const maxStatic = 1000

// gateOff says that something is ignored, and how to turn it on.
func gateOff(what, gate string) string {
	return fmt.Sprintf("%s is ignored: feature gate %s is off, as it is in Karpenter by default; turn it on with FEATURE_GATES=%s=true", what, gate, gate)
}

// judgeStatic gives a static pool its verdict: nodes that it should have and gets not.
func (w *World) judgeStatic(p *Pool, code plan.Code, detail string) {
	if *p.Spec.Replicas > 0 && code != plan.ForeignNodeClass && code != plan.NodePoolDeleting {
		w.Missing = append(w.Missing, plan.Verdict{Object: "nodepool/" + p.Spec.Name, Code: code, Detail: detail})
	}
}

// staticNodes counts the nodes and claims of a pool: those that run or are in flight,
// those that something else is about to replace, and all of them.
func (w *World) staticNodes(pool string) (running, going, total int64) {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Pool != pool {
			continue
		}
		total++
		switch {
		case n.Closed == "":
			running++
		case (n.Node == nil || n.Node.Deleting.IsZero()) && (n.Claim == nil || n.Claim.Deleting.IsZero()):
			going++ // chosen for disruption, which brings its own replacement
		}
	}
	return running, going, total
}

func (w *World) launchStatic(pool, count int) {
	p := &w.Pools[pool]
	if count == 0 {
		return
	}
	t := newTemplate(p.u, p.Spec.Taints, w.variants(p)[0], p.types, p.offers)
	t.Pool, t.Name = pool, p.Spec.Name
	t.daemons = w.groupDaemons(t)
	w.dropFull(t)
	if code, detail := w.minValuesUnmet(p, t); code != "" {
		w.judgeStatic(p, code, detail)
		return
	}
	order := t.cheapestFirst(p.named)
	if slices.ContainsFunc(p.Spec.Requirements, func(r snapshot.SelectorRequirement) bool { return r.MinValues > 0 }) {
		order = slices.DeleteFunc(order, func(o int) bool { return t.u.offers[t.offers[o]].capacity == catalog.Reserved }) // one offer is no choice
	}
	if len(order) == 0 {
		w.judgeStatic(p, plan.NoInstanceTypeFits, "daemon pods leave no room on any of its types")
		return
	}
	for k := range count {
		o := slices.IndexFunc(order, func(o int) bool { return w.takeReserved(t, o) })
		w.Nodes = append(w.Nodes, w.staticNode(p, &Static{Pool: pool, Template: t, Offer: order[o]}, p.Spec.Name+"-"+strconv.Itoa(k+1)))
	}
}

// cheapestFirst orders the offers as a plan chooses among them. Exotic types come only
// where there is no other.
func (t *Template) cheapestFirst(named bool) []int {
	out := make([]int, 0, len(t.offers))
	for _, exotic := range []bool{false, true} {
		for o := range t.offers {
			if !named && t.Type(o).Exotic != exotic {
				continue
			}
			out = append(out, o)
		}
		if len(out) > 0 {
			break
		}
	}
	rank := func(o int) int { return btoi(t.u.offers[t.offers[o]].capacity != catalog.Reserved) }
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(t.u.compared(t.offers[a]), t.u.compared(t.offers[b])))
	})
	return out
}

// takeReserved takes an instance of a reservation, if the offer is one; false when the
// plan has used it up.
func (w *World) takeReserved(t *Template, o int) bool {
	of := &t.u.offers[t.offers[o]]
	if of.capacity != catalog.Reserved || of.count == 0 {
		return true
	}
	if w.reserved[of.reservation] >= of.count {
		return false
	}
	if w.reserved == nil {
		w.reserved = map[string]int64{}
	}
	w.reserved[of.reservation]++
	return true
}

// staticNode is a node to be launched, as pods will meet it.
func (w *World) staticNode(p *Pool, l *Static, name string) Node {
	labels := l.Template.NodeLabels(l.Offer)
	typ := l.Template.Type(l.Offer)
	return Node{
		Name: name, Launch: l, Pool: p.Spec.Name, Labels: labels, Taints: withoutStartup(p.Spec.Taints, p.Spec.StartupTaints),
		Capacity: typ.Capacity, Allocatable: typ.Allocatable,
	}
}

// StaticLaunch is what a node of a static pool may be launched as, with what the plan
// puts there: the offer of its own, and others that would do for the same pods. The
// template is that of the offers.
func (w *World) StaticLaunch(p *packing.Problem, n *Node, contents []packing.ClassCount) (packing.Launch, *packing.Template) {
	t := n.Launch.Template
	tm := w.packTemplate(t)
	use := w.vector(&n.Used, nil)
	allowed := n.Launch.amongOptions()
	for o := range t.offers {
		if t.u.offers[t.offers[o]].capacity == catalog.Reserved {
			allowed.Clear(o) // other instances of reservations are for others
		}
	}
	for _, cc := range contents {
		c := &w.Classes[cc.Class]
		for k, v := range w.needs(c, nil) {
			use[k] += v * int64(cc.Count)
		}
		rules := &w.Rules[c.Rules]
		bits := w.sharedFilter(t, rules, t.portFilter(t.match(rules), rules.Spec.HostPorts))
		if w.dealt(cc.Class) {
			bits = nil // they were dealt to this zone, or this node, and no other
		}
		for i := range allowed {
			if bits == nil {
				allowed[i] = 0
			} else {
				allowed[i] &= bits[i]
			}
		}
	}
	if t.u.offers[t.offers[n.Launch.Offer]].capacity == catalog.Reserved {
		clear(allowed) // it is made for this instance
	}
	allowed.Set(n.Launch.Offer)
	return packing.OptionsFor(p, &tm, n.Launch.Offer, use, allowed), &tm
}

// dropReserved takes the reservations that static pools have used up away from a pool.
func (w *World) dropReserved(p *Pool) {
	if len(w.reserved) == 0 {
		return
	}
	p.offers = slices.DeleteFunc(slices.Clone(p.offers), func(o int32) bool {
		of := &p.u.offers[o]
		return of.count > 0 && w.reserved[of.reservation] >= of.count
	})
}
