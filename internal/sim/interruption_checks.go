package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// notices is what is known of those that instances will go, and of what became of them.
type noticeChecks struct {
	// heard is what was told of messages, by id.
	heard map[string][]handler.InterruptionReport
	// doomed is when a record was doomed, handled what was told as handled, by claim.
	doomed  map[string]time.Time
	handled map[string]string
	// relief is what the last plan after that had for the pods of a node, by claim.
	relief map[string]relief
	// caught counts the pods that EC2 took with an instance, by instance: those that nobody
	// had told to end.
	caught map[string]int
	// left is when the first pod of a doomed node was told to leave, by claim.
	left map[string]time.Time
	// hurried are the claims whose pods had no time to wait for a plan.
	hurried map[string]bool
	// madeFor are the pods that a node was made for and is for ever since, by claim and UID:
	// nodes exchange pods of a kind.
	madeFor map[string]map[string]bool
}

// relief is what a plan had, with when there was the first one for the node.
type relief struct {
	first, at time.Time
	claims    []string
}

func newNoticeChecks() noticeChecks {
	return noticeChecks{heard: map[string][]handler.InterruptionReport{}, doomed: map[string]time.Time{}, handled: map[string]string{}, relief: map[string]relief{},
		caught: map[string]int{}, left: map[string]time.Time{}, hurried: map[string]bool{}, madeFor: map[string]map[string]bool{}}
}

// slack is how much later or earlier than the truth a clock may be.
func (c *checks) slack() time.Duration { return 2*c.w.Profile.Faults.Skew + 2*time.Second }

// noticed: every message ends as handled, as of no concern, or put aside.
func (c *checks) noticed(m *message, how string) {
	n := c.w.bus.sent[m.id]
	if n == nil {
		c.w.broken("NoticeLost", "message %s is of no notice: %s", m.id, m.body)
		return
	}
	n.over++
	switch how {
	case forgotten:
		c.w.broken("NoticeLost", "notice %s (%s %v) is forgotten after %d deliveries", m.id, n.kind, n.instances, m.receives)
		return
	case gaveUp:
		return
	}
	outcomes := map[string]string{} // by instance
	for _, r := range c.heard[m.id] {
		if was := outcomes[r.Instance]; was != "Handled" && was != "Known" {
			outcomes[r.Instance] = r.Outcome
		}
	}
	switch n.due {
	case dueAside:
		// An empty one has nothing to be put aside.
		if outcomes[""] != "Malformed" || m.body != "" && !slices.ContainsFunc(c.w.queues["dead"].messages, func(d *message) bool { return d.body == m.body }) {
			c.w.broken("NoticeLost", "message %s is %q, and nobody has put it aside: %.100s", m.id, outcomes[""], m.body)
		}
	case dueNothing:
		if outcomes[""] != "Ignored" {
			c.w.broken("NoticeLost", "message %s is of no concern, and %v came of it", m.id, outcomes)
		}
	default:
		for _, id := range n.instances {
			c.answered(m, n, id, outcomes[id])
		}
	}
}

// answered: what came of a notice about one instance is what had to.
func (c *checks) answered(m *message, n *notice, id, outcome string) {
	lost := func(format string, args ...any) {
		c.w.broken("NoticeLost", "notice %s (%s of %s, %s ago) is acknowledged: %s", m.id, n.kind, id, c.w.now().Sub(n.at), fmt.Sprintf(format, args...))
	}
	known := c.w.cluster.machines[id] != nil
	late := c.w.now().Sub(n.at) >= 3*time.Minute-c.slack()
	switch {
	case outcome == "":
		lost("nothing came of it")
		return
	case outcome == "Foreign" && known, outcome == "Unknown" && known && !late && c.w.cluster.machines[id].i.ShuttingFrom.IsZero():
		lost("it is ours, and counts as %s", outcome)
	case outcome != "Foreign" && c.w.bus.strangers[id]:
		lost("it is somebody else's, and counts as %s", outcome)
	case outcome != "Handled" && outcome != "Known" && outcome != "OptedOut" && c.remembered(id):
		lost("a record knows it, and it counts as %s", outcome)
	case outcome == "OptedOut" && n.due != dueAsked:
		lost("nobody may opt out of %s", n.kind)
	}
	if outcome != "Handled" && outcome != "Known" || !c.restoredAt.IsZero() {
		return
	}
	r, ok := c.records[c.owner[id]]
	if !ok || r.Instance.ID != id || r.Phase == lifecycle.Terminating {
		return
	}
	if r.Doomed == nil {
		lost("record %s is %s and does not know of it", r.Claim, r.Phase)
	} else if !n.deadline.IsZero() && (r.Deadline.IsZero() || r.Deadline.After(n.deadline.Add(c.slack()))) {
		lost("record %s goes at %s, EC2 takes it at %s", r.Claim, sinceEpoch(r.Deadline), sinceEpoch(n.deadline))
	}
}

// keeps forgets the pods that a node gave to others.
func (c *checks) keeps(r *lifecycle.Record) {
	had := c.madeFor[r.Claim]
	if len(had) == 0 {
		return
	}
	still := map[string]bool{}
	for _, p := range r.Nominated {
		if had[p.UID] {
			still[p.UID] = true
		}
	}
	c.madeFor[r.Claim] = still
}

// told takes what the function says of a message.
func (c *checks) told(message string, r handler.InterruptionReport) {
	c.heard[message] = append(c.heard[message], r)
	if r.Outcome != "Handled" {
		return
	}
	if was, ok := c.handled[r.Claim]; ok && was == sinceEpoch(r.Deadline) && c.restoredAt.IsZero() {
		c.w.broken("HandledOnce", "the notice that %s goes at %s is handled twice", r.Claim, was)
	}
	c.handled[r.Claim] = sinceEpoch(r.Deadline)
}

// dooming follows what a record knows of its end.
func (c *checks) dooming(by *container, was, r lifecycle.Record) {
	if was.Doomed != nil && r.Doomed == nil && c.restoredAt.IsZero() {
		c.w.broken("HandledOnce", "record %s forgets that EC2 takes its instance", r.Claim)
	}
	if was.Doomed == nil && r.Doomed != nil {
		c.w.stats.Doomed++
		c.doomed[r.Claim] = c.w.now()
	}
	if x := r.Relief; x != nil && (was.Relief == nil || !slices.Equal(x.Claims, was.Relief.Claims) || !x.At.Equal(was.Relief.At)) && by.f.name == "sweep" {
		first := c.relief[r.Claim].first
		if first.IsZero() {
			first = c.w.now()
		}
		c.relief[r.Claim] = relief{first, c.w.now(), x.Claims}
	}
}

// goes is the record of the node that a pod is on, and when the node is to be gone at the
// latest, whatever is on it: by what AWS said, and by the grace period of its pool.
func (c *checks) goes(node string) (r lifecycle.Record, deadline time.Time, ok bool) {
	for _, m := range c.w.cluster.machines {
		if m.node == node {
			r, ok = c.records[c.owner[m.i.ID]]
			if ok = ok && r.Instance.ID == m.i.ID; ok {
				return r, c.end(&r), true
			}
		}
	}
	return r, deadline, false
}

// end is when a node is to be gone at the latest; zero = nobody says so.
func (c *checks) end(r *lifecycle.Record) (end time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (end.IsZero() || t.Before(end)) {
			end = t
		}
	}
	for _, n := range c.w.bus.of[r.Instance.ID] {
		if n.due == dueAct {
			earlier(n.deadline)
		}
	}
	if a, ok := c.w.bus.impaired[r.Instance.ID]; ok {
		earlier(a.since.Add(2 * time.Minute))
	}
	if e, ok := c.w.bus.planned[r.Instance.ID]; ok {
		earlier(e.begins)
	}
	if d, err := time.ParseDuration(r.Spec.TerminationGracePeriod); err == nil && r.Spec.TerminationGracePeriod != "" && !r.DeletingSince.IsZero() {
		earlier(r.DeletingSince.Add(d))
	}
	return end
}

// grace is how long a pod may take to end.
func grace(p *snapshot.Pod) time.Duration {
	if g := p.Spec.TerminationGrace; g != nil {
		return time.Duration(*g) * time.Second
	}
	return 30 * time.Second
}

// holds reports whether a pod says that it is not to be disrupted now.
func holds(p *snapshot.Pod, now time.Time) bool {
	v := p.Annotations["karpenter.sh/do-not-disrupt"]
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return now.Before(p.Started.Add(d))
	}
	return v == "true"
}

// evicting: a pod leaves when its node goes, when nothing of its own speaks against it, and
// when what its node is replaced by has been asked for.
func (c *checks) evicting(by *container, p *item[snapshot.Pod]) {
	r, end, ok := c.goes(p.v.NodeName)
	if !ok {
		return // nobody knows the node any more
	}
	now := c.w.now()
	if r.Phase.Live() {
		c.w.broken("EvictsFromAGoodNode", "%s evicts pod %s from %s, which is %s", by.proc.name, p.key, p.v.NodeName, r.Phase)
	}
	if holds(&p.v, now.Add(c.slack())) {
		c.w.broken("DoNotDisrupt", "%s evicts pod %s, which says %q and runs since %s", by.proc.name, p.key, p.v.Annotations["karpenter.sh/do-not-disrupt"], p.v.Started.Sub(epoch))
	}
	if r.Doomed == nil || !c.restoredAt.IsZero() {
		return
	}
	if _, ok := c.left[r.Claim]; !ok {
		c.left[r.Claim] = now
	}
	longest := time.Duration(0)
	for _, o := range c.w.cluster.podsOf(p.v.NodeName) {
		longest = max(longest, grace(&o.v))
	}
	if !end.IsZero() && !now.Before(end.Add(-longest-lifecycle.ReliefMargin-c.slack())) {
		c.hurried[r.Claim] = true // there is no time to wait for anything
	}
	if c.hurried[r.Claim] {
		return // nor is there for the pods that stay behind those with long graces
	}
	x, planned := c.relief[r.Claim]
	if !planned {
		since := c.doomed[r.Claim]
		if r.DeletingSince.Before(since) {
			since = r.DeletingSince // its pods were leaving already
		}
		if now.Sub(since) < lifecycle.ReliefWait-c.slack() {
			c.w.broken("ReplacementFirst", "%s evicts pod %s from %s %s after it was doomed and before anybody planned for it", by.proc.name, p.key, p.v.NodeName, now.Sub(since))
		}
		return
	}
	if !x.at.Before(by.proc.began) {
		return // a newer plan than it can know of
	}
	for _, claim := range x.claims {
		if o, ok := c.records[claim]; ok && o.Phase.Before(lifecycle.Initialized) && o.Doomed == nil {
			c.w.broken("ReplacementFirst", "%s evicts pod %s from %s %s before its end, while %s, which takes its pods, is %s", by.proc.name, p.key, p.v.NodeName, end.Sub(now), claim, o.Phase)
		}
	}
}

// forcing: a pod is made to end only when its node's end is nearer than its own would be,
// and never at once.
func (c *checks) forcing(by *container, p *item[snapshot.Pod], seconds *int64) {
	if seconds == nil || *seconds < 1 {
		c.w.broken("ForcedTooEarly", "%s deletes pod %s with grace %v", by.proc.name, p.key, seconds)
	}
	r, end, ok := c.goes(p.v.NodeName)
	if !ok || !c.restoredAt.IsZero() {
		return
	}
	if _, ok := c.left[r.Claim]; !ok && r.Doomed != nil {
		c.left[r.Claim] = c.w.now()
	}
	if now := c.w.now(); end.IsZero() || now.Before(end.Add(-grace(&p.v)-c.slack())) {
		c.w.broken("ForcedTooEarly", "%s deletes pod %s (grace %s) past its budgets, and its node %s goes at %s", by.proc.name, p.key, grace(&p.v), p.v.NodeName, sinceEpoch(end))
	}
}

// overdue counts what EC2 takes with an instance.
func (c *checks) overdue(id string) {
	m := c.w.cluster.machines[id]
	if m == nil || m.node == "" {
		return
	}
	for _, p := range c.w.cluster.podsOf(m.node) {
		if !isDaemon(&p.v) && !p.v.Terminal() && p.deleting.IsZero() {
			c.caught[id]++
		}
	}
}

// noneWaits: no notice waits any more, and none is lost.
func (c *checks) noneWaits() {
	for _, m := range c.w.queues["notices"].messages {
		c.w.broken("NoticeLost", "notice %s waits since %s, %d deliveries: %.200s", m.id, c.w.now().Sub(m.sent), m.receives, m.body)
	}
	for _, id := range slices.Sorted(maps.Keys(c.w.bus.sent)) {
		n := c.w.bus.sent[id]
		if n.over < n.copies && len(c.w.queues["notices"].messages) == 0 {
			c.w.broken("NoticeLost", "notice %s had %d copies, %d came to an end", id, n.copies, n.over)
		}
	}
}

// twice: no node is made for a pod that another one is on its way for. One that has joined
// may have turned out too small, or be full of others.
func (c *checks) twice(r *lifecycle.Record) {
	if !c.restoredAt.IsZero() {
		return
	}
	now := c.w.now()
	c.madeFor[r.Claim] = map[string]bool{}
	for i := range r.Nominated {
		p := &r.Nominated[i]
		c.madeFor[r.Claim][p.UID] = true
		for _, claim := range slices.Sorted(maps.Keys(c.records)) {
			o := c.records[claim]
			if claim == r.Claim || !o.Phase.Live() || !o.Phase.Before(lifecycle.Registered) || o.Doomed != nil || len(c.w.cluster.nodesOf(o.Instance.ID)) > 0 || c.unwanted(&o) {
				continue
			}
			for _, q := range o.Nominated {
				if q.UID == p.UID && c.madeFor[claim][q.UID] && now.Add(c.slack()).Before(o.NominatedUntil(q)) {
					c.w.broken("MadeTwice", "%s is made for pod %s, and so is %s, which is %s since %s", r.Claim, p.Name, claim, o.Phase, now.Sub(o.Created))
				}
			}
		}
	}
}

// unwanted reports whether somebody has deleted the NodeClaim of a record, which may not know
// yet that there is one: the answer to who made it can be lost.
func (c *checks) unwanted(r *lifecycle.Record) bool {
	it := c.w.cluster.claims.by[r.Claim]
	return it != nil && !it.deleting.IsZero() || r.UID != "" && (it == nil || it.uid != r.UID) || c.ended[r.Instance.ID]
}

// remembered reports whether a record knows an instance, and has for some time.
func (c *checks) remembered(id string) bool {
	r, ok := c.records[c.owner[id]]
	return ok && r.Instance.ID == id && r.Phase.Before(lifecycle.Terminating) && c.w.now().Sub(r.LaunchedAt) > time.Minute && c.restoredAt.IsZero()
}
