package ledger

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []time.Duration
		most := Jitter(func(n int64) int64 { return n - 1 })
		for n := 1; n <= 8; n++ {
			from := time.Now()
			if err := most(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			got = append(got, time.Since(from))
		}
		ms := time.Millisecond
		if diff := cmp.Diff([]time.Duration{25 * ms, 50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms}, got); diff != "" {
			t.Error(diff)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		if err := most(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestConflictsArePaused: requests that meet others are repeated after a pause each.
func TestConflictsArePaused(t *testing.T) {
	m, c := NewMemory("t"), newClock()
	left := 3
	m.Fault = func(Call) Fault {
		if left--; left < 0 {
			return Fault{}
		}
		return Fault{Err: &CanceledError{Reasons: []Reason{{Code: ReasonConflict}}}}
	}
	var pauses []int
	l := New(Config{Table: m, Cluster: "test", Owner: "a", Now: c.Now, Wait: func(_ context.Context, n int) error {
		pauses = append(pauses, n)
		return nil
	}})
	if err := l.transact(t.Context(), []Write{put(item("A", "1", nil), Absent(attrPK))}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, pauses); diff != "" {
		t.Error(diff)
	}
	left = 3
	l.Wait = func(context.Context, int) error { return context.DeadlineExceeded }
	if err := l.transact(t.Context(), []Write{put(item("A", "2", nil), Absent(attrPK))}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no time is left: %v", err)
	}
}
