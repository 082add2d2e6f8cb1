package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/lifecycle"
)

// cursorNote remembers the node at which a pass ran out of work: the next one begins there.
// What was true an hour ago is no place to go on from.
const (
	cursorNote = "consolidation"
	cursorFor  = time.Hour
)

// cursor is where the pass before ended, as it was read.
type cursor struct {
	at   string
	note lifecycle.Note
}

func (x *consolidating) cursor(ctx context.Context) (c cursor, err error) {
	c.at, c.note, err = readNote[string](ctx, x.h.Sweep.Memory, cursorNote)
	if err != nil {
		return c, fmt.Errorf("read where the last pass ended: %w", err)
	}
	return c, nil
}

// goOn writes down where the next pass begins, when that is another place than this one did.
func (x *consolidating) goOn(ctx context.Context, c cursor, next string) error {
	if next == c.at && next == "" {
		return nil
	}
	c.note.Name, c.note.Until = cursorNote, x.now().Add(cursorFor)
	if err := saveNote(ctx, x.h.Sweep.Memory, c.note, next); err != nil && !errors.Is(err, lifecycle.ErrChanged) {
		return fmt.Errorf("write down where the next pass begins: %w", err)
	}
	return nil
}

// orphans are the instances that housekeeping has found nobody to own, in a complete reading
// that is not old: it terminates them, and plans say so.
func (x *consolidating) orphans(ctx context.Context) map[string]string {
	seen, err := x.h.orphans(ctx)
	if err != nil {
		x.rep.warn(fmt.Errorf("read which instances nobody owns: %w", err))
		return nil
	}
	out := map[string]string{}
	for id, first := range seen {
		out[id] = fmt.Sprintf("nobody owns the instance: no record, NodeClaim or Node since %s; it is terminated once two complete readings have shown that", first.UTC().Format(time.RFC3339))
	}
	return out
}

// orphans are those instances, with the time of the reading that showed them first.
func (h *Consolidation) orphans(ctx context.Context) (map[string]time.Time, error) {
	seen, _, err := readNote[map[string]time.Time](ctx, h.Sweep.Memory, orphanNote)
	return seen, err
}
