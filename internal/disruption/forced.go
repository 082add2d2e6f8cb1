package disruption

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Annotations of a NodePool about the age of its nodes (ours).
const (
	// AnnotationExpiryJitter is a duration: each node expires up to so much earlier than its
	// expireAfter says, by its name, so that nodes of one launch do not go together.
	AnnotationExpiryJitter = "kerf.sh/expiry-jitter"
	// AnnotationExpiryBudgets: "true" = expired nodes go within the disruption budgets
	// (Karpenter: always at once).
	AnnotationExpiryBudgets = "kerf.sh/expiry-obeys-budgets"
)

// Forceful reports whether nodes go for a reason at once: nothing is proposed first and
// nothing has to stand ready, their pods leave as budgets and do-not-disrupt let them until
// the grace period of the NodeClaim ends (Karpenter: forceful methods).
func Forceful(r plan.MoveReason) bool {
	return r == plan.MoveExpired || r == plan.MoveUnhealthy || r == plan.MoveScaledDown
}

// Elsewhere reports whether somebody else carries moves of a reason out: who is told of
// interruptions, and who collects instances that nobody knows. They are in a plan so that
// it says what goes.
func Elsewhere(r plan.MoveReason) bool {
	return r == plan.MoveInterrupted || r == plan.MoveOrphaned
}

// forced finds nodes that go whatever it costs.
func (x *search) forced() {
	x.interrupted()
	x.unhealthy()
	x.expired()
	x.orphaned()
	x.scaledDown()
}

// leave makes a move of one node.
func (x *search) leave(n *node, reason plan.MoveReason, detail string) {
	m := plan.Move{ID: moveID(reason, []string{n.name}), Reason: reason, Detail: detail, Remove: []string{n.name}, Cost: n.cost, Blockers: x.blockers(n)}
	if n.empty() {
		m.Saving = n.price // others come for the pods that it has, at what price is not known
	}
	x.moves = append(x.moves, m)
	x.gone[n.name] = n
	if x.crowded(n); !n.going {
		x.ask(n, 1)
	}
	if n.pool != nil && !n.down {
		x.spend(n.pool, 1) // it is down from now on, for every other reason
	}
}

// blockers are the pods that hold the drain of a node that goes in any case.
func (x *search) blockers(n *node) []string {
	var out []string
	for _, p := range n.pods {
		if !p.Evictable() {
			continue
		}
		if p.Held(x.s.Now) {
			out = append(out, fmt.Sprintf("pod %s carries %s: %q", p.Ref(), snapshot.DoNotDisrupt, p.Annotations[snapshot.DoNotDisrupt]))
		} else if why := x.budgetBlocks(p); why != "" {
			out = append(out, "pod "+p.Ref()+": "+why)
		}
	}
	slices.Sort(out)
	return out
}

// interrupted lists the nodes whose instance EC2 takes.
func (x *search) interrupted() {
	for _, n := range x.nodes {
		if why, ok := x.o.Doomed[n.name]; ok {
			x.leave(n, plan.MoveInterrupted, why)
		}
	}
}

// orphaned lists instances of the cluster that nobody knows.
func (x *search) orphaned() {
	for _, id := range sortedKeys(x.o.Orphans) {
		x.moves = append(x.moves, plan.Move{ID: moveID(plan.MoveOrphaned, []string{id}), Reason: plan.MoveOrphaned, Detail: x.o.Orphans[id], Remove: []string{id}, Cost: micro})
	}
}

// repair is a condition that a node does not recover from, and for how long it is waited for.
type repair struct {
	condition, status string
	after             time.Duration
}

// repairs are Karpenter's for AWS.
var repairs = []repair{
	{"Ready", "False", 30 * time.Minute}, {"Ready", "Unknown", 30 * time.Minute}, {"AcceleratedHardwareReady", "False", 10 * time.Minute},
	{"StorageReady", "False", 30 * time.Minute}, {"NetworkingReady", "False", 30 * time.Minute}, {"KernelReady", "False", 30 * time.Minute},
	{"ContainerRuntimeReady", "False", 30 * time.Minute},
}

// ill is what ails a node and when it is over: of several conditions the one that ends first.
func (n *node) ill() (detail string, ends time.Time) {
	for _, r := range repairs {
		c := snapshot.FindCondition(n.node.Conditions, r.condition)
		if c == nil || c.Status != r.status {
			continue
		}
		if at := c.Since.Add(r.after); detail == "" || at.Before(ends) {
			detail, ends = fmt.Sprintf("condition %s is %s since %s", r.condition, r.status, c.Since.UTC().Format(time.RFC3339)), at
		}
	}
	return detail, ends
}

// unhealthy finds nodes to repair: those that have been ill for long, unless more than a
// fifth of their pool is (Karpenter: node repair, gate NodeRepair; nodes without a pool are
// counted over the cluster).
func (x *search) unhealthy() {
	if !x.s.Settings.NodeRepair {
		return
	}
	type count struct{ ill, all int }
	pools := map[string]count{}
	key := func(n *node) string {
		if n.pool == nil {
			return ""
		}
		return n.pool.Name
	}
	for _, n := range x.nodes {
		what, _ := n.ill()
		for k := range map[string]bool{key(n): true, "": true} {
			c := pools[k]
			c.all++
			if what != "" {
				c.ill++
			}
			pools[k] = c
		}
	}
	for _, n := range x.nodes {
		what, ends := n.ill()
		if what == "" || n.claim == nil || x.leaving(n) || x.s.Now.Before(ends) {
			continue
		}
		c := pools[key(n)]
		if most := (c.all + 4) / 5; c.ill > most {
			of := "the cluster"
			if n.pool != nil {
				of = "NodePool " + n.pool.Name
			}
			x.say(n, plan.NodeRepairBlocked, fmt.Sprintf("%s, but %d of %s of %s are ill, and more than %d is no matter of nodes", what, c.ill, plan.Count(c.all, "node"), of, most))
			continue
		}
		x.leave(n, plan.MoveUnhealthy, what)
	}
}

// leaving reports whether a node goes already.
func (x *search) leaving(n *node) bool { return n.ending || x.gone[n.name] != nil }

// expired finds nodes that are older than their NodeClaim allows (Karpenter: expireAfter, no
// budget, nothing launched first).
func (x *search) expired() {
	type old struct {
		n      *node
		at     time.Time
		detail string
	}
	var list []old
	for _, n := range x.nodes {
		if n.claim == nil || x.leaving(n) {
			continue
		}
		if at := n.expires(); !at.IsZero() && !x.s.Now.Before(at) {
			list = append(list, old{n, at, fmt.Sprintf("it is %s old, and expireAfter is %s", x.s.Now.Sub(n.claim.Created).Round(time.Second), n.claim.ExpireAfter)})
		}
	}
	slices.SortFunc(list, func(a, b old) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.n.name, b.n.name)) })
	for _, o := range list {
		if o.n.pool != nil && o.n.pool.Annotations[AnnotationExpiryBudgets] == "true" {
			if a := x.allowed(o.n.pool, plan.MoveExpired); a.left <= 0 {
				x.say(o.n, plan.BudgetExhausted, o.detail+", but "+a.why)
				continue
			}
		}
		x.leave(o.n, plan.MoveExpired, o.detail)
	}
}

// expires is when a node is too old, zero = never.
func (n *node) expires() time.Time {
	after, err := time.ParseDuration(n.claim.ExpireAfter)
	if err != nil || n.claim.Created.IsZero() {
		return time.Time{} // Never, or not said
	}
	at := n.claim.Created.Add(after)
	if n.pool == nil {
		return at
	}
	if jitter, err := time.ParseDuration(n.pool.Annotations[AnnotationExpiryJitter]); err == nil && jitter > 0 {
		h := fnv.New32a()
		h.Write([]byte(n.claim.Name))
		at = at.Add(-min(jitter, after) / 1000 * time.Duration(h.Sum32()%1000))
	}
	return at
}

// scaledDown finds the nodes that static pools have too many of: first those that have no
// Node yet, then those with nothing but daemons, then those without do-not-disrupt, the
// least disruption first (Karpenter: static scale-down; budgets do not count).
func (x *search) scaledDown() {
	if !x.s.Settings.StaticCapacity {
		return
	}
	for _, name := range sortedKeys(x.pools) {
		pool := x.pools[name]
		if pool.Replicas == nil || !pool.Deleting.IsZero() {
			continue
		}
		list := x.staticNodes(pool)
		over := len(list) - int(max(0, *pool.Replicas))
		if over <= 0 {
			continue
		}
		x.shrinks[name] = true
		slices.SortFunc(list, func(a, b static) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.cost(), b.cost()), cmp.Compare(a.name, b.name))
		})
		detail := fmt.Sprintf("NodePool %s has %s, and spec.replicas is %d", name, plan.Count(len(list), "node"), *pool.Replicas)
		for _, s := range list[:over] {
			if s.node != nil {
				x.leave(s.node, plan.MoveScaledDown, detail)
				continue
			}
			x.moves = append(x.moves, plan.Move{ID: moveID(plan.MoveScaledDown, []string{s.name}), Reason: plan.MoveScaledDown, Detail: detail, Remove: []string{s.name}, Cost: micro})
		}
	}
}

// static is a node of a static pool, or a NodeClaim without one.
type static struct {
	name string
	node *node
	rank int
}

func (s static) cost() int64 {
	if s.node == nil {
		return 0
	}
	return s.node.cost
}

// staticNodes are the nodes and NodeClaims of a static pool that are not on their way out.
func (x *search) staticNodes(pool *snapshot.NodePool) []static {
	var out []static
	claimed := map[*snapshot.NodeClaim]bool{}
	for _, n := range x.nodes {
		claimed[n.claim] = true
		if n.pool != pool || n.claim == nil || n.going || x.gone[n.name] != nil {
			continue
		}
		held := slices.ContainsFunc(n.pods, func(p *snapshot.Pod) bool { return p.Active() && p.Held(x.s.Now) })
		s := static{name: n.name, node: n, rank: 2}
		switch {
		case held:
			s.rank = 3
		case len(n.moving) == 0:
			s.rank = 1
		}
		out = append(out, s)
	}
	for i := range x.s.NodeClaims {
		c := &x.s.NodeClaims[i]
		if !claimed[c] && c.Deleting.IsZero() && c.Labels[labelNodePool] == pool.Name && ours(c.ClassRef) {
			out = append(out, static{name: c.Name})
		}
	}
	return out
}

// short reports whether a static pool waits for nodes that it does not have.
func (x *search) short(pool *snapshot.NodePool) bool {
	return x.o.Base != nil && slices.ContainsFunc(x.o.Base.Launches, func(l plan.Launch) bool { return l.Static && l.NodePool == pool.Name })
}
