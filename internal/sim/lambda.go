package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// function is a Lambda function.
type function struct {
	w           *World
	name        string
	timeout     time.Duration
	concurrency int
	dice        dice
	busy        []*container
	idle        []*container
	made, count int
	// begin makes what a container keeps warm: the handler. Its answer handles payloads.
	begin func(c *container) func(ctx context.Context, payload json.RawMessage) (any, error)
}

// free reports whether one more invocation may run.
func (f *function) free() bool { return len(f.busy) < f.concurrency }

// invoke runs one invocation. over gets its answer, or an error; when it was cut off
// ok is false and nobody knows.
func (f *function) invoke(payload any, over func(answer any, err error, ok bool)) {
	raw, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	w := f.w
	c := f.container()
	f.busy = append(f.busy, c)
	f.count++
	name := fmt.Sprintf("%s#%d", f.name, f.count)
	w.stats.Invocations++
	w.tracef("invoke %s in %d: %.200s", name, c.id, raw)
	c.asked = map[string]int{}
	end := w.now().Add(f.timeout)
	ctx, cancel := context.WithDeadline(context.Background(), end)
	var answer any
	handle, _ := c.state.(func(context.Context, json.RawMessage) (any, error))
	p := &proc{w: w, name: name, began: w.now(), goOn: make(chan struct{}), back: make(chan struct{})}
	c.proc = p
	w.launchProc(p, func() (err error) {
		if handle == nil {
			handle = f.begin(c)
			c.state = handle
		}
		answer, err = handle(ctx, raw)
		return err
	}, func(p *proc) {
		cancel()
		c.proc = nil
		for i, o := range f.busy {
			if o == c {
				f.busy = append(f.busy[:i], f.busy[i+1:]...)
				break
			}
		}
		if p.killed {
			w.stats.Crashes++
			w.tracef("%s was cut off", name)
			over(nil, errKilled, false)
			return
		}
		w.tracef("%s is over: %v", name, p.err)
		if !c.stale {
			f.idle = append(f.idle, c)
		}
		over(answer, p.err, true)
	})
	w.at(end, func() { f.timesOut(p) })
}

// timesOut ends an invocation whose time is up. One that is frozen does not know yet: it
// goes on for a moment after it woke up.
func (f *function) timesOut(p *proc) {
	switch {
	case p.done:
	case p.frozen:
		f.w.after(f.dice.between(500*time.Millisecond, 10*time.Second), func() { f.timesOut(p) })
	default:
		f.w.stats.Timeouts++
		f.w.tracef("%s is out of time", p.name)
		p.kill()
	}
}

// container takes a warm container, or makes one.
func (f *function) container() *container {
	if n := len(f.idle); n > 0 && !(f.w.faults && f.dice.IntN(6) == 0) {
		c := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return c
	}
	f.idle = nil
	f.made++
	c := &container{w: f.w, f: f, id: f.made}
	if s := f.w.Profile.Faults.Skew; s > 0 {
		c.skew = time.Duration(f.dice.Int64N(int64(2*s))) - s
	}
	return c
}

// launchProc starts an invocation from the world's own thread of things.
func (w *World) launchProc(p *proc, run func() error, over func(*proc)) {
	w.procs = append(w.procs, p)
	w.over[p] = over
	go p.body(run)
	p.run()
}

// sqsEvent is what Lambda gives to a function with an SQS trigger.
func sqsEvent(q *mailbox, ms []*message) events.SQSEvent {
	var out events.SQSEvent
	for _, m := range ms {
		out.Records = append(out.Records, events.SQSMessage{
			MessageId: m.id, ReceiptHandle: m.receipt, Body: m.body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:111122223333:" + q.name,
			Attributes: map[string]string{"SentTimestamp": fmt.Sprint(m.sent.UnixMilli()), "ApproximateReceiveCount": fmt.Sprint(m.receives)},
		})
	}
	return out
}

// logs is where an invocation logs: into the trace.
type logs struct {
	c     *container
	attrs []slog.Attr
}

func (c *container) log() *slog.Logger { return slog.New(logs{c: c}) }

// Enabled implements slog.Handler.
func (l logs) Enabled(_ context.Context, v slog.Level) bool { return v >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l logs) Handle(_ context.Context, r slog.Record) error {
	p := l.c.proc
	if p == nil || p.killed {
		return nil
	}
	text := ""
	add := func(a slog.Attr) bool {
		if a.Key == "stack" { // what panicked was caught by whoever takes messages
			l.c.w.broken("Panics", "%s: %s", p.name, a.Value)
			return true
		}
		v := a.Value.String()
		if len(v) > 300 {
			v = v[:300]
		}
		text += fmt.Sprintf(" %s=%s", a.Key, v)
		return true
	}
	for _, a := range l.attrs {
		add(a)
	}
	r.Attrs(add)
	l.c.w.tracef("  %s log %s %s%s", p.name, r.Level, r.Message, text)
	return nil
}

// WithAttrs implements slog.Handler.
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)
	return l
}

// WithGroup implements slog.Handler.
func (l logs) WithGroup(string) slog.Handler { return l }

// settle gives containers that are warm a clock that is right, once the trouble is over.
func (f *function) settle() {
	for _, c := range f.idle {
		c.skew = 0
	}
}
