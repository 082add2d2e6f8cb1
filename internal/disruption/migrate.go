package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// mostDrifted is how many drifted nodes go in one pass at most, driftTries for how many it
	// plans new places: each is planned by itself, over the whole cluster.
	mostDrifted = 16
	driftTries  = 32
	// driftTurn is how long the same ones are tried first, where there are more: those that
	// cannot go do not keep the others waiting for ever.
	driftTurn = 600 // seconds
)

// drift finds moves for nodes that are not what is asked for: what is launched for their
// pods may be several nodes, at any price (Karpenter: drift). Those without pods come first,
// then the oldest.
func (x *search) drift() {
	type found struct {
		n    *node
		what string
	}
	var list []found
	for _, n := range x.nodes {
		if n.claim == nil || n.pool == nil || x.leaving(n) || n.going {
			continue
		}
		kind, detail := x.drifted(n)
		x.stale[n.name] = [2]string{kind, detail}
		if kind == "" {
			continue
		}
		what := kind + ": " + detail
		if code, why := x.mayMigrate(n); code != "" {
			x.say(n, code, what+"; but "+why)
			continue
		}
		list = append(list, found{n, what})
	}
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(min(len(a.n.moving), 1), min(len(b.n.moving), 1)), a.n.claim.Created.Compare(b.n.claim.Created), cmp.Compare(a.n.name, b.n.name))
	})
	if len(list) > driftTries {
		first := int(x.s.Now.Unix() / driftTurn % int64((len(list)+driftTries-1)/driftTries) * driftTries)
		list = append(slices.Clone(list[first:]), list[:first]...)
	}
	tries, going := 0, 0
	for _, f := range list {
		if a := x.allowed(f.n.pool, plan.MoveDrifted); a.left <= 0 {
			x.say(f.n, plan.BudgetExhausted, f.what+"; but "+a.why)
			continue
		}
		if why := x.crowded(f.n); why != "" {
			x.say(f.n, plan.EvictionBlocked, f.what+"; but "+why)
			continue
		}
		if going == mostDrifted || tries == driftTries {
			x.say(f.n, plan.MovesLater, f.what+"; other nodes that are so go first")
			continue
		}
		tries++
		m, why := x.migrate(f.n, true)
		if why != "" {
			x.say(f.n, plan.PodsWouldNotFit, f.what+"; but "+why)
			continue
		}
		m.Detail = f.what
		x.settle(f.n, m)
		going++
	}
}

// mayMigrate says why a drifted node stays for now. One whose NodeClaim has a grace period
// goes in spite of do-not-disrupt and budgets of its pods (Karpenter: eventual disruption).
func (x *search) mayMigrate(n *node) (plan.Code, string) {
	if n.code != "" && !(n.heldByPods() && n.claim.TerminationGracePeriod != "") {
		return n.code, n.detail
	}
	if why := x.takenBack[n.name]; why != "" {
		return plan.CoolingDown, why
	}
	if n.pool.Replicas == nil {
		return "", ""
	}
	switch {
	case !x.s.Settings.StaticCapacity:
		return plan.PolicyForbids, "NodePool " + n.pool.Name + " is static, and the gate StaticCapacity is off: nothing would come in its place"
	case x.shrinks[n.pool.Name]:
		return plan.MovesLater, "NodePool " + n.pool.Name + " has too many nodes and sheds those first"
	case x.short(n.pool):
		return plan.MovesLater, "NodePool " + n.pool.Name + " waits for nodes that it is short of"
	}
	return "", ""
}

// heldByPods reports whether nothing but its pods keeps a node.
func (n *node) heldByPods() bool {
	return n.code == plan.PodDoNotDisrupt || n.code == plan.EvictionBlocked
}

// settle makes a move of a node whose pods have their places: nobody else gets those.
func (x *search) settle(n *node, m *plan.Move) {
	x.spend(n.pool, 1)
	x.ask(n, 1)
	x.gone[n.name] = n
	x.moves = append(x.moves, *m)
	for i := range m.Add {
		l := &m.Add[i]
		pool := poolOf(x.s, l.NodePool)
		x.incoming = append(x.incoming, snapshot.NodeClaim{
			Name: l.Name, UID: l.Name, Labels: l.Labels, Taints: pool.Taints, StartupTaints: pool.StartupTaints, ClassRef: pool.ClassRef,
			Capacity: l.Allocatable, Allocatable: l.Requests, Created: x.s.Now, // full
		})
	}
	pods := map[string]*snapshot.Pod{}
	for _, p := range n.moving {
		pods[p.Ref()] = p
	}
	for _, pl := range m.Placements {
		p := pods[pl.Pod]
		if p == nil {
			continue
		}
		x.promises = append(x.promises, snapshot.Nomination{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: pl.Node, Until: x.s.Now.Add(hold)})
		if own := x.byName[pl.Node]; own != nil {
			x.keeps[pl.Node] = n.name
		}
	}
}

// migrate plans a cluster without a node, and says where its pods go and what is launched
// for them, or why that cannot be. add: nodes may be launched.
func (x *search) migrate(n *node, add bool) (*plan.Move, string) {
	m := &plan.Move{ID: moveID(plan.MoveDrifted, []string{n.name}), Reason: plan.MoveDrifted, Remove: []string{n.name}, Cost: n.cost, Saving: n.price}
	wants := 0
	if n.pool.Replicas != nil {
		wants = 1 // another one for it, whatever its pods
	}
	if len(n.moving) == 0 && (wants == 0 || !add) {
		return m, ""
	}
	p := provision.Plan(x.without(n), x.c, provision.Options{})
	launches := map[string]*plan.Launch{}
	for i := range p.Launches {
		launches[p.Launches[i].Name] = &p.Launches[i]
	}
	where := make(map[string]string, len(p.Displaced))
	for _, d := range p.Displaced {
		where[d.Pod] = d.To
	}
	used := map[string]bool{}
	if wants == 1 && add {
		for _, l := range p.Launches {
			if l.Static && l.NodePool == n.pool.Name && wants > 0 {
				wants, used[l.Name] = 0, true
			}
		}
		if wants > 0 {
			return nil, "NodePool " + n.pool.Name + " cannot launch another node for it: " + poolReason(p, n.pool.Name)
		}
	}
	for _, pod := range n.moving {
		ref := pod.Ref()
		to := where[ref]
		switch l := launches[to]; {
		case to == "" && (pod.Held(x.s.Now) || x.budgetBlocks(pod) != ""):
			continue // it leaves when its node's time is over, and is planned then
		case to == "":
			return nil, "pod " + ref + " has no other place: " + reason(p, pod)
		case l == nil && !x.settled(to):
			return nil, "pod " + ref + " would need node " + to + ", which is not initialized yet"
		case l != nil && !add:
			return nil, "pod " + ref + " would need a new node"
		case l != nil && l.Static && !used[to]:
			return nil, "pod " + ref + " would need a node that NodePool " + l.NodePool + " is short of"
		case l != nil:
			used[to] = true
		}
		m.Placements = append(m.Placements, plan.Placement{Pod: ref, Node: to})
	}
	x.additions(n, m, launches, used)
	return m, ""
}

// additions gives a move the launches that it uses, under names that no other move has.
func (x *search) additions(n *node, m *plan.Move, launches map[string]*plan.Launch, used map[string]bool) {
	names := map[string]string{}
	for _, old := range sortedKeys(used) {
		l := *launches[old]
		l.Name = fmt.Sprintf("%s-for-%s-%d", l.NodePool, n.name, len(m.Add)+1)
		names[old] = l.Name
		m.Add = append(m.Add, l)
		m.Saving -= l.Chosen.Price
	}
	for i := range m.Placements {
		if to, ok := names[m.Placements[i].Node]; ok {
			m.Placements[i].Node = to
		}
	}
	slices.SortFunc(m.Placements, func(a, b plan.Placement) int { return strings.Compare(a.Pod, b.Pod) })
}

// settled reports whether a node can be counted on: it is initialized, or not ours.
func (x *search) settled(name string) bool {
	if own := x.byName[name]; own != nil {
		return own.initialized
	}
	return slices.ContainsFunc(x.s.Nodes, func(n snapshot.Node) bool { return n.Name == name })
}

// shut reports whether a node takes no pods of others for now: it cannot be counted on yet, or
// pods came or went just now.
func (x *search) shut(name string) bool {
	own := x.byName[name]
	return !x.settled(name) || own != nil && own.idle == plan.ConsolidateAfterWaits
}

func poolReason(p *plan.Plan, pool string) string {
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; v.Object == "nodepool/"+pool {
			return v.Detail
		}
	}
	return "its limits or its EC2NodeClass forbid it"
}

// without is the cluster with a node and all that go before it on their way out. Of pods
// that wait, or whose node goes for another reason, only those are there that have a place
// on a node that exists: who plans those launches for the others.
func (x *search) without(n *node) *snapshot.Snapshot {
	s := *x.s
	s.Buffers, s.Workloads = nil, nil
	to := map[string]string{}
	if x.o.Base != nil {
		for _, p := range x.o.Base.Placements {
			to[p.Pod] = p.Node
		}
		for _, d := range x.o.Base.Displaced {
			to[d.Pod] = d.To
		}
	}
	promised := map[string]bool{}
	s.Nominations = slices.Clone(s.Nominations)
	for _, m := range x.promises {
		promised[m.Namespace+"/"+m.Pod] = true
	}
	s.Nominations = append(s.Nominations, x.promises...)
	s.Pods = make([]snapshot.Pod, 0, len(x.s.Pods))
	for i := range x.s.Pods {
		p := &x.s.Pods[i]
		if p.Buffer != "" {
			continue // who plans for units finds them another place
		}
		own := x.byName[p.NodeName]
		stays := p.NodeName != "" && (own == nil || !own.ending && x.gone[own.name] == nil) || own == n && n != nil
		if node := to[p.Ref()]; !stays && !promised[p.Ref()] {
			if !x.settled(node) || x.gone[node] != nil || node == n.name {
				continue
			}
			s.Nominations = append(s.Nominations, snapshot.Nomination{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: node, Until: s.Now.Add(hold)})
		}
		s.Pods = append(s.Pods, *p)
	}
	s.NodeClaims = append(slices.Clone(s.NodeClaims), x.incoming...)
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if name := s.Nodes[i].Name; name == n.name || x.gone[name] != nil {
			s.Nodes[i].Deleting = s.Now
		}
	}
	return &s
}
