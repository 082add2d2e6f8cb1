package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// Reasons of a NodeClaim's condition Launched, as Karpenter's users know them.
const (
	codeCapacity = "InsufficientCapacityError"
	codeClass    = "NodeClassNotReady"
	codeFailed   = "LaunchFailed"
)

// failure is why a launch came to nothing.
type failure struct {
	code, message     string
	field, permission string
	capacity          bool
}

// refused is why a request was never made.
func refused(err error) failure {
	var no *launch.NoOffer
	var refusal *nodeclass.Refusal
	var limit *lifecycle.LimitError
	var aws *awserr.Error
	switch {
	case errors.As(err, &no):
		return failure{code: codeCapacity, message: no.Error(), capacity: true}
	case errors.As(err, &refusal):
		return failure{code: codeClass, message: refusal.Error()}
	case errors.As(err, &limit):
		return failure{code: "LimitExceeded", message: limit.Error()}
	case errors.As(err, &aws) && aws.Kind == awserr.Unauthorized:
		return failure{code: "UnauthorizedOperation", message: aws.Error(), permission: aws.Permission}
	}
	return failure{code: codeFailed, message: err.Error()}
}

// verdict is what an outcome says of the claims that got nothing. open: other offers may
// be asked for, because all that stood in the way was a lack of what was asked for.
func verdict(o *launch.Outcome) (f failure, open bool) {
	if len(o.Failures) == 0 {
		return failure{code: codeFailed, message: "EC2 gave fewer instances than were asked for and no reason"}, false
	}
	first := o.Failures[0]
	for _, x := range o.Failures {
		if !slices.ContainsFunc(o.Shortages, func(s launch.Shortage) bool { return s.Code == x.Code }) {
			first = x // what no other offer mends says more than a shortage
			break
		}
	}
	f = failure{code: first.Reason, message: first.Message, field: first.Field, permission: first.Permission}
	if f.code == "" {
		f.code = codeFailed
	}
	if first.Type != "" {
		f.message = fmt.Sprintf("%s in %s (%s): %s", first.Type, first.Zone, first.CapacityType, first.Message)
	}
	if n := len(o.Failures); n > 1 {
		f.message += fmt.Sprintf(" (and %d more)", n-1)
	}
	if o.Short() {
		f.capacity = true
		return f, true
	}
	return f, false
}

// giveUp ends a launch of which nothing is under way: its record is closed, which gives its
// limits back, and its NodeClaim goes.
func (x *Executor) giveUp(ctx context.Context, in *intent, rep *Report, f failure) {
	rep.Failed = append(rep.Failed, Failed{
		Claim: in.record.Claim, NodePool: in.record.NodePool, NodeClass: in.launch.NodeClass, Pods: in.record.Nominated,
		Code: f.code, Message: f.message, Field: f.field, Permission: f.permission, Capacity: f.capacity,
	})
	delete(rep.Claims, in.launch.Name)
	if err := x.Cancel(ctx, in.record, f.code+": "+f.message); err != nil {
		rep.Errors = append(rep.Errors, err)
	}
}

// Cancel ends an intent of which nothing was asked of EC2, or whose attempt is settled
// without an instance. One that has gone on meanwhile is left alone.
func (x *Executor) Cancel(ctx context.Context, r lifecycle.Record, why string) error {
	next, ok := r.Cancel(why, x.Now())
	if !ok {
		return nil
	}
	_, err := x.Memory.Save(ctx, lifecycle.Change{Was: r, Next: next})
	if errors.Is(err, lifecycle.ErrChanged) {
		now, there, rerr := x.Memory.Record(ctx, r.Claim)
		if rerr != nil || !there {
			return rerr
		}
		if next, ok = now.Cancel(why, x.Now()); !ok {
			return nil
		}
		r.UID = now.UID
		_, err = x.Memory.Save(ctx, lifecycle.Change{Was: now, Next: next})
	}
	if err != nil {
		return fmt.Errorf("cancel nodeclaim %s: %w", r.Claim, err)
	}
	return x.dropObject(ctx, r)
}

// dropObject takes the NodeClaim of a record away for which there is no node.
func (x *Executor) dropObject(ctx context.Context, r lifecycle.Record) error {
	if r.UID == "" {
		return nil // not made, or housekeeping finds it
	}
	if err := x.Cluster.Delete(ctx, "NodeClaim", "", r.Claim, r.UID); err != nil && !gone(err) {
		return fmt.Errorf("delete nodeclaim %s: %w", r.Claim, err)
	}
	if err := x.Cluster.RemoveFinalizer(ctx, "NodeClaim", r.Claim, r.UID, lifecycle.Finalizer); err != nil && !gone(err) {
		return fmt.Errorf("release nodeclaim %s: %w", r.Claim, err)
	}
	return nil
}

// gone reports whether what was meant is not there any more.
func gone(err error) bool { return errors.Is(err, api.ErrNotFound) || errors.Is(err, api.ErrConflict) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
