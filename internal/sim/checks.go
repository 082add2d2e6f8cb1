package sim

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// checks hold the world to its invariants. They know the truth: what they look at is what
// was written, made and ended, never what an invocation was told.
type checks struct {
	w *World
	// attempts and records are as they were written last, by id and claim; owner is the
	// claim of every instance, by the attempt that made it.
	attempts map[string]lifecycle.Attempt
	records  map[string]lifecycle.Record
	closed   map[string]lifecycle.Record
	owner    map[string]string // instance -> claim
	made     map[string][]string
	// ended are instances that EC2 or people took; late are those that were made by a call
	// that came when its attempt was over.
	ended, late map[string]bool
	saidOf      map[string]int
	foreign     map[string]bool // attempts of a table that was replaced
	restoredAt  time.Time
	rest        stillness
	// waits are how long pods waited until a node was asked for that was made for them.
	waits  []time.Duration
	waited map[string]bool
	// sparing: only every so manieth plan is made again; 0 = each is.
	sparing int
	noticeChecks
	consolidationChecks
}

func newChecks(w *World) *checks {
	return &checks{
		w: w, attempts: map[string]lifecycle.Attempt{}, records: map[string]lifecycle.Record{}, closed: map[string]lifecycle.Record{},
		owner: map[string]string{}, made: map[string][]string{}, ended: map[string]bool{}, late: map[string]bool{},
		saidOf: map[string]int{}, foreign: map[string]bool{}, waited: map[string]bool{},
		noticeChecks: newNoticeChecks(), consolidationChecks: newConsolidationChecks(),
	}
}

func (c *checks) taken(id string) { c.ended[id] = true }

// restored: the table says what it said before.
func (c *checks) restored() {
	c.restoredAt = c.w.now()
	c.records = map[string]lifecycle.Record{}
	for _, it := range c.w.table.live.Rows() {
		if it.Key().PK == "NODES" {
			var r lifecycle.Record
			if json.Unmarshal([]byte(it["d"].Str()), &r) == nil {
				c.records[r.Claim] = r
			}
		}
	}
}

// lease is the row of the lease as it is.
func (c *checks) lease(m *ledger.Memory) (owner string, token int64, expires time.Time) {
	it, err := m.Get(context.Background(), ledger.Key{PK: "LEASE", SK: "planner"})
	if err != nil || it == nil {
		return "", 0, time.Time{}
	}
	return it["owner"].Str(), it["token"].Int(), time.UnixMilli(it["expires"].Int())
}

// fenced: what a planner begins is written under the lease that is held now. One that ran out
// while its holder stood still, and that nobody has taken since, is still its own.
func (c *checks) fenced(by *container, m *ledger.Memory, what string, fence int64) {
	owner, token, expires := c.lease(m)
	if owner == "" || token != fence {
		c.w.broken("Fence", "%s writes %s with fence %d; the lease is %q's with token %d until %s", by.proc.name, what, fence, owner, token, expires.Sub(epoch))
	}
}

// wrote is called with writes that were applied.
func (c *checks) wrote(by *container, m *ledger.Memory, ws []ledger.Write) {
	old := m != c.w.table.live
	grown := map[string]bool{}
	for _, w := range ws {
		body := ""
		if w.Put != nil {
			body = w.Put["d"].Str()
		}
		switch {
		case old && w.Key.PK != "ATTEMPTS":
		case isCommand(w):
			c.commanded(by, m, w)
		case w.Key.PK == "NODES" && w.Put != nil:
			var r lifecycle.Record
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				c.w.broken("Rows", "%s is no record: %v", w.Key, err)
				continue
			}
			c.record(by, m, r, grown)
		case w.Key.PK == "NODES" && w.Delete:
			delete(c.records, w.Key.SK)
		case strings.HasPrefix(w.Key.PK, "CLOSED#") && w.Put != nil:
			var r lifecycle.Record
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				c.w.broken("Rows", "%s is no record: %v", w.Key, err)
				continue
			}
			c.w.tracef("    closed %s: %s %s", r.Claim, r.Reason, r.Message)
			c.closes(r)
		case w.Key.PK == "ATTEMPTS" && w.Put != nil:
			var a lifecycle.Attempt
			if err := json.Unmarshal([]byte(body), &a); err != nil {
				c.w.broken("Rows", "%s is no attempt: %v", w.Key, err)
				continue
			}
			if _, known := c.attempts[a.ID]; !known {
				c.fenced(by, m, "attempt "+a.ID, a.Fence)
			}
			if was := c.attempts[a.ID]; was.State != a.State {
				c.w.tracef("    attempt %s: %s of %v", a.ID, a.State, a.Claims)
			}
			c.attempts[a.ID] = a
			if old {
				c.foreign[a.ID] = true
			}
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(grown)) {
		c.limits(pool)
	}
}

func (c *checks) record(by *container, m *ledger.Memory, r lifecycle.Record, grown map[string]bool) {
	was, known := c.records[r.Claim]
	if !known && r.Phase == lifecycle.Intended && !r.Adopted {
		c.fenced(by, m, "intent "+r.Claim, r.Fence)
		grown[r.NodePool] = true
	}
	if was.Phase != r.Phase {
		c.w.tracef("    record %s: %s -> %s %s %s %s", r.Claim, was.Phase, r.Phase, r.Instance.ID, r.Reason, r.Message)
	}
	if known && !r.Adopted && r.Phase.Before(was.Phase) && !(was.Phase == lifecycle.Launching && r.Phase == lifecycle.Intended) {
		c.w.broken("Phases", "%s goes back from %s to %s", r.Claim, was.Phase, r.Phase)
	}
	switch id := r.Instance.ID; {
	case id == "" || c.owner[id] == "" || c.owner[id] == r.Claim:
	case r.Adopted: // one whose record was lost is another claim's from then on
		c.owner[id] = r.Claim
	default:
		c.w.broken("OneIntentOneInstance", "record %s has instance %s, which attempt made for %s", r.Claim, id, c.owner[id])
	}
	if names := nominated(&r); names != nominated(&was) {
		c.w.tracef("    record %s is for %s", r.Claim, names)
	}
	c.dooming(by, was, r)
	c.follows(&was, &r)
	c.keeps(&r)
	c.records[r.Claim] = r
	if !known && r.Phase == lifecycle.Intended {
		c.twice(&r)
	}
}

func nominated(r *lifecycle.Record) string {
	var names []string
	for _, p := range r.Nominated {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// closes: a record that is closed leaves nothing behind.
func (c *checks) closes(r lifecycle.Record) {
	delete(c.records, r.Claim)
	c.closed[r.Claim] = r
	if r.Instance.ID != "" && c.alive(r.Instance.ID) {
		c.w.broken("ClosedLeavesNothing", "%s is closed (%s), its instance %s runs", r.Claim, r.Reason, r.Instance.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(c.owner)) {
		if c.owner[id] == r.Claim && id != r.Instance.ID && c.alive(id) && !c.late[id] && c.restoredAt.IsZero() {
			c.w.broken("ClosedLeavesNothing", "%s is closed (%s) without instance %s, which was made for it and runs", r.Claim, r.Reason, id)
		}
	}
	// That of an intent which was cancelled goes after its record, or housekeeping takes it.
	if it := c.w.cluster.claims.by[r.Claim]; it != nil && it.uid == r.UID && r.Reason != lifecycle.ReasonCancelled {
		c.w.broken("ClosedLeavesNothing", "%s is closed (%s), its NodeClaim is there", r.Claim, r.Reason)
	}
	if r.Instance.ID != "" {
		for _, n := range c.w.cluster.nodesOf(r.Instance.ID) {
			if slices.Contains(n.finalizers, finalizer) {
				c.w.broken("ClosedLeavesNothing", "%s is closed (%s), its Node %s is there with the finalizer", r.Claim, r.Reason, n.key)
			}
		}
	}
}

func (c *checks) alive(id string) bool {
	m := c.w.cluster.machines[id]
	return m != nil && m.i.State(c.w.now()) != types.InstanceStateNameTerminated
}

// limits: what is written down of a pool is within its limits.
func (c *checks) limits(pool string) {
	it := c.w.cluster.pools.by[pool]
	if it == nil || it.v.Limits == nil {
		return
	}
	sum := lifecycle.Usage{}
	for _, r := range c.records {
		if r.NodePool == pool {
			sum = sum.Add(r.Reserved)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(it.v.Limits)) {
		if limit := it.v.Limits[name]; sum[name] > limit {
			c.w.broken("Limits", "records of nodepool %s reserve %d of %s, %d are allowed", pool, sum[name], name, limit)
		}
	}
}

// launching: nothing is asked of EC2 that was not written down.
func (c *checks) launching(token string) {
	a, ok := c.attempts[token]
	if !ok {
		c.w.broken("IntentFirst", "CreateFleet with token %q, of which nothing was written", token)
		return
	}
	if age := c.w.now().Sub(a.Created); age > lifecycle.ReplayAge+9*time.Minute {
		c.w.broken("IntentFirst", "the request of attempt %s is sent %s after it was written", token, age)
	}
}

// attempt is the attempt that an instance carries as a tag.
func attempt(i *ec2fake.Instance) string { return i.Tags[nodeclass.TagAttempt] }

// launched: one intent has at most one instance, and no limit is exceeded.
func (c *checks) launched(list []*ec2fake.Instance) {
	pools := map[string]bool{}
	for _, i := range list {
		c.made[attempt(i)] = append(c.made[attempt(i)], i.ID)
		pools[i.Tags["karpenter.sh/nodepool"]] = true
		a := c.attempts[attempt(i)]
		if c.foreign[a.ID] || a.State == lifecycle.Settled || a.State == lifecycle.Answered {
			c.late[i.ID] = true
			c.w.tracef("    instance %s comes when attempt %s is over", i.ID, a.ID)
		}
	}
	for _, i := range list {
		a := c.attempts[attempt(i)]
		ids := slices.Sorted(slices.Values(c.made[attempt(i)]))
		if len(ids) > len(a.Claims) {
			c.w.broken("OneIntentOneInstance", "attempt %s of %d claims made %d instances", a.ID, len(a.Claims), len(ids))
			continue
		}
		for k, id := range ids {
			c.owner[id] = a.Claims[k]
		}
	}
	for _, i := range list {
		for _, n := range c.records[c.owner[i.ID]].Nominated {
			if p := c.w.cluster.pods.by[n.Namespace+"/"+n.Name]; p != nil && p.uid == n.UID && !c.waited[n.UID] {
				c.waited[n.UID] = true
				c.waits = append(c.waits, c.w.now().Sub(p.created))
			}
		}
	}
	of := map[string]int{}
	for id, claim := range c.owner {
		if !c.late[id] {
			of[claim]++
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(of)) {
		if of[claim] > 1 {
			c.w.broken("OneIntentOneInstance", "claim %s got %d instances", claim, of[claim])
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		c.realLimits(pool)
	}
}

// realLimits: what runs of a pool is within its limits.
func (c *checks) realLimits(pool string) {
	it := c.w.cluster.pools.by[pool]
	if it == nil {
		return
	}
	var cpu, nodes int64
	for _, i := range c.w.aws.ec2.Instances() {
		if i.ShuttingFrom.IsZero() && i.Tags["karpenter.sh/nodepool"] == pool && !c.late[i.ID] {
			r, _ := c.w.aws.size(i.Type)
			cpu, nodes = cpu+r.Capacity.CPU, nodes+1
		}
	}
	if limit, ok := it.v.Limits[snapshot.CPU]; ok && cpu > limit {
		c.w.broken("Limits", "instances of nodepool %s have %dm cpu, %dm are allowed", pool, cpu, limit)
	}
	if limit, ok := it.v.Limits[snapshot.Nodes]; ok && nodes > limit {
		c.w.broken("Limits", "nodepool %s has %d instances, %d are allowed", pool, nodes, limit)
	}
	wanted := int64(0) // a node that is to go has its successor before it is gone
	for _, r := range c.records {
		if r.NodePool != pool || !r.Phase.Live() || r.Doomed != nil {
			continue
		}
		claim, node := c.w.cluster.claims.by[r.Claim], c.w.cluster.nodes.by[r.Node]
		if (claim == nil || claim.deleting.IsZero()) && (node == nil || node.deleting.IsZero()) && !c.ended[r.Instance.ID] {
			wanted++
		}
	}
	if it.v.Replicas != nil && wanted > *it.v.Replicas+c.standIns(pool) && c.restoredAt.IsZero() {
		c.w.broken("Limits", "static nodepool %s has %d records of live nodes, %d are wanted", pool, wanted, *it.v.Replicas)
	}
}

// terminating: nothing that is wanted, and nothing that holds pods before its time, is
// ended.
func (c *checks) terminating(ids []string) {
	for _, id := range ids {
		m := c.w.cluster.machines[id]
		if m == nil || !m.i.ShuttingFrom.IsZero() || c.late[id] {
			continue
		}
		claim := c.owner[id]
		r, known := c.records[claim]
		known = known && r.Instance.ID == id
		switch {
		// Who was under way when the table was restored goes by the one that is gone.
		case known && r.Phase.Live() && c.w.now().Sub(c.restoredAt) > time.Minute:
			c.w.broken("EndsAGoodNode", "instance %s of %s is ended in phase %s", id, claim, r.Phase)
		case !known && c.w.now().Sub(m.i.Launched) < 5*time.Minute && c.attempts[attempt(m.i)].State != lifecycle.Settled:
			c.w.broken("EndsAGoodNode", "instance %s is ended %s after its launch, while attempt %s is %s", id, c.w.now().Sub(m.i.Launched), attempt(m.i), c.attempts[attempt(m.i)].State)
		}
		end := c.end(&r)
		if m.node == "" || known && (r.Failure != nil || !end.IsZero() && !c.w.now().Before(end.Add(-c.slack()))) {
			continue
		}
		n := c.w.cluster.nodes.by[m.node]
		if n == nil || n.v.Labels["karpenter.sh/registered"] != "true" || !ready(&n.v) {
			continue
		}
		for _, p := range c.w.cluster.podsOf(m.node) {
			if !isDaemon(&p.v) && !p.v.Terminal() && p.deleting.IsZero() && untolerated([]snapshot.Taint{{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}}, p.v.Spec.Tolerations) {
				c.w.broken("EndedWithPods", "instance %s is ended while pod %s is on its node %s", id, p.key, m.node)
			}
		}
	}
}

// released: what keeps an object until its instance is gone is taken off when it is.
func (c *checks) released(kind, name string) {
	var provider string
	switch kind {
	case "NodeClaim":
		provider = c.w.cluster.claims.by[name].v.ProviderID
		if r, ok := c.records[name]; ok && provider == "" && r.Instance.ID != "" {
			provider = r.Instance.ProviderID()
		}
	case "Node":
		provider = c.w.cluster.nodes.by[name].v.ProviderID
	}
	if id := provider[strings.LastIndexByte(provider, '/')+1:]; id != "" && c.alive(id) {
		c.w.broken("ReleasedTooEarly", "%s %s is let go of while instance %s runs", kind, name, id)
	}
}

// said: one Event per pod and reason.
func (c *checks) said(e *api.Event) {
	if e.Object.Kind != "Pod" {
		return
	}
	// The same reason with other words is another message, but there are few of those.
	key := e.Object.UID + " " + e.Reason
	// The API server forgets an Event after an hour, and it is written again.
	if c.saidOf[key]++; c.saidOf[key] > mostWords+int(c.w.now().Sub(epoch)/time.Hour) {
		c.w.broken("OneEvent", "pod %s is told %s %d times: %s", e.Object.Name, e.Reason, c.saidOf[key], e.Note)
	}
	if len(e.Note) > api.MaxNote {
		c.w.broken("OneEvent", "a note of %d bytes", len(e.Note))
	}
}

// mostWords is how many Events of one reason a pod may get.
const mostWords = 6
