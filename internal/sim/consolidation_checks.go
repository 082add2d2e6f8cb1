package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// consolidationChecks are what is known of commands.
type consolidationChecks struct {
	commands map[string]lifecycle.Command
	// began is what there was when a pass began, by invocation.
	began map[string]passBegin
	// nominated is when a pod was nominated to a claim, going since when a record is on its
	// way out.
	nominated map[string]time.Time // claim/UID of the pod
	going     map[string]time.Time
	// moved is when pods left a node because it cost too much, since the trouble was
	// over, by app.
	moved map[string][]time.Time
	// acted is when a command was last gone on with, took how many nodes were let go since
	// the trouble was over.
	acted time.Time
	took  int
	// peace are the ends of cool-downs, held how long nothing was done but to wait for one.
	peace []time.Time
	held  time.Duration
	last  *handler.ConsolidationReport
}

// passBegin is the cluster when a pass began.
type passBegin struct {
	at    time.Time
	nodes map[string]int // of pools
}

func newConsolidationChecks() consolidationChecks {
	return consolidationChecks{commands: map[string]lifecycle.Command{}, began: map[string]passBegin{}, nominated: map[string]time.Time{},
		going: map[string]time.Time{}, moved: map[string][]time.Time{}}
}

func (c *checks) nodesOf() map[string]int {
	out := map[string]int{}
	for _, r := range c.records {
		if r.Node != "" {
			out[r.NodePool]++
		}
	}
	return out
}

func (c *checks) passBegins(by *container) {
	c.began[by.proc.name] = passBegin{c.w.now(), c.nodesOf()}
}

func (c *checks) passed(rep *handler.ConsolidationReport) {
	c.last = rep
	c.w.stats.Passes++
	c.w.stats.Back += len(rep.Back)
}

// follows keeps when a record was given pods, and when it began to go.
func (c *checks) follows(was, r *lifecycle.Record) {
	now := c.w.now()
	for _, p := range r.Nominated {
		if key := r.Claim + "/" + p.UID; c.nominated[key].IsZero() || !slices.ContainsFunc(was.Nominated, func(o lifecycle.Pod) bool { return o.UID == p.UID }) {
			c.nominated[key] = now
		}
	}
	if !r.Phase.Live() && c.going[r.Claim].IsZero() {
		c.going[r.Claim] = now
	}
}

// commanded: what a command goes on with is allowed by what the pass could know.
func (c *checks) commanded(by *container, m *ledger.Memory, w ledger.Write) {
	if w.Put == nil {
		delete(c.commands, w.Key.SK)
		return
	}
	var cmd lifecycle.Command
	if err := json.Unmarshal([]byte(w.Put["d"].Str()), &cmd); err != nil {
		c.w.broken("Rows", "%s is no command: %v", w.Key, err)
		return
	}
	was := c.commands[cmd.ID]
	c.commands[cmd.ID] = cmd
	if was.Phase == cmd.Phase && was.Created.Equal(cmd.Created) {
		return
	}
	c.w.tracef("    command %s: %s -> %s %v %s", cmd.ID, was.Phase, cmd.Phase, cmd.Nodes, cmd.Why)
	c.leaves(&cmd)
	if cmd.Phase == lifecycle.Proposed || cmd.Over() {
		return
	}
	c.acts(&cmd)
	if cmd.Phase == lifecycle.Removing {
		c.w.stats.Moves++
		c.lets(&cmd)
	}
	if disruption.Forceful(plan.MoveReason(cmd.Reason)) || !c.restoredAt.IsZero() {
		return
	}
	begin, ok := c.began[by.proc.name]
	if !ok {
		c.w.broken("Commands", "%s writes command %s and is no pass", by.proc.name, cmd.ID)
		return
	}
	if was.Phase == "" || cmd.Phase != lifecycle.Proposed && was.Over() {
		c.w.broken("TwoPhases", "command %s is %s and was not proposed before", cmd.ID, cmd.Phase)
	}
	if cmd.Phase == lifecycle.Tainted {
		if age := c.w.now().Sub(was.Created); age < 15*time.Second-c.slack() {
			c.w.broken("TwoPhases", "command %s is begun %s after it was proposed", cmd.ID, age)
		}
		c.budgeted(&cmd, begin)
	}
	if cmd.Phase == lifecycle.Tainted || cmd.Phase == lifecycle.Removing {
		for i, claim := range cmd.Candidates {
			c.mayGo(&cmd, claim, cmd.Nodes[i], begin)
		}
	}
}

// leaves keeps until when the nodes that a command took something from or to are left in peace.
func (c *checks) leaves(cmd *lifecycle.Command) {
	switch {
	case (cmd.Phase == lifecycle.Tainted || cmd.Phase == lifecycle.Removing) && cmd.Reason == string(plan.MoveUnderutilized):
		c.peace = append(c.peace, c.w.now().Add(lifecycle.RestUnchanged))
	case cmd.Phase == lifecycle.RolledBack && cmd.Why != "":
		c.peace = append(c.peace, c.w.now().Add(cmd.Rest()))
	}
}

// afterPeace is how long after the end of a cool-down what it held back may be begun: it is
// proposed, confirmed, and waits for its turn and for pods.
const afterPeace = 15 * time.Minute

// acts keeps when a command went on. What begins when a cool-down has just ended waited for
// that, and the time does not count.
func (c *checks) acts(cmd *lifecycle.Command) {
	now := c.w.now()
	from := epoch.Add(c.w.Profile.Trouble)
	if c.acted.After(from) {
		from = c.acted
	}
	c.acted = now
	if cmd.Phase == lifecycle.Tainted && now.Sub(from) > afterPeace && slices.ContainsFunc(c.peace, func(end time.Time) bool { return !now.Before(end) && now.Sub(end) < afterPeace }) {
		c.held += now.Sub(from)
	}
}

// lets counts what a command lets go.
func (c *checks) lets(cmd *lifecycle.Command) {
	if c.w.faults {
		return
	}
	c.took += len(cmd.Nodes)
	if cmd.Reason != string(plan.MoveUnderutilized) {
		return
	}
	for _, node := range cmd.Nodes {
		for _, p := range c.w.cluster.podsOf(node) {
			if !isDaemon(&p.v) && !p.v.Terminal() && p.deleting.IsZero() {
				app := p.v.Labels["app"]
				c.moved[app] = append(c.moved[app], c.w.now())
			}
		}
	}
}

// profileOf is what the profile says of a pool.
func (c *checks) profileOf(name string) *Pool {
	for i := range c.w.Profile.Pools {
		if c.w.Profile.Pools[i].Name == name {
			return &c.w.Profile.Pools[i]
		}
	}
	return &Pool{Name: name}
}

// budgeted: no more nodes of a pool are on their way out than its budgets allow, those that go
// for other reasons among them. Of nodes that came or went while the pass ran, it may know
// either.
func (c *checks) budgeted(cmd *lifecycle.Command, begin passBegin) {
	nodes := c.nodesOf()
	for _, pool := range cmd.Pools {
		going := map[string]bool{}
		for _, o := range c.commands {
			if o.ID != cmd.ID && (o.Phase == lifecycle.Proposed || o.Over()) {
				continue
			}
			for _, claim := range o.Candidates {
				if r, ok := c.records[claim]; ok && r.NodePool == pool {
					going[claim] = true
				}
			}
		}
		for claim, since := range c.going {
			if r, ok := c.records[claim]; ok && r.NodePool == pool && r.Node != "" && since.Before(begin.at.Add(-c.slack())) && len(c.w.cluster.nodesOf(r.Instance.ID)) > 0 {
				going[claim] = true
			}
		}
		total := max(nodes[pool], begin.nodes[pool])
		for _, b := range c.budgets(pool) {
			if b.Reason != "" && b.Reason != cmd.Reason || b.Frozen > 0 && c.w.now().Sub(epoch) > b.Frozen-c.slack() {
				continue
			}
			if most := share(b.Nodes, total); len(going) > most {
				c.w.broken("Budgets", "command %s (%s) begins and %d of %d nodes of nodepool %s are on their way out, %s are allowed: %v", cmd.ID, cmd.Reason, len(going), total, pool, b.Nodes,
					slices.Sorted(maps.Keys(going)))
			}
		}
	}
}

func (c *checks) budgets(pool string) []Budget {
	if bs := c.profileOf(pool).Disruption.Budgets; len(bs) > 0 {
		return bs
	}
	return []Budget{{Nodes: "10%"}}
}

// mayGo: nothing that the pass could know speaks against a candidate.
func (c *checks) mayGo(cmd *lifecycle.Command, claim, node string, begin passBegin) {
	now, known := c.w.now(), begin.at.Add(-c.slack())
	r, ok := c.records[claim]
	if !ok {
		return
	}
	pool, cheaper := c.profileOf(r.NodePool), cmd.Reason == string(plan.MoveUnderutilized) || cmd.Reason == string(plan.MoveEmpty)
	says := pool.Disruption.of(pool.Replicas > 0)
	refused := func(invariant, format string, args ...any) {
		c.w.broken(invariant, "command %s (%s) is %s, and node %s "+format, append([]any{cmd.ID, cmd.Reason, cmd.Phase, node}, args...)...)
	}
	switch {
	case cheaper && pool.Replicas > 0:
		refused("Policy", "is one of the static nodepool %s", pool.Name)
	case cheaper && says.ConsolidateAfter == "Never":
		refused("Policy", "is of nodepool %s, which says consolidateAfter: Never", pool.Name)
	case cmd.Reason == string(plan.MoveUnderutilized) && says.ConsolidationPolicy == "WhenEmpty":
		refused("Policy", "is of nodepool %s, which says WhenEmpty", pool.Name)
	}
	after, _ := time.ParseDuration(says.ConsolidateAfter)
	for _, p := range c.w.cluster.podsOf(node) {
		if isDaemon(&p.v) || p.v.Terminal() || !p.deleting.IsZero() || p.v.Scheduled == nil || p.v.Scheduled.Since.After(known) {
			continue
		}
		if holds(&p.v, now.Add(c.slack())) && !(r.Spec.TerminationGracePeriod != "" && cmd.Reason == string(plan.MoveDrifted)) {
			refused("DoNotDisrupt", "has pod %s, which says %q", p.key, p.v.Annotations[snapshot.DoNotDisrupt])
		}
		if cheaper && cmd.Phase == lifecycle.Tainted && now.Sub(p.v.Scheduled.Since) < after-c.slack()-time.Second {
			refused("ConsolidateAfter", "has pod %s since %s, it waits for %s", p.key, now.Sub(p.v.Scheduled.Since), after)
		}
	}
	for _, n := range r.Nominated {
		p := c.w.cluster.pods.by[n.Namespace+"/"+n.Name]
		if p == nil || p.uid != n.UID || p.v.NodeName != "" || !p.deleting.IsZero() || !now.Add(c.slack()).Before(r.NominatedUntil(n)) || c.nominated[claim+"/"+n.UID].After(known) || c.elsewhere(claim, n.UID) {
			continue
		}
		refused("Nominations", "waits for pod %s", p.key)
	}
}

// elsewhere reports whether a later plan wants a pod on another node than that of a claim: it
// did not find its room there.
func (c *checks) elsewhere(claim, pod string) bool {
	for name, r := range c.records {
		if name == claim || !r.Phase.Live() || !c.nominated[name+"/"+pod].After(c.nominated[claim+"/"+pod]) {
			continue
		}
		if slices.ContainsFunc(r.Nominated, func(p lifecycle.Pod) bool { return p.UID == pod }) {
			return true
		}
	}
	return false
}

// standIns is how many nodes of a pool may be there for others that go as soon as they are
// ready.
func (c *checks) standIns(pool string) (n int64) {
	for _, cmd := range c.commands {
		if cmd.Over() || cmd.Phase == lifecycle.Proposed {
			continue
		}
		for _, claim := range cmd.Candidates {
			if c.records[claim].NodePool == pool {
				n++
			}
		}
	}
	return n
}

// commandsRest: nothing is under way, nothing was left behind, nothing moved twice.
func (c *checks) commandsRest() {
	if !c.w.Profile.Consolidate {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.commands)) {
		if cmd := c.commands[id]; !cmd.Over() && cmd.Phase != lifecycle.Proposed {
			c.w.broken("CommandsEnd", "command %s is %s", id, cmd.Phase)
		}
	}
	for _, n := range c.w.cluster.nodes.all() {
		if slices.ContainsFunc(n.v.Taints, func(t snapshot.Taint) bool { return t.Key == snapshot.Disrupted.Key }) && n.deleting.IsZero() {
			c.w.broken("CommandsEnd", "node %s carries the taint of a command that is over", n.key)
		}
	}
	if !c.w.asking {
		c.w.stats.Price, c.w.stats.Repacked = c.repacked()
	}
	c.w.stats.Took = c.took
	if !c.acted.IsZero() {
		c.w.stats.Acted = max(0, c.acted.Sub(epoch)-c.w.Profile.Trouble-c.held)
	}
	within := time.Duration(2*c.took+4)*passEvery + c.coolDowns()
	if c.w.stats.Acted > within && c.restoredAt.IsZero() {
		c.w.broken("SettlesInTime", "the last command went on %s after the trouble was over, %d nodes were let go: it may be %s", c.w.stats.Acted, c.took, within)
	}
	for _, app := range slices.Sorted(maps.Keys(c.moved)) {
		it := c.w.cluster.loads.by["default/"+app]
		if it == nil {
			continue
		}
		if n := most(c.moved[app], lifecycle.RestUnchanged-time.Minute); int64(n) > it.v.Replicas {
			c.w.broken("MovedOnce", "%d pods of %s were moved within %s, it has %d", n, app, lifecycle.RestUnchanged, it.v.Replicas)
		}
	}
}

// most is how many of times in order lie within a while, at most.
func most(times []time.Time, while time.Duration) (out int) {
	from := 0
	for to := range times {
		for times[to].Sub(times[from]) >= while {
			from++
		}
		out = max(out, to-from+1)
	}
	return out
}

// coolDowns are the times in which nodes are left in peace, and those that machines and pods
// take: of moves, of pods that hold their node, of what was taken back, of replacements.
func (c *checks) coolDowns() time.Duration {
	out := lifecycle.RestAfterMove + 10*time.Minute + 4*time.Minute + time.Duration(1+c.w.stats.Back)*lifecycle.RestAfterBack + time.Duration(c.took)*3*time.Minute
	for _, at := range c.moved {
		if len(at) > 2 {
			return out + lifecycle.FlapTime // one was moved to and fro
		}
	}
	return out
}

// passesRest reports whether consolidation has found all that it will find: nothing was done
// for longer than it waits before it looks again, and no cool-down is to end.
func (c *checks) passesRest() bool {
	if !c.w.Profile.Consolidate {
		return true
	}
	now := c.w.now()
	if slices.ContainsFunc(c.peace, func(end time.Time) bool { return now.Before(end.Add(afterPeace)) }) {
		return false
	}
	longest := 30 * time.Minute // pods hold their node for ten
	return now.Sub(c.acted) > longest && now.Sub(epoch) > c.w.Profile.Trouble+longest && (c.last == nil || c.last.Open == 0)
}

func isCommand(w ledger.Write) bool { return strings.HasPrefix(w.Key.PK, "COMMANDS") }

// repacked is what nodes cost that may be consolidated, and what new ones for their pods would,
// beside those that stay: of pools that consolidate nothing, and with pods that hold them.
func (c *checks) repacked() (price, anew int64) {
	w := c.w
	fixed := map[string]bool{} // nodes that may not go
	for _, n := range w.cluster.nodes.all() {
		pool := c.profileOf(n.v.Labels["karpenter.sh/nodepool"])
		says := pool.Disruption.of(pool.Replicas > 0)
		if pool.Replicas > 0 || says.ConsolidateAfter == "Never" || says.ConsolidationPolicy == "WhenEmpty" {
			fixed[n.key] = true
		}
		for _, p := range w.cluster.podsOf(n.key) {
			if !isDaemon(&p.v) && holds(&p.v, w.now()) {
				fixed[n.key] = true
			}
		}
	}
	for _, i := range w.aws.ec2.Instances() {
		if m := w.cluster.machines[i.ID]; i.ShuttingFrom.IsZero() && m != nil && !fixed[m.node] {
			price += i.Price
		}
	}
	return price, w.anew(func(p *snapshot.Pod) bool { return p.NodeName != "" && !fixed[p.NodeName] }).Summary.LaunchPrice
}
