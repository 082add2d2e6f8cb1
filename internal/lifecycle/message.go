package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrDrop marks a message that is of no use, now or later: malformed, too late, about
// something that is not ours. Whoever takes messages acknowledges it and says so; every
// other error brings the message back.
var ErrDrop = errors.New("the message is dropped")

// Delay is an error that says when its message should be tried again; without one, that
// is the queue's to say.
type Delay struct {
	After time.Duration
	Err   error
}

// Error implements error.
func (d *Delay) Error() string { return fmt.Sprintf("%v (again in %s)", d.Err, d.After) }

// Unwrap gives what was in the way.
func (d *Delay) Unwrap() error { return d.Err }

// Message is one message as it was received.
type Message struct {
	ID string
	// Receipt names this delivery of the message.
	Receipt string
	Body    string
	// Sent is when the queue took it; zero when the queue did not say.
	Sent time.Time
	// Receives counts the deliveries, this one included; 0 when the queue did not say.
	Receives int
}

// Outgoing is a message to send. Delay is how long nobody shall see it, to the second; a
// queue has a longest one.
type Outgoing struct {
	Body  string
	Delay time.Duration
}

// TickKind is why a sweep is asked for.
type TickKind string

// The kinds of ticks.
const (
	// TickMinute comes from the schedule; it brings the other ticks of its minute.
	TickMinute TickKind = "minute"
	// TickSlot is one of those.
	TickSlot TickKind = "slot"
	// TickUrgent does not wait for the next slot: capacity is about to be lost.
	TickUrgent TickKind = "urgent"
)

// Tick asks for one sweep.
type Tick struct {
	Kind TickKind
	// Slot is the absolute slot in seconds since 1970, the same for every delivery of the
	// same tick: the start of the minute, or what its minute tick wrote; 0 for an urgent
	// one, which is no slot.
	Slot int64
	// Sent is when it was sent, or scheduled.
	Sent time.Time
}

const minute = 60 // seconds

// lastSecond is the end of the year 9999, the last that RFC 3339 can write.
const lastSecond = 253402300799

// Old reports whether the tick is too late to be worth a sweep: two intervals have passed
// since it was due. The interval of a minute tick is a minute.
func (t Tick) Old(now time.Time, interval time.Duration) bool {
	due := time.Unix(t.Slot, 0)
	switch t.Kind {
	case TickMinute:
		interval = minute * time.Second
	case TickUrgent:
		due = t.Sent
	}
	return now.Sub(due) > 2*interval
}

// Rest are the messages that bring the other ticks of a minute: one per interval, those
// that are still to come. Other kinds bring nothing. The interval is at least a second.
func (t Tick) Rest(now time.Time, interval time.Duration) ([]Outgoing, error) {
	if t.Kind != TickMinute {
		return nil, nil
	}
	if interval < time.Second {
		return nil, fmt.Errorf("divide a minute into ticks: the interval is %s, want at least 1s", interval)
	}
	var out []Outgoing
	step := int64(interval / time.Second)
	for slot := t.Slot + step; slot < t.Slot+minute; slot += step {
		wait := time.Unix(slot, 0).Sub(now)
		if wait <= 0 {
			continue
		}
		body, err := Tick{Kind: TickSlot, Slot: slot, Sent: now}.Encode()
		if err != nil {
			return nil, err
		}
		out = append(out, Outgoing{Body: body, Delay: wait})
	}
	return out, nil
}

// Encode writes the tick as DecodeTick reads it. A tick that DecodeTick would refuse is an
// error.
func (t Tick) Encode() (string, error) {
	if err := t.check(); err != nil {
		return "", fmt.Errorf("write a tick: %w", err)
	}
	return encode(struct {
		Kind TickKind  `json:"kind"`
		Slot int64     `json:"slot,omitempty"`
		Sent time.Time `json:"sent"`
	}{t.Kind, t.Slot, t.Sent.UTC()})
}

func (t Tick) check() error {
	switch {
	case !slices.Contains([]TickKind{TickMinute, TickSlot, TickUrgent}, t.Kind):
		return fmt.Errorf("kind %q is not known; want %s, %s or %s", t.Kind, TickMinute, TickSlot, TickUrgent)
	case t.Sent.Unix() <= 0 || t.Sent.Unix() > lastSecond:
		return errors.New("sent is missing, or no time that anything is sent at")
	case t.Kind == TickUrgent && t.Slot != 0:
		return fmt.Errorf("slot %d: an %s tick has none", t.Slot, TickUrgent)
	case t.Kind != TickUrgent && (t.Slot <= 0 || t.Slot > lastSecond):
		return fmt.Errorf("slot %d: want seconds since 1970", t.Slot)
	case t.Kind == TickMinute && t.Slot%minute != 0:
		return fmt.Errorf("slot %d: want the start of a minute", t.Slot)
	}
	return nil
}

// DecodeTick reads a tick. sent is when the queue took the message (Message.Sent): it
// stands for a time that the body lacks. Unknown and repeated fields are errors, and every
// error is an ErrDrop.
//
// What EventBridge Scheduler sends is a minute tick: {"kind":"minute","sent":"..."} with
// the scheduled time in the place of its placeholder, or the placeholder itself where
// nothing puts the time in; and the event that a schedule without input brings.
func DecodeTick(body string, sent time.Time) (Tick, error) {
	t, err := decodeTick(body, sent)
	if err != nil {
		return Tick{}, fmt.Errorf("read a tick from %s: %w: %w", quote(body), err, ErrDrop)
	}
	return t, nil
}

func decodeTick(body string, sent time.Time) (Tick, error) {
	f, err := readFields(body)
	if err != nil {
		return Tick{}, err
	}
	t := Tick{Sent: sent.UTC()}
	if f.scheduled() {
		t.Kind = TickMinute
		if err := f.time("time", &t.Sent); err != nil {
			return Tick{}, err
		}
	} else {
		err := errors.Join(f.text("kind", (*string)(&t.Kind)), f.integer("slot", &t.Slot), f.time("sent", &t.Sent), f.done("kind", "slot", "sent"))
		if err != nil {
			return Tick{}, err
		}
	}
	// The schedule knows the second, not the slot: a minute has one tick, however late in
	// it the schedule begins.
	if t.Kind == TickMinute && t.Slot == 0 {
		t.Slot = t.Sent.Unix() - t.Sent.Unix()%minute
	}
	return t, t.check()
}

// WorkKind is what a step is about.
type WorkKind string

// The kinds of work.
const (
	// WorkRegister looks after all nodes that are coming, at once.
	WorkRegister WorkKind = "register"
	// WorkNode goes one step on with one node.
	WorkNode WorkKind = "node"
	// WorkCommand goes one step on with one command.
	WorkCommand WorkKind = "command"
)

// Work asks for one step.
type Work struct {
	Kind WorkKind
	// Claim names the node of a WorkNode, Command the command of a WorkCommand.
	Claim, Command string
	// Step is the step that the record had when the message was sent: another one in the
	// record makes the message late, or a duplicate.
	Step int64
}

// Encode writes the work as DecodeWork reads it. Work that DecodeWork would refuse is an
// error.
func (w Work) Encode() (string, error) {
	if err := w.check(); err != nil {
		return "", fmt.Errorf("write work: %w", err)
	}
	return encode(struct {
		Kind    WorkKind `json:"kind"`
		Claim   string   `json:"claim,omitempty"`
		Command string   `json:"command,omitempty"`
		Step    int64    `json:"step,omitempty"`
	}{w.Kind, w.Claim, w.Command, w.Step})
}

// longestName is the longest name of a Kubernetes object.
const longestName = 253

func (w Work) check() error {
	want := ""
	switch w.Kind {
	case WorkRegister:
	case WorkNode:
		want = w.Claim
	case WorkCommand:
		want = w.Command
	default:
		return fmt.Errorf("kind %q is not known; want %s, %s or %s", w.Kind, WorkRegister, WorkNode, WorkCommand)
	}
	switch {
	case w.Kind != WorkRegister && !plainName(want):
		return fmt.Errorf("%s %q: want a name of 1 to %d letters, digits, '-', '.', ':', '_'", w.Kind, want, longestName)
	case want != w.Claim+w.Command:
		return fmt.Errorf("%s: claim %q and command %q do not go with it", w.Kind, w.Claim, w.Command)
	case w.Step < 0:
		return fmt.Errorf("step %d is negative", w.Step)
	}
	return nil
}

func plainName(s string) bool {
	return s != "" && len(s) <= longestName && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-.:_", r)
	}) < 0
}

// DecodeWork reads work. Unknown and repeated fields are errors, and every error is an
// ErrDrop.
func DecodeWork(body string) (Work, error) {
	w, err := decodeWork(body)
	if err != nil {
		return Work{}, fmt.Errorf("read work from %s: %w: %w", quote(body), err, ErrDrop)
	}
	return w, nil
}

func decodeWork(body string) (Work, error) {
	f, err := readFields(body)
	if err != nil {
		return Work{}, err
	}
	var w Work
	err = errors.Join(f.text("kind", (*string)(&w.Kind)), f.text("claim", &w.Claim), f.text("command", &w.Command), f.integer("step", &w.Step),
		f.done("kind", "claim", "command", "step"))
	if err != nil {
		return Work{}, err
	}
	return w, w.check()
}
