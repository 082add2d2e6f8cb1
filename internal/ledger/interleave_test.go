package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// errCut ends an actor: its invocation was killed.
var errCut = errors.New("the invocation ended")

// schedule runs actors on one table, one request at a time, in a drawn order: an actor
// stops before each request until it is its turn. What goes wrong with a request is drawn
// too. It is deterministic: one goroutine runs at a time.
type schedule struct {
	t      *rapid.T
	turn   map[string]chan Fault
	parked chan string
	over   chan string
}

// actorTable is the table as one actor sees it.
type actorTable struct {
	*Memory
	name string
	s    *schedule
	dead bool
}

// stop waits for the turn of the actor.
func (a *actorTable) stop() Fault {
	if a.dead {
		return Fault{Err: errCut}
	}
	a.s.parked <- a.name
	f := <-a.s.turn[a.name]
	a.dead = errors.Is(f.Err, errCut)
	return f
}

func (a *actorTable) Get(ctx context.Context, k Key) (Item, error) {
	if f := a.stop(); f.Err != nil {
		return nil, f.Err
	}
	return a.Memory.Get(ctx, k)
}

func (a *actorTable) Query(ctx context.Context, pk, after string) ([]Item, string, error) {
	if f := a.stop(); f.Err != nil {
		return nil, "", f.Err
	}
	return a.Memory.Query(ctx, pk, after)
}

func (a *actorTable) Write(ctx context.Context, w Write) (Item, error) {
	f := a.stop()
	if f.Err != nil && !f.Applied {
		return nil, f.Err
	}
	it, err := a.Memory.Write(ctx, w)
	if f.Err != nil {
		return nil, f.Err
	}
	return it, err
}

func (a *actorTable) Transact(ctx context.Context, token string, ws []Write) error {
	f := a.stop()
	if f.Err != nil && !f.Applied {
		return f.Err
	}
	err := a.Memory.Transact(ctx, token, ws)
	if f.Err != nil {
		return f.Err
	}
	return err
}

// run lets the actors run to their ends. step is called after every request.
func (s *schedule) run(actors map[string]func(Table), m *Memory, clk *clock, step func()) {
	s.turn, s.parked, s.over = map[string]chan Fault{}, make(chan string), make(chan string)
	waiting := map[string]bool{}
	// wait lets the running actor go on until it stops or ends.
	wait := func() {
		select {
		case name := <-s.parked:
			waiting[name] = true
		case <-s.over:
		}
	}
	for _, name := range slices.Sorted(maps.Keys(actors)) {
		s.turn[name] = make(chan Fault)
		tb := &actorTable{Memory: m, name: name, s: s}
		go func() {
			actors[name](tb)
			s.over <- name
		}()
		wait()
	}
	faults := []Fault{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {Err: ErrUnknown, Applied: true}, {Err: ErrUnknown}, {Err: ErrThrottled}, {Err: ErrConflict}, {Err: errCut, Applied: true}, {Err: errCut}}
	for len(waiting) > 0 {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(waiting))).Draw(s.t, "next")
		f := rapid.SampledFrom(faults).Draw(s.t, "fault")
		if rapid.IntRange(0, 7).Draw(s.t, "freeze") == 7 {
			clk.pass(time.Duration(rapid.IntRange(1, 60).Draw(s.t, "seconds")) * time.Second)
		}
		delete(waiting, name)
		s.turn[name] <- f
		wait()
		step()
	}
}

// TestPassesNeverExceed: whoever commits, begins, answers, settles, closes and recounts at
// the same time, frozen, cut off and with lost answers: limits hold after every request,
// counters are what records add up to, and an intent has at most one attempt under way.
func TestPassesNeverExceed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if _, err := interleaved(t, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// outcome counts what an interleaving did, so that tests know it did something.
type outcome struct{ committed, launched, refused, lost, settled int }

// interleaved runs drawn passes; mutate breaks the ledger of a mutant.
func interleaved(t *rapid.T, mutate func(Table) Table) (outcome, error) {
	var got outcome
	clk := newClock()
	m := NewMemory("table-1")
	boot := testLedger(m, clk, "boot")
	ctx := context.Background()
	if err := boot.BeginRecovery(ctx, "new"); err != nil {
		t.Fatal(err)
	}
	lease, err := boot.AcquireRecovery(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := boot.EndRecovery(ctx, lease); err != nil {
		t.Fatal(err)
	}
	limit := rapid.Int64Range(1, 6).Draw(t, "limit")
	limits := Limits{"p": {snapshot.Nodes: limit, snapshot.CPU: 10_000}}
	actors := map[string]func(Table){}
	for i := range rapid.IntRange(2, 4).Draw(t, "passes") {
		name := fmt.Sprintf("pass-%d", i)
		cores := rapid.SliceOfN(rapid.Int64Range(1, 4), 1, 4).Draw(t, "cores")
		gets := rapid.IntRange(0, len(cores)).Draw(t, "instances")
		actors[name] = func(tb Table) {
			if mutate != nil {
				tb = mutate(tb)
			}
			sweep(testLedger(tb, clk, name), clk, name, cores, gets, limits, &got)
		}
	}
	actors["housekeeping"] = func(tb Table) {
		if mutate != nil {
			tb = mutate(tb)
		}
		housekeep(testLedger(tb, clk, "housekeeping"), clk)
	}
	j := &judge{m: m, clk: clk, limits: limits, seen: map[string]bool{}}
	s := &schedule{t: t}
	s.run(actors, m, clk, j.look)
	if j.broken != nil {
		return got, j.broken
	}
	if err := converge(m, clk, limits); err != nil {
		return got, err
	}
	j.look()
	return got, j.broken
}

// sweep is one pass: lease, then in chunks commit, begin, the call, answer, settle; then
// release. A pass that finds the lease busy tries again, as the next tick would.
func sweep(l *Ledger, clk *clock, name string, cores []int64, gets int, limits Limits, got *outcome) {
	ctx := context.Background()
	var lease Lease
	var err error
	for range 4 {
		if lease, err = l.Acquire(ctx, 30*time.Second); err == nil {
			break
		}
		_, _ = l.SetRerun(ctx)
	}
	if err != nil {
		return
	}
	for i, n := range cores {
		id := fmt.Sprintf("%s-%d", name, i)
		recs, err := l.Commit(ctx, lease, []lifecycle.Record{intent(clk, id, "p", n)}, limits)
		if _, ok := errors.AsType[*LimitError](err); ok {
			got.refused++
			continue
		}
		if errors.Is(err, ErrLostLease) {
			got.lost++
		}
		if err != nil {
			return
		}
		got.committed++
		begun, err := l.Begin(ctx, lease, lifecycle.Attempt{ID: "at-" + id, Request: []byte(name)}, recs, nil, limits)
		if errors.Is(err, ErrLostLease) {
			got.lost++
		}
		if err != nil {
			continue
		}
		got.launched++
		o := lifecycle.Outcome{Source: lifecycle.FromAnswer, At: clk.Now()}
		if i < gets {
			o.Instances = []lifecycle.Instance{{ID: "i-" + id, Zone: "a"}}
		}
		at, err := l.Answer(ctx, begun.Attempt, begun.Attempt.Answer(o))
		if err != nil {
			continue
		}
		if _, err := l.Settle(ctx, at, known(1)); err == nil {
			got.settled++
		}
	}
	_, _ = l.Release(ctx, lease, 1)
}

// housekeep finishes what it finds, cancels what is still an intent, and recounts.
func housekeep(l *Ledger, clk *clock) {
	ctx := context.Background()
	for range 4 {
		ats, err := l.Attempts(ctx)
		if err != nil {
			return
		}
		for _, a := range ats {
			if a.Resolve(true, clk.Now()).Move == lifecycle.MoveSettle {
				_, _ = l.Settle(ctx, a, known(1))
			}
		}
		recs, err := l.Records(ctx)
		if err != nil {
			return
		}
		for _, r := range recs {
			next, ok := r.Cancel("not wanted any more", clk.Now())
			if ok {
				_, _ = l.Save(ctx, Change{Was: r, Next: next})
			}
		}
		_, _ = recount(ctx, l)
	}
}

// judge looks at the table after every request.
type judge struct {
	m      *Memory
	clk    *clock
	limits Limits
	seen   map[string]bool // claims and attempts
	broken error           // the first invariant that did not hold
}

func (j *judge) look() {
	if j.broken == nil {
		j.broken = j.check()
	}
}

func (j *judge) check() error {
	ctx := context.Background()
	l := testLedger(j.m, j.clk, "judge")
	recs, err := l.Records(ctx)
	if err != nil {
		return err
	}
	counted, err := l.Usage(ctx)
	if err != nil {
		return err
	}
	lease, err := l.ReadLease(ctx)
	if err != nil {
		return err
	}
	sum := lifecycle.PoolUsage(recs)
	for pool, limit := range j.limits {
		for name, n := range limit {
			if sum[pool][name] > n {
				return fmt.Errorf("records of %s use %d %s, the limit is %d", pool, sum[pool][name], name, n)
			}
		}
		if d := counted[pool].Sub(sum[pool]); len(d) != 0 {
			return fmt.Errorf("the counters of %s are off by %v", pool, d)
		}
	}
	ats, err := l.Attempts(ctx)
	if err != nil {
		return err
	}
	under := map[string]string{}
	for _, a := range ats {
		if !j.seen[a.ID] && a.Fence != lease.Token {
			return fmt.Errorf("attempt %s was begun with token %d, the lease has %d", a.ID, a.Fence, lease.Token)
		}
		j.seen[a.ID] = true
		if a.State != lifecycle.Calling {
			continue
		}
		for _, claim := range a.Claims {
			if other := under[claim]; other != "" {
				return fmt.Errorf("claim %s has attempts %s and %s under way", claim, other, a.ID)
			}
			under[claim] = a.ID
		}
	}
	for _, r := range recs {
		if !j.seen[r.Claim] && r.Fence != lease.Token {
			return fmt.Errorf("claim %s was committed with token %d, the lease has %d", r.Claim, r.Fence, lease.Token)
		}
		j.seen[r.Claim] = true
		if r.Phase == lifecycle.Launching && r.Attempt == "" || r.Phase == lifecycle.Intended && r.Attempt != "" {
			return fmt.Errorf("claim %s is %s with attempt %q", r.Claim, r.Phase, r.Attempt)
		}
	}
	for claim, at := range under {
		if r, ok, err := l.Record(ctx, claim); err != nil || !ok || r.Attempt != at {
			return fmt.Errorf("attempt %s of claim %s is under way, the record (there: %v) is with %q, %v", at, claim, ok, r.Attempt, err)
		}
	}
	return nil
}

// converge shows that whatever state an interleaving left, the documented way leads on:
// another holder resolves every attempt, and every record is launched or closed.
func converge(m *Memory, clk *clock, limits Limits) error {
	ctx := context.Background()
	l := testLedger(m, clk, "next")
	clk.pass(5 * time.Minute)
	lease, err := l.Acquire(ctx, time.Hour)
	if err != nil {
		return fmt.Errorf("nobody can plan any more: %v", err)
	}
	for range 40 {
		ats, err := l.Attempts(ctx)
		if err != nil {
			return err
		}
		open := 0
		for _, a := range ats {
			next := a
			switch r := a.Resolve(true, clk.Now()); r.Move {
			case lifecycle.MoveNone:
				continue
			case lifecycle.MoveReplay:
				next = a.Answer(lifecycle.Outcome{Source: lifecycle.FromReplay, At: clk.Now(), Instances: []lifecycle.Instance{{ID: "i-" + a.ID + "-replayed"}}})
			case lifecycle.MoveLook:
				next = a.Looked(nil, clk.Now())
			case lifecycle.MoveGiveUp:
				next = a.GiveUp(clk.Now())
			}
			open++
			if next.Version == a.Version && (next.State != a.State || next.Looks != a.Looks) {
				if next, err = l.Answer(ctx, a, next); err != nil {
					return err
				}
			}
			if next.Outcome != nil {
				if _, err := l.Settle(ctx, next, known(1)); err != nil {
					return err
				}
			}
		}
		if open == 0 {
			break
		}
		clk.pass(30 * time.Second)
	}
	recs, err := l.Records(ctx)
	if err != nil {
		return err
	}
	for _, r := range recs {
		switch r.Phase {
		case lifecycle.Launched:
			if claim, err := l.ClaimOf(ctx, r.Instance.ID); err != nil || claim != r.Claim {
				return fmt.Errorf("instance %s of %s is found as %q, %v", r.Instance.ID, r.Claim, claim, err)
			}
		case lifecycle.Intended:
			// Still wanted, or not: both ways are open.
			if len(r.Claim)%2 == 0 {
				if _, err := l.Begin(ctx, lease, lifecycle.Attempt{ID: "again-" + r.Claim}, []lifecycle.Record{r}, nil, limits); err != nil {
					return fmt.Errorf("%s cannot be launched: %v", r.Claim, err)
				}
			} else if next, ok := r.Cancel("x", clk.Now()); !ok {
				return fmt.Errorf("%s cannot be cancelled", r.Claim)
			} else if _, err := l.Save(ctx, Change{Was: r, Next: next}); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is stuck: %s with attempt %q", r.Claim, r.Phase, r.Attempt)
		}
	}
	return nil
}

// mutant is a table that breaks one rule of the ledger.
type mutant struct {
	Table
	change func(Write) Write
}

func (m mutant) Write(ctx context.Context, w Write) (Item, error) {
	return m.Table.Write(ctx, m.change(w))
}
func (m mutant) Transact(ctx context.Context, token string, ws []Write) error {
	ws = slices.Clone(ws)
	for i, w := range ws {
		ws[i] = m.change(w)
	}
	return m.Table.Transact(ctx, token, ws)
}

// TestMutants: a ledger without one of its conditions breaks an invariant within the
// seeds that the property runs.
func TestMutants(t *testing.T) {
	without := func(when func(Write) bool) func(Write) Write {
		return func(w Write) Write {
			if when(w) {
				w.When = All()
			}
			return w
		}
	}
	mutants := map[string]func(Write) Write{
		"limits are not checked":   without(func(w Write) bool { return w.Key.PK == pkPools && len(w.Add) > 1 }),
		"versions are not checked": without(func(w Write) bool { return w.Key.PK == pkNodes }),
		"the lease is not checked": without(Write.check),
		"a recount is not guarded": without(func(w Write) bool { return w.Key.PK == pkPools && len(w.Set) > 0 }),
	}
	for name, change := range mutants {
		t.Run(name, func(t *testing.T) {
			for seed := range 3000 {
				_, err := drawn(seed, func(tb Table) Table { return mutant{tb, change} })
				if err != nil {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no seed caught it")
		})
	}
}

// TestInterleavingsDoSomething keeps the property from passing because nothing happened.
func TestInterleavingsDoSomething(t *testing.T) {
	var sum outcome
	for seed := range 300 {
		o, err := drawn(seed, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sum.committed += o.committed
		sum.launched += o.launched
		sum.refused += o.refused
		sum.lost += o.lost
		sum.settled += o.settled
	}
	t.Logf("%+v", sum)
	if sum.committed < 100 || sum.launched < 50 || sum.refused < 20 || sum.lost < 3 || sum.settled < 20 {
		t.Errorf("too little happened: %+v", sum)
	}
}

// drawn is the interleaving of a seed.
func drawn(seed int, mutate func(Table) Table) (o outcome, err error) {
	rapid.Custom(func(t *rapid.T) int {
		o, err = interleaved(t, mutate)
		return 0
	}).Example(seed)
	return o, err
}
