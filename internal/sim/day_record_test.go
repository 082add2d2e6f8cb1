package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/sim/daypage"
	"kerf.sh/kerf/internal/snapshot"
)

// dayRecord is what is seen of a day. It looks at the world from outside, and at commands as
// they are written down.
type dayRecord struct {
	w        *World
	samples  []daypage.Sample
	floor    []int64
	warns    []dayWarning
	commands []*dayCommand
	waiting  map[string]time.Time // pods that do not run yet, by UID
	waits    []daypage.Wait
}

// dayWarning is a spot instance that EC2 takes.
type dayWarning struct {
	daypage.Interruption
	i    *ec2fake.Instance
	node string
}

// dayCommand is a command with when it came to each phase.
type dayCommand struct {
	lifecycle.Command
	at   map[lifecycle.CommandPhase]time.Duration
	pods int
	what []string // the nodes
}

const (
	daySample = 2 * time.Minute  // how often the cluster is looked at
	dayRepack = 10 * time.Minute // how often its floor is asked for
)

// begin arranges for the looks. floor: the floor is asked for.
func (r *dayRecord) begin(w *World, floor bool) {
	r.w, r.waiting = w, map[string]time.Time{}
	for at := time.Duration(0); at <= dayLength; at += daySample {
		w.at(dayTime(at), func() { r.sample(floor && at%dayRepack == 0) })
	}
	for at := time.Duration(0); at < dayLength; at += 5 * time.Second {
		w.at(dayTime(at), r.look)
	}
}

func (r *dayRecord) now() time.Duration { return sinceDay(r.w.now()) }

func sinceDay(t time.Time) time.Duration { return t.Sub(dayTime(0)) }

// dayMemory is a ledger whose commands are seen.
type dayMemory struct {
	handler.Memory
	r *dayRecord
}

func (m dayMemory) SaveCommand(ctx context.Context, l lifecycle.Lease, c lifecycle.Command) (lifecycle.Command, error) {
	saved, err := m.Memory.SaveCommand(ctx, l, c)
	if err == nil {
		m.r.command(saved)
	}
	return saved, err
}

// command sees a command that was written down.
func (r *dayRecord) command(c lifecycle.Command) {
	i := slices.IndexFunc(r.commands, func(o *dayCommand) bool { return o.PlanName() == c.PlanName() })
	if i < 0 {
		r.commands = append(r.commands, &dayCommand{at: map[lifecycle.CommandPhase]time.Duration{}})
		i = len(r.commands) - 1
	}
	d := r.commands[i]
	if len(d.what) == 0 {
		for _, n := range c.Nodes {
			d.what = append(d.what, r.nodeIs(n))
		}
	}
	if c.Phase == lifecycle.Removing && d.Phase != c.Phase {
		for _, n := range c.Nodes {
			d.pods += r.podsOn(n)
		}
	}
	if d.Command = c; d.at[c.Phase] == 0 {
		d.at[c.Phase] = r.now()
	}
}

func (r *dayRecord) podsOn(node string) (n int) {
	for _, p := range r.w.cluster.podsOf(node) {
		if !isDaemon(&p.v) {
			n++
		}
	}
	return n
}

// nodeIs says what a node is.
func (r *dayRecord) nodeIs(node string) string {
	for _, i := range r.w.aws.ec2.Instances() {
		if i.PrivateDNS == node {
			return instanceIs(i)
		}
	}
	return node
}

func instanceIs(i *ec2fake.Instance) string {
	capacity := "on-demand"
	if i.Spot {
		capacity = "spot"
	}
	return fmt.Sprintf("%s %s %s", i.Type, capacity, strings.TrimPrefix(i.Zone, region))
}

// look sees which pods run by now, and how far nodes with a warning have emptied.
func (r *dayRecord) look() {
	there := map[string]bool{}
	for _, p := range r.w.cluster.pods.all() {
		if isDaemon(&p.v) {
			continue
		}
		there[p.uid] = true
		_, waited := r.waiting[p.uid]
		switch {
		case p.v.Started.IsZero() && p.deleting.IsZero():
			r.waiting[p.uid] = p.created
		case waited:
			if !p.v.Started.IsZero() {
				r.waits = append(r.waits, daypage.Wait{Pod: p.v.Name, At: sinceDay(p.created), Long: p.v.Started.Sub(p.created)})
			}
			delete(r.waiting, p.uid)
		}
	}
	for uid := range r.waiting {
		if !there[uid] {
			delete(r.waiting, uid)
		}
	}
	for i := range r.warns {
		d := &r.warns[i]
		if d.Empty > 0 || r.now() > d.At+10*time.Minute {
			continue
		}
		left := r.podsOn(d.node)
		if d.i.ShuttingFrom.IsZero() {
			d.Lost = left
		}
		if left == 0 {
			d.Empty = r.now() - d.At
		}
	}
}

func (r *dayRecord) warned(i *ec2fake.Instance) {
	d := dayWarning{i: i, node: r.w.cluster.machines[i.ID].node}
	d.At, d.Node, d.Pods = r.now(), instanceIs(i), r.podsOn(d.node)
	d.Lost = d.Pods
	r.warns = append(r.warns, d)
}

func (r *dayRecord) sample(floor bool) {
	w := r.w
	var s daypage.Sample
	for _, i := range w.aws.ec2.Instances() {
		if !i.ShuttingFrom.IsZero() {
			continue
		}
		s.Price += i.Price
		n := w.cluster.nodes.by[w.cluster.machines[i.ID].node]
		switch {
		case n == nil || !ready(&n.v):
			s.Starting++
		case i.Spot:
			s.Spot++
		default:
			s.OnDemand++
		}
	}
	for _, p := range w.cluster.pods.all() {
		switch {
		case isDaemon(&p.v) || !p.deleting.IsZero():
		case p.v.Started.IsZero():
			s.Pending++
		default:
			s.Running++
		}
	}
	r.samples = append(r.samples, s)
	switch {
	case floor:
		r.floor = append(r.floor, w.repacked())
	case len(r.floor) > 0:
		r.floor = append(r.floor, r.floor[len(r.floor)-1])
	}
}

// repacked is what nodes for the pods that there are would cost if they were bought anew.
func (w *World) repacked() int64 {
	return w.anew(func(p *snapshot.Pod) bool { return p.Deleting.IsZero() }).Summary.LaunchPrice
}

// run is the record as the page has it.
func (r *dayRecord) run() daypage.Run {
	out := daypage.Run{Samples: r.samples, Waits: len(r.waits)}
	for _, p := range r.w.cluster.pods.all() { // those that do not run yet
		if since, ok := r.waiting[p.uid]; ok {
			r.waits = append(r.waits, daypage.Wait{Pod: p.v.Name, At: sinceDay(since), Long: dayLength - sinceDay(since)})
		}
	}
	slices.SortFunc(r.waits, func(a, b daypage.Wait) int { return cmp.Or(cmp.Compare(b.Long, a.Long), cmp.Compare(a.Pod, b.Pod)) })
	if len(r.waits) > 0 {
		out.Longest, out.P95 = r.waits[0], r.waits[len(r.waits)/20].Long
	}
	return out
}

// launchedFor are the instances that were launched by a plan, and those of them that joined.
func (r *dayRecord) launchedFor(plan string) []string {
	var out []string
	for _, i := range r.w.aws.ec2.Instances() {
		if rec, ok := r.recordOf(i); ok && rec.PlanID == plan {
			out = append(out, instanceIs(i))
		}
	}
	return out
}

func (r *dayRecord) recordOf(i *ec2fake.Instance) (lifecycle.Record, bool) {
	claim := r.w.checks.owner[i.ID]
	if rec, ok := r.w.checks.records[claim]; ok {
		return rec, true
	}
	rec, ok := r.w.checks.closed[claim]
	return rec, ok
}

// moves are the commands that became more than a proposal.
func (r *dayRecord) moves() (out []daypage.Move) {
	for _, c := range r.commands {
		at, begun := c.at[lifecycle.Tainted]
		if t, ok := c.at[lifecycle.Removing]; ok && !begun {
			at, begun = t, true
		}
		if !begun || at < 0 {
			continue
		}
		m := daypage.Move{At: at, Reason: c.Reason, Nodes: c.what, Detail: c.Detail, Saving: c.Saving, Pods: c.pods, New: r.launchedFor(c.PlanName()), Open: !c.Over()}
		if c.Phase == lifecycle.RolledBack {
			m.Why = c.Why
		}
		if c.Over() {
			m.Took = c.at[c.Phase] - at
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b daypage.Move) int { return cmp.Compare(a.At, b.At) })
	return out
}

// interruptions are the warnings with what came of them.
func (r *dayRecord) interruptions() (out []daypage.Interruption) {
	for _, d := range r.warns {
		one := d.Interruption
		for _, i := range r.w.aws.ec2.Instances() {
			rec, ok := r.recordOf(i)
			if at := sinceDay(i.Launched); ok && at >= one.At && at < one.At+2*time.Minute && !strings.Contains(rec.PlanID, "/") {
				one.New = append(one.New, instanceIs(i))
			}
		}
		out = append(out, one)
	}
	return out
}
