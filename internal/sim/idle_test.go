package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/idle"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

var rewriteIdle = flag.Bool("rewrite-idle", false, "rewrite internal/idle/measured.json")

// meter counts what the functions do, once it is on.
type meter struct {
	on   bool
	hour idle.Hour
}

// watch counts the invocations of a function, and what they ask.
func (m *meter) watch(f *function) {
	begin := f.begin
	f.begin = func(c *container) func(context.Context, json.RawMessage) (any, error) {
		handle := begin(c)
		return func(ctx context.Context, payload json.RawMessage) (any, error) {
			on := m.on
			out, err := handle(ctx, payload)
			if on {
				got := m.hour.Functions[f.name]
				got.Invocations++
				if got.Calls == nil {
					got.Calls = map[string]int{}
				}
				for op, n := range c.asked {
					if strings.Contains(op, ".") {
						got.Calls[op] += n
					}
				}
				m.hour.Functions[f.name] = got
			}
			return out, err
		}
	}
}

// metered is a table that counts DynamoDB's units: 4 KB of a strongly consistent read, 1 KB of
// a write, twice that in a transaction.
type metered struct {
	ledger.Table
	m *meter
}

func units(size, of int) int { return max(1, (size+of-1)/of) }

func (t metered) read(items ...ledger.Item) {
	size := 0
	for _, it := range items {
		size += it.Size()
	}
	if t.m.on {
		t.m.hour.ReadUnits += units(size, 4096)
	}
}

func (t metered) Get(ctx context.Context, key ledger.Key) (ledger.Item, error) {
	it, err := t.Table.Get(ctx, key)
	t.read(it)
	return it, err
}

func (t metered) Query(ctx context.Context, pk, after string) ([]ledger.Item, string, error) {
	items, next, err := t.Table.Query(ctx, pk, after)
	t.read(items...)
	return items, next, err
}

func (t metered) write(times int, ws ...ledger.Write) {
	for i := range ws {
		if t.m.on {
			t.m.hour.WriteUnits += times * units(ws[i].Put.Size()+ws[i].Set.Size(), 1024)
		}
	}
}

func (t metered) Write(ctx context.Context, w ledger.Write) (ledger.Item, error) {
	t.write(1, w)
	return t.Table.Write(ctx, w)
}

func (t metered) Transact(ctx context.Context, token string, ws []ledger.Write) error {
	t.write(2, ws...)
	return t.Table.Transact(ctx, token, ws)
}

// reading is a cluster that counts how often all of it is read.
type reading struct {
	handler.Cluster
	m *meter
}

func (r reading) Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	if r.m.on {
		f := r.m.hour.Functions["consolidation"]
		f.Readings++
		r.m.hour.Functions["consolidation"] = f
	}
	return r.Cluster.Read(ctx, now)
}

// consolidating adds a function that looks once a minute for what could be cheaper, as the
// stack's does; dry: it changes nothing.
func consolidating(w *World, m *meter, dry bool) *function {
	kube, mail, lambda := newKubeService(w), newSQSService(w), newLambdaService(w)
	f := &function{w: w, name: "consolidation", timeout: 5 * time.Minute, concurrency: 1, dice: newDice(w.Seed, "lambda consolidation")}
	f.begin = func(c *container) func(context.Context, json.RawMessage) (any, error) {
		p := &parts{c: c, w: w, m: &Mutant{Table: m.table, Cluster: m.cluster}, kube: kube, mail: mail, lambda: lambda, table: w.table.live}
		p.make()
		s := &handler.Sweep{
			Cluster: p.cluster, Executor: p.executor, Ticks: p.ticks, Facts: p.facts, Resolve: p.resolve, Journal: p.journal,
			ClusterName: clusterName, Region: region, Interval: interval, Instance: "kerf.sh/consolidation", Now: p.c.now, Wait: p.c.wait, Log: p.c.log(),
		}
		h := &handler.Consolidation{Sweep: s, Kick: func(context.Context) error { return nil }, DryRun: dry}
		return func(ctx context.Context, _ json.RawMessage) (any, error) {
			p.begin()
			s.Memory = p.memory
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
	return f
}

func (m *meter) cluster(c handler.Cluster) handler.Cluster { return reading{c, m} }

func (m *meter) table(t ledger.Table) ledger.Table { return metered{t, m} }

// idleHour is an hour of a cluster with full nodes and no pod that waits; half of it goes by.
func idleHour(t *testing.T, nodes int) idle.Hour {
	m := &meter{hour: idle.Hour{Nodes: nodes, Functions: map[string]idle.Function{}}}
	p := calm()
	const warm, parts = 5 * time.Minute, 2 // of an hour
	p.Trouble, p.Daemons = warm+time.Hour/parts, 0
	rep := inBubble(t, 1, Options{Profile: p, Mutant: &Mutant{Table: m.table}, Short: true, Before: func(w *World) {
		if nodes > 0 {
			crowd(nodes)(w)
		}
		w.lambdas["consolidation"] = consolidating(w, m, nodes > 0) // full nodes that are all alike are no cluster at rest
		for _, f := range w.lambdas {
			m.watch(f)
		}
		w.at(epoch.Add(warm), func() {
			m.on = true
			w.faults = false // functions that are asked every minute stay warm
		})
	}})
	must(t, "an hour without work", rep)
	if rep.Stats.Instances > 0 || rep.Stats.Terminated > 0 {
		t.Errorf("%d nodes: %d launched, %d ended: that is no idle cluster", nodes, rep.Stats.Instances, rep.Stats.Terminated)
	}
	for name, f := range m.hour.Functions {
		f.Invocations *= parts
		f.Readings *= parts
		for op := range f.Calls {
			f.Calls[op] *= parts
		}
		m.hour.Functions[name] = f
	}
	m.hour.ReadUnits *= parts
	m.hour.WriteUnits *= parts
	return m.hour
}

// TestIdleHour: what docs/cost.md is computed from is what the functions do today
// (-rewrite-idle writes it down).
func TestIdleHour(t *testing.T) {
	var hours []idle.Hour
	for _, nodes := range []int{0, 100, 1000} {
		hours = append(hours, idleHour(t, nodes))
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(hours); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "idle", "measured.json")
	if *rewriteIdle {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := idle.Measured()
	if err != nil {
		t.Fatal(err)
	}
	for i := range hours {
		if i >= len(was) {
			t.Fatalf("%d hours are written down", len(was))
		}
		// The days of a world differ a little with every change of the code: what costs is told.
		now, then := idle.Of(&hours[i], 0, 0), idle.Of(&was[i], 0, 0)
		if now.Core() > 1.1*then.Core() || now.Core() < 0.9*then.Core() {
			t.Errorf("%d nodes: a month costs $%.2f, and $%.2f is written down (go test ./internal/sim -run TestIdleHour -rewrite-idle; go run ./scripts/docs)", hours[i].Nodes, now.Core(), then.Core())
		}
	}
}
