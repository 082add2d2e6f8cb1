package handler

import (
	"context"
	"encoding/json"
	"fmt"

	"kerf.sh/kerf/internal/lifecycle"
)

// readNote reads a note as JSON. One that is not there, or that another version wrote in
// another form, is the zero value.
func readNote[T any](ctx context.Context, m Memory, name string) (v T, n lifecycle.Note, err error) {
	if n, err = m.Note(ctx, name); err != nil {
		return v, n, err
	}
	if len(n.Data) > 0 {
		var got T
		if json.Unmarshal(n.Data, &got) == nil {
			v = got
		}
	}
	return v, n, nil
}

// saveNote writes a note as JSON over the version that was read.
func saveNote[T any](ctx context.Context, m Memory, n lifecycle.Note, v T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write note %s as JSON: %w", n.Name, err)
	}
	n.Data = data
	_, err = m.SaveNote(ctx, n)
	return err
}
