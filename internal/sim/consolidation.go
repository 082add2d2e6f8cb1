package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/snapshot"
)

// passEvery is how often the function consolidation looks.
const passEvery = time.Minute

// Disruption is what a NodePool says of it; the zero value is what a pool has that says
// nothing.
type Disruption struct {
	Policy string `json:",omitempty"`
	After  string `json:",omitempty"`
	// Budgets are "10%" or "3".
	Budgets []Budget `json:",omitempty"`
}

// Budget is one of a NodePool. Frozen: it counts for so long from the beginning of the world
// on, 0 = always. Reason: it counts for that one alone.
type Budget struct {
	Nodes  string
	Reason string        `json:",omitempty"`
	Frozen time.Duration `json:",omitempty"`
}

// drawConsolidation draws what pools say of disruption, after all else and from other dice.
func drawConsolidation(d dice, p *Profile) {
	p.Consolidate = d.IntN(3) > 0
	for i := range p.Pools {
		p.Pools[i].Disruption = Disruption{
			Policy: pick(d, []string{"WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"}),
			After:  pick(d, []string{"0s", "0s", "30s", "2m", "4m", "Never"}),
			Budgets: pick(d, [][]Budget{
				{{Nodes: "10%"}}, {{Nodes: "100%"}}, {{Nodes: "100%"}}, {{Nodes: "2"}}, {{Nodes: "50%"}, {Nodes: "1", Reason: "Underutilized"}}, {{Nodes: "100%"}, {Nodes: "0", Frozen: 12 * time.Minute}},
			}),
		}
	}
	p.Edit = d.IntN(4) == 0
	if !p.Consolidate {
		return
	}
	p.Settle, p.Quiet = 9*time.Hour, 50*passEvery
	// Where no address is left nothing comes to rest: replacements are tried again, ever more
	// seldom.
	p.Free = max(p.Free, 250)
	for i := range p.Loads { // so that there is something to find
		if l := &p.Loads[i]; l.Gone == 0 && !l.Misfit && d.IntN(3) > 0 {
			l.Gone = min(l.After+l.Over+d.between(time.Minute, p.Trouble), p.Trouble-time.Second)
			l.Left = d.IntN(l.Pods/2 + 1)
		}
	}
}

func (b Budget) budget() snapshot.Budget {
	out := snapshot.Budget{Nodes: b.Nodes}
	if b.Reason != "" {
		out.Reasons = []string{b.Reason}
	}
	if b.Frozen > 0 {
		out.Schedule, out.Duration = fmt.Sprintf("%d %d * * *", epoch.Minute(), epoch.Hour()), b.Frozen.String()
	}
	return out
}

func (p Disruption) of(static bool) snapshot.Disruption {
	out := snapshot.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", ConsolidateAfter: "0s", Budgets: []snapshot.Budget{{Nodes: "10%"}}}
	if p.Policy != "" {
		out.ConsolidationPolicy = p.Policy
	}
	if p.After != "" {
		out.ConsolidateAfter = p.After
	}
	if len(p.Budgets) > 0 {
		out.Budgets = nil
		for _, b := range p.Budgets {
			out.Budgets = append(out.Budgets, b.budget())
		}
	}
	if static {
		out = snapshot.Disruption{Budgets: out.Budgets}
	}
	return out
}

// consolidates has the schedule of the stack invoke the function consolidation, and somebody
// edit a NodePool now and then: its nodes drift.
func (w *World) consolidates() {
	if !w.Profile.Consolidate {
		return
	}
	d := newDice(w.Seed, "passes")
	for k := 1; w.Profile.Edit && k <= 2; k++ {
		w.at(epoch.Add(w.Profile.Trouble*time.Duration(k)/3), func() {
			it := pick(d, w.cluster.pools.all())
			w.tracef("somebody edits nodepool %s", it.key)
			labels := map[string]string{"edited": fmt.Sprint(k)}
			for key, v := range it.v.TemplateLabels {
				if key != "edited" {
					labels[key] = v
				}
			}
			it.v.TemplateLabels = labels
			w.cluster.pools.touch(it)
		})
	}
	w.consolidate(1, d)
}

func (w *World) consolidate(n int, d dice) {
	w.at(epoch.Add(time.Duration(n)*passEvery+20*time.Second), func() {
		w.consolidate(n+1, d)
		times := 1
		if w.faults && d.in(w.Profile.Faults.Duplicate) {
			times++
		}
		for range times {
			w.after(d.between(20*time.Millisecond, time.Second), func() { w.invokeAgain("consolidation", nil, 1) })
		}
	})
}

// invokeAgain invokes a function asynchronously: it is tried again while it is busy, and twice
// when it fails.
func (w *World) invokeAgain(name string, payload any, n int) {
	f := w.lambdas[name]
	if !f.free() {
		w.after(5*time.Second, func() { w.invokeAgain(name, payload, n) })
		return
	}
	f.invoke(payload, func(_ any, err error, ok bool) {
		if (err != nil || !ok) && n < 3 {
			w.after(time.Duration(n)*time.Minute, func() { w.invokeAgain(name, payload, n+1) })
		}
	})
}

func (p *parts) consolidationBegin() func(context.Context, json.RawMessage) (any, error) {
	s := &handler.Sweep{
		Cluster: p.cluster, Executor: p.executor, Ticks: p.ticks, Facts: p.facts, Resolve: p.resolve, Journal: p.journal,
		ClusterName: clusterName, Region: region, Interval: interval, Instance: "kerf.sh/consolidation", Now: p.c.now, Wait: p.c.wait, Log: p.c.log(),
	}
	h := &handler.Consolidation{Sweep: s, Kick: p.lifecycle.Kick, MassShare: int(config.Default().Functions.MassRemovalPercent)}
	return func(ctx context.Context, _ json.RawMessage) (any, error) {
		p.begin()
		s.Memory = p.memory
		p.w.checks.passBegins(p.c)
		rep, err := h.Handle(ctx)
		if rep != nil {
			p.w.checks.passed(rep)
			p.w.tracef("  %s consolidation: %s %s; nodes %d moves %v proposed %d begun %d removed %d back %q held %d mass %q open %d savings %+v warnings %q", p.c.proc.name, rep.Outcome, rep.Detail,
				rep.Nodes, rep.Moves, rep.Proposed, rep.Begun, rep.Removed, rep.Back, rep.Held, rep.Mass, rep.Open, rep.Savings, rep.Warnings)
		}
		return rep, err
	}
}
