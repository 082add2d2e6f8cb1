package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// chainNote is the note in which the chain of register messages says where it is.
	chainNote = "register"
	// kickDelay is when the first message of a chain is due.
	kickDelay = 5 * time.Second
	// pollMin and pollMax bound the time between two looks: a tenth of the time that
	// something has waited, so that what takes long is looked at seldom.
	pollMin, pollMax = 5 * time.Second, time.Minute
	// overdue is how late a message of the chain is when it counts as lost.
	overdue = time.Minute
	// margin is kept back at the end of an invocation: nothing is begun in it.
	margin = 10 * time.Second
	// together is how many records go on at once; between two lots the time is looked at.
	together = 100
)

// Lifecycle looks after nodes from their launch to their end.
type Lifecycle struct {
	Memory   Memory
	Cluster  Cluster
	Executor *execute.Executor
	// Work is the queue that Handle is fed from.
	Work execute.Sender
	// Known says what instances are, for attempts that are resolved here; nil = what was
	// reserved stays until the Node tells.
	Known func(ctx context.Context) (execute.Knower, error)
	// Hold is asked which of the nodes that people want deleted may go now; nil = all. It is
	// where a circuit breaker goes: a NodePool that was deleted takes all its nodes along.
	Hold func(ctx context.Context, deleted, all []lifecycle.Record) (held map[string]bool, err error)
	Now  func() time.Time
	// Each runs f for 0 to n-1, several at a time; nil = one after the other.
	Each func(n int, f func(i int))
	// Pause waits between two looks at nodes that open; nil = there is one look a run.
	Pause func(ctx context.Context, d time.Duration) error
	// Told is given what a run came to, for logs and metrics; nil = nobody.
	Told func(ctx context.Context, r LifecycleReport)
	// Instance tells this function apart in Events.
	Instance string

	told told
}

// LifecycleReport is what one run came to.
type LifecycleReport struct {
	// InFlight counts the records that were looked at, Moved those whose phase changed, by
	// the phase that they went to.
	InFlight int                     `json:"inFlight"`
	Moved    map[lifecycle.Phase]int `json:"moved,omitempty"`
	Attempts int                     `json:"attempts,omitempty"` // that are not resolved
	// Blocked counts the nodes whose pods may not leave yet.
	Blocked int `json:"blocked,omitempty"`
	// Left counts the records that time did not suffice for.
	Left int `json:"left,omitempty"`
	// Incomplete names what could not be read.
	Incomplete []string `json:"incomplete,omitempty"`
	// Problems are steps that were not made, and effects that were put off.
	Problems []string `json:"problems,omitempty"`
	// Refused says why nothing was done.
	Refused string `json:"refused,omitempty"`
	// Next is when the next look is due, zero = nothing is in flight.
	Next time.Time `json:"next,omitzero"`

	events int // that were written
	// due is when a drain has more to do whatever happens; zero = none has.
	due time.Time
}

// chain is where the chain of register messages is. One message carries its step; all
// others are late, or duplicates.
type chain struct {
	Step   int64     `json:"step"`
	NextAt time.Time `json:"nextAt,omitzero"` // zero = nothing is in flight
	// FullAt is when all Nodes were listed last, Nodes how many there were.
	FullAt time.Time `json:"fullAt,omitzero"`
	Nodes  int       `json:"nodes,omitempty"`
}

// Handle does the work of one message. nil acknowledges it; a lifecycle.ErrDrop too.
func (h *Lifecycle) Handle(ctx context.Context, w lifecycle.Work) error {
	switch w.Kind {
	case lifecycle.WorkRegister:
		return h.register(ctx, w.Step)
	case lifecycle.WorkNode:
		return h.node(ctx, w)
	}
	return fmt.Errorf("work of kind %q: %w", w.Kind, lifecycle.ErrDrop)
}

// Kick sees to it that somebody looks after what is in flight, within kickDelay. It may be
// called whenever something was launched or has to go: a chain that is running gets no
// second one, one that has stopped is started, one that waits long is hurried.
func (h *Lifecycle) Kick(ctx context.Context) error { return h.start(ctx, kickDelay) }

// Ensure starts the chain if it has stopped, and leaves it alone if it has not.
func (h *Lifecycle) Ensure(ctx context.Context) error { return h.start(ctx, 2*pollMax) }

// start starts a chain whose next message is not due between now, or a little ago, and a
// time from now.
func (h *Lifecycle) start(ctx context.Context, within time.Duration) error {
	late := time.Duration(0)
	if within > kickDelay {
		late = overdue
	}
	for try := 0; ; try++ {
		c, note, err := readNote[chain](ctx, h.Memory, chainNote)
		if err != nil {
			return fmt.Errorf("start looking after nodes: %w", err)
		}
		now := h.Now()
		// For a hurry, a message that is due already may be at work on what was there before.
		if c.NextAt.After(now.Add(-late)) && !c.NextAt.After(now.Add(within)) {
			return nil
		}
		c.Step++
		c.NextAt = now.Add(kickDelay)
		err = saveNote(ctx, h.Memory, note, c)
		if errors.Is(err, lifecycle.ErrChanged) && try < 3 {
			continue
		}
		if err != nil {
			return fmt.Errorf("start looking after nodes: %w", err)
		}
		return h.send(ctx, lifecycle.Work{Kind: lifecycle.WorkRegister, Step: c.Step}, kickDelay)
	}
}

func (h *Lifecycle) send(ctx context.Context, w lifecycle.Work, delay time.Duration) error {
	body, err := w.Encode()
	if err != nil {
		return err
	}
	return h.Work.Send(ctx, lifecycle.Outgoing{Body: body, Delay: delay})
}

// register looks after everything that is in flight, once, and sends the next message of
// the chain while something is. A message of another step is late, or a duplicate. Step 0
// is none of the chain: somebody wants it done now.
func (h *Lifecycle) register(ctx context.Context, step int64) error {
	c, note, err := readNote[chain](ctx, h.Memory, chainNote)
	if err != nil {
		return fmt.Errorf("look after nodes: %w", err)
	}
	if step == 0 {
		return h.now(ctx, c)
	}
	if c.Step != step || c.NextAt.IsZero() {
		return nil
	}
	rep, err := h.run(ctx, &c)
	if h.Told != nil {
		h.Told(ctx, rep)
	}
	if err != nil {
		return fmt.Errorf("look after nodes: %w", err) // the same message comes again
	}
	c.Step++
	c.NextAt = rep.Next
	if err := saveNote(ctx, h.Memory, note, c); err != nil {
		if errors.Is(err, lifecycle.ErrChanged) {
			return nil // somebody hurried the chain, and sent its next message
		}
		return fmt.Errorf("look after nodes: %w", err)
	}
	if c.NextAt.IsZero() {
		return nil
	}
	return h.send(ctx, lifecycle.Work{Kind: lifecycle.WorkRegister, Step: c.Step}, max(0, c.NextAt.Sub(h.Now())))
}

// now looks after everything once, beside the chain, and sees to it that there is one where
// something is in flight.
func (h *Lifecycle) now(ctx context.Context, c chain) error {
	rep, err := h.run(ctx, &c)
	if h.Told != nil {
		h.Told(ctx, rep)
	}
	if err != nil {
		return fmt.Errorf("look after nodes: %w", err)
	}
	if rep.Next.IsZero() {
		return nil
	}
	return h.Ensure(ctx)
}

// refused reports whether nothing may be changed now, and why.
func (h *Lifecycle) refused(ctx context.Context) (string, error) {
	meta, err := h.Memory.Open(ctx)
	if err != nil {
		return "", err
	}
	if meta.Mode != lifecycle.Normal {
		return "the ledger is in recovery: " + meta.Why, nil
	}
	err = Guard(ctx, h.Cluster, h.Now())
	var karpenter *KarpenterError
	if errors.As(err, &karpenter) {
		return karpenter.Error(), nil
	}
	return "", err
}

// run goes one step on with everything in flight.
func (h *Lifecycle) run(ctx context.Context, c *chain) (rep LifecycleReport, err error) {
	rep.Moved = map[lifecycle.Phase]int{}
	if rep.Refused, err = h.refused(ctx); err != nil {
		return rep, err
	}
	if rep.Refused != "" {
		rep.Next = h.Now().Add(pollMax)
		return rep, nil
	}
	records, err := h.Memory.Records(ctx)
	if err != nil {
		return rep, err
	}
	records, due, err := h.attempts(ctx, records, &rep)
	if err != nil {
		return rep, err
	}
	look := h.newLook(c)
	look.objects(ctx, records)
	flying, err := h.flying(ctx, records, look)
	if err != nil {
		return rep, err
	}
	rep.InFlight = len(flying)
	look.read(ctx, flying)
	rep.Incomplete = look.incomplete
	again := h.openAll(ctx, records, flying, look, &rep)
	after, err := h.advance(ctx, flying, look, &rep)
	h.drain(ctx, after, records, look, &rep)
	rep.Next = h.next(after, due, rep.Left > 0)
	if soon := h.Now().Add(pollMin); !rep.due.IsZero() && (rep.Next.IsZero() || rep.due.Before(rep.Next)) {
		rep.Next = rep.due
		if rep.Next.Before(soon) {
			rep.Next = soon
		}
	}
	if soon := h.Now().Add(pollOpening); again && (rep.Next.IsZero() || rep.Next.After(soon)) {
		rep.Next = soon
	}
	if errors.Is(err, api.ErrUnauthorized) {
		return rep, err
	}
	return rep, nil
}

// attempts goes on with attempts whose outcome is not known, and returns the records as
// they are after that, and when an attempt is due again.
func (h *Lifecycle) attempts(ctx context.Context, records []lifecycle.Record, rep *LifecycleReport) ([]lifecycle.Record, time.Time, error) {
	all, err := h.Memory.Attempts(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	var open []lifecycle.Attempt
	for _, a := range all {
		if a.State != lifecycle.Settled {
			open = append(open, a)
		}
	}
	if rep.Attempts = len(open); len(open) == 0 {
		return records, time.Time{}, nil
	}
	u := execute.Unresolved{Attempts: open, Records: records}
	if h.Known != nil {
		if u.Known, err = h.Known(ctx); err != nil {
			rep.Problems = append(rep.Problems, "what instances are is not known: "+err.Error())
		}
	}
	due, err := h.Executor.Resolve(ctx, u)
	if err != nil {
		rep.Problems = append(rep.Problems, err.Error())
	}
	records, err = h.Memory.Records(ctx)
	return records, due, err
}

// flying are the records that have to be looked at: all that are not simply in use.
func (h *Lifecycle) flying(ctx context.Context, records []lifecycle.Record, look *look) ([]lifecycle.Record, error) {
	var out, deleted []lifecycle.Record
	for _, r := range records {
		switch {
		case r.Phase == lifecycle.Closed:
		case r.Phase != lifecycle.Initialized:
			out = append(out, r)
		case look.deleted(&r):
			deleted = append(deleted, r)
		case r.UID == "", !r.NextAt.IsZero() && !h.Now().Before(r.NextAt):
			out = append(out, r)
		}
	}
	if h.Hold == nil || len(deleted) == 0 {
		return append(out, deleted...), nil
	}
	held, err := h.Hold(ctx, deleted, records)
	if err != nil {
		return nil, err
	}
	for _, r := range deleted {
		if !held[r.Claim] {
			out = append(out, r)
		}
	}
	return out, nil
}

// next is when what is in flight should be looked at again, zero = nothing is.
func (h *Lifecycle) next(records []lifecycle.Record, due time.Time, left bool) time.Time {
	now := h.Now()
	if left {
		return now
	}
	out := due
	for i := range records {
		r := &records[i]
		if r.Phase == lifecycle.Closed {
			continue
		}
		at := now.Add(poll(r, now))
		if r.Phase == lifecycle.Initialized && r.UID != "" {
			if r.NextAt.IsZero() {
				continue
			}
			at = r.NextAt
		}
		if out.IsZero() || at.Before(out) {
			out = at
		}
	}
	if !out.IsZero() && out.Before(now.Add(pollMin)) {
		out = now.Add(pollMin)
	}
	return out
}

// poll is the time until a record is looked at again.
func poll(r *lifecycle.Record, now time.Time) time.Duration {
	since := r.Created
	for _, t := range []time.Time{r.LaunchedAt, r.RegisteredAt, r.DeletingSince, r.Since} {
		if t.After(since) {
			since = t
		}
	}
	return min(max(now.Sub(since)/10, pollMin), pollMax)
}

// node goes one step on with one node: somebody has news of it.
func (h *Lifecycle) node(ctx context.Context, w lifecycle.Work) error {
	r, ok, err := h.Memory.Record(ctx, w.Claim)
	if err != nil {
		return fmt.Errorf("look after nodeclaim %s: %w", w.Claim, err)
	}
	if !ok || r.Step != w.Step {
		return nil
	}
	rep := LifecycleReport{Moved: map[lifecycle.Phase]int{}, InFlight: 1}
	if rep.Refused, err = h.refused(ctx); err != nil {
		return fmt.Errorf("look after nodeclaim %s: %w", w.Claim, err)
	}
	if rep.Refused != "" {
		if h.Told != nil {
			h.Told(ctx, rep)
		}
		return nil // housekeeping sends it again
	}
	one := []lifecycle.Record{r}
	look := h.newLook(nil)
	look.object(ctx, r.Claim)
	look.read(ctx, one)
	rep.Incomplete = look.incomplete
	after, err := h.advance(ctx, one, look, &rep)
	if look.left[r.Claim] != nil {
		all, rerr := h.relieving(ctx, after)
		if rerr != nil {
			rep.Problems = append(rep.Problems, rerr.Error())
		} else {
			h.drain(ctx, after, all, look, &rep)
		}
	}
	if h.Told != nil {
		h.Told(ctx, rep)
	}
	if err != nil {
		return fmt.Errorf("look after nodeclaim %s: %w", w.Claim, err)
	}
	if !h.next(after, time.Time{}, rep.Left > 0).IsZero() {
		return h.Kick(ctx)
	}
	return nil
}

// enough reports whether there is time to begin something.
func (h *Lifecycle) enough(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || end.Sub(h.Now()) > margin)
}

func (h *Lifecycle) each(n int, f func(int)) {
	if h.Each != nil && n > 1 {
		h.Each(n, f)
		return
	}
	for i := range n {
		f(i)
	}
}

// pools reads NodePools when one is asked for, once.
func (h *Lifecycle) pools() func(ctx context.Context, name string) (*snapshot.NodePool, error) {
	get := once(func(ctx context.Context) (map[string]*snapshot.NodePool, error) {
		s, err := h.Cluster.Some(ctx, "NodePool")
		if err != nil {
			return nil, err
		}
		out := map[string]*snapshot.NodePool{}
		for i := range s.NodePools {
			out[s.NodePools[i].Name] = &s.NodePools[i]
		}
		return out, nil
	})
	return func(ctx context.Context, name string) (*snapshot.NodePool, error) {
		all, err := get(ctx)
		return all[name], err
	}
}
