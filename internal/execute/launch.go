package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

const (
	// Reserve is the time that is left alone before the end of an invocation: a call that
	// was begun takes a minute at most, and its outcome has to be written.
	Reserve = lifecycle.CallTimeout + 15*time.Second
	// LeaseTime is how long the lease is taken for, and again before each chunk. So long nobody
	// plans when an invocation dies that holds it. It is longer than a pass takes to its first
	// chunk, and than a call does; who loses it meanwhile can begin nothing more.
	LeaseTime = 90 * time.Second
)

// Executor brings plans about.
type Executor struct {
	Memory  Memory
	Cloud   Cloud
	Cluster Cluster
	// Cluster facts that nodes have to know, the region, and whether it is an isolated one.
	Node     userdata.Cluster
	Region   string
	Isolated bool
	Now      func() time.Time
	// Each runs f for 0 to n-1, several at a time; nil = one after the other.
	Each func(n int, f func(i int))
	// Begun is told when records were written, before anything is launched: it sees to it
	// that somebody looks after them, whatever becomes of this invocation.
	Begun func(ctx context.Context) error
}

// Failed is a launch that came to nothing in this pass.
type Failed struct {
	Claim, NodePool, NodeClass string
	Pods                       []lifecycle.Pod
	// Code is Karpenter's reason of the condition Launched (InsufficientCapacityError, ...),
	// Message says what to do.
	Code, Message string
	// Field of the EC2NodeClass, or Permission, that is to blame; "" when none is.
	Field, Permission string
	// Capacity: there was none of what was asked for; another plan may ask for other things.
	Capacity bool
}

// Report is what became of an order.
type Report struct {
	Committed, Launched int
	// Records are the records of the order as they are now, those of failed launches left out.
	Records []lifecycle.Record
	Failed  []Failed
	// Shortages are those that were met, beside those that were known.
	Shortages []launch.Shortage
	// Left counts the launches that were not begun because time ran out.
	Left int
	// Lost names launches whose pool or class is not there any more.
	Lost []string
	// Errors are of steps that somebody else will do again.
	Errors []error
	// Calls counts CreateFleet requests.
	Calls int
	// Claims are the NodeClaims that launches became, by the name of the launch.
	Claims map[string]string
}

func (r *Report) failed(in *intent, code, message string) {
	r.Failed = append(r.Failed, Failed{
		Claim: in.record.Claim, NodePool: in.record.NodePool, NodeClass: in.launch.NodeClass, Pods: in.record.Nominated, Code: code, Message: message,
	})
}

// Launch launches what a plan wants, in chunks: each is written down, then asked for, then
// settled, before the next. The error says why the pass has to end: the lease was lost, or
// the ledger cannot be used. What was begun by then is known from the ledger.
func (x *Executor) Launch(ctx context.Context, o *Order) (*Report, error) {
	rep := &Report{Claims: map[string]string{}}
	intents, lost := o.intents(x.Now())
	rep.Lost = lost
	byClaim := make(map[string]*intent, len(intents))
	records := make([]lifecycle.Record, len(intents))
	for i, in := range intents {
		byClaim[in.record.Claim] = in
		records[i] = in.record
	}
	chunks, err := x.Memory.Split(records)
	if err != nil {
		return rep, fmt.Errorf("divide %d launches into commits: %w", len(records), err)
	}
	avoid := slices.Clone(o.Avoid)
	for n, chunk := range chunks {
		if !x.enough(ctx) {
			for _, c := range chunks[n:] {
				rep.Left += len(c)
			}
			break
		}
		batch := make([]*intent, 0, len(chunk))
		for _, r := range chunk {
			batch = append(batch, byClaim[r.Claim])
		}
		if err := x.chunk(ctx, o, batch, &avoid, rep); err != nil {
			return rep, err
		}
	}
	return rep, nil
}

// enough reports whether there is time to begin something.
func (x *Executor) enough(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || end.Sub(x.Now()) > Reserve)
}

// chunk writes down and launches one commit.
func (x *Executor) chunk(ctx context.Context, o *Order, batch []*intent, avoid *[]launch.Shortage, rep *Report) error {
	lease, err := x.Memory.Renew(ctx, o.Lease, LeaseTime)
	if err != nil {
		return err
	}
	o.Lease = lease
	batch, err = x.commit(ctx, o, batch, rep)
	if err != nil || len(batch) == 0 {
		return err
	}
	rep.Committed += len(batch)
	for _, in := range batch {
		rep.Claims[in.launch.Name] = in.record.Claim
	}
	if x.Begun != nil {
		// Nobody looks after them otherwise but housekeeping, within a minute.
		if err := x.Begun(ctx); err != nil {
			rep.Errors = append(rep.Errors, err)
		}
	}
	x.objects(ctx, batch, rep)
	if err := x.launchAll(ctx, o, batch, avoid, rep); err != nil {
		return err
	}
	return nil
}

// commit writes the records of a batch down. Those whose pool has reached a limit
// meanwhile are left out, the last ones first.
func (x *Executor) commit(ctx context.Context, o *Order, batch []*intent, rep *Report) ([]*intent, error) {
	for len(batch) > 0 {
		records := make([]lifecycle.Record, len(batch))
		for i, in := range batch {
			records[i] = in.record
		}
		stored, err := x.Memory.Commit(ctx, o.Lease, records, o.limits())
		var over *lifecycle.LimitError
		var exists *lifecycle.ExistsError
		switch {
		case err == nil:
			for i, in := range batch {
				in.record = stored[i]
			}
			return batch, nil
		case errors.As(err, &over):
			i := lastOf(batch, func(in *intent) bool {
				return in.record.NodePool == over.NodePool && in.record.Reserved[over.Resource] > 0
			})
			if i < 0 {
				return nil, err
			}
			rep.failed(batch[i], "LimitExceeded", over.Error())
			batch = slices.Delete(slices.Clone(batch), i, i+1)
		case errors.As(err, &exists):
			// This very launch was written down before, and has gone on since.
			i := lastOf(batch, func(in *intent) bool { return in.record.Claim == exists.Claim })
			if i < 0 {
				return nil, err
			}
			batch = slices.Delete(slices.Clone(batch), i, i+1)
		default:
			return nil, err
		}
	}
	return nil, nil
}

func lastOf(batch []*intent, is func(*intent) bool) int {
	for i := len(batch) - 1; i >= 0; i-- {
		if is(batch[i]) {
			return i
		}
	}
	return -1
}

// objects makes the NodeClaims of a batch. One that cannot be made is made later: an
// admission webhook may need the very node.
func (x *Executor) objects(ctx context.Context, batch []*intent, rep *Report) {
	made := make([]struct {
		uid string
		err error
	}, len(batch))
	x.each(len(batch), func(i int) {
		in := batch[i]
		made[i].uid, made[i].err = x.Cluster.CreateNodeClaim(ctx, api.NewNodeClaim{
			Claim: in.record.NodeClaim(), Pool: poolOwner(in.pool), Creation: Creation(in.record),
		})
	})
	for i, in := range batch {
		if made[i].err != nil {
			rep.Errors = append(rep.Errors, fmt.Errorf("nodeclaim %s is made later: %w", in.record.Claim, made[i].err))
			continue
		}
		in.record.UID = made[i].uid
	}
}

// Parallel runs f for 0 to n-1, as Each does.
func (x *Executor) Parallel(n int, f func(int)) { x.each(n, f) }

func (x *Executor) each(n int, f func(int)) {
	if x.Each != nil && n > 1 {
		x.Each(n, f)
		return
	}
	for i := range n {
		f(i)
	}
}
