package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kerf.sh/kerf/internal/ledger"
)

// table is the cluster's DynamoDB table. It can be replaced by a copy of what it was.
type table struct {
	w     *World
	live  *ledger.Memory
	older []*ledger.Memory // copies, the oldest first
	made  int
	s     *service
}

func newTable(w *World) *table {
	t := &table{w: w, live: ledger.NewMemory("table-1"), made: 1}
	t.s = &service{
		name: "table", least: 3 * time.Millisecond, most: 40 * time.Millisecond, dice: newDice(w.Seed, "table"),
		errors: func(b *bound, d dice) error {
			list := []error{ledger.ErrThrottled, ledger.ErrUnknown}
			if b.Write {
				list = append(list, ledger.ErrConflict)
			}
			return pick(d, list)
		},
		lost: func(*bound) error { return ledger.ErrUnknown },
		gone: func(_ *bound, err error) error { return fmt.Errorf("%w: %w", ledger.ErrUnknown, err) },
	}
	return t
}

// copy keeps what the table is, as a backup does.
func (t *table) copy() { t.older = append(t.older, t.live.Restore("")) }

// restore puts the last copy in the place of the table.
func (t *table) restore() {
	if len(t.older) == 0 {
		return
	}
	t.made++
	t.live = t.older[len(t.older)-1].Restore(fmt.Sprintf("table-%d", t.made))
	t.w.tracef("the table is restored from a copy as table-%d", t.made)
	t.w.checks.restored()
	for _, f := range t.w.lambdas {
		f.idle = nil // configured anew; what runs goes on with the old table
		for _, c := range f.busy {
			c.stale = true
		}
	}
}

// tableClient is the table as one container calls it. It implements ledger.Table.
type tableClient struct {
	c *container
	t *table
	// m is the table that the container was configured with: one that was begun before a
	// restore goes on with the old one.
	m *ledger.Memory
}

func keysText(keys ...ledger.Key) string {
	var parts []string
	for _, k := range keys {
		parts = append(parts, k.String())
	}
	text := strings.Join(parts, " ")
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return text
}

// ID implements ledger.Table.
func (c *tableClient) ID(ctx context.Context) (string, error) {
	return call(ctx, c.c, c.t.s, bound{Op: "DescribeTable"}, func() (string, error) { return c.m.ID(context.Background()) })
}

// Get implements ledger.Table.
func (c *tableClient) Get(ctx context.Context, key ledger.Key) (ledger.Item, error) {
	return call(ctx, c.c, c.t.s, bound{Op: "GetItem", Object: key.String()}, func() (ledger.Item, error) {
		return c.m.Get(context.Background(), key)
	})
}

// Query implements ledger.Table.
func (c *tableClient) Query(ctx context.Context, pk, after string) ([]ledger.Item, string, error) {
	type page struct {
		items []ledger.Item
		next  string
	}
	p, err := call(ctx, c.c, c.t.s, bound{Op: "Query", Object: pk}, func() (page, error) {
		items, next, err := c.m.Query(context.Background(), pk, after)
		return page{items, next}, err
	})
	return p.items, p.next, err
}

// Write implements ledger.Table.
func (c *tableClient) Write(ctx context.Context, w ledger.Write) (ledger.Item, error) {
	return call(ctx, c.c, c.t.s, bound{Op: "UpdateItem", Object: w.Key.String(), Write: true}, func() (ledger.Item, error) {
		it, err := c.m.Write(context.Background(), w)
		if err == nil {
			c.c.w.checks.wrote(c.c, c.m, []ledger.Write{w})
		}
		return it, err
	})
}

// Transact implements ledger.Table.
func (c *tableClient) Transact(ctx context.Context, token string, ws []ledger.Write) error {
	keys := make([]ledger.Key, len(ws))
	for i := range ws {
		keys[i] = ws[i].Key
	}
	_, err := call(ctx, c.c, c.t.s, bound{Op: "TransactWriteItems", Object: keysText(keys...), Write: true}, func() (struct{}, error) {
		again := c.m.Applied(token)
		err := c.m.Transact(context.Background(), token, ws)
		if err == nil && !again {
			c.c.w.checks.wrote(c.c, c.m, ws)
		}
		return struct{}{}, err
	})
	return err
}
