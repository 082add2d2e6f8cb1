package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

func TestResolve(t *testing.T) {
	a := Attempt{ID: "at-1", State: Calling, Created: t0, NotAfter: at(time.Minute)}
	looked := func(n int, first, last time.Duration) Attempt {
		b := a
		b.Looks, b.FirstLook, b.LastLook = n, at(first), at(last)
		return b
	}
	answered := a.Answer(Outcome{Source: FromAnswer})
	settled := answered
	settled.State = Settled
	tests := []struct {
		name   string
		a      Attempt
		wanted bool
		now    time.Duration
		move   Move
		at     time.Duration
	}{
		{"the call is under way", a, true, 59 * time.Second, MoveWait, 2 * time.Minute},
		{"its time is over, not its grace", a, false, 2*time.Minute - 1, MoveWait, 2 * time.Minute},
		{"wanted", a, true, 2 * time.Minute, MoveReplay, 2 * time.Minute},
		{"not wanted any more", a, false, 2 * time.Minute, MoveLook, 2 * time.Minute},
		{"wanted, just young enough", a, true, 10*time.Minute - 1, MoveReplay, 10*time.Minute - 1},
		{"wanted, too old", a, true, 10 * time.Minute, MoveLook, 10 * time.Minute},
		{"once looked for, never replayed", looked(1, 2*time.Minute, 2*time.Minute), true, 3 * time.Minute, MoveLook, 3 * time.Minute},
		{"between two looks", looked(1, 2*time.Minute, 2*time.Minute), false, 130 * time.Second, MoveWait, 150 * time.Second},
		{"looked often, not for long", looked(9, 2*time.Minute, 6*time.Minute), false, 7 * time.Minute, MoveLook, 7 * time.Minute},
		{"looked for long, not often", looked(2, 2*time.Minute, 8*time.Minute), false, 9 * time.Minute, MoveLook, 9 * time.Minute},
		{"looked for long and often", looked(3, 2*time.Minute, 7*time.Minute), true, 7 * time.Minute, MoveGiveUp, 7 * time.Minute},
		{"answered", answered, true, 0, MoveSettle, 0},
		{"settled", settled, true, 0, MoveNone, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.a.Resolve(tt.wanted, at(tt.now))
			if got.Move != tt.move || !got.At.Equal(at(tt.at)) && tt.move == MoveWait {
				t.Errorf("%+v, want %s at %s", got, tt.move, tt.at)
			}
		})
	}
}

// TestResolveEnds: an attempt that nobody answers is given up after a bounded time, and
// not before LookFor.
func TestResolveEnds(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		a := Attempt{ID: "at-1", State: Calling, Created: t0, NotAfter: at(time.Minute)}
		now, first := t0, time.Time{}
		for a.State == Calling {
			switch r := a.Resolve(wanted, now); r.Move {
			case MoveWait:
				now = r.At
			case MoveReplay:
				now = now.Add(30 * time.Second) // fails, and fails again
			case MoveLook:
				if first.IsZero() {
					first = now
				}
				a = a.Looked(nil, now)
			case MoveGiveUp:
				a = a.GiveUp(now)
			}
			if now.After(at(20 * time.Minute)) {
				t.Fatal("no end")
			}
		}
		if now.Sub(first) < LookFor || a.Outcome == nil || len(a.Outcome.Instances) != 0 {
			t.Errorf("given up after %s of looks: %+v", now.Sub(first), a.Outcome)
		}
	}
}

// TestLookedInPart: an instance that shows late is not launched a second time.
func TestLookedInPart(t *testing.T) {
	a := Attempt{ID: "at", Claims: []string{"c1", "c2"}, State: Calling, Created: t0, NotAfter: at(time.Minute)}
	a = a.Looked([]Instance{{ID: "i-2"}}, at(2*time.Minute))
	if a.Outcome != nil || a.Resolve(true, at(3*time.Minute)).Move != MoveLook {
		t.Fatalf("half of the instances are an outcome: %+v", a)
	}
	full := a.Looked([]Instance{{ID: "i-1"}}, at(3*time.Minute)) // and i-2 is not shown this time
	if full.Outcome == nil || cmp.Diff([]Instance{{ID: "i-1"}, {ID: "i-2"}}, full.Outcome.Instances) != "" {
		t.Errorf("%+v", full.Outcome)
	}
	for now := 3 * time.Minute; a.Outcome == nil; now += time.Minute {
		if a.Resolve(true, at(now)).Move == MoveGiveUp {
			a = a.GiveUp(at(now))
			if now < 7*time.Minute {
				t.Errorf("given up after %s", now)
			}
		} else {
			a = a.Looked([]Instance{{ID: "i-2"}}, at(now))
		}
	}
	if cmp.Diff([]Instance{{ID: "i-2"}}, a.Outcome.Instances) != "" {
		t.Errorf("what was seen is lost: %+v", a.Outcome)
	}
}

func TestPair(t *testing.T) {
	a := Attempt{Claims: []string{"c-2", "c-1", "c-3"}}
	owned, extra := a.Pair([]Instance{{ID: "i-9"}, {ID: "i-1"}, {ID: "i-5"}, {ID: "i-5"}, {ID: "i-7"}})
	want := map[string]Instance{"c-2": {ID: "i-1"}, "c-1": {ID: "i-5"}, "c-3": {ID: "i-7"}}
	if diff := cmp.Diff(want, owned); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Instance{{ID: "i-9"}}, extra); diff != "" {
		t.Error(diff)
	}
	owned, extra = a.Pair([]Instance{{ID: "i-1"}})
	if len(owned) != 1 || owned["c-2"].ID != "i-1" || extra != nil {
		t.Errorf("%v %v", owned, extra)
	}
}

func TestSettle(t *testing.T) {
	a := Attempt{ID: "at-1", Created: t0, Outcome: &Outcome{}}
	r := Record{Claim: "c", Phase: Launching, Attempt: "at-1", Reserved: Usage{"cpu": 64_000, "nodes": 1}}
	k := Known{Capacity: snapshot.Resources{CPU: 4000}, Allocatable: snapshot.Resources{CPU: 3920}, Price: 7}
	next, orphan := r.Settle(a, Instance{ID: "i-1"}, k, at(time.Minute))
	if orphan || next.Phase != Launched || next.Allocatable.CPU != 3920 || cmp.Diff(Usage{"cpu": 4000, "nodes": 1, Price: 7}, next.Reserved) != "" {
		t.Errorf("%+v", next)
	}
	if again, orphan := next.Settle(a, Instance{ID: "i-1"}, k, at(time.Hour)); again != nil || orphan {
		t.Errorf("again: %+v, %v", again, orphan)
	}
	if again, orphan := next.Settle(a, Instance{ID: "i-2"}, k, at(time.Hour)); again != nil || !orphan {
		t.Errorf("a second instance: %+v, %v", again, orphan)
	}
	r.Attempt = "at-2"
	if again, orphan := r.Settle(a, Instance{ID: "i-1"}, k, t0); again != nil || !orphan {
		t.Errorf("of an attempt before: %+v, %v", again, orphan)
	}
	if again, orphan := r.Settle(a, Instance{}, k, t0); again != nil || orphan {
		t.Errorf("nothing of an attempt before: %+v, %v", again, orphan)
	}
}

func TestHealth(t *testing.T) {
	var h Health
	if !h.Available(t0) {
		t.Error("nothing is remembered and the offer is not available")
	}
	now, waits := t0, []time.Duration{}
	for range 7 {
		h = h.Shortage("ICE", now)
		if again := h.Shortage("ICE", now.Add(time.Second)); cmp.Diff(h, again) != "" {
			t.Error("one shortage counted twice")
		}
		waits = append(waits, h.Until.Sub(now))
		if h.Available(h.Until.Add(-1)) || !h.Available(h.Until) {
			t.Error("available at the wrong time")
		}
		now = h.Until
	}
	m := time.Minute
	if diff := cmp.Diff([]time.Duration{3 * m, 6 * m, 12 * m, 12 * m, 12 * m, 12 * m, 12 * m}, waits); diff != "" {
		t.Error(diff)
	}
	if h = h.Shortage("ICE", now.Add(3*time.Hour)); h.Failures != 1 {
		t.Errorf("after a calm: %+v", h)
	}
	h = Health{}
	for _, d := range []time.Duration{5, 1, 3, 3, 5} {
		h = h.Interruption(at(d*m), at(10*m))
	}
	if diff := cmp.Diff([]time.Time{at(1 * m), at(3 * m), at(5 * m)}, h.Interrupted); diff != "" {
		t.Error(diff)
	}
	if h = h.Interruption(at(200*time.Hour), at(200*time.Hour)); len(h.Interrupted) != 1 {
		t.Errorf("%+v", h)
	}
}

func TestUsage(t *testing.T) {
	a := UsageOf(snapshot.Resources{CPU: 4000, Memory: 1 << 30, Extended: map[string]int64{"gpu": 1}}, 100)
	b := UsageOf(snapshot.Resources{CPU: 2000, Memory: 2 << 30}, 300)
	if diff := cmp.Diff(Usage{"cpu": 4000, "memory": 2 << 30, "gpu": 1, "nodes": 1, Price: 300}, a.Max(b)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Usage{"cpu": 2000, "memory": -1 << 30, "gpu": 1, Price: -200}, a.Sub(b)); diff != "" {
		t.Error(diff)
	}
	if len(a.Sub(a)) != 0 || len(a.Add(nil)) != len(a) {
		t.Error("sums")
	}
	got := PoolUsage([]Record{{NodePool: "p", Reserved: a}, {NodePool: "p", Reserved: a}, {NodePool: "q", Reserved: b}, {NodePool: "p", Reserved: a, Phase: Closed}, {Reserved: a}})
	if diff := cmp.Diff(map[string]Usage{"p": a.Add(a), "q": b}, got); diff != "" {
		t.Error(diff)
	}
}

// TestNominations is BC-26 and BC-28: while a node is on its way its pods keep it, and for
// two sweeps after it could take them.
func TestNominations(t *testing.T) {
	r := launched()
	r.Nominated = []Pod{{Namespace: "shop", Name: "w", UID: "u", At: t0}}
	hold := func(r Record, now time.Time) string {
		if n := Nominations([]Record{r}, now); len(n) == 1 {
			return n[0].Node
		}
		return ""
	}
	if got := hold(r, at(14*time.Minute)); got != "web-1" {
		t.Errorf("in flight: %q", got)
	}
	if got := hold(r, at(15*time.Minute)); got != "" {
		t.Errorf("after the grace: %q", got)
	}
	r.Phase, r.Node, r.RegisteredAt = Registered, "ip-1", at(10*time.Minute)
	if got := hold(r, at(20*time.Minute)); got != "ip-1" {
		t.Errorf("registered: %q", got)
	}
	r.Phase, r.InitializedAt = Initialized, at(11*time.Minute)
	if hold(r, at(11*time.Minute+59*time.Second)) != "ip-1" || hold(r, at(12*time.Minute)) != "" {
		t.Error("initialized")
	}
	r = r.Nominate([]Pod{{Namespace: "shop", Name: "w2"}}, at(20*time.Minute)) // and a pod more
	if hold(r, at(20*time.Minute+59*time.Second)) != "ip-1" {
		t.Error("nominated to a node in use")
	}
	for _, change := range []func(*Record){func(r *Record) { r.Doomed = &Doom{} }, func(r *Record) { r.Phase = Draining }} {
		gone := r
		change(&gone)
		if hold(gone, at(20*time.Minute)) != "" {
			t.Error("a node that goes holds a nomination")
		}
	}
}

// TestNominatedLast: of several nodes that a pod was meant for, the last choice counts, however
// long the others would wait for it.
func TestNominatedLast(t *testing.T) {
	pod := Pod{Namespace: "shop", Name: "w", UID: "u"}
	first, last := launched(), launched()
	first, last = first.Nominate([]Pod{pod}, t0), last.Nominate([]Pod{pod}, at(time.Minute))
	first.Claim, last.Claim = "first", "last"
	first.RegisteredAt = at(10 * time.Minute)
	for _, records := range [][]Record{{first, last}, {last, first}} {
		if n := Nominations(records, at(2*time.Minute)); len(n) != 1 || n[0].Node != "last" {
			t.Errorf("it waits for %+v", n)
		}
	}
	last.Doomed = &Doom{}
	if n := Nominations([]Record{first, last}, at(2*time.Minute)); len(n) != 1 || n[0].Node != "first" {
		t.Errorf("the last one goes, and it waits for %+v", n)
	}
}

func TestNodeClaim(t *testing.T) {
	r := launched()
	got := r.NodeClaim()
	if got.ProviderID != "aws:///a/i-1" || got.Labels["karpenter.sh/nodepool"] != "web" || got.Labels["node.kubernetes.io/instance-type"] != "m7g.large" || got.Labels["team"] != "shop" || !got.Deleting.IsZero() {
		t.Errorf("%+v", got)
	}
	if r.Spec.Labels["karpenter.sh/nodepool"] != "" {
		t.Error("the record was changed")
	}
	var types []string
	for _, c := range got.Conditions {
		types = append(types, c.Type+"="+c.Status)
	}
	if diff := cmp.Diff([]string{"Launched=True", "Registered=Unknown", "Initialized=Unknown", "Ready=Unknown"}, types); diff != "" {
		t.Error(diff)
	}
	doomed := r
	doomed.Claim, doomed.Doomed = "web-2", &Doom{}
	s := snapshot.Snapshot{NodeClaims: []snapshot.NodeClaim{{Name: "web-2"}, {Name: "web-3"}}}
	Remember(&s, []Record{r, doomed, {Claim: "old", Phase: Closed}}, at(time.Hour))
	if len(s.NodeClaims) != 3 || s.NodeClaims[2].Name != "web-1" || s.NodeClaims[0].Deleting.IsZero() || !s.NodeClaims[1].Deleting.IsZero() {
		t.Errorf("%+v", s.NodeClaims)
	}
}
