package snapshot

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSetbackShare(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	ago := func(list ...time.Duration) (out []time.Time) {
		for _, d := range list {
			out = append(out, now.Add(-d))
		}
		return out
	}
	for _, tc := range []struct {
		name string
		s    Setback
		want int64
	}{
		{"nothing", Setback{}, 0},
		{"just now", Setback{Interrupted: ago(0)}, 150_000},
		{"a notice of the future", Setback{Interrupted: ago(-time.Minute)}, 150_000},
		{"half a half-life", Setback{Interrupted: ago(6 * time.Hour)}, 110_000},
		{"a half-life", Setback{Interrupted: ago(12 * time.Hour)}, 70_000},
		{"two half-lives", Setback{Interrupted: ago(24 * time.Hour)}, 30_000},
		{"not worth speaking of", Setback{Interrupted: ago(48 * time.Hour)}, 0},
		{"several of those are", Setback{Interrupted: ago(48*time.Hour, 48*time.Hour)}, 10_000},
		{"a failed launch", Setback{Failures: 1, Failed: now}, 100_000},
		{"an hour ago", Setback{Failures: 1, Failed: now.Add(-time.Hour)}, 50_000},
		{"many failures", Setback{Failures: 9, Failed: now}, 400_000},
		{"both", Setback{Interrupted: ago(0), Failures: 1, Failed: now}, 250_000},
		{"no more than the price", Setback{Interrupted: ago(0, 0, 0, 0, 0, 0, 0), Failures: 4, Failed: now}, Whole},
		{"years", Setback{Interrupted: ago(10 * 365 * 24 * time.Hour)}, 0},
	} {
		if got := tc.s.Share(now); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestSetbackDecays: what is remembered counts less and less, and then nothing.
func TestSetbackDecays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		s := Setback{Failures: rapid.IntRange(0, 9).Draw(t, "failures"), Failed: at}
		for range rapid.IntRange(0, 32).Draw(t, "interruptions") {
			s.Interrupted = append(s.Interrupted, at)
		}
		seconds := rapid.IntRange(0, 10*24*3600)
		early, late := time.Duration(seconds.Draw(t, "early"))*time.Second, time.Duration(seconds.Draw(t, "late"))*time.Second
		if early > late {
			early, late = late, early
		}
		a, b := s.Share(at.Add(early)), s.Share(at.Add(late))
		if a < b || a > Whole || b < 0 {
			t.Fatalf("after %s it counts %d, after %s %d", early, a, late, b)
		}
		if late := s.Share(at.Add(8 * 24 * time.Hour)); late != 0 {
			t.Fatalf("after 8 days it still counts %d", late)
		}
	})
}

// TestOf: a share of a price is exact where a float is not, and never overflows.
func TestOf(t *testing.T) {
	for _, tc := range []struct{ price, share, want int64 }{
		{100, 150_000, 15}, {99, 150_000, 14}, {1 << 60, Whole, 1 << 60}, {1 << 60, 500_000, 1 << 59}, {0, Whole, 0}, {34_000, 0, 0},
	} {
		if got := Of(tc.price, tc.share); got != tc.want {
			t.Errorf("%d of %d: %d, want %d", tc.share, tc.price, got, tc.want)
		}
	}
}
