package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// proc is one invocation: real code that runs while the world waits, and waits while the
// world runs.
type proc struct {
	w    *World
	name string
	// go and back are the two ways of the hand-over.
	goOn, back chan struct{}
	// killed: it never comes back from the boundary at which it is.
	killed, done, frozen bool
	err                  error
	boundaries           int
	began                time.Time
}

// errKilled is what unwinds an invocation that was cut off.
var errKilled = errors.New("the invocation was cut off")

// body is the goroutine of an invocation.
func (p *proc) body(run func() error) {
	<-p.goOn
	func() {
		defer func() {
			v := recover()
			if err, ok := v.(error); ok && errors.Is(err, errKilled) {
				p.err = errKilled
			} else if v != nil {
				p.err = fmt.Errorf("panic: %v", v)
				p.w.broken("Panics", "%s: %v\n%s", p.name, v, debug.Stack())
			}
		}()
		p.err = run()
	}()
	p.done = true
	p.back <- struct{}{}
}

// run hands over to the invocation until its next boundary or its end.
func (p *proc) run() {
	if p.done {
		return
	}
	was := p.w.running
	p.w.running = p
	p.goOn <- struct{}{}
	<-p.back
	p.w.running = was
	if p.done {
		if over := p.w.over[p]; over != nil {
			delete(p.w.over, p)
			p.w.drop(p)
			over(p)
		}
	}
}

func (w *World) drop(p *proc) {
	for i, o := range w.procs {
		if o == p {
			w.procs = append(w.procs[:i], w.procs[i+1:]...)
			return
		}
	}
}

// yield lets the world go on for a time. The invocation is not there any more if it does
// not return.
func (p *proc) yield(d time.Duration) {
	if p.killed {
		panic(errKilled)
	}
	p.boundaries++
	p.w.after(d, func() {
		if !p.killed {
			p.run()
		}
	})
	p.back <- struct{}{}
	<-p.goOn
	if p.killed {
		panic(errKilled)
	}
}

// die ends the invocation where it is; it has to be called by itself.
func (p *proc) die() {
	p.killed = true
	panic(errKilled)
}

// kill ends an invocation that is at a boundary. Its deferred functions run, as they would
// not in a Lambda that is cut off, but every call of theirs ends at once.
func (p *proc) kill() {
	if p.done || p.killed {
		return
	}
	p.killed = true
	p.run()
	for !p.done { // a deferred call was caught at a boundary of its own
		p.run()
	}
}

// bound is a call of the outside, as the world sees it.
type bound struct {
	Proc, Service, Op, Object string
	Write                     bool
	// N counts the boundaries of the invocation, All those of the world.
	N, All int
}

// trouble is what happens to a call.
type trouble struct {
	what troubleKind
	err  error         // for refuse and lose
	wait time.Duration // for the freezes
}

type troubleKind int

const (
	fine         troubleKind = iota
	refuse                   // an error, and nothing was done
	lose                     // done, and the answer is an error
	crashBefore              // the invocation ends before it is done
	crashAfter               // done, and the invocation ends
	freezeBefore             // the invocation sleeps before it is done
	freezeAfter              // done, and the invocation sleeps before it knows
)

func (k troubleKind) String() string {
	return [...]string{"", "refused", "answer lost", "cut off before", "cut off after", "frozen before", "frozen after"}[k]
}

// service is a part of the outside: how long it takes, and how it fails.
type service struct {
	name        string
	least, most time.Duration
	dice        dice
	// errors are what it may answer without doing anything, lost what becomes of an answer
	// that does not arrive.
	errors func(b *bound, d dice) error
	lost   func(b *bound) error
	gone   func(b *bound, err error) error // the context has ended
}

// call makes one call: the world goes on before and after its effect.
func call[T any](ctx context.Context, c *container, s *service, b bound, effect func() (T, error)) (T, error) {
	var zero T
	p := c.proc
	if p == nil || p.killed {
		panic(errKilled)
	}
	w := p.w
	b.Proc, b.Service, b.N = p.name, s.name, p.boundaries
	w.calls++
	b.All = w.calls
	c.count(s, &b)
	if err := ctx.Err(); err != nil {
		return zero, s.gone(&b, err)
	}
	t := w.trouble(s, &b)
	if t.what != fine {
		w.tracef("  ! %s %s.%s %s: %s %v %s", p.name, s.name, b.Op, b.Object, t.what, t.err, t.wait)
		w.stats.Faults++
	}
	if t.what == crashBefore {
		p.die()
	}
	half := s.dice.between(s.least, s.most) / 2 / time.Duration(max(c.beside, 1))
	p.yield(half)
	if t.what == freezeBefore {
		p.freeze(t.wait)
	}
	if t.what == refuse {
		w.tracef("  %s %s.%s %s -> %v", p.name, s.name, b.Op, b.Object, t.err)
		return zero, t.err
	}
	out, err := effect()
	if err != nil {
		w.tracef("  %s %s.%s %s -> %v", p.name, s.name, b.Op, b.Object, err)
	} else {
		w.tracef("  %s %s.%s %s", p.name, s.name, b.Op, b.Object)
	}
	switch t.what {
	case crashAfter:
		p.die()
	case freezeAfter:
		p.freeze(t.wait)
	}
	p.yield(half)
	if t.what == lose {
		return zero, t.err
	}
	if cerr := ctx.Err(); cerr != nil {
		return zero, s.gone(&b, cerr)
	}
	return out, err
}

// freeze suspends the invocation; the end of its time comes after it.
func (p *proc) freeze(d time.Duration) {
	p.frozen = true
	p.w.stats.Freezes++
	p.yield(d)
	p.frozen = false
}
