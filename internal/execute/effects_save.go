package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
)

// showAgain is when a NodeClaim whose status could not be written is written again, where
// nothing else would look at it.
const showAgain = 30 * time.Second

// terminate ends the instances of all steps in one call. A step whose instance EC2 did not
// take the order for is not made.
func (x *Executor) terminate(ctx context.Context, steps []Stepped, out []Applied) {
	of := map[string]int{}
	var ids []string
	for i := range steps {
		if out[i].Err != nil {
			continue
		}
		for _, e := range steps[i].Step.Effects {
			if t, ok := e.(lifecycle.Terminate); ok {
				of[t.Instance] = i
				ids = append(ids, t.Instance)
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	ending, missing, err := x.Cloud.Terminate(ctx, ids)
	if err == nil {
		return
	}
	for _, id := range ids {
		if !slices.Contains(ending, id) && !slices.Contains(missing, id) {
			out[of[id]].Err = fmt.Errorf("terminate %s: %w", id, err)
		}
	}
}

// learn remembers what nodes turned out to have. Nothing waits for it: the next node of the
// kind tells the same.
func (x *Executor) learn(ctx context.Context, steps []Stepped, out []Applied) {
	for i := range steps {
		for _, e := range steps[i].Step.Effects {
			l, ok := e.(lifecycle.Learn)
			if !ok || out[i].Err != nil || l.ImageID == "" || steps[i].Was.Shape == "" {
				continue // what it would hold for is not known
			}
			err := x.Memory.Learn(ctx, lifecycle.Learned{
				InstanceType: l.InstanceType, ImageID: l.ImageID, Shape: steps[i].Was.Shape,
				Capacity: l.Capacity, Allocatable: l.Allocatable, Seen: x.Now(),
			})
			if err != nil {
				out[i].late(LateLearn, err)
			}
		}
	}
}

// Shown is a hash of what the NodeClaim of a record says of it.
func Shown(r lifecycle.Record) string {
	c := r.NodeClaim()
	raw, err := json.Marshal(struct {
		Labels map[string]string
		Status api.Status
		End    string `json:",omitempty"`
	}{c.Labels, api.ClaimStatus(&c), c.Annotations[lifecycle.AnnotationEnd]})
	if err != nil { // strings and numbers can always be written
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// show makes the NodeClaim say what the record says, where that has changed. What cannot
// be written is written later; people are told less, and nothing is done otherwise.
func (x *Executor) show(ctx context.Context, s *Stepped, out *Applied) {
	r := &out.Record
	if r.UID == "" || r.Phase == lifecycle.Closed {
		return
	}
	want := Shown(*r)
	if r.Shown == want {
		return
	}
	c := r.NodeClaim()
	err := x.label(ctx, s, c.Labels, r)
	if err == nil {
		err = x.announce(ctx, s, c.Annotations[lifecycle.AnnotationEnd], r)
	}
	if err == nil {
		_, err = x.Cluster.PatchStatus(ctx, "NodeClaim", r.Claim, r.UID, api.ClaimStatus(&c))
	}
	switch {
	case err == nil:
		r.Shown = want
	case errors.Is(err, api.ErrNotFound):
		// Nobody is there to be told.
	case errors.Is(err, api.ErrInvalid):
		r.Shown = want // it never takes this; with the next change it may
		out.late(LateStatus, err)
	default:
		out.late(LateStatus, err)
		if r.Phase == lifecycle.Initialized && r.NextAt.IsZero() {
			r.NextAt = x.Now().Add(showAgain)
		}
	}
}

// announce writes at a NodeClaim when its node goes whatever is left on it (Karpenter: the
// annotation of the termination timestamp). A table that is lost does not take that along.
func (x *Executor) announce(ctx context.Context, s *Stepped, end string, r *lifecycle.Record) error {
	if end == "" || s.Object != nil && s.Object.Version.UID == r.UID && s.Object.Annotations[lifecycle.AnnotationEnd] == end {
		return nil
	}
	_, err := x.Cluster.Annotate(ctx, "NodeClaim", r.Claim, r.UID, map[string]string{lifecycle.AnnotationEnd: end})
	return err
}

// label gives the NodeClaim the labels that became known with the instance, where it lacks
// them: people's columns show type, zone and capacity type by them.
func (x *Executor) label(ctx context.Context, s *Stepped, labels map[string]string, r *lifecycle.Record) error {
	if s.Object != nil && s.Object.Version.UID == r.UID {
		missing := false
		for k, v := range labels {
			if have, ok := s.Object.Labels[k]; !ok || have != v {
				missing = true
			}
		}
		if !missing {
			return nil
		}
	}
	_, err := x.Cluster.Label(ctx, "NodeClaim", r.Claim, r.UID, labels)
	return err
}

// save writes the records of the steps that were made. Several go in one transaction; when
// one of them was changed by somebody else, each goes alone.
func (x *Executor) save(ctx context.Context, steps []Stepped, out []Applied) {
	var todo []int
	for i := range steps {
		late := out[i].Record
		if out[i].Err != nil {
			out[i].Record = steps[i].Was
			continue
		}
		if late.Tagged != steps[i].Step.Record.Tagged && late.Phase == lifecycle.Initialized && late.NextAt.IsZero() {
			out[i].Record.NextAt = x.Now().Add(showAgain)
		}
		was := steps[i].Was
		if steps[i].Step.Changed || out[i].Record.UID != was.UID || out[i].Record.Shown != was.Shown || out[i].Record.Tagged != was.Tagged {
			todo = append(todo, i)
			continue
		}
		out[i].Record = was
	}
	for some := range slices.Chunk(todo, saveTogether) {
		if len(some) > 1 && x.saveSome(ctx, steps, out, some) == nil {
			continue
		}
		for _, i := range some {
			if err := x.saveSome(ctx, steps, out, []int{i}); err != nil {
				out[i].Err, out[i].Record = fmt.Errorf("save nodeclaim %s: %w", steps[i].Was.Claim, err), steps[i].Was
			}
		}
	}
}

func (x *Executor) saveSome(ctx context.Context, steps []Stepped, out []Applied, some []int) error {
	changes := make([]lifecycle.Change, len(some))
	for n, i := range some {
		changes[n] = lifecycle.Change{Was: steps[i].Was, Next: out[i].Record}
	}
	saved, err := x.Memory.Save(ctx, changes...)
	if err != nil {
		return err
	}
	for n, i := range some {
		out[i].Record = saved[n]
	}
	return nil
}
