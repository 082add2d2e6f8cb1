package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/interruption"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// unknownFor is how long after an event an instance that EC2 does not know is asked for
	// again: EC2 hears of what it made with a delay, and of what it ended for an hour.
	unknownFor = 3 * time.Minute
	// unknownAgain is when.
	unknownAgain = 5 * time.Second
)

// AnnotationRebalance on a NodePool says that its nodes are replaced when EC2 recommends it
// ("true"); without it a recommendation is an Event and nothing more (Karpenter: same).
const AnnotationRebalance = "kerf.sh/act-on-rebalance"

// Interruption acts on what AWS says about instances that will go: within seconds, and
// without a plan. The sweep plans, the lifecycle function drains.
type Interruption struct {
	Memory   Memory
	Cluster  Cluster
	Executor *execute.Executor
	Ticks    execute.Sender
	Work     execute.Sender

	ClusterName string
	Now         func() time.Time
	// Told is given what a message came to, for logs and metrics; nil = nobody.
	Told     func(ctx context.Context, r InterruptionReport)
	Instance string

	told told
}

// InterruptionReport is what one message came to.
type InterruptionReport struct {
	// Outcome is Handled, Known, Foreign, Ignored, Malformed, NotJoined, OptedOut, Unknown.
	Outcome  string            `json:"outcome"`
	Kind     interruption.Kind `json:"kind,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Claim    string            `json:"claim,omitempty"`
	Node     string            `json:"node,omitempty"`
	Detail   string            `json:"detail,omitempty"`
	// Deadline is when EC2 takes the instance, Tainted how long after the message was taken
	// up its node took no more pods.
	Deadline time.Time     `json:"deadline,omitzero"`
	Tainted  time.Duration `json:"tainted,omitempty"`
	Problems []string      `json:"problems,omitempty"`
}

// Handle answers one message. A nil error, and one that is lifecycle.ErrDrop, acknowledges
// it; any other brings it back.
func (h *Interruption) Handle(ctx context.Context, body string) error {
	n, err := interruption.Parse(body, h.Now())
	switch {
	case errors.Is(err, interruption.ErrIgnored):
		h.tell(ctx, InterruptionReport{Outcome: "Ignored", Detail: err.Error()})
		return nil
	case err != nil:
		h.tell(ctx, InterruptionReport{Outcome: "Malformed", Detail: err.Error()})
		return fmt.Errorf("%w: %w", lifecycle.ErrDrop, err)
	}
	// Every instance is seen to, whatever becomes of the others.
	var errs []error
	for _, id := range n.Instances {
		if err := h.instance(ctx, n, id); err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", n.Kind, id, err))
		}
	}
	return errors.Join(errs...)
}

func (h *Interruption) tell(ctx context.Context, r InterruptionReport) {
	if h.Told != nil {
		h.Told(ctx, r)
	}
}

// instance acts on one instance of a notice.
func (h *Interruption) instance(ctx context.Context, n *interruption.Notice, id string) error {
	rep := InterruptionReport{Kind: n.Kind, Instance: id, Deadline: n.Deadline}
	began := h.Now()
	r, err := h.find(ctx, n, id, &rep)
	if err != nil || r == nil {
		if rep.Outcome != "" {
			h.tell(ctx, rep)
		}
		return err
	}
	return h.act(ctx, n, r, began, &rep)
}

// act does what a notice about the instance of a record calls for.
func (h *Interruption) act(ctx context.Context, n *interruption.Notice, r *lifecycle.Record, began time.Time, rep *InterruptionReport) error {
	id := r.Instance.ID
	rep.Claim, rep.Node = r.Claim, r.Node
	if n.Optional {
		in, err := h.optedIn(ctx, r.NodePool)
		if err != nil {
			return err
		}
		h.event(ctx, r, string(n.Kind), "EC2 recommends to replace instance "+id, rep)
		if !in {
			rep.Outcome = "OptedOut"
			h.tell(ctx, *rep)
			return nil
		}
	}
	next, fresh, err := h.doom(ctx, *r, lifecycle.Doom{Reason: string(n.Kind), At: n.At, Deadline: n.Deadline})
	if err != nil {
		return err
	}
	// The notice is in the ledger: whatever fails from here on is done by those who read it,
	// only later.
	rep.Outcome = "Handled"
	if !fresh {
		rep.Outcome = "Known"
	}
	if !fresh && !next.Phase.Before(lifecycle.Terminating) {
		// EC2 tells of every end, those that were asked for too: that is no news to anybody.
		h.tell(ctx, *rep)
		return nil
	}
	if next.Node != "" {
		rep.problem(h.taint(ctx, next))
		rep.Tainted = h.Now().Sub(began)
	} else {
		rep.Detail = "its Node has not joined"
	}
	if fresh {
		offer := lifecycle.Offer{InstanceType: next.Instance.Type, Zone: next.Instance.Zone, CapacityType: next.Instance.CapacityType}
		if n.Kind == interruption.SpotInterrupted || n.Kind == interruption.ReservationInterrupted {
			rep.problem(h.Memory.Interrupted(ctx, offer, n.At))
		}
		h.event(ctx, &next, string(n.Kind), fmt.Sprintf("instance %s: %s", id, n.Kind), rep)
	}
	rep.problem(h.wake(ctx, next))
	h.tell(ctx, *rep)
	return nil
}

func (r *InterruptionReport) problem(err error) {
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
}

// find is the record of an instance: by the ledger before any other call, then by what EC2
// says of it. nil: it is nobody's of ours, and rep says so.
func (h *Interruption) find(ctx context.Context, n *interruption.Notice, id string, rep *InterruptionReport) (*lifecycle.Record, error) {
	if r, err := h.recordOf(ctx, id); r != nil || err != nil {
		return r, err
	}
	found, missing, err := h.Executor.Cloud.Describe(ctx, []string{id})
	if err != nil {
		return nil, fmt.Errorf("ask EC2 whose instance it is: %w", err)
	}
	if len(missing) > 0 || len(found) == 0 {
		if h.Now().Sub(n.At) >= unknownFor {
			rep.Outcome, rep.Detail = "Unknown", "EC2 does not know it"
			return nil, nil
		}
		return nil, &lifecycle.Delay{After: unknownAgain, Err: errors.New("neither the ledger nor EC2 knows it yet")}
	}
	d := &found[0]
	if d.Tags[nodeclass.TagClusterName] != h.ClusterName || d.Tags[nodeclass.TagNodePool] == "" {
		rep.Outcome, rep.Detail = "Foreign", "it is not of this cluster"
		return nil, nil
	}
	return h.adopt(ctx, n, d, rep)
}

func (h *Interruption) recordOf(ctx context.Context, id string) (*lifecycle.Record, error) {
	claim, err := h.Memory.ClaimOf(ctx, id)
	if err != nil || claim == "" {
		return nil, err
	}
	r, ok, err := h.Memory.Record(ctx, claim)
	if err != nil || !ok || r.Instance.ID != id {
		return nil, err
	}
	return &r, nil
}

// adopt finds the record of an instance of ours that the ledger has none of: its attempt is
// not settled yet, or nobody has written it down.
func (h *Interruption) adopt(ctx context.Context, n *interruption.Notice, d *launch.Described, rep *InterruptionReport) (*lifecycle.Record, error) {
	if id := d.Tags[nodeclass.TagAttempt]; id != "" {
		attempts, err := h.Memory.Attempts(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			if a.ID == id && a.State != lifecycle.Settled {
				// Whoever asked for it will hear of it, or look for it. Until then nobody runs on it.
				return nil, &lifecycle.Delay{After: unknownAgain, Err: fmt.Errorf("the outcome of attempt %s is not written down yet", id)}
			}
		}
	}
	if d.Gone() || h.Now().Sub(n.At) >= unknownFor {
		rep.Outcome, rep.Detail = "Unknown", "it is ours, and no record knows it; housekeeping looks after it"
		return nil, nil
	}
	if r, err := h.recordOf(ctx, d.ID); r != nil || err != nil {
		return r, err
	}
	return nil, &lifecycle.Delay{After: unknownAgain, Err: errors.New("it is ours, and no record knows it yet")}
}

// doom writes the notice into the record. fresh: it says something new.
func (h *Interruption) doom(ctx context.Context, r lifecycle.Record, d lifecycle.Doom) (next lifecycle.Record, fresh bool, err error) {
	for try := 0; ; try++ {
		next, changed := r.Doom(d, h.Now())
		if !changed {
			return r, false, nil
		}
		saved, err := h.Memory.Save(ctx, lifecycle.Change{Was: r, Next: next})
		if err == nil {
			return saved[0], true, nil
		}
		if !errors.Is(err, lifecycle.ErrChanged) || try == 5 {
			return r, false, err
		}
		now, ok, err := h.Memory.Record(ctx, r.Claim)
		if err != nil {
			return r, false, err
		}
		if !ok {
			return r, false, nil // it is closed
		}
		r = now
	}
}

// taint keeps new pods off a node.
func (h *Interruption) taint(ctx context.Context, r lifecycle.Record) error {
	_, err := h.Cluster.ChangeNode(ctx, r.Node, r.NodeUID, api.NodeChange{
		Taints: []snapshot.Taint{snapshot.Disrupted}, Labels: map[string]string{lifecycle.LabelExclude: "karpenter"},
	})
	if errors.Is(err, api.ErrNotFound) || errors.Is(err, api.ErrConflict) {
		return nil // it is gone
	}
	return err
}

// wake asks for a plan now, and for the first step of the drain.
func (h *Interruption) wake(ctx context.Context, r lifecycle.Record) error {
	tick, err := lifecycle.Tick{Kind: lifecycle.TickUrgent, Sent: h.Now()}.Encode()
	if err != nil {
		return err
	}
	work, err := lifecycle.Work{Kind: lifecycle.WorkNode, Claim: r.Claim, Step: r.Step}.Encode()
	if err != nil {
		return err
	}
	return errors.Join(h.Ticks.Send(ctx, lifecycle.Outgoing{Body: tick}), h.Work.Send(ctx, lifecycle.Outgoing{Body: work, Delay: 2 * time.Second}))
}

// optedIn reports whether a pool's nodes are replaced on a recommendation.
func (h *Interruption) optedIn(ctx context.Context, pool string) (bool, error) {
	s, err := h.Cluster.Some(ctx, "NodePool")
	if err != nil {
		return false, fmt.Errorf("read what NodePool %s wants: %w", pool, err)
	}
	for i := range s.NodePools {
		if s.NodePools[i].Name == pool {
			return s.NodePools[i].Annotations[AnnotationRebalance] == "true", nil
		}
	}
	return false, nil
}

func (h *Interruption) event(ctx context.Context, r *lifecycle.Record, reason, note string, rep *InterruptionReport) {
	now := h.Now()
	e := api.Event{
		Object: api.Reference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: r.Claim, UID: r.UID}, Key: reason + r.Instance.ID,
		Reason: reason, Action: "Interrupt", Warning: true, Note: note, Time: now, Controller: "kerf.sh/interruption", Instance: h.Instance,
	}
	key := r.Claim + reason
	if !h.told.fresh(key, now) {
		return
	}
	if _, err := h.Cluster.Emit(ctx, e); err != nil {
		h.told.forget(key)
		rep.problem(err)
	}
}
