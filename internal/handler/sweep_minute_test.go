package handler_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// minute delivers the tick of a minute, and reports whether a plan was made, and whether that
// was before house was kept.
func (w *thriftWorld) minute() (planned, first bool) {
	w.t.Helper()
	plans := func() bool { return slices.Contains(w.kube.calls, "list everything ") }
	h := w.h.Sweep
	h.Interval = 10 * time.Second
	h.Housekeeping = func(ctx context.Context) (bool, error) {
		first = plans()
		if w.unkept != nil {
			return false, w.unkept
		}
		rep, err := w.house.Run(ctx)
		return rep.Going, err
	}
	w.now = w.now.Truncate(time.Minute).Add(time.Minute)
	w.kube.calls = nil
	rep, err := h.Handle(background, lifecycle.Tick{Kind: lifecycle.TickMinute, Slot: w.now.Unix(), Sent: w.now})
	if err != nil {
		w.t.Fatalf("%v\n%+v", err, rep)
	}
	planned = plans()
	if planned != (rep.Passes > 0) || !planned && rep.Outcome != "Idle" {
		w.t.Errorf("planned %t, and the report is %+v", planned, rep)
	}
	return planned, first
}

// TestMinutePlansForNodesThatGo: pods of a node that drains, or that EC2 takes, are planned for
// once a minute while no pod is pending; without one, nothing is.
func TestMinutePlansForNodesThatGo(t *testing.T) {
	w := newThriftWorld(t, 2)
	w.put(w.node(0), "here", 200)
	if planned, _ := w.minute(); planned {
		t.Error("planned for two nodes that stay")
	}
	was := w.record(1)
	next, news := was.Doom(lifecycle.Doom{Reason: "SpotInterrupted", At: w.now, Deadline: w.now.Add(time.Hour)}, w.now)
	if !news {
		t.Fatal("nothing new")
	}
	if _, err := w.memory.Save(background, lifecycle.Change{Was: was, Next: next}); err != nil {
		t.Fatal(err)
	}
	if planned, _ := w.minute(); !planned {
		t.Error("not planned for a node that EC2 takes")
	}
	if _, first := w.minute(); !first {
		t.Error("what is known to go waits for house to be kept")
	}
	w.unkept = errors.New("the table is throttled")
	w.minute()
	if _, first := w.minute(); !first {
		t.Error("what could not be read is taken for nothing that goes")
	}
	w = newThriftWorld(t, 2)
	w.put(w.record(0).Node, "slow", 200, snapshot.DoNotDisrupt, "true")
	w.deleteAs("NodeClaim", w.record(0).Claim)
	w.pass(90 * time.Second)
	if got := w.record(0).Phase; got != lifecycle.Draining {
		t.Fatalf("it is %s", got)
	}
	if planned, _ := w.minute(); !planned {
		t.Error("not planned for a node that drains")
	}
}
