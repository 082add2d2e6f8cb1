package sim

import (
	"encoding/json"
	"fmt"
	"time"
)

// Options are what a run is given beside its seed.
type Options struct {
	// Profile is the kind of world, nil = the seed draws it.
	Profile *Profile
	// Verbose keeps the text of the trace.
	Verbose bool
	// Script decides what happens to calls, before chance does.
	Script func(*World) func(bound) (trouble, bool)
	// Mutant breaks the handlers, for tests that the world notices.
	Mutant *Mutant
	// Before is called when everything is there and nothing has happened, After when the
	// world is at rest.
	Before, After func(*World)
	// Short: the run ends with the time of trouble, and nothing is held against its end.
	Short bool
}

// Report is what came of a run.
type Report struct {
	Seed   uint64
	Broken []Breach
	Hash   string // of the trace
	Trace  string // its text, when it was asked for
	Stats  Stats
	World  *World
}

// Run lets one world go by. It has to be called in a bubble of testing/synctest.
func Run(seed uint64, o Options) *Report {
	w := newWorld(seed, o)
	defer w.end()
	w.furnish()
	if o.Before != nil {
		o.Before(w)
	}
	w.start()
	w.faults = true
	w.runUntil(epoch.Add(w.Profile.Trouble))
	w.tracef("--- the trouble is over")
	w.faults = false
	w.calm()
	if o.Short {
		return w.report()
	}
	// It need not wait for what is there already.
	for t := w.Profile.Trouble + 3*time.Minute; t < w.Profile.Trouble+w.Profile.Settle && len(w.breach) == 0; t += time.Minute {
		w.runUntil(epoch.Add(t))
		if w.checks.atRest() {
			w.stats.Settled = t - w.Profile.Trouble
			break
		}
	}
	if len(w.breach) < maxBreaches {
		w.tracef("--- the world should be at rest")
		w.checks.settled()
		w.runUntil(w.now().Add(w.Profile.Quiet))
		w.checks.quiet()
	}
	if o.After != nil {
		o.After(w)
	}
	return w.report()
}

func (w *World) report() *Report {
	return &Report{Seed: w.Seed, Broken: w.breach, Hash: w.traceHash(), Trace: w.trace.String(), Stats: w.stats, World: w}
}

// newWorld makes a world in which nothing has happened yet.
func newWorld(seed uint64, o Options) *World {
	w := &World{Seed: seed, verbose: o.Verbose, hash: newHash(), over: map[*proc]func(*proc){}, queues: map[string]*mailbox{}, lambdas: map[string]*function{}}
	if o.Profile != nil {
		w.Profile = *o.Profile
	} else {
		w.Profile = Draw(seed)
	}
	if d := epoch.Sub(w.now()); d > 0 {
		time.Sleep(d)
	}
	if o.Script != nil {
		w.Script = o.Script(w)
	}
	w.checks = newChecks(w)
	w.aws = newAWS(w)
	w.cluster = newCluster(w)
	w.table = newTable(w)
	w.people = &people{w: w, dice: newDice(seed, "people")}
	w.bus = newBus(w)
	w.wire(o.Mutant)
	return w
}

// start begins what goes on by itself.
func (w *World) start() {
	w.schedule(0)
	w.everyMinute(1)
	w.consolidates()
	if w.Profile.Faults.Restore {
		d := newDice(w.Seed, "restore")
		at := d.between(2*time.Minute, w.Profile.Trouble)
		w.after(at-d.between(30*time.Second, 2*time.Minute), w.table.copy)
		w.after(at, w.table.restore)
	}
}

// schedule is EventBridge Scheduler: a tick a minute, as a rule.
func (w *World) schedule(n int) {
	ticks, d := w.queues["ticks"], newDice(w.Seed, fmt.Sprintf("schedule %d", n))
	at := epoch.Add(time.Duration(n) * time.Minute)
	w.at(at, func() {
		w.schedule(n + 1)
		body, err := json.Marshal(map[string]any{"kind": "minute", "sent": at.Format(time.RFC3339)})
		if err != nil {
			panic(err)
		}
		late := d.between(0, 900*time.Millisecond)
		if w.faults && d.in(w.Profile.Faults.Tick) {
			switch d.IntN(3) {
			case 0:
				w.tracef("the tick of this minute is missing")
				return
			case 1:
				late = d.between(time.Second, 58*time.Second)
			case 2:
				w.after(d.between(0, 40*time.Second), func() { ticks.put(string(body), 0) })
			}
		}
		w.after(late, func() { ticks.put(string(body), 0) })
		if n%5 == 0 {
			w.invokeCatalog(nil)
		}
	})
}

func (w *World) everyMinute(n int) {
	w.at(epoch.Add(time.Duration(n)*time.Minute-17*time.Second), func() {
		w.people.minute()
		w.everyMinute(n + 1)
	})
}

// calm ends what goes wrong. Machines that never join stay so: who waits for them has to give
// them up.
func (w *World) calm() {
	w.aws.ec2.Short = nil
	w.cluster.webhook = time.Time{}
	for _, f := range w.lambdas {
		f.settle()
	}
}
