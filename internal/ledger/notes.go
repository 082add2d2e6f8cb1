package ledger

import (
	"context"
	"errors"
	"fmt"

	"kerf.sh/kerf/internal/lifecycle"
)

// pkNotes is the partition of notes.
const pkNotes = "NOTES"

// Split cuts new records into commits that fit, in order (the function of that name).
func (l *Ledger) Split(records []lifecycle.Record) ([][]lifecycle.Record, error) {
	return Split(records)
}

// Note reads a note; one without data is not there.
func (l *Ledger) Note(ctx context.Context, name string) (lifecycle.Note, error) {
	it, err := l.get(ctx, Key{pkNotes, name})
	if err != nil {
		return lifecycle.Note{}, fmt.Errorf("read note %s: %w", name, err)
	}
	out := lifecycle.Note{Name: name}
	if it != nil {
		out.Data, out.Version = it[attrBody].b, it[attrVersion].n
	}
	return out, nil
}

// SaveNote writes a note over the version that was read, and returns it with its new one.
// ErrChanged means that somebody else was quicker.
func (l *Ledger) SaveNote(ctx context.Context, n lifecycle.Note) (lifecycle.Note, error) {
	was := n.Version
	n.Version++
	it := Item{attrPK: S(pkNotes), attrSK: S(n.Name), attrVersion: N(n.Version), attrBody: B(n.Data)}
	if !n.Until.IsZero() {
		it[attrTTL] = N(n.Until.Unix())
	}
	when := stored(was)
	if was == 0 { // one that has expired may still be stored
		when = Any(when, AtMost(attrTTL, l.Now().Unix()))
	}
	_, err := l.write(ctx, Write{Key: it.Key(), Put: it, When: when})
	if _, ok := errors.AsType[*ConditionError](err); ok {
		err = lifecycle.ErrChanged
	}
	if err != nil {
		return lifecycle.Note{}, fmt.Errorf("save note %s over version %d: %w", n.Name, was, err)
	}
	return n, nil
}
