package handler

import (
	"context"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// StoreClass writes down what a class resolved to, as the function catalog does.
func StoreClass(ctx context.Context, m Memory, c *snapshot.NodeClass, o *nodeclass.Outcome, version int64) error {
	data, err := encodeClass(c, o)
	if err != nil {
		return err
	}
	if err := m.PutPart(ctx, lifecycle.Part{Name: classPrefix + c.Name, Data: data, Generation: version}); err != nil {
		return err
	}
	index, note, err := readNote[factsIndex](ctx, m, indexNote)
	if err != nil {
		return err
	}
	if index.Classes == nil {
		index.Classes = map[string]int64{}
	}
	index.Classes[c.Name] = version
	return saveNote(ctx, m, note, index)
}
