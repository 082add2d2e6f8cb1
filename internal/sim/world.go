package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"time"
)

// World is one world.
type World struct {
	clock
	Seed    uint64
	Profile Profile
	// Script decides what happens to a call before chance does; nil, or false: chance does.
	Script func(bound) (trouble, bool)
	// Check is what the world is held to; see check.go.
	checks *checks

	cluster *cluster
	aws     *aws
	table   *table
	queues  map[string]*mailbox
	lambdas map[string]*function
	people  *people
	bus     *bus

	// faults: chance may trouble calls, and things may go wrong by themselves.
	faults bool
	procs  []*proc
	over   map[*proc]func(*proc)
	// badImages are AMIs whose machines never join.
	badImages []string
	// running is the invocation whose code runs, nil while the world does.
	running *proc
	calls   int
	uids    int
	stats   Stats

	// asking: what is broken is only counted, in asked.
	asking bool
	asked  int

	trace   bytes.Buffer
	hash    hash.Hash
	verbose bool
	breach  []Breach
}

// Stats counts what happened in a world, so that a test can tell that something did.
type Stats struct {
	Invocations, Boundaries, Faults, Crashes, Freezes, Timeouts int
	Instances, Terminated, PodsMade, PodsBound                  int
	Plans, Launches                                             int
	Notices, Doomed                                             int
	// Passes are those of consolidation, Moves the commands that let nodes go, Back those that
	// were taken back after they were begun.
	Passes, Moves, Back int
	// Took counts the nodes that were let go after the trouble was over, Acted is when the last
	// command went on, from then on.
	Took  int
	Acted time.Duration
	// Price is what nodes cost at rest, Repacked what new ones for the same pods would.
	Price, Repacked int64
	// Settled is how long the world took to come to rest.
	Settled time.Duration
}

// Breach is something that must not be.
type Breach struct {
	At        time.Time
	Invariant string
	Detail    string
}

func (b Breach) String() string {
	return fmt.Sprintf("t+%s %s: %s", b.At.Sub(epoch).Round(time.Millisecond), b.Invariant, b.Detail)
}

// maxBreaches is from how many on the rest would only repeat them.
const maxBreaches = 20

func (w *World) broken(invariant, format string, args ...any) {
	if w.asking {
		w.asked++
		return
	}
	b := Breach{w.now(), invariant, fmt.Sprintf(format, args...)}
	for _, o := range w.breach {
		if o.Invariant == b.Invariant && o.Detail == b.Detail {
			return
		}
	}
	if len(w.breach) < maxBreaches {
		w.breach = append(w.breach, b)
	}
	w.tracef("BROKEN %s: %s", invariant, b.Detail)
}

// tracef writes a line of the trace. All of it counts in the hash; its text is kept when
// somebody wants to read it.
func (w *World) tracef(format string, args ...any) {
	if p := w.running; p != nil && p.killed {
		return
	}
	line := fmt.Sprintf("%12s ", w.now().Sub(epoch).Round(time.Millisecond)) + fmt.Sprintf(format, args...) + "\n"
	w.hash.Write([]byte(line))
	if w.verbose {
		w.trace.WriteString(line)
	}
}

func (w *World) traceHash() string { return hex.EncodeToString(w.hash.Sum(nil))[:16] }

// uid makes an id that was never there before.
func (w *World) uid(kind string) string {
	w.uids++
	return fmt.Sprintf("%s-uid-%d", kind, w.uids)
}

// trouble decides what happens to a call.
func (w *World) trouble(s *service, b *bound) trouble {
	if w.Script != nil {
		if t, ok := w.Script(*b); ok {
			return w.filled(s, b, t)
		}
	}
	if !w.faults {
		return trouble{}
	}
	f, d := &w.Profile.Faults, s.dice
	switch {
	case d.in(f.Crash):
		return trouble{what: pick(d, []troubleKind{crashBefore, crashAfter})}
	case d.in(f.Freeze):
		return trouble{what: pick(d, []troubleKind{freezeBefore, freezeAfter}), wait: d.between(30*time.Second, 8*time.Minute)}
	case d.in(f.of(s.name)):
		return w.filled(s, b, trouble{what: refuse})
	case b.Write && d.in(f.Lost):
		return w.filled(s, b, trouble{what: lose})
	}
	return trouble{}
}

func (w *World) filled(s *service, b *bound, t trouble) trouble {
	if t.err == nil && t.what == refuse {
		t.err = s.errors(b, s.dice)
	}
	if t.err == nil && t.what == lose {
		t.err = s.lost(b)
	}
	if t.err == nil && (t.what == refuse || t.what == lose) {
		t.what = fine // that does not happen to such a call
	}
	return t
}

// runUntil lets the world go on to a time.
func (w *World) runUntil(t time.Time) {
	for w.step(t) {
		if len(w.breach) >= maxBreaches {
			return
		}
	}
}

// end cuts off what still runs, so that nothing is left of the world.
func (w *World) end() {
	for len(w.procs) > 0 {
		w.procs[0].kill()
	}
}

func newHash() hash.Hash { return sha256.New() }
