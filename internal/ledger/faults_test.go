package ledger

import (
	"errors"
	"testing"
)

// TestFlowsUnderFaults runs every flow with an answer lost, a request lost, throttling or
// a conflict in the way of every other request: nobody notices.
func TestFlowsUnderFaults(t *testing.T) {
	kinds := map[string][]Fault{
		"lost answers":  {{Err: ErrUnknown, Applied: true}},
		"lost requests": {{Err: ErrUnknown}},
		"throttling":    {{Err: ErrThrottled}},
		"conflicts":     {{Err: ErrConflict}},
		"all of them":   {{Err: ErrUnknown, Applied: true}, {Err: ErrThrottled}, {Err: ErrUnknown, Applied: true}, {Err: ErrConflict}, {Err: ErrUnknown}},
	}
	for name, faults := range kinds {
		t.Run(name, func(t *testing.T) {
			seen := 0
			flows(t, func(*testing.T) Table {
				m := NewMemory("table-1")
				calls, next := 0, 0
				m.Fault = func(Call) Fault {
					if calls++; calls%2 == 0 {
						return Fault{}
					}
					next++
					seen++
					return faults[next%len(faults)]
				}
				return m
			})
			if seen < 100 {
				t.Errorf("only %d faults", seen)
			}
		})
	}
}

// TestGivesUp: a table that never answers is an error that says so, after Tries.
func TestGivesUp(t *testing.T) {
	m := NewMemory("t")
	calls := 0
	m.Fault = func(Call) Fault { calls++; return Fault{Err: ErrThrottled} }
	c := newClock()
	l := New(Config{Table: m, Cluster: "test", Owner: "a", Now: c.Now, Tries: 3})
	if _, err := l.Records(t.Context()); !errors.Is(err, ErrThrottled) || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
	m.Fault = nil
	l, _ = ready(t, NewMemory("t"), c)
	lease := acquire(t, l)
	l.Table.(*Memory).Fault = func(Call) Fault {
		return Fault{Err: &CanceledError{Reasons: []Reason{{Code: ReasonNone}, {Code: ReasonConflict}}}}
	}
	if err := l.transact(t.Context(), []Write{l.check(lease), {Key: Key{"a", "b"}, Delete: true}}); err == nil {
		t.Error("conflicts for ever are no error")
	}
}
