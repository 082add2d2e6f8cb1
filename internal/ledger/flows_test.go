package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// clock is the time of a test.
type clock struct{ now time.Time }

// newClock starts at noon, each a second later than the one before: tokens of
// transactions hold the time, and are one space for all tables of an account.
func newClock() *clock {
	return &clock{time.Date(2026, 11, 30, 12, 0, int(clocks.Add(1)), 0, time.UTC)}
}

var clocks atomic.Int64

func (c *clock) Now() time.Time               { return c.now }
func (c *clock) pass(d time.Duration)         { c.now = c.now.Add(d) }
func (c *clock) in(d time.Duration) time.Time { return c.now.Add(d) }

func testLedger(tb Table, c *clock, owner string) *Ledger {
	return New(Config{Table: tb, Cluster: "test", Owner: owner, Now: c.Now})
}

// ready makes a ledger whose recovery is over, and two invocations on it.
func ready(t *testing.T, tb Table, c *clock) (a, b *Ledger) {
	t.Helper()
	a = testLedger(tb, c, "a")
	ctx := t.Context()
	if err := a.BeginRecovery(ctx, "new"); err != nil {
		t.Fatal(err)
	}
	lease, err := a.AcquireRecovery(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EndRecovery(ctx, lease); err != nil {
		t.Fatal(err)
	}
	return a, testLedger(tb, c, "b")
}

func acquire(t *testing.T, l *Ledger) Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// intent is a record that a plan wants: so many cores in a pool.
func intent(c *clock, claim, pool string, cores int64) lifecycle.Record {
	return lifecycle.Record{
		Claim: claim, NodePool: pool, Phase: lifecycle.Intended, PlanID: "plan-1", Created: c.now,
		Reserved:  lifecycle.Usage{snapshot.CPU: cores * 1000, snapshot.Nodes: 1, lifecycle.Price: cores * 40_000},
		Nominated: []lifecycle.Pod{{Namespace: "shop", Name: claim + "-pod", UID: "u-" + claim, At: c.now}},
	}
}

func known(cores int64) func(string, lifecycle.Instance) lifecycle.Known {
	return func(string, lifecycle.Instance) lifecycle.Known {
		return lifecycle.Known{Capacity: snapshot.Resources{CPU: cores * 1000}, Allocatable: snapshot.Resources{CPU: cores*1000 - 80}, Price: cores * 40_000}
	}
}

// usage fails the test when a pool does not use what it should, or the counters are not
// what the records add up to.
func usage(t *testing.T, l *Ledger, pool string, want lifecycle.Usage) {
	t.Helper()
	got, err := l.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got[pool]); diff != "" {
		t.Errorf("usage of %s (-want +got)\n%s", pool, diff)
	}
	if fixed, err := recount(t.Context(), l); err != nil || len(fixed) != 0 {
		t.Errorf("a recount corrects %v, %v", fixed, err)
	}
}

// recount reads what a recount takes, in its order, and recounts.
func recount(ctx context.Context, l *Ledger) ([]Correction, error) {
	counted, err := l.Counted(ctx)
	if err != nil {
		return nil, err
	}
	records, err := l.Records(ctx)
	if err != nil {
		return nil, err
	}
	return l.Recount(ctx, counted, records)
}

// flows are the ledger's tests that run on any table.
func flows(t *testing.T, make func(t *testing.T) Table) {
	tests := []struct {
		name string
		run  func(t *testing.T, tb Table)
	}{
		{"recovery", flowRecovery},
		{"lease", flowLease},
		{"rerun", flowRerun},
		{"lost lease", flowLostLease},
		{"launch", flowLaunch},
		{"limits", flowLimits},
		{"records", flowRecords},
		{"attempts", flowAttempts},
		{"history", flowHistory},
		{"catalogue", flowCatalogue},
		{"commands", flowCommands},
		{"large bursts", flowBurst},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, make(t)) })
	}
}

// TestFlows runs them on the table in memory.
func TestFlows(t *testing.T) {
	flows(t, func(*testing.T) Table { return NewMemory("table-1") })
}

func flowRecovery(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	l := testLedger(tb, c, "a")
	m, err := l.Open(ctx)
	if err != nil || m.Mode != Recovery || m.Why != "the table is new" {
		t.Fatalf("a new table: %+v, %v", m, err)
	}
	if _, err := l.Acquire(ctx, time.Minute); !errors.Is(err, ErrRecovery) {
		t.Errorf("acquire: %v", err)
	}
	if _, err := l.AcquireRecovery(ctx, time.Minute); !errors.Is(err, ErrRecovery) {
		t.Errorf("a recovery that did not begin: %v", err)
	}
	for range 2 {
		if err := l.BeginRecovery(ctx, "new"); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := l.AcquireRecovery(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(ctx, time.Minute); !errors.Is(err, ErrRecovery) {
		t.Errorf("acquire in recovery: %v", err)
	}
	if lease.Token <= c.now.UnixMilli() {
		t.Errorf("token %d did not jump", lease.Token)
	}
	if _, err := l.Commit(ctx, lease, []lifecycle.Record{intent(c, "x", "p", 1)}, nil); !errors.Is(err, ErrRecovery) {
		t.Errorf("commit in recovery: %v", err)
	}
	if _, err := l.Begin(ctx, lease, lifecycle.Attempt{ID: "1"}, []lifecycle.Record{intent(c, "x", "p", 1)}, nil, nil); !errors.Is(err, ErrRecovery) {
		t.Errorf("begin in recovery: %v", err)
	}
	if _, err := l.SaveCommand(ctx, lease, lifecycle.Command{ID: "1"}); !errors.Is(err, ErrRecovery) {
		t.Errorf("command in recovery: %v", err)
	}
	r := intent(c, "old-1", "p", 4)
	r.Phase, r.Instance = lifecycle.Initialized, lifecycle.Instance{ID: "i-1"}
	if r, err = l.Adopt(ctx, r); err != nil || r.Version != 1 || !r.Adopted {
		t.Fatalf("adopt: %+v, %v", r, err)
	}
	again := r
	again.Version, again.Node = 0, "other"
	if _, err := l.Adopt(ctx, again); err == nil || !strings.Contains(err.Error(), "old-1") {
		t.Errorf("adopted twice: %v", err)
	}
	usage(t, l, "p", r.Reserved)
	if err := l.EndRecovery(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if err := l.EndRecovery(ctx, lease); !errors.Is(err, ErrLostLease) {
		t.Errorf("ended twice: %v", err)
	}
	if m, err := l.Open(ctx); err != nil || m.Mode != Normal {
		t.Errorf("open: %+v, %v", m, err)
	}
	acquire(t, l)
	other := New(Config{Table: tb, Cluster: "other", Owner: "x", Now: c.Now})
	if _, err := other.Open(ctx); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("the table of another cluster: %v", err)
	}
}

func flowLease(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	first := acquire(t, a)
	_, err := b.Acquire(ctx, time.Minute)
	if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Owner != "a" || !busy.Expires.Equal(c.in(time.Minute)) {
		t.Fatalf("acquire: %v", err)
	}
	c.pass(50 * time.Second)
	first, err = a.Renew(ctx, first, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(59 * time.Second)
	if _, err := b.Acquire(ctx, time.Minute); err == nil {
		t.Fatal("taken before its expiry")
	}
	c.pass(time.Second)
	second := acquire(t, b)
	if second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	if _, err := a.Renew(ctx, first, time.Minute); !errors.Is(err, ErrLostLease) {
		t.Errorf("renew: %v", err)
	}
	if _, err := a.Release(ctx, first, 9); !errors.Is(err, ErrLostLease) {
		t.Errorf("release: %v", err)
	}
	if again, err := b.Release(ctx, second, 4); again || err != nil {
		t.Errorf("release: %v, %v", again, err)
	}
	if again, err := b.Release(ctx, second, 4); again || err != nil {
		t.Errorf("release once more: %v, %v", again, err)
	}
	third := acquire(t, a)
	if third.Token <= second.Token || third.Slot != 4 {
		t.Errorf("third lease %+v", third)
	}
	// The same invocation takes it anew; what it began with the old token is over.
	fourth := acquire(t, a)
	if fourth.Token <= third.Token {
		t.Errorf("token %d after %d", fourth.Token, third.Token)
	}
	if _, err := a.Commit(ctx, third, []lifecycle.Record{intent(c, "x", "p", 1)}, nil); !errors.Is(err, ErrLostLease) {
		t.Errorf("commit with the former token: %v", err)
	}
	s, err := a.ReadLease(ctx)
	if err != nil || s.Owner != "a" || s.Token != fourth.Token || s.Slot != 4 || s.Mode != Normal {
		t.Errorf("lease %+v, %v", s, err)
	}
}

func flowRerun(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	if held, err := b.SetRerun(ctx); held || err != nil {
		t.Errorf("nobody holds it: %v, %v", held, err)
	}
	lease := acquire(t, a)
	for range 2 {
		if held, err := b.SetRerun(ctx); !held || err != nil {
			t.Errorf("rerun: %v, %v", held, err)
		}
	}
	if again, err := a.Release(ctx, lease, 7); !again || err != nil {
		t.Fatalf("release with a rerun: %v, %v", again, err)
	}
	if _, err := b.Acquire(ctx, time.Minute); err == nil {
		t.Error("the lease was let go")
	}
	if again, err := a.Release(ctx, lease, 8); again || err != nil {
		t.Fatalf("second release: %v, %v", again, err)
	}
	lease = acquire(t, b)
	if lease.Slot != 8 {
		t.Errorf("slot %d", lease.Slot)
	}
	// A rerun that the holder never saw is done by whoever takes over.
	if _, err := a.SetRerun(ctx); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Hour)
	if held, err := a.SetRerun(ctx); held || err != nil {
		t.Errorf("an expired lease is held: %v, %v", held, err)
	}
	lease = acquire(t, a)
	if again, err := a.Release(ctx, lease, 3); again || err != nil {
		t.Errorf("release: %v, %v", again, err)
	}
	if s, err := a.ReadLease(ctx); err != nil || s.Slot != 8 {
		t.Errorf("a slot went back: %+v, %v", s, err)
	}
}

func flowLostLease(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	lease := acquire(t, a)
	recs, err := a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n1", "p", 2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(5 * time.Minute) // frozen (BC-40)
	acquire(t, b)
	before := dump(t, tb)
	if _, err := a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n2", "p", 2)}, nil); !errors.Is(err, ErrLostLease) {
		t.Errorf("commit: %v", err)
	}
	if _, err := a.Begin(ctx, lease, lifecycle.Attempt{ID: "at-1", Request: []byte("r")}, recs, nil, nil); !errors.Is(err, ErrLostLease) {
		t.Errorf("begin: %v", err)
	}
	if _, err := a.SaveCommand(ctx, lease, lifecycle.Command{ID: "c"}); !errors.Is(err, ErrLostLease) {
		t.Errorf("command: %v", err)
	}
	next := recs[0]
	next.Reason = "x"
	if _, err := a.SaveUnder(ctx, lease, Change{Was: recs[0], Next: next}); !errors.Is(err, ErrLostLease) {
		t.Errorf("save: %v", err)
	}
	if diff := cmp.Diff(before, dump(t, tb)); diff != "" {
		t.Errorf("a lost lease changed something\n%s", diff)
	}
}

// dump is every row that tests look at.
func dump(t *testing.T, tb Table) []Item {
	t.Helper()
	defer quiet(tb)()
	var out []Item
	for _, pk := range append([]string{"INSTANCE#i-1"}, exported...) {
		for after := ""; ; {
			items, next, err := tb.Query(context.Background(), pk, after)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, items...)
			if after = next; next == "" {
				break
			}
		}
	}
	return out
}

func flowLaunch(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	lease := acquire(t, a)
	limits := Limits{"p": {snapshot.CPU: 20_000}}
	wanted := []lifecycle.Record{intent(c, "n1", "p", 8), intent(c, "n2", "p", 8)}
	recs, err := a.Commit(ctx, lease, wanted, limits)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Commit(ctx, lease, wanted, limits); err != nil || cmp.Diff(recs, again) != "" {
		t.Errorf("the same commit again: %v, %s", err, cmp.Diff(recs, again))
	}
	usage(t, a, "p", lifecycle.Usage{snapshot.CPU: 16_000, snapshot.Nodes: 2, lifecycle.Price: 640_000})
	request := []byte(strings.Repeat(`{"overrides":[...]}`, 2000))
	begun, err := a.Begin(ctx, lease, lifecycle.Attempt{ID: "at-1", Request: request}, recs, nil, limits)
	if err != nil {
		t.Fatal(err)
	}
	if !begun.Attempt.NotAfter.Equal(c.in(time.Minute)) || cmp.Diff([]string{"n1", "n2"}, begun.Attempt.Claims) != "" {
		t.Errorf("attempt %+v", begun.Attempt)
	}
	if _, err := a.Begin(ctx, lease, lifecycle.Attempt{ID: "at-2"}, begun.Records, nil, limits); !errors.Is(err, ErrChanged) {
		t.Errorf("a second attempt: %v", err)
	}
	if _, err := a.Begin(ctx, lease, lifecycle.Attempt{ID: "at-2"}, recs, nil, limits); !errors.Is(err, ErrChanged) {
		t.Errorf("a second attempt on what was read before: %v", err)
	}
	// Crash after the call (BC-24). Somebody else finds the stored bytes, after the grace.
	there, ok, err := b.Attempt(ctx, "at-1")
	if err != nil || !ok || string(there.Request) != string(request) {
		t.Fatalf("the stored request: %v, %v, %d bytes", ok, err, len(there.Request))
	}
	if got := there.Resolve(true, c.now); got.Move != lifecycle.MoveWait {
		t.Errorf("resolve at once: %+v", got)
	}
	c.pass(2*time.Minute + time.Second)
	if got := there.Resolve(true, c.now); got.Move != lifecycle.MoveReplay {
		t.Errorf("resolve: %+v", got)
	}
	// The answer has one instance of two; its lost twin answers too.
	one := lifecycle.Instance{ID: "i-1", Type: "m7g.xlarge", Zone: "a", CapacityType: "spot"}
	outcome := lifecycle.Outcome{Instances: []lifecycle.Instance{one}, Source: lifecycle.FromReplay, At: c.now,
		Errors: []lifecycle.OfferError{{InstanceType: "m7g.2xlarge", Zone: "b", CapacityType: "spot", Code: "InsufficientInstanceCapacity"}}}
	answered, err := b.Answer(ctx, there, there.Answer(outcome))
	if err != nil {
		t.Fatal(err)
	}
	late := there.Answer(lifecycle.Outcome{Source: lifecycle.FromAnswer, At: c.now})
	if first, err := a.Answer(ctx, there, late); err != nil || cmp.Diff(answered, first) != "" {
		t.Errorf("a second outcome: %v\n%s", err, cmp.Diff(answered, first))
	}
	for range 2 {
		done, err := b.Settle(ctx, answered, known(4))
		if err != nil || len(done.Extra) != 0 || len(done.Records) != 2 {
			t.Fatalf("settle: %+v, %v", done, err)
		}
	}
	usage(t, a, "p", lifecycle.Usage{snapshot.CPU: 12_000, snapshot.Nodes: 2, lifecycle.Price: 480_000})
	n1, _, err := b.Record(ctx, "n1")
	if err != nil || n1.Phase != lifecycle.Launched || n1.Instance.ID != "i-1" || n1.Instance.ProviderID() != "aws:///a/i-1" {
		t.Errorf("n1 %+v, %v", n1, err)
	}
	n2, _, err := b.Record(ctx, "n2")
	if err != nil || n2.Phase != lifecycle.Intended || n2.Attempt != "" || !strings.Contains(n2.Message, "InsufficientInstanceCapacity for m7g.2xlarge") {
		t.Errorf("n2 %+v, %v", n2, err)
	}
	if claim, err := b.ClaimOf(ctx, "i-1"); err != nil || claim != "n1" {
		t.Errorf("the claim of i-1: %q, %v", claim, err)
	}
	// The next offering is a new attempt; it may ask for more only within the limits.
	lease = acquire(t, b)
	more := map[string]lifecycle.Usage{"n2": {snapshot.CPU: 32_000, snapshot.Nodes: 1}}
	_, err = b.Begin(ctx, lease, lifecycle.Attempt{ID: "at-2"}, []lifecycle.Record{n2}, more, limits)
	if e, ok := errors.AsType[*LimitError](err); !ok || e.Used != 12_000 || e.Asked != 24_000 || e.Limit != 20_000 {
		t.Errorf("begin above the limit: %v", err)
	}
	less := map[string]lifecycle.Usage{"n2": {snapshot.CPU: 2000, snapshot.Nodes: 1}}
	if _, err := b.Begin(ctx, lease, lifecycle.Attempt{ID: "at-2"}, []lifecycle.Record{n2}, less, limits); err != nil {
		t.Fatal(err)
	}
	usage(t, a, "p", lifecycle.Usage{snapshot.CPU: 6000, snapshot.Nodes: 2, lifecycle.Price: 160_000})
	// Closing lets go of everything, and can be repeated.
	closed := n1
	closed.Phase, closed.Reason = lifecycle.Closed, lifecycle.ReasonInstanceGone
	for range 2 {
		if _, err := b.Save(ctx, Change{Was: n1, Next: closed}); err != nil {
			t.Fatal(err)
		}
	}
	usage(t, a, "p", lifecycle.Usage{snapshot.CPU: 2000, snapshot.Nodes: 1})
	if _, ok, err := b.Record(ctx, "n1"); ok || err != nil {
		t.Errorf("a closed record is live: %v", err)
	}
	kept, err := b.ClosedOn(ctx, "2026-11-30")
	if err != nil || len(kept) != 1 || kept[0].Reason != lifecycle.ReasonInstanceGone {
		t.Errorf("closed %+v, %v", kept, err)
	}
	if claim, err := b.ClaimOf(ctx, "i-1"); err != nil || claim != "n1" {
		t.Errorf("the claim of i-1 after closing: %q, %v", claim, err)
	}
	c.pass(25 * time.Hour)
	if claim, err := b.ClaimOf(ctx, "i-1"); err != nil || claim != "" {
		t.Errorf("the claim of i-1 a day later: %q, %v", claim, err)
	}
	c.pass(30 * 24 * time.Hour)
	if kept, err := b.ClosedOn(ctx, "2026-11-30"); err != nil || len(kept) != 0 {
		t.Errorf("closed for more than 30 days: %v, %v", kept, err)
	}
}

func flowLimits(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, _ := ready(t, tb, c)
	lease := acquire(t, a)
	gpu := func(claim string, n int64) lifecycle.Record {
		r := intent(c, claim, "p", 1)
		r.Reserved["nvidia.com/gpu"] = n
		return r
	}
	limits := Limits{"p": {snapshot.Nodes: 3, "nvidia.com/gpu": 2, lifecycle.Price: 1_000_000}, "none": {snapshot.CPU: -5}}
	_, err := a.Commit(ctx, lease, []lifecycle.Record{gpu("g", 3)}, limits)
	if e, ok := errors.AsType[*LimitError](err); !ok || *e != (LimitError{NodePool: "p", Resource: "nvidia.com/gpu", Used: 0, Asked: 3, Limit: 2}) {
		t.Errorf("above a limit at once: %v", err)
	}
	if _, err := a.Commit(ctx, lease, []lifecycle.Record{gpu("g1", 1), gpu("g2", 1)}, limits); err != nil {
		t.Fatal(err)
	}
	_, err = a.Commit(ctx, lease, []lifecycle.Record{gpu("g3", 1), intent(c, "other", "q", 1)}, limits)
	if e, ok := errors.AsType[*LimitError](err); !ok || *e != (LimitError{NodePool: "p", Resource: "nvidia.com/gpu", Used: 2, Asked: 1, Limit: 2}) {
		t.Errorf("the third gpu: %v", err)
	}
	if _, ok, _ := a.Record(ctx, "other"); ok {
		t.Error("part of a commit was applied")
	}
	// BC-19: every claim takes one node at once.
	if _, err := a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n3", "p", 1)}, limits); err != nil {
		t.Fatal(err)
	}
	_, err = a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n4", "p", 1)}, limits)
	if e, ok := errors.AsType[*LimitError](err); !ok || e.Resource != snapshot.Nodes || e.Limit != 3 {
		t.Errorf("the fourth node: %v", err)
	}
	_, err = a.Commit(ctx, lease, []lifecycle.Record{intent(c, "m", "none", 1)}, limits)
	if e, ok := errors.AsType[*LimitError](err); !ok || e.Limit != -5 {
		t.Errorf("a negative limit: %v", err)
	}
	// What exists counts beyond the limit, and stops the next.
	big := intent(c, "big", "q", 64)
	big.Phase = lifecycle.Initialized
	if _, err := a.Adopt(ctx, big); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Commit(ctx, lease, []lifecycle.Record{intent(c, "q1", "q", 1)}, Limits{"q": {snapshot.CPU: 8000}}); err == nil {
		t.Error("committed beyond what exists")
	}
	// A counter that somebody changed by hand heals.
	must(t, tb, Write{Key: poolKey("p"), Add: map[string]int64{"u:cpu": 5, "u:ghost": 2, attrVersion: 1}})
	must(t, tb, Write{Key: poolKey("gone"), Add: map[string]int64{"u:cpu": 7, attrVersion: 1}})
	fixed, err := recount(ctx, a)
	if err != nil || len(fixed) != 2 || fixed[0].NodePool != "gone" || fixed[1].Was["ghost"] != 2 {
		t.Errorf("recount: %+v, %v", fixed, err)
	}
	usage(t, a, "p", lifecycle.Usage{snapshot.CPU: 3000, snapshot.Nodes: 3, lifecycle.Price: 120_000, "nvidia.com/gpu": 2})
}

func flowRecords(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	lease := acquire(t, a)
	recs, err := a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n1", "p", 1), intent(c, "n2", "p", 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := recs[0]
	next.UID, next.NextAt = "uid-1", c.in(time.Minute)
	saved, err := b.Save(ctx, Change{Was: recs[0], Next: next})
	if err != nil || saved[0].Version != 2 {
		t.Fatalf("save: %+v, %v", saved, err)
	}
	if got, err := b.Save(ctx, Change{Was: recs[0], Next: next}); err != nil || got[0].Version != 2 {
		t.Errorf("the same once more: %+v, %v", got, err)
	}
	other := recs[0]
	other.UID = "uid-2"
	if _, err := a.Save(ctx, Change{Was: recs[0], Next: other}); !errors.Is(err, ErrChanged) {
		t.Errorf("over an old version: %v", err)
	}
	// All or none.
	two := recs[1]
	two.Reason = "x"
	if _, err := a.Save(ctx, Change{Was: recs[1], Next: two}, Change{Was: recs[0], Next: other}); !errors.Is(err, ErrChanged) {
		t.Errorf("one of two over an old version: %v", err)
	}
	if got, _, _ := a.Record(ctx, "n2"); got.Reason != "" {
		t.Error("half was saved")
	}
	_, err = a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n9", "p", 1), func() lifecycle.Record {
		r := intent(c, "n2", "p", 1)
		r.PlanID = "plan-2"
		return r
	}()}, nil)
	if e, ok := errors.AsType[*ExistsError](err); !ok || e.Claim != "n2" {
		t.Errorf("a claim that exists: %v", err)
	}
	moved := saved[0]
	moved.NodePool = "q"
	if _, err := a.Save(ctx, Change{Was: saved[0], Next: moved}); err == nil {
		t.Error("a record went to another pool")
	}
	all, err := a.Records(ctx)
	if err != nil || len(all) != 2 || all[0].UID != "uid-1" || cmp.Diff(saved[0], all[0]) != "" {
		t.Errorf("records %+v, %v\n%s", all, err, cmp.Diff(saved[0], all[0]))
	}
	// The memory that a plan is made on.
	mem, err := a.Remember(ctx)
	if err != nil || len(mem.Records) != 2 || len(mem.Nominations) != 2 || mem.Nominations[0].Pod != "n1-pod" || mem.Usage["p"][snapshot.Nodes] != 2 {
		t.Errorf("remembered %+v, %v", mem, err)
	}
}

func flowAttempts(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	lease := acquire(t, a)
	recs, err := a.Commit(ctx, lease, []lifecycle.Record{intent(c, "n1", "p", 1), intent(c, "n2", "p", 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := a.Begin(ctx, lease, lifecycle.Attempt{ID: "at", Request: []byte("r")}, recs, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A person deletes n1 while the call is under way: its record goes, with the instance
	// that the answer brings.
	going := begun.Records[0]
	going.Phase, going.Reason = lifecycle.Terminating, lifecycle.ReasonDeleted
	if _, err := b.Save(ctx, Change{Was: begun.Records[0], Next: going}); err != nil {
		t.Fatal(err)
	}
	at := begun.Attempt
	// Two looks in vain, then three instances, one more than wanted.
	for i := range 2 {
		c.pass(time.Minute)
		if at, err = b.Answer(ctx, at, at.Looked(nil, c.now)); err != nil || at.Looks != i+1 {
			t.Fatalf("look: %+v, %v", at, err)
		}
	}
	if _, err := a.Answer(ctx, begun.Attempt, begun.Attempt.Looked(nil, c.now)); !errors.Is(err, ErrChanged) {
		t.Errorf("a look over an old version: %v", err)
	}
	found := []lifecycle.Instance{{ID: "i-3", Zone: "a"}, {ID: "i-1", Zone: "a"}, {ID: "i-2", Zone: "b"}}
	if at, err = b.Answer(ctx, at, at.Looked(found, c.now)); err != nil || at.State != lifecycle.Answered {
		t.Fatalf("answer: %+v, %v", at, err)
	}
	done, err := b.Settle(ctx, at, known(1))
	if err != nil || len(done.Extra) != 1 || done.Extra[0].ID != "i-3" {
		t.Errorf("settle: %+v, %v", done, err)
	}
	n1, _, _ := b.Record(ctx, "n1")
	n2, _, _ := b.Record(ctx, "n2")
	if n1.Phase != lifecycle.Terminating || n1.Instance.ID != "i-1" || n2.Phase != lifecycle.Launched || n2.Instance.ID != "i-2" {
		t.Errorf("n1 %+v\nn2 %+v", n1, n2)
	}
	list, err := b.Attempts(ctx)
	if err != nil || len(list) != 1 || list[0].State != lifecycle.Settled || string(list[0].Request) != "r" {
		t.Errorf("attempts %+v, %v", list, err)
	}
	c.pass(25 * time.Hour)
	if list, err := b.Attempts(ctx); err != nil || len(list) != 0 {
		t.Errorf("settled a day ago: %+v, %v", list, err)
	}
}

func flowHistory(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	o := lifecycle.Offer{InstanceType: "m7g.large", Zone: "us-east-1a", CapacityType: "spot"}
	for _, l := range []*Ledger{a, b, a} {
		if err := l.Shortage(ctx, o, "InsufficientInstanceCapacity"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Interrupted(ctx, o, c.now); err != nil {
		t.Fatal(err)
	}
	h, err := a.Offerings(ctx)
	if err != nil || len(h) != 1 || h[0].Failures != 1 || !h[0].Until.Equal(c.in(3*time.Minute)) || len(h[0].Interrupted) != 1 || h[0].Offer != o {
		t.Fatalf("health %+v, %v", h, err)
	}
	c.pass(4 * time.Minute)
	if err := a.Shortage(ctx, o, "InsufficientInstanceCapacity"); err != nil {
		t.Fatal(err)
	}
	if h, _ := a.Offerings(ctx); h[0].Failures != 2 || !h[0].Until.Equal(c.in(6*time.Minute)) {
		t.Errorf("the second failure %+v", h)
	}
	c.pass(8 * 24 * time.Hour)
	if h, err := a.Offerings(ctx); err != nil || len(h) != 0 {
		t.Errorf("after a week: %+v, %v", h, err)
	}
	if err := a.Shortage(ctx, o, "x"); err != nil { // over the row that has expired
		t.Fatal(err)
	}
	if h, _ := a.Offerings(ctx); len(h) != 1 || h[0].Failures != 1 || len(h[0].Interrupted) != 0 {
		t.Errorf("anew: %+v", h)
	}

	size := lifecycle.Learned{InstanceType: "m7g.large", ImageID: "ami-1", Shape: "s", Allocatable: snapshot.Resources{CPU: 1930}, Seen: c.now}
	for range 2 {
		if err := a.Learn(ctx, size); err != nil {
			t.Fatal(err)
		}
	}
	older := size
	older.Seen, older.Allocatable.CPU = c.in(-time.Hour), 1
	if err := a.Learn(ctx, older); err != nil {
		t.Fatal(err)
	}
	if s, err := a.LearnedSizes(ctx); err != nil || len(s) != 1 || s[0].Allocatable.CPU != 1930 {
		t.Errorf("learned %+v, %v", s, err)
	}
	newer := size
	newer.Seen, newer.Allocatable.CPU = c.in(time.Hour), 1940 // nearly the same: the smaller one holds
	if err := a.Learn(ctx, newer); err != nil {
		t.Fatal(err)
	}
	if s, err := a.LearnedSizes(ctx); err != nil || len(s) != 1 || s[0].Allocatable.CPU != 1930 || !s[0].Seen.Equal(newer.Seen) {
		t.Errorf("learned again %+v, %v", s, err)
	}
	full := lifecycle.Offer{CapacityType: "reserved", ReservationID: "cr-1"}
	for _, o := range []lifecycle.Offer{full, {CapacityType: "reserved", ReservationID: "cr-2"}} {
		if err := a.Shortage(ctx, o, "ReservationCapacityExceeded"); err != nil {
			t.Fatal(err)
		}
	}
	if h, _ := a.Offerings(ctx); len(h) != 3 {
		t.Errorf("two reservations are %d offers with one before", len(h))
	}

	for i := range 3 {
		m := lifecycle.WorkloadMove{Workload: "shop/Deployment/web", At: c.in(time.Duration(i) * time.Minute), From: "n1", Reason: "Empty", Pods: 2}
		for range 2 {
			if err := a.Moved(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m, err := a.MovesSince(ctx, c.in(time.Minute)); err != nil || len(m) != 2 {
		t.Errorf("moves %+v, %v", m, err)
	}

	d := lifecycle.Decision{At: c.now, ID: "plan-1", Kind: "sweep", Why: "2 pods", Objects: []string{"n1"}}
	for range 2 {
		if err := a.Decide(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	huge := lifecycle.Decision{At: c.in(time.Second), ID: "plan-2"}
	for i := range 10_000 {
		huge.Objects = append(huge.Objects, fmt.Sprintf("pod/namespace-of-a-team/a-pod-with-a-long-name-%05d-abcde", i))
	}
	if err := a.Decide(ctx, huge); err != nil {
		t.Fatal(err)
	}
	days, err := a.DecisionsOn(ctx, day(c.now))
	if err != nil || len(days) != 2 || cmp.Diff(d, days[0]) != "" {
		t.Fatalf("decisions %d, %v", len(days), err)
	}
	cut := days[1].Objects
	if last := cut[len(cut)-1]; last != fmt.Sprintf("and %d more", 10_000-len(cut)+1) {
		t.Errorf("%d objects, the last is %q", len(cut), last)
	}
}

func flowCatalogue(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	if _, ok, err := a.Part(ctx, "types"); ok || err != nil {
		t.Errorf("no part: %v, %v", ok, err)
	}
	// Bytes that do not compress, so that they take three rows.
	noise := make([]byte, 900_000)
	seed := uint64(1)
	for i := range noise {
		seed = seed*6364136223846793005 + 1442695040888963407
		noise[i] = byte(seed >> 56)
	}
	for range 2 {
		if err := a.PutPart(ctx, Part{Name: "types", Data: noise, Generation: 2}); err != nil {
			t.Fatal(err)
		}
	}
	p, ok, err := b.Part(ctx, "types")
	if err != nil || !ok || string(p.Data) != string(noise) || p.Generation != 2 || !p.At.Equal(c.now) {
		t.Fatalf("part of %d bytes, generation %d, %v, %v", len(p.Data), p.Generation, ok, err)
	}
	if err := a.PutPart(ctx, Part{Name: "types", Data: []byte("older"), Generation: 1}); err != nil {
		t.Fatal(err)
	}
	if g, ok, err := b.Generation(ctx, "types"); g != 2 || !ok || err != nil {
		t.Errorf("generation %d, %v, %v", g, ok, err)
	}
	if live := partRows(t, tb, "types"); live != 3 {
		t.Errorf("%d rows without expiry, want those of the part", live)
	}
	if err := a.PutPart(ctx, Part{Name: "types", Data: []byte("newer"), Generation: 3}); err != nil {
		t.Fatal(err)
	}
	if p, _, err := b.Part(ctx, "types"); err != nil || string(p.Data) != "newer" {
		t.Errorf("part %q, %v", p.Data, err)
	}
	// Back to what was: the rows do not expire under it.
	if err := a.PutPart(ctx, Part{Name: "types", Data: noise, Generation: 4}); err != nil {
		t.Fatal(err)
	}
	c.pass(48 * time.Hour)
	if p, ok, err := b.Part(ctx, "types"); err != nil || !ok || len(p.Data) != len(noise) {
		t.Errorf("part %d, %v", len(p.Data), err)
	}
	if err := a.PutPart(ctx, Part{Name: "empty"}); err != nil {
		t.Fatal(err)
	}
	if p, ok, err := b.Part(ctx, "empty"); err != nil || !ok || len(p.Data) != 0 {
		t.Errorf("an empty part: %v, %v", ok, err)
	}
}

// partRows counts the rows of a part that do not expire.
func partRows(t *testing.T, tb Table, name string) int {
	t.Helper()
	defer quiet(tb)()
	n := 0
	for after := ""; ; {
		items, next, err := tb.Query(t.Context(), pkCatalog, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			if _, ok := it[attrTTL]; !ok && strings.HasPrefix(it.Key().SK, name+"#") {
				n++
			}
		}
		if after = next; next == "" {
			return n
		}
	}
}

func flowCommands(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, b := ready(t, tb, c)
	lease := acquire(t, a)
	cmd, err := a.SaveCommand(ctx, lease, lifecycle.Command{ID: "c1", Reason: "Empty", Phase: lifecycle.Proposed, Candidates: []string{"n1"}, Created: c.now})
	if err != nil || cmd.Version != 1 || cmd.Fence != lease.Token {
		t.Fatalf("command %+v, %v", cmd, err)
	}
	if _, err := b.SaveCommand(ctx, lease, lifecycle.Command{ID: "c1", Reason: "Drifted"}); !errors.Is(err, ErrChanged) {
		t.Errorf("over another command: %v", err)
	}
	cmd.Phase = lifecycle.Done
	if cmd, err = a.SaveCommand(ctx, lease, cmd); err != nil {
		t.Fatal(err)
	}
	if list, err := b.Commands(ctx); err != nil || len(list) != 1 || cmp.Diff(cmd, list[0]) != "" {
		t.Errorf("commands %+v, %v", list, err)
	}
	c.pass(8 * 24 * time.Hour)
	if list, err := b.Commands(ctx); err != nil || len(list) != 0 {
		t.Errorf("over for a week: %+v, %v", list, err)
	}
}

// flowBurst commits a thousand nodes in chunks, and reads them in pages.
func flowBurst(t *testing.T, tb Table) {
	ctx, c := t.Context(), newClock()
	a, _ := ready(t, tb, c)
	lease := acquire(t, a)
	var wanted []lifecycle.Record
	for i := range 300 {
		r := intent(c, fmt.Sprintf("n%04d", i), "p", 1)
		for k := range 40 {
			r.Nominated = append(r.Nominated, lifecycle.Pod{Namespace: "shop", Name: fmt.Sprintf("web-%d-%d-7d9f8b6c5d", i, k), UID: "0d9f3b52-0000-4000-8000-000000000000"})
		}
		wanted = append(wanted, r)
	}
	chunks, err := Split(wanted)
	if err != nil || len(chunks) != 4 {
		t.Fatalf("%d chunks, %v", len(chunks), err)
	}
	for _, chunk := range chunks {
		if _, err := a.Commit(ctx, lease, chunk, Limits{"p": {snapshot.Nodes: 300}}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.Records(ctx)
	if err != nil || len(all) != 300 || all[299].Claim != "n0299" {
		t.Errorf("%d records, %v", len(all), err)
	}
	if all[0].Created != c.now || len(all[0].Nominated) != 41 {
		t.Errorf("record %+v", all[0])
	}
	usage(t, a, "p", lifecycle.Usage{snapshot.CPU: 300_000, snapshot.Nodes: 300, lifecycle.Price: 12_000_000})
}
