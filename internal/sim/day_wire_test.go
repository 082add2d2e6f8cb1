package sim

import (
	"context"
	"encoding/json"
	"time"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/handler"
)

// dayConsolidation has the schedule of the stack invoke the function consolidation, once a
// minute. The world may hold passes to something of its own.
func (w *World) dayConsolidation(m *Mutant) {
	kube, mail, lambda := newKubeService(w), newSQSService(w), newLambdaService(w)
	f := &function{w: w, name: "consolidation", timeout: 5 * time.Minute, concurrency: 1, dice: newDice(w.Seed, "lambda consolidation")}
	f.begin = func(c *container) func(context.Context, json.RawMessage) (any, error) {
		p := &parts{c: c, w: w, m: m, kube: kube, mail: mail, lambda: lambda, table: w.table.live}
		p.make()
		s := &handler.Sweep{
			Cluster: p.cluster, Executor: p.executor, Ticks: p.ticks, Facts: p.facts, Resolve: p.resolve, Journal: p.journal,
			ClusterName: clusterName, Region: region, Interval: interval, Instance: "kerf.sh/consolidation", Now: p.c.now, Wait: p.c.wait, Log: p.c.log(),
		}
		h := &handler.Consolidation{Sweep: s, Kick: p.lifecycle.Kick, MassShare: int(config.Default().Functions.MassRemovalPercent)}
		return func(ctx context.Context, _ json.RawMessage) (any, error) {
			p.begin()
			s.Memory = p.memory
			if c, ok := any(w.checks).(interface{ passBegins(*container) }); ok {
				c.passBegins(p.c)
			}
			return h.Handle(ctx)
		}
	}
	var minute func(n int)
	minute = func(n int) {
		w.at(epoch.Add(time.Duration(n)*time.Minute+20*time.Second), func() {
			minute(n + 1)
			if f.free() {
				f.invoke(nil, func(any, error, bool) {})
			}
		})
	}
	minute(1)
}
