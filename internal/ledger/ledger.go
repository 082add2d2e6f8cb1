package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Partitions, and the sort keys of single rows.
const (
	pkMeta     = "META"
	skTable    = "table"
	pkLease    = "LEASE"
	skPlanner  = "planner"
	pkNodes    = "NODES"
	pkClosed   = "CLOSED#"
	pkInstance = "INSTANCE#"
	skClaim    = "claim"
	pkAttempts = "ATTEMPTS"
	pkCommands = "COMMANDS"
	pkPools    = "POOLS"
	pkOffering = "OFFERING"
	pkLearned  = "LEARNED"
	pkMoves    = "MOVES"
	pkDecision = "DECISION#"
	pkCatalog  = "CATALOG"
)

// Attributes of rows with a body.
const (
	attrVersion = "v"
	attrBody    = "d"
)

// How long rows are kept.
const (
	keepClosed   = 30 * 24 * time.Hour
	keepInstance = 24 * time.Hour
	keepAttempt  = 24 * time.Hour
	keepCommand  = 7 * 24 * time.Hour
	keepMove     = 7 * 24 * time.Hour
	keepDecision = 30 * 24 * time.Hour
)

// maxActions is how many actions a commit has at most: below DynamoDB's 100, so that a
// rule which needs another row has room.
const maxActions = 90

// Config is what a Ledger works with.
type Config struct {
	Table   Table
	Cluster string
	// Owner names the invocation: no two that may run at the same time have the same.
	Owner string
	// TableID is the id of the table where it is known from an invocation before, so that
	// it is not asked for again; "" = ask.
	TableID string
	Now     func() time.Time
	// Wait pauses before a request is repeated for the n-th time (from 1), with jitter; it
	// returns an error to give up. nil = repeat at once.
	Wait func(ctx context.Context, n int) error
	// Tries is how often a request is made before throttling, a conflict or a lost answer
	// becomes an error; 0 = 8.
	Tries int
}

// Ledger is the memory of one cluster, as one invocation uses it. It is not safe for
// concurrent use.
type Ledger struct {
	Config
	id  string // of the table, once it was asked for
	seq int
}

// New makes a Ledger.
func New(c Config) *Ledger {
	if c.Tries == 0 {
		c.Tries = 8
	}
	return &Ledger{Config: c, id: c.TableID}
}

// retry repeats what was throttled, met another transaction, or got no answer.
func (l *Ledger) retry(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || n >= l.Tries || !again(err) || ctx.Err() != nil {
			return err
		}
		if l.Wait == nil {
			continue
		}
		if stop := l.Wait(ctx, n); stop != nil {
			return errors.Join(err, stop)
		}
	}
}

func again(err error) bool {
	if c, ok := errors.AsType[*CanceledError](err); ok {
		return c.again()
	}
	return errors.Is(err, ErrThrottled) || errors.Is(err, ErrConflict) || errors.Is(err, ErrUnknown)
}

// get reads a row; nil when there is none, or it has expired.
func (l *Ledger) get(ctx context.Context, key Key) (Item, error) {
	var out Item
	err := l.retry(ctx, func() (err error) {
		out, err = l.Table.Get(ctx, key)
		return err
	})
	if err != nil || l.expired(out) {
		return nil, err
	}
	return out, nil
}

// query reads a whole partition but for what has expired. A page that cannot be read is
// an error: a partition that is read in part is not read.
func (l *Ledger) query(ctx context.Context, pk string) ([]Item, error) {
	return l.queryWhile(ctx, pk, "", func(string) bool { return true })
}

// queryWhile reads a partition from behind a sort key on, while the keys are wanted.
func (l *Ledger) queryWhile(ctx context.Context, pk, after string, wanted func(sk string) bool) ([]Item, error) {
	var out []Item
	for {
		var page []Item
		var next string
		err := l.retry(ctx, func() (err error) {
			page, next, err = l.Table.Query(ctx, pk, after)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, it := range page {
			if !wanted(it.Key().SK) {
				return out, nil
			}
			if !l.expired(it) {
				out = append(out, it)
			}
		}
		if next == "" {
			return out, nil
		}
		if next <= after {
			return nil, fmt.Errorf("query %s: the page behind %q ends at %q", pk, after, next)
		}
		after = next
	}
}

func (l *Ledger) expired(it Item) bool {
	t, ok := it[attrTTL]
	return ok && t.n <= l.Now().Unix()
}

// write makes one write. When the condition does not hold because the row is already as
// the write leaves it, an answer was lost on the way, or somebody did the same: it is
// done.
func (l *Ledger) write(ctx context.Context, w Write) (Item, error) {
	var out Item
	err := l.retry(ctx, func() (err error) {
		out, err = l.Table.Write(ctx, w)
		return err
	})
	if c, ok := errors.AsType[*ConditionError](err); ok && w.left(c.Old) {
		return c.Old, nil
	}
	return out, err
}

// left reports whether a row is as the write leaves it. An update never counts: it names
// a part of the row, and somebody else may have written the same there.
func (w Write) left(old Item) bool {
	return w.Put != nil && old.Equal(w.Put) || w.Delete && old == nil
}

// transact makes a transaction. If it is cancelled although its rows are as it would
// leave them, it had been applied: transactions are whole, so that one row proves it.
func (l *Ledger) transact(ctx context.Context, ws []Write) error {
	l.seq++
	sum := sha256.Sum256([]byte(l.Cluster + "#" + l.Owner + "#" + strconv.Itoa(l.seq) + "#" + strconv.FormatInt(l.Now().UnixNano(), 10)))
	token := hex.EncodeToString(sum[:])[:36]
	err := l.retry(ctx, func() error { return l.Table.Transact(ctx, token, ws) })
	c, ok := errors.AsType[*CanceledError](err)
	if !ok || len(c.Reasons) != len(ws) {
		return err
	}
	proof := false
	for i, r := range c.Reasons {
		if r.Code != ReasonCondition || ws[i].Put == nil {
			continue
		}
		if !ws[i].left(r.Old) {
			return err
		}
		proof = true
	}
	if proof {
		return nil
	}
	return err
}

// row makes a row with a body in JSON and a version.
func row(pk, sk string, version int64, body any) (Item, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write %s/%s as JSON: %w", pk, sk, err)
	}
	return Item{attrPK: S(pk), attrSK: S(sk), attrVersion: N(version), attrBody: S(string(text))}, nil
}

// unrow reads a row with a body.
func unrow(it Item, body any) error {
	if err := json.Unmarshal([]byte(it[attrBody].s), body); err != nil {
		return fmt.Errorf("read %s: %w", it.Key(), err)
	}
	return nil
}

// unrows reads rows with bodies.
func unrows[T any](items []Item, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	out := make([]T, len(items))
	for i, it := range items {
		if err := unrow(it, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// expires sets when a row expires.
func expires(it Item, at time.Time) Item {
	it[attrTTL] = N(at.Unix())
	return it
}

// stored is the condition that a row is as it was read: absent for version 0.
func stored(version int64) Cond {
	if version == 0 {
		return Absent(attrPK)
	}
	return Eq(attrVersion, N(version))
}

// saveRow writes a row with a body over the version that was read.
func (l *Ledger) saveRow(ctx context.Context, it Item, was int64) error {
	_, err := l.write(ctx, Write{Key: it.Key(), Put: it, When: stored(was)})
	if _, ok := errors.AsType[*ConditionError](err); ok {
		return fmt.Errorf("save %s over version %d: %w", it.Key(), was, ErrChanged)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", it.Key(), err)
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// instant is a time in a sort key: it sorts as it passes.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }
