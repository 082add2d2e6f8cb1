package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// pageBytes is what DynamoDB reads for one page.
const pageBytes = 1 << 20

// Call is one request to a Memory, for its Fault.
type Call struct {
	Op    string // ID, Get, Query, Write, Transact
	Keys  []Key
	Write bool
}

// Fault is what goes wrong with a call. The zero value is nothing.
type Fault struct {
	// Err is returned in the place of the answer.
	Err error
	// Applied: a write is applied all the same; only its answer is lost.
	Applied bool
}

// Memory is a Table in memory: the twin of DynamoDB that tests and the simulated world
// use. It is safe for concurrent use and deterministic.
type Memory struct {
	// Fault is asked before every call, outside the lock; nil = nothing goes wrong.
	Fault func(Call) Fault

	mu     sync.Mutex
	id     string
	rows   map[string]map[string]Item // pk -> sk
	tokens map[string][32]byte        // applied transactions
}

// NewMemory makes an empty table with an id.
func NewMemory(id string) *Memory {
	return &Memory{id: id, rows: map[string]map[string]Item{}, tokens: map[string][32]byte{}}
}

func (m *Memory) fault(ctx context.Context, op string, write bool, keys ...Key) (Fault, error) {
	if err := ctx.Err(); err != nil {
		return Fault{}, err
	}
	if m.Fault == nil {
		return Fault{}, nil
	}
	f := m.Fault(Call{Op: op, Keys: keys, Write: write})
	if f.Err != nil && !f.Applied {
		return f, f.Err
	}
	return f, nil
}

// ID implements Table.
func (m *Memory) ID(ctx context.Context) (string, error) {
	f, err := m.fault(ctx, "ID", false)
	if err == nil {
		err = f.Err
	}
	return m.id, err
}

// Get implements Table.
func (m *Memory) Get(ctx context.Context, key Key) (Item, error) {
	f, err := m.fault(ctx, "Get", false, key)
	if err == nil {
		err = f.Err
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[key.PK][key.SK].clone(), nil
}

// Query implements Table.
func (m *Memory) Query(ctx context.Context, pk, after string) ([]Item, string, error) {
	f, err := m.fault(ctx, "Query", false, Key{pk, after})
	if err == nil {
		err = f.Err
	}
	if err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(m.rows[pk]))
	from, found := slices.BinarySearch(keys, after)
	if found {
		from++
	}
	var out []Item
	size := 0
	for _, sk := range keys[from:] {
		it := m.rows[pk][sk]
		size += it.Size()
		out = append(out, it.clone())
		if size >= pageBytes {
			return out, sk, nil
		}
	}
	return out, "", nil
}

// Write implements Table.
func (m *Memory) Write(ctx context.Context, w Write) (Item, error) {
	if err := checkWrite(w); err != nil {
		return nil, err
	}
	f, err := m.fault(ctx, "Write", true, w.Key)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.rows[w.Key.PK][w.Key.SK]
	if !w.When.holds(old) {
		if f.Err != nil {
			return nil, f.Err
		}
		return nil, &ConditionError{Key: w.Key, Old: old.clone()}
	}
	it, err := w.apply(old)
	if err != nil {
		return nil, err
	}
	m.store(w.Key, it)
	if f.Err != nil {
		return nil, f.Err
	}
	return it.clone(), nil
}

// Transact implements Table.
func (m *Memory) Transact(ctx context.Context, token string, ws []Write) error {
	if err := checkWrites(ws); err != nil {
		return err
	}
	keys := make([]Key, len(ws))
	for i, w := range ws {
		keys[i] = w.Key
	}
	f, err := m.fault(ctx, "Transact", true, keys...)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.transact(token, ws); err != nil && f.Err == nil {
		return err
	}
	return f.Err
}

// Applied reports whether a transaction with this token was applied: another one with it changes
// nothing.
func (m *Memory) Applied(token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.tokens[token]
	return ok && token != ""
}

func (m *Memory) transact(token string, ws []Write) error {
	sum := sha256.Sum256(fmt.Append(nil, ws))
	if was, ok := m.tokens[token]; ok && token != "" {
		if was != sum {
			return fmt.Errorf("the token %s was used for another transaction", token)
		}
		return nil
	}
	reasons := make([]Reason, len(ws))
	items := make([]Item, len(ws))
	failed := false
	for i, w := range ws {
		old := m.rows[w.Key.PK][w.Key.SK]
		reasons[i] = Reason{Key: w.Key, Code: ReasonNone}
		if !w.When.holds(old) {
			failed = true
			reasons[i].Code, reasons[i].Old = ReasonCondition, old.clone()
			continue
		}
		it, err := w.apply(old)
		if err != nil {
			return err
		}
		items[i] = it
	}
	if failed {
		return &CanceledError{Reasons: reasons}
	}
	for i, w := range ws {
		m.store(w.Key, items[i])
	}
	m.tokens[token] = sum
	return nil
}

// apply makes the row that a write leaves; nil when it is deleted or was not there and
// is only checked.
func (w Write) apply(old Item) (Item, error) {
	switch {
	case w.check():
		return old, nil
	case w.Delete:
		return nil, nil
	case w.Put != nil:
		return w.Put.clone(), nil
	}
	it := old.clone()
	if it == nil {
		it = Item{attrPK: S(w.Key.PK), attrSK: S(w.Key.SK)}
	}
	maps.Copy(it, w.Set.clone())
	for name, n := range w.Add {
		if v, ok := it[name]; ok && v.kind != kindNumber {
			return nil, fmt.Errorf("add to %s of %s: it is not a number", name, w.Key)
		}
		it[name] = N(it[name].n + n)
	}
	for _, name := range w.Remove {
		delete(it, name)
	}
	if n := it.Size(); n > MaxItem {
		return nil, fmt.Errorf("%w: the row %s would have %d bytes, %d are possible", ErrTooLarge, w.Key, n, MaxItem)
	}
	return it, nil
}

func (m *Memory) store(key Key, it Item) {
	if it == nil {
		delete(m.rows[key.PK], key.SK)
		return
	}
	if m.rows[key.PK] == nil {
		m.rows[key.PK] = map[string]Item{}
	}
	m.rows[key.PK][key.SK] = it
}

// Rows are all rows, sorted by key.
func (m *Memory) Rows() []Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Item
	for _, pk := range slices.Sorted(maps.Keys(m.rows)) {
		for _, sk := range slices.Sorted(maps.Keys(m.rows[pk])) {
			out = append(out, m.rows[pk][sk].clone())
		}
	}
	return out
}

// Restore makes a table with another id and the same rows: what a restore from a backup
// gives.
func (m *Memory) Restore(id string) *Memory {
	out := NewMemory(id)
	for _, it := range m.Rows() {
		out.store(it.Key(), it)
	}
	return out
}

// Sweep deletes rows that expired before a time in seconds since 1970: what DynamoDB does
// within days.
func (m *Memory) Sweep(before int64) {
	for _, it := range m.Rows() {
		if t, ok := it[attrTTL]; ok && t.n < before {
			m.mu.Lock()
			delete(m.rows[it.Key().PK], it.Key().SK)
			m.mu.Unlock()
		}
	}
}
