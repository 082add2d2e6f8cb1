package disruption

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// Consolidation policies of a NodePool.
const (
	whenEmpty         = "WhenEmpty"
	whenUnderutilized = "WhenEmptyOrUnderutilized"
	balanced          = "Balanced"
	never             = "Never"
)

// node is a node of ours as this package sees it.
type node struct {
	name  string
	node  *snapshot.Node
	claim *snapshot.NodeClaim
	pool  *snapshot.NodePool
	price snapshot.Price
	// known: the price is that of an offer that is in the catalogue.
	known              bool
	typ, zone, capType string
	// pods are all that are on it, moving those that would need another node.
	pods, moving []*snapshot.Pod
	// cost is what moving its pods costs, in millionths of an average pod's, at least one
	// pod (Karpenter: RescheduleDisruptionCost).
	cost int64
	// code and detail say why no voluntary move may touch it; "" = it may go.
	code   plan.Code
	detail string
	// idle says why consolidation may not, though other reasons may.
	idle       plan.Code
	idleDetail string
	// initialized nodes count in budgets; down ones use them up: they are not ready, or going.
	initialized, down bool
	// going nodes carry the taint or are being deleted, ending ones are being deleted.
	going, ending bool
}

// empty reports whether nothing on the node would have to move (Karpenter: pods whose
// eviction costs nothing do not count, and a node with a unit of a CapacityBuffer is not empty).
func (n *node) empty() bool {
	return !slices.ContainsFunc(n.moving, func(p *snapshot.Pod) bool { return evictionCost(p) > 0 || p.Buffer != "" })
}

// micro is one average pod in the unit of costs.
const micro = 1_000_000

// evictionCost is what evicting a pod costs: 1 + deletion cost / 2^27 + priority / 2^25,
// from -10 to 10, in millionths (Karpenter: same).
func evictionCost(p *snapshot.Pod) int64 {
	cost := int64(micro)
	if v, err := strconv.ParseInt(p.Annotations["controller.kubernetes.io/pod-deletion-cost"], 10, 32); err == nil {
		cost += v * micro >> 27
	}
	cost += int64(p.Spec.Priority) * micro >> 25
	return min(max(cost, -10*micro), 10*micro)
}

// read gathers the nodes that have a NodeClaim or a NodePool of ours, by name.
func (x *search) read() {
	s := x.s
	x.pools = make(map[string]*snapshot.NodePool, len(s.NodePools))
	for i := range s.NodePools {
		if p := &s.NodePools[i]; ours(p.ClassRef) {
			x.pools[p.Name] = p
		}
	}
	byNode := make(map[string][]*snapshot.Pod, len(s.Nodes))
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName != "" {
			byNode[p.NodeName] = append(byNode[p.NodeName], p)
		}
	}
	claims := claimsOf(s)
	x.byName = make(map[string]*node, len(s.Nodes))
	for i := range s.Nodes {
		sn := &s.Nodes[i]
		c := claims[sn.Name]
		if sn.Labels[catalog.LabelNodePool] == "" && c == nil {
			continue // not ours, and nobody asks
		}
		if c != nil && !ours(c.ClassRef) {
			continue
		}
		n := &node{name: sn.Name, node: sn, claim: c, pods: byNode[sn.Name]}
		pool := sn.Labels[catalog.LabelNodePool]
		n.pool = x.pools[pool]
		if n.pool == nil && poolOf(s, pool) != nil {
			continue // of another group: not ours
		}
		n.typ, n.zone, n.capType = sn.Labels[catalog.LabelInstanceType], sn.Labels[catalog.LabelZone], sn.Labels[catalog.LabelCapacityType]
		n.price, _, n.known = x.prices.Price(pool, n.typ, n.zone, n.capType)
		n.cost = micro
		for _, p := range n.pods {
			if p.Reschedulable() {
				n.moving = append(n.moving, p)
				n.cost += max(0, evictionCost(p))
			}
		}
		slices.SortFunc(n.moving, func(a, b *snapshot.Pod) int { return strings.Compare(a.Ref(), b.Ref()) })
		x.nodes = append(x.nodes, n)
		x.byName[n.name] = n
	}
	slices.SortFunc(x.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
}

func ours(ref snapshot.ClassRef) bool { return ref.Group == "karpenter.k8s.aws" || ref.Group == "" }

func poolOf(s *snapshot.Snapshot, name string) *snapshot.NodePool {
	for i := range s.NodePools {
		if s.NodePools[i].Name == name {
			return &s.NodePools[i]
		}
	}
	return nil
}

// claimsOf finds the NodeClaim of every node: by provider id, else by name.
func claimsOf(s *snapshot.Snapshot) map[string]*snapshot.NodeClaim {
	byProvider := map[string]*snapshot.NodeClaim{}
	out := map[string]*snapshot.NodeClaim{}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if c.ProviderID != "" {
			byProvider[c.ProviderID] = c
		}
		if c.NodeName != "" {
			out[c.NodeName] = c
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if c := byProvider[n.ProviderID]; n.ProviderID != "" && c != nil {
			out[n.Name] = c
		}
	}
	return out
}

const (
	labelNodePool    = catalog.LabelNodePool
	labelInitialized = "karpenter.sh/initialized"
	taintDisrupted   = "karpenter.sh/disrupted"
)

// judge says of every node whether voluntary moves may touch it, in Karpenter's order of
// questions, and whether consolidation may.
func (x *search) judge() {
	nominated := map[string]string{}
	waits := map[string]string{} // UIDs of pods without a node
	for i := range x.s.Pods {
		if p := &x.s.Pods[i]; p.NodeName == "" && p.Active() {
			waits[p.Ref()] = p.UID
		}
	}
	for i := range x.s.Nominations {
		m := &x.s.Nominations[i]
		// A promise to a pod that is gone, or runs, holds nothing any more.
		if uid, ok := waits[m.Namespace+"/"+m.Pod]; !ok || m.UID != "" && uid != "" && m.UID != uid {
			continue
		}
		if m.Until.IsZero() || x.s.Now.Before(m.Until) {
			nominated[m.Node] = m.Namespace + "/" + m.Pod
		}
	}
	for i := range x.s.Pods {
		if p := &x.s.Pods[i]; p.NodeName == "" && p.NominatedNode != "" && p.Active() {
			nominated[p.NominatedNode] = p.Ref()
		}
	}
	for _, n := range x.nodes {
		n.initialized = n.node.Labels[labelInitialized] == "true" && (n.claim == nil || conditionTrue(n.claim.Conditions, "Initialized"))
		n.ending = !n.node.Deleting.IsZero() || n.claim != nil && !n.claim.Deleting.IsZero()
		n.going = n.ending || tainted(n.node)
		ready := snapshot.FindCondition(n.node.Conditions, "Ready")
		n.down = n.going || ready != nil && ready.Status != "True"
		who := nominated[n.name]
		if who == "" && n.claim != nil {
			who = nominated[n.claim.Name]
		}
		n.code, n.detail = x.blocked(n, who)
		if n.code == "" {
			n.idle, n.idleDetail = x.resting(n)
		}
	}
}

func conditionTrue(cs []snapshot.Condition, typ string) bool {
	c := snapshot.FindCondition(cs, typ)
	return c != nil && c.Status == "True"
}

func tainted(n *snapshot.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t snapshot.Taint) bool { return t.Key == taintDisrupted })
}

// blocked says why no voluntary move may touch a node.
func (x *search) blocked(n *node, nominated string) (plan.Code, string) {
	switch {
	case n.claim == nil:
		return plan.NodeUnmanaged, "it has no NodeClaim"
	case !n.initialized:
		return plan.NodeNotInitialized, "it is not initialized yet"
	case n.going:
		return plan.NodeGoing, "it is on its way out already"
	case nominated != "":
		return plan.NodeNominated, "pod " + nominated + " is about to run on it"
	case n.node.Annotations[snapshot.DoNotDisrupt] == "true":
		return plan.NodeDoNotDisrupt, "the node carries " + snapshot.DoNotDisrupt + ": \"true\""
	case n.pool == nil:
		return plan.NodePoolGone, fmt.Sprintf("its NodePool %q is not there", n.node.Labels[catalog.LabelNodePool])
	}
	for _, p := range n.pods {
		if p.Active() && p.Held(x.s.Now) {
			return plan.PodDoNotDisrupt, fmt.Sprintf("pod %s carries %s: %q", p.Ref(), snapshot.DoNotDisrupt, p.Annotations[snapshot.DoNotDisrupt])
		}
	}
	for _, p := range n.pods {
		if why := x.budgetBlocks(p); why != "" {
			return plan.EvictionBlocked, "pod " + p.Ref() + " may not be evicted: " + why
		}
	}
	return "", ""
}

// budgetBlocks says which PodDisruptionBudget refuses the eviction of a pod now, "" when
// none does (Karpenter: more than one always blocks; an unhealthy pod goes when the budget
// lets those go).
func (x *search) budgetBlocks(p *snapshot.Pod) string {
	if !p.Evictable() || p.Held(x.s.Now) {
		return ""
	}
	covering := x.covering(p)
	switch {
	case len(covering) == 0:
		return ""
	case len(covering) > 1:
		return fmt.Sprintf("PodDisruptionBudgets %s and %s both cover it, and more than one refuse every eviction", covering[0].Name, covering[1].Name)
	}
	b := covering[0]
	if b.DisruptionsAllowed > 0 || !b.HasStatus && !forbids(b) {
		return ""
	}
	if b.UnhealthyPolicy == "AlwaysAllow" && p.Ready != nil && p.Ready.Status == "False" {
		return ""
	}
	return "PodDisruptionBudget " + b.Name + " allows no disruption now"
}

// covering are the PodDisruptionBudgets of a pod.
func (x *search) covering(p *snapshot.Pod) (out []*snapshot.PodDisruptionBudget) {
	if p.Buffer != "" {
		return nil // nothing is evicted
	}
	for _, b := range x.budgets[p.Namespace] {
		if scheduling.Selects(b.Selector, p.Labels) {
			out = append(out, b)
		}
	}
	return out
}

// forbids reports whether a budget without a status never allows anything.
func forbids(b *snapshot.PodDisruptionBudget) bool {
	return b.MaxUnavailable == "0" || b.MaxUnavailable == "0%" || b.MinAvailable == "100%"
}

// resting says why consolidation leaves a node alone that other reasons may disrupt.
func (x *search) resting(n *node) (plan.Code, string) {
	d := &n.pool.Disruption
	if why := x.rests[n.name]; why != "" {
		return plan.CoolingDown, why
	}
	if unit := x.buffered[n.name]; unit != "" {
		return plan.NodeNominated, "unit " + unit + " of a CapacityBuffer counts on its room, and rules about the pods beside it keep it there"
	}
	switch {
	case n.pool.Replicas != nil:
		return plan.PolicyForbids, "NodePool " + n.pool.Name + " is static: it keeps its replicas"
	case d.ConsolidateAfter == never:
		return plan.PolicyForbids, "NodePool " + n.pool.Name + " has consolidateAfter: Never"
	case !n.known:
		return plan.PriceUnknown, fmt.Sprintf("the price of %q in %q as %q is not known", n.typ, n.zone, n.capType)
	}
	after, err := time.ParseDuration(d.ConsolidateAfter)
	if err != nil {
		after = 0 // the CRD asks for it; nothing is waited for where it is not said
	}
	since := x.quietSince(n)
	if quiet := x.s.Now.Sub(since); quiet < after {
		return plan.ConsolidateAfterWaits, fmt.Sprintf("pods came or went %s ago, and consolidateAfter is %s", quiet.Round(time.Second), after)
	}
	if d.ConsolidationPolicy == whenEmpty && !n.empty() {
		return plan.PolicyForbids, "NodePool " + n.pool.Name + " consolidates empty nodes only, and " + plan.Count(len(n.moving), "pod") + " would have to move"
	}
	return "", ""
}

// quietSince is when a pod last came to a node or went, as far as objects tell, at the
// earliest when it was initialized.
func (x *search) quietSince(n *node) time.Time {
	since := n.node.Created
	if c := snapshot.FindCondition(n.claim.Conditions, "Initialized"); c != nil && c.Since.After(since) {
		since = c.Since
	}
	if n.claim.LastPodEvent.After(since) {
		since = n.claim.LastPodEvent
	}
	for _, p := range n.pods {
		if at := x.podEvent(p); at.After(since) {
			since = at
		}
	}
	return since
}

// defaultGrace is what Kubernetes gives a pod that says nothing.
const defaultGrace = 30 * time.Second

// podEvent is when a pod last came to its node, ended or began to leave, as far as its
// object tells; daemon pods and static ones do not count (Karpenter: lastPodEventTime). What
// has left altogether is in the NodeClaim's status, where a pass that saw it go wrote it.
func (x *search) podEvent(p *snapshot.Pod) time.Time {
	if p.Daemon() || p.Mirror() {
		return time.Time{}
	}
	at := p.Started
	if p.Terminal() && p.Ready != nil && p.Ready.Since.After(at) {
		at = p.Ready.Since
	}
	if !p.Deleting.IsZero() { // that is when its grace ends
		grace := defaultGrace
		if p.Spec.TerminationGrace != nil {
			grace = time.Duration(*p.Spec.TerminationGrace) * time.Second
		}
		if began := p.Deleting.Add(-grace); began.After(at) {
			at = began
		}
	}
	if at.After(x.s.Now) {
		return x.s.Now // clocks differ
	}
	return at
}
