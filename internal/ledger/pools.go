package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/lifecycle"
)

// usagePrefix starts the attributes of a pool's row that count a resource, so that a
// resource may be called anything.
const usagePrefix = "u:"

func poolKey(pool string) Key { return Key{pkPools, pool} }

// reserve are the actions that change what pools use, one per pool, in the order of their
// names. With limits, what grows may not grow beyond them; nil = no limit holds, for what
// exists already. Every change counts the row's version on, so that a recount notices it.
func reserve(changes map[string]lifecycle.Usage, limits Limits) []Write {
	var out []Write
	for _, pool := range slices.Sorted(maps.Keys(changes)) {
		change := changes[pool]
		names := change.Names()
		if pool == "" || len(names) == 0 {
			continue
		}
		add := map[string]int64{attrVersion: 1}
		var conds []Cond
		for _, name := range names {
			n := change[name]
			add[usagePrefix+name] = n
			limit, limited := limits[pool][name]
			if !limited || n <= 0 {
				continue
			}
			c := AtMost(usagePrefix+name, limit-n)
			if n <= limit {
				c = Any(Absent(usagePrefix+name), c)
			}
			conds = append(conds, c)
		}
		out = append(out, Write{Key: poolKey(pool), Add: add, When: All(conds...)})
	}
	return out
}

// exceeded finds the limit because of which a pool's action did not apply; nil if none.
func exceeded(pool string, change lifecycle.Usage, limits Limits, old Item) *LimitError {
	for _, name := range change.Names() {
		limit, limited := limits[pool][name]
		used := old[usagePrefix+name].n
		if n := change[name]; limited && n > 0 && (used > limit-n) {
			return &LimitError{NodePool: pool, Resource: name, Used: used, Asked: n, Limit: limit}
		}
	}
	return nil
}

// Usage is what every pool uses, reservations included.
func (l *Ledger) Usage(ctx context.Context) (map[string]lifecycle.Usage, error) {
	counted, err := l.Counted(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]lifecycle.Usage, len(counted))
	for pool, c := range counted {
		out[pool] = c.Usage
	}
	return out, nil
}

// Counted is what every pool uses, with the versions of the counters.
func (l *Ledger) Counted(ctx context.Context) (map[string]Counted, error) {
	items, err := l.query(ctx, pkPools)
	if err != nil {
		return nil, fmt.Errorf("read what pools use: %w", err)
	}
	out := make(map[string]Counted, len(items))
	for _, it := range items {
		out[it.Key().SK] = Counted{Version: it[attrVersion].n, Usage: usageOf(it)}
	}
	return out, nil
}

func usageOf(it Item) lifecycle.Usage {
	out := lifecycle.Usage{}
	for name, v := range it {
		if res, ok := strings.CutPrefix(name, usagePrefix); ok && v.n != 0 {
			out[res] = v.n
		}
	}
	return out
}

// Recount makes the counters of all pools what the records add up to, and says which
// were not. The counters have to be read before the records: if no commit changed a pool's
// row until it is written, none changed its records since. A pool that changes meanwhile is
// left to the next recount. Nothing is ever wrong here but by a person's hand or a mistake
// of ours; it is how that heals.
func (l *Ledger) Recount(ctx context.Context, counted map[string]Counted, records []lifecycle.Record) ([]Correction, error) {
	want := lifecycle.PoolUsage(records)
	pools := map[string]bool{}
	for pool := range want {
		pools[pool] = true
	}
	for pool := range counted {
		pools[pool] = true
	}
	var out []Correction
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		was, made := counted[pool].Usage, want[pool]
		if len(was.Sub(made)) == 0 {
			continue
		}
		w := Write{Key: poolKey(pool), Set: Item{}, Add: map[string]int64{attrVersion: 1}, When: stored(counted[pool].Version)}
		for _, name := range made.Names() {
			w.Set[usagePrefix+name] = N(made[name])
		}
		for _, name := range was.Names() {
			if made[name] == 0 {
				w.Remove = append(w.Remove, usagePrefix+name)
			}
		}
		_, err := l.write(ctx, w)
		if c, ok := errors.AsType[*ConditionError](err); ok {
			if c.Old[attrVersion].n != w.When.val.n+1 || len(usageOf(c.Old).Sub(made)) != 0 {
				continue // a commit was quicker
			}
			err = nil // the answer was lost, or somebody else recounted
		}
		if err != nil {
			return out, fmt.Errorf("recount nodepool %s: %w", pool, err)
		}
		out = append(out, Correction{NodePool: pool, Was: was, Made: made})
	}
	return out, nil
}
