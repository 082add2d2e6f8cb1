package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// Stepped is a step of one record that is to be brought about, with what it was made on.
type Stepped struct {
	Was  lifecycle.Record
	Step lifecycle.Step
	// Nodes are those of the observation, Object the NodeClaim's metadata, Instance the
	// instance; nil when they were not seen.
	Nodes    []lifecycle.Node
	Object   *api.Meta
	Instance *launch.Described
}

// Around is what a pass knows besides records, read when something needs it.
type Around struct {
	// Pool reads a NodePool; nil without an error: there is none.
	Pool func(ctx context.Context, name string) (*snapshot.NodePool, error)
	// Opening adds to a change of a Node what has to go with it, so that pods come in the
	// order of the plan; nil = nothing.
	Opening func(s *Stepped, e lifecycle.PatchNode, change *api.NodeChange)
}

// Applied is what became of a step.
type Applied struct {
	// Record is as it is stored now: the one before when nothing was saved.
	Record lifecycle.Record
	// Err says why the step was not made: the same observation will give it again.
	// lifecycle.ErrChanged means that somebody else was quicker.
	Err error
	// Late are effects that the step does not wait for; they are tried again.
	Late []Late
}

// Late is an effect that was put off, with its reason for people.
type Late struct {
	Reason string
	Err    error
}

// Reasons of a Late.
const (
	LateObject = "NodeClaimNotCreated"
	LateTag    = "InstanceNotTagged"
	LateStatus = "StatusNotWritten"
	LateLearn  = "SizeNotRemembered"
)

// saveTogether is how many records are written in one transaction: each takes up to three
// of its actions, and one for its pool.
const saveTogether = 20

// Apply brings steps about: the effects of each in order, then its record over the version
// that was read. An effect that cannot be done ends its own step only. The results are in
// the order of the steps. The error says that nothing more can be done in this pass: the
// cluster does not accept who we are.
func (x *Executor) Apply(ctx context.Context, steps []Stepped, around Around) ([]Applied, error) {
	out := make([]Applied, len(steps))
	for i := range steps {
		out[i].Record = steps[i].Step.Record
	}
	x.each(len(steps), func(i int) {
		for _, e := range steps[i].Step.Effects {
			if out[i].Err = x.effect(ctx, &steps[i], e, around, &out[i]); out[i].Err != nil {
				return
			}
		}
	})
	x.terminate(ctx, steps, out)
	x.learn(ctx, steps, out)
	// People are told what is written down, and after it is: of two that look after one node
	// at a time, the slower one would say what is not so any more, and nobody would know.
	due := x.untold(out)
	x.save(ctx, steps, out)
	x.tell(ctx, steps, out, due)
	for i := range out {
		if errors.Is(out[i].Err, api.ErrUnauthorized) {
			return out, out[i].Err
		}
	}
	return out, nil
}

// effect does one effect, but for those that are done for all records together.
func (x *Executor) effect(ctx context.Context, s *Stepped, e lifecycle.Effect, around Around, out *Applied) error {
	switch e := e.(type) {
	case lifecycle.CreateObject:
		return x.createObject(ctx, around, out)
	case lifecycle.DeleteObject:
		return said("delete nodeclaim "+e.Claim, x.Cluster.Delete(ctx, "NodeClaim", "", e.Claim, e.UID))
	case lifecycle.ReleaseObject:
		return said("release nodeclaim "+e.Claim, x.Cluster.RemoveFinalizer(ctx, "NodeClaim", e.Claim, e.UID, lifecycle.Finalizer))
	case lifecycle.PatchNode:
		change := nodeChange(e, s)
		if around.Opening != nil {
			around.Opening(s, e, &change)
		}
		_, err := x.Cluster.ChangeNode(ctx, e.Node, e.UID, change)
		return said("change node "+e.Node, err)
	case lifecycle.DeleteNode:
		return said("delete node "+e.Node, x.Cluster.Delete(ctx, "Node", "", e.Node, e.UID))
	case lifecycle.ReleaseNode:
		return said("release node "+e.Node, x.Cluster.RemoveFinalizer(ctx, "Node", e.Node, e.UID, lifecycle.Finalizer))
	case lifecycle.Tag:
		if s.Instance == nil {
			// Which tags it has is not known: the next look tells.
			out.Record.Tagged = false
			return nil
		}
		if err := x.Cloud.TagRegistered(ctx, s.Instance, x.Node.Name, e.Claim, e.Node); err != nil {
			// The node works without. It is registered, and tagged later.
			out.Record.Tagged = false
			out.late(LateTag, err)
		}
		return nil
	case lifecycle.Learn, lifecycle.Terminate:
		return nil // later, and one after the other
	}
	return fmt.Errorf("nodeclaim %s: nobody knows how to do a %T", s.Was.Claim, e)
}

func (a *Applied) late(reason string, err error) {
	a.Late = append(a.Late, Late{reason, err})
}

// said adds what was tried to an error.
func said(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// createObject makes the NodeClaim of a record. Nothing waits for it: whatever keeps the
// API server from taking it, an admission webhook first of all, may need the very node.
func (x *Executor) createObject(ctx context.Context, around Around, out *Applied) error {
	r := &out.Record
	pool, err := around.Pool(ctx, r.NodePool)
	switch {
	case err != nil:
		out.late(LateObject, fmt.Errorf("read nodepool %s: %w", r.NodePool, err))
		return nil
	case pool == nil:
		out.late(LateObject, fmt.Errorf("nodepool %s is not there any more", r.NodePool))
		return nil
	}
	uid, err := x.Cluster.CreateNodeClaim(ctx, api.NewNodeClaim{Claim: r.NodeClaim(), Pool: poolOwner(pool), Creation: Creation(*r)})
	if errors.Is(err, api.ErrUnauthorized) {
		return err
	}
	if err != nil {
		out.late(LateObject, err)
		return nil
	}
	r.UID = uid
	return nil
}

// Creation is the id of the intent behind a NodeClaim, the same whenever it is made again.
func Creation(r lifecycle.Record) string { return r.Claim + "/" + r.PlanID }

// nodeChange says a PatchNode to a Node that may have changed since it was seen: taints are
// put on and taken off one by one, so that one which somebody took off meanwhile does not
// come back.
func nodeChange(e lifecycle.PatchNode, s *Stepped) api.NodeChange {
	out := api.NodeChange{Labels: e.Labels, Annotations: e.Annotations}
	if e.Finalizer {
		out.Finalizer = lifecycle.Finalizer
	}
	if e.Owner != "" {
		out.Owner = &api.Owner{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: s.Step.Record.Claim, UID: e.Owner}
	}
	if !e.SetTaints {
		return out
	}
	var seen []snapshot.Taint
	for _, n := range s.Nodes {
		if n.Name == e.Node {
			seen = n.Taints
		}
	}
	same := func(t snapshot.Taint) func(snapshot.Taint) bool {
		return func(o snapshot.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }
	}
	for _, t := range e.Taints {
		if i := slices.IndexFunc(seen, same(t)); i < 0 || seen[i].Value != t.Value {
			out.Taints = append(out.Taints, t)
		}
	}
	for _, t := range seen {
		if !slices.ContainsFunc(e.Taints, same(t)) {
			out.DropTaints = append(out.DropTaints, t)
		}
	}
	return out
}
