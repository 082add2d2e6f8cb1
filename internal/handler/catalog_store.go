package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// rewriteAfter is when a class is stored again although nothing of it has changed: its age
// tells that somebody looks after it.
const rewriteAfter = time.Hour

// store writes a resolved class down. listed is when the class was read: who read it later
// knows better.
func (r *catalogRun) store(ctx context.Context, c *snapshot.NodeClass, o *nodeclass.Outcome, listed time.Time) error {
	data, err := encodeClass(c, o)
	if err != nil {
		return err
	}
	if got, ok := r.facts.Class(c); ok && o.Resolved.At.Sub(got.Resolved.At) < rewriteAfter {
		same := *o.Resolved
		same.At = got.Resolved.At
		was, err := encodeClass(c, &nodeclass.Outcome{Resolved: got.Resolved, Status: got.Status})
		now, err2 := encodeClass(c, &nodeclass.Outcome{Resolved: &same, Status: o.Status})
		if err == nil && err2 == nil && string(was) == string(now) {
			return nil
		}
	}
	version, err := r.version(ctx, classPrefix+c.Name, listed)
	if err != nil {
		return err
	}
	if err := r.Memory.PutPart(ctx, lifecycle.Part{Name: classPrefix + c.Name, Data: data, Generation: version}); err != nil {
		return err
	}
	return r.index(ctx, func(i *factsIndex) {
		if i.Classes == nil {
			i.Classes = map[string]int64{}
		}
		i.Classes[c.Name] = max(version, i.Classes[c.Name])
	})
}

// version is a number for a part that is to be stored: the time of what it was made from,
// but above that of the part that it follows on within the same millisecond.
func (r *catalogRun) version(ctx context.Context, part string, of time.Time) (int64, error) {
	was, ok, err := r.Memory.Generation(ctx, part)
	if err != nil {
		return 0, err
	}
	version := of.UnixMilli()
	if ok && was == version {
		version++
	}
	return version, nil
}

// indexTries is how often the index is written when others write it at the same time.
const indexTries = 5

// index changes the list of parts.
func (r *catalogRun) index(ctx context.Context, change func(*factsIndex)) error {
	var err error
	for range indexTries {
		var note lifecycle.Note
		if note, err = r.Memory.Note(ctx, indexNote); err != nil {
			break
		}
		var i factsIndex
		if len(note.Data) > 0 && json.Unmarshal(note.Data, &i) != nil {
			i = factsIndex{} // it is of no use to anybody
		}
		change(&i)
		data, merr := json.Marshal(i)
		if merr != nil {
			return fmt.Errorf("list what can be launched: %w", merr)
		}
		if string(data) == string(note.Data) {
			return nil
		}
		note.Data = data
		if _, err = r.Memory.SaveNote(ctx, note); !errors.Is(err, lifecycle.ErrChanged) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("list what can be launched: %w", err)
	}
	return nil
}

// dropGone takes classes off the list that are not there any more.
func (r *catalogRun) dropGone(ctx context.Context, there []snapshot.NodeClass) error {
	gone := false
	for name := range r.facts.Classes {
		gone = gone || !slices.ContainsFunc(there, func(c snapshot.NodeClass) bool { return c.Name == name })
	}
	if !gone {
		return nil
	}
	return r.index(ctx, func(i *factsIndex) {
		for name := range i.Classes {
			// One that came since this run began is not in what it started from.
			_, known := r.facts.Classes[name]
			if known && !slices.ContainsFunc(there, func(c snapshot.NodeClass) bool { return c.Name == name }) {
				delete(i.Classes, name)
			}
		}
	})
}

// classStatus is a status for the API. A field whose condition is not known keeps what it
// says.
func classStatus(s *nodeclass.Status, reservations bool) api.Status {
	out := api.Status{Fields: map[string]any{}}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, snapshot.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ObservedGeneration: c.ObservedGeneration, Since: c.LastTransitionTime,
		})
	}
	if !reservations {
		out.Gone = []string{nodeclass.CapacityReservationsReady}
	}
	field := func(name, condition string, has bool, v any) {
		switch c := s.Condition(condition); {
		case c != nil && c.Status == nodeclass.Unknown:
		case has:
			out.Fields[name] = v
		default:
			out.Fields[name] = nil
		}
	}
	field("subnets", nodeclass.SubnetsReady, len(s.Subnets) > 0, s.Subnets)
	field("securityGroups", nodeclass.SecurityGroupsReady, len(s.SecurityGroups) > 0, s.SecurityGroups)
	field("amis", nodeclass.AMIsReady, len(s.AMIs) > 0, s.AMIs)
	field("instanceProfile", nodeclass.InstanceProfileReady, s.InstanceProfile != "", s.InstanceProfile)
	field("capacityReservations", nodeclass.CapacityReservationsReady, len(s.CapacityReservations) > 0, s.CapacityReservations)
	return out
}
