package lifecycle

import (
	"testing"
	"time"
)

func TestDoom(t *testing.T) {
	spot := func(d time.Duration) Doom { return Doom{Reason: "SpotInterrupted", At: t0, Deadline: at(d)} }
	r := launched()
	r.Phase = Initialized
	r, changed := r.Doom(Doom{Reason: "ScheduledChange", At: t0}, t0)
	if !changed || r.Doomed.Reason != "ScheduledChange" || !r.Deadline.IsZero() {
		t.Fatalf("%+v", r)
	}
	first := r.Doomed
	r, changed = r.Doom(spot(2*time.Minute), t0)
	if !changed || r.Doomed.Reason != "ScheduledChange" || !r.Deadline.Equal(at(2*time.Minute)) || !first.Deadline.IsZero() {
		t.Errorf("%+v", r)
	}
	for _, d := range []time.Duration{2 * time.Minute, 3 * time.Minute} {
		if _, changed := r.Doom(spot(d), t0); changed {
			t.Errorf("a notice of %s changed one of two minutes", d)
		}
	}
	if r, _ = r.Doom(spot(time.Minute), t0); !r.Deadline.Equal(at(time.Minute)) {
		t.Errorf("%+v", r)
	}
	// A deadline that was set before and is earlier holds.
	drains := launched()
	drains.Phase, drains.Deadline = Draining, at(30*time.Second)
	if got, changed := drains.Doom(spot(time.Minute), t0); !changed || !got.Deadline.Equal(at(30*time.Second)) {
		t.Errorf("%+v", got)
	}
	drains.Phase = Terminating
	if _, changed := drains.Doom(spot(time.Minute), t0); changed {
		t.Error("a node that ends was doomed")
	}
}
