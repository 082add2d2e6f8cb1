package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// namesInEvent is how many NodeClaims an Event names (Karpenter: same).
const namesInEvent = 5

// deleting is a class that somebody deleted: it waits while nodes of it are there, then what
// was made for it goes, and then itself.
func (r *catalogRun) deleting(ctx context.Context, s *snapshot.Snapshot, c *snapshot.NodeClass, final bool) error {
	rep := ClassReport{Name: c.Name, Generation: c.Generation, Ready: "Deleting"}
	defer func() { r.rep.Classes = append(r.rep.Classes, rep) }()
	if !final {
		rep.Message = "it goes as soon as the finalizers of others are off"
		return nil
	}
	users, err := r.usersOf(ctx, s, c.Name)
	if err == nil && len(s.Incomplete) > 0 {
		err = fmt.Errorf("EC2NodeClass %s is not let go while objects cannot be read: %s", c.Name, strings.Join(s.Incomplete, "; "))
	}
	if err != nil {
		rep.Problem = err.Error()
		return err
	}
	if len(users) > 0 {
		rep.Reason, rep.Message = "WaitingOnNodeClaimTermination", waitingFor(users)
		return r.event(ctx, c, rep.Reason, rep.Message)
	}
	if r.Leftovers != nil {
		if err := r.Leftovers.RemoveOf(ctx, c.Name, c.UID); err != nil {
			err = fmt.Errorf("remove what was made for EC2NodeClass %s: %w", c.Name, err)
			rep.Problem = err.Error()
			return err
		}
	}
	if err := r.Cluster.RemoveFinalizer(ctx, kindClass, c.Name, c.UID, ClassFinalizer); err != nil {
		err = fmt.Errorf("let EC2NodeClass %s go: %w", c.Name, err)
		rep.Problem = err.Error()
		return err
	}
	rep.Ready = "Deleted"
	return r.index(ctx, func(i *factsIndex) { delete(i.Classes, c.Name) })
}

// usersOf are the NodeClaims of a class, by name: those of the cluster, and those that the
// ledger knows and that have no object yet.
func (r *catalogRun) usersOf(ctx context.Context, s *snapshot.Snapshot, class string) ([]string, error) {
	uses := func(ref snapshot.ClassRef) bool { return ref.Name == class && Ours(ref) }
	users := map[string]bool{}
	for i := range s.NodeClaims {
		if uses(s.NodeClaims[i].ClassRef) {
			users[s.NodeClaims[i].Name] = true
		}
	}
	records, err := r.Memory.Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for nodes of EC2NodeClass %s: %w", class, err)
	}
	for _, rec := range records {
		if uses(rec.Spec.ClassRef) && rec.Phase != lifecycle.Closed {
			users[rec.Claim] = true
		}
	}
	return slices.Sorted(maps.Keys(users)), nil
}

func waitingFor(users []string) string {
	some := users[:min(len(users), namesInEvent)]
	out := "waiting for NodeClaims to go: " + strings.Join(some, ", ")
	if more := len(users) - len(some); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// profileNote is the note that says since when an instance profile is needed by nothing.
const profileNote = "profiles.unused"

// keepProfile is for how long that must have been so before it goes: nodes may still be
// launched with what was resolved before (Karpenter: 1 h).
const keepProfile = time.Hour

// collect removes instance profiles that nothing needs any more: no class has them, and no
// instance, for an hour.
func (r *catalogRun) collect(ctx context.Context) error {
	if r.Leftovers == nil || r.late(ctx, "instance profiles that nothing needs") {
		return nil
	}
	made, err := r.Leftovers.Profiles(ctx)
	if err != nil {
		r.rep.Warnings = append(r.rep.Warnings, "instance profiles were not looked after: "+err.Error())
		return nil
	}
	note, err := r.Memory.Note(ctx, profileNote)
	if err != nil {
		return fmt.Errorf("look after instance profiles: %w", err)
	}
	since := map[string]time.Time{}
	if len(note.Data) > 0 && json.Unmarshal(note.Data, &since) != nil {
		since = map[string]time.Time{}
	}
	unused, err := r.unused(ctx, made)
	if err != nil {
		r.rep.Warnings = append(r.rep.Warnings, "instance profiles were not looked after: "+err.Error())
		return nil
	}
	next, gone := map[string]time.Time{}, []string{}
	now := r.Now()
	for _, name := range unused {
		first, ok := since[name]
		if !ok {
			first = now
		}
		if now.Sub(first) >= keepProfile {
			gone = append(gone, name)
		} else {
			next[name] = first
		}
	}
	if len(gone) > 0 {
		if err := r.Leftovers.RemoveProfiles(ctx, gone); err != nil {
			return fmt.Errorf("remove instance profiles that nothing needs: %w", err)
		}
		r.rep.Removed = gone
	}
	if maps.Equal(next, since) {
		return nil
	}
	if note.Data, err = json.Marshal(next); err != nil {
		return fmt.Errorf("look after instance profiles: %w", err)
	}
	if _, err := r.Memory.SaveNote(ctx, note); err != nil && !errors.Is(err, lifecycle.ErrChanged) {
		return fmt.Errorf("look after instance profiles: %w", err)
	}
	return nil
}

// unused are the profiles of those made that no class and no instance has. Classes that
// could not be looked at keep theirs: they are taken from what is stored.
func (r *catalogRun) unused(ctx context.Context, made []string) ([]string, error) {
	named := map[string]bool{}
	facts, err := LoadFacts(ctx, r.Memory, r.Region, r.Now(), r.Catalog.Facts)
	if err != nil {
		return nil, err
	}
	for _, warning := range facts.Warnings {
		if strings.HasPrefix(warning.Object, "nodeclass/") {
			return nil, errors.New(warning.Object + ": " + warning.Detail)
		}
	}
	for _, c := range facts.Classes {
		if c.Resolved.Profile != "" {
			named[c.Resolved.Profile] = true
		} else if c.Status.Condition(nodeclass.InstanceProfileReady) != nil && c.Status.Condition(nodeclass.InstanceProfileReady).Status == nodeclass.Unknown {
			return nil, errors.New("the profile of a class is not known")
		}
	}
	candidates := slices.DeleteFunc(slices.Clone(made), func(name string) bool { return named[name] })
	if len(candidates) == 0 {
		return nil, nil
	}
	used, err := r.Leftovers.InUse(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(candidates, func(name string) bool { return used[name] }), nil
}
