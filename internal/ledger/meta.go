package ledger

import (
	"context"
	"errors"
	"fmt"
)

// Schema is the version of what rows look like.
const Schema = 1

var metaKey = Key{pkMeta, skTable}

func (l *Ledger) tableID(ctx context.Context) (string, error) {
	if l.id != "" {
		return l.id, nil
	}
	err := l.retry(ctx, func() (err error) {
		l.id, err = l.Table.ID(ctx)
		return err
	})
	if err != nil {
		l.id = ""
		return "", fmt.Errorf("ask which table it is: %w", err)
	}
	return l.id, nil
}

// Stored says which table it is as it is on record, for those who only read: nothing is
// compared but the schema. ok is false for a table that holds no ledger.
func (l *Ledger) Stored(ctx context.Context) (m Meta, ok bool, err error) {
	it, err := l.get(ctx, metaKey)
	if err != nil {
		return Meta{}, false, fmt.Errorf("read which table it is: %w", err)
	}
	if it == nil {
		return Meta{}, false, nil
	}
	if err := unrow(it, &m); err != nil {
		return Meta{}, false, err
	}
	if m.Schema > Schema {
		return Meta{}, false, fmt.Errorf("the table has schema %d, this program knows %d: use the version that wrote it", m.Schema, Schema)
	}
	return m, true, nil
}

// Open says what the table may be used for. One that is new, or was restored from a
// backup (its id is not the one it has on record), is in recovery. A table of another
// cluster or a later schema is an error: it is not ours to write.
func (l *Ledger) Open(ctx context.Context) (Meta, error) {
	id, err := l.tableID(ctx)
	if err != nil {
		return Meta{}, err
	}
	it, err := l.get(ctx, metaKey)
	if err != nil {
		return Meta{}, fmt.Errorf("read which table it is: %w", err)
	}
	if it == nil {
		return Meta{Table: id, Schema: Schema, Cluster: l.Cluster, Mode: Recovery, Why: "the table is new"}, nil
	}
	var m Meta
	if err := unrow(it, &m); err != nil {
		return Meta{}, err
	}
	switch {
	case m.Schema > Schema:
		return Meta{}, fmt.Errorf("the table has schema %d, this program knows %d: deploy the version that wrote it", m.Schema, Schema)
	case m.Cluster != l.Cluster:
		return Meta{}, fmt.Errorf("the table belongs to cluster %q and not to %q: give every cluster its own", m.Cluster, l.Cluster)
	case m.Table != id:
		return Meta{Table: id, Schema: Schema, Cluster: l.Cluster, Mode: Recovery, Why: "the table was restored from a backup of " + m.Table}, nil
	}
	return m, nil
}

// BeginRecovery puts the table into recovery mode: whoever holds the lease loses it, and
// tokens jump ahead of all that may have been given out after a backup was taken. In
// recovery already, it does nothing.
func (l *Ledger) BeginRecovery(ctx context.Context, why string) error {
	id, err := l.tableID(ctx)
	if err != nil {
		return err
	}
	for range l.Tries {
		meta, err := l.get(ctx, metaKey)
		if err != nil {
			return fmt.Errorf("begin recovery: %w", err)
		}
		lease, err := l.get(ctx, leaseKey)
		if err != nil {
			return fmt.Errorf("begin recovery: %w", err)
		}
		if lease[attrTable].s == id && lease[attrMode].s == string(Recovery) {
			return nil
		}
		version := meta[attrVersion].n
		it, err := row(pkMeta, skTable, version+1, Meta{Table: id, Schema: Schema, Cluster: l.Cluster, Mode: Recovery, Since: l.Now(), Why: why})
		if err != nil {
			return err
		}
		// A token per millisecond is more than there can have been.
		token := max(lease[attrToken].n, l.Now().UnixMilli()) + 1
		err = l.transact(ctx, []Write{
			{Key: metaKey, Put: it, When: stored(version)},
			{
				Key: leaseKey, Set: Item{attrTable: S(id), attrMode: S(string(Recovery)), attrToken: N(token)},
				Remove: []string{attrOwner, attrExpires, attrRerun}, When: Any(Absent(attrToken), Less(attrToken, token)),
			},
		})
		if _, ok := errors.AsType[*CanceledError](err); ok {
			continue // somebody was quicker; look again
		}
		if err != nil {
			return fmt.Errorf("begin recovery: %w", err)
		}
		return nil
	}
	return fmt.Errorf("begin recovery: %w", ErrChanged)
}

// EndRecovery makes the table an ordinary one: every node there is has its record. The
// lease ends with it; planning starts with the next Acquire.
func (l *Ledger) EndRecovery(ctx context.Context, lease Lease) error {
	if lease.Mode != Recovery {
		return errors.New("end recovery: the lease is not one of a recovery")
	}
	meta, err := l.get(ctx, metaKey)
	if err != nil {
		return fmt.Errorf("end recovery: %w", err)
	}
	var m Meta
	if err := unrow(meta, &m); err != nil {
		return err
	}
	version := meta[attrVersion].n
	m.Mode, m.Since, m.Why = Normal, l.Now(), ""
	it, err := row(pkMeta, skTable, version+1, m)
	if err != nil {
		return err
	}
	err = l.transact(ctx, []Write{
		{Key: metaKey, Put: it, When: stored(version)},
		{Key: leaseKey, Set: Item{attrMode: S(string(Normal))}, Remove: []string{attrOwner, attrExpires, attrRerun}, When: l.held(lease)},
	})
	if _, ok := errors.AsType[*CanceledError](err); ok {
		return fmt.Errorf("end recovery: %w", ErrLostLease)
	}
	if err != nil {
		return fmt.Errorf("end recovery: %w", err)
	}
	return nil
}
