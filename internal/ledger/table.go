package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// DynamoDB's limits.
const (
	// MaxItem is the size of a row in bytes, names included.
	MaxItem = 400 * 1024
	// MaxActions and MaxTransaction are those of one transaction, in actions and bytes.
	MaxActions     = 100
	MaxTransaction = 4 << 20
)

// Table is what the ledger needs of DynamoDB. Both implementations pass one contract.
type Table interface {
	// ID identifies the table as such: one made anew or restored has another.
	ID(ctx context.Context) (string, error)
	// Get reads a row, strongly consistent; nil when there is none.
	Get(ctx context.Context, key Key) (Item, error)
	// Query reads one page of a partition in the order of sk, from the first row behind
	// after ("" = the first) on, strongly consistent. next is where the next page starts,
	// "" at the end; a page may be empty and not be the last.
	Query(ctx context.Context, pk, after string) (items []Item, next string, err error)
	// Write applies one write if its condition holds, and returns the row that is then
	// there. Otherwise the error is a *ConditionError with the row as it is.
	Write(ctx context.Context, w Write) (Item, error)
	// Transact applies all writes or none; no two may be of the same row. A token that was
	// applied is not applied again for ten minutes. If a condition does not hold or another
	// transaction is in the way, the error is a *CanceledError.
	Transact(ctx context.Context, token string, ws []Write) error
}

// Write is one change of one row.
type Write struct {
	Key Key
	// Put replaces the whole row.
	Put Item
	// Set, Add and Remove change attributes; the row is made if it is not there. Add to a
	// number that is missing starts from 0.
	Set    Item
	Add    map[string]int64
	Remove []string
	Delete bool
	// When is the condition; a Write with nothing but it is a check.
	When Cond
}

func (w Write) check() bool {
	return w.Put == nil && len(w.Set)+len(w.Add)+len(w.Remove) == 0 && !w.Delete
}

// size is at least what DynamoDB counts for the write in a transaction.
func (w Write) size() int {
	n := len(w.Key.PK) + len(w.Key.SK) + w.Put.Size() + w.Set.Size()
	for name := range w.Add {
		n += len(name) + 22
	}
	return n
}

var (
	// ErrThrottled: the table takes no more for the moment; nothing was applied.
	ErrThrottled = errors.New("the table is throttled")
	// ErrConflict: another transaction is under way on a row; nothing was applied.
	ErrConflict = errors.New("another transaction is under way on the row")
	// ErrUnknown: no answer came; the write may have been applied or not.
	ErrUnknown = errors.New("no answer from the table")
	// ErrTooLarge: a row, or a transaction, is larger than DynamoDB takes.
	ErrTooLarge = errors.New("too large for the table")
	// ErrNoTable: there is no such table.
	ErrNoTable = errors.New("the table does not exist")
	// ErrUnauthorized: the role may not do that.
	ErrUnauthorized = errors.New("not allowed on the table")
)

// ConditionError says that the condition of a write did not hold.
type ConditionError struct {
	Key Key
	Old Item // as the row is; nil when there is none
}

func (e *ConditionError) Error() string {
	return "the condition on " + e.Key.String() + " does not hold"
}

// Codes of a Reason.
const (
	ReasonNone      = "None"
	ReasonCondition = "ConditionalCheckFailed"
	ReasonConflict  = "TransactionConflict"
	ReasonThrottled = "ThrottlingError"
)

// Reason is why one write of a transaction was in the way.
type Reason struct {
	Key  Key
	Code string
	Old  Item // with ReasonCondition: as the row is; nil when there is none
}

// CanceledError says that a transaction was not applied, with one reason per write.
type CanceledError struct{ Reasons []Reason }

func (e *CanceledError) Error() string {
	var parts []string
	for _, r := range e.Reasons {
		if r.Code != ReasonNone {
			parts = append(parts, r.Key.String()+": "+r.Code)
		}
	}
	return "the transaction was cancelled: " + strings.Join(parts, ", ")
}

// again reports whether nothing but other people's transactions and throttling was in
// the way.
func (e *CanceledError) again() bool {
	for _, r := range e.Reasons {
		if r.Code == ReasonCondition {
			return false
		}
	}
	return true
}

// checkWrites refuses what DynamoDB would refuse, with a message that says which row.
func checkWrites(ws []Write) error {
	if len(ws) == 0 || len(ws) > MaxActions {
		return fmt.Errorf("%w: a transaction of %d actions, 1 to %d are possible", ErrTooLarge, len(ws), MaxActions)
	}
	total := 0
	seen := make(map[Key]bool, len(ws))
	for _, w := range ws {
		if err := checkWrite(w); err != nil {
			return err
		}
		if seen[w.Key] {
			return fmt.Errorf("the row %s is twice in a transaction", w.Key)
		}
		seen[w.Key] = true
		total += w.size()
	}
	if total > MaxTransaction {
		return fmt.Errorf("%w: a transaction of %d bytes, %d are possible", ErrTooLarge, total, MaxTransaction)
	}
	return nil
}

func checkWrite(w Write) error {
	if w.Key.PK == "" || w.Key.SK == "" {
		return fmt.Errorf("the key %q has an empty part", w.Key)
	}
	if w.Put != nil && w.Put.Key() != w.Key {
		return fmt.Errorf("the row %s is put under the key %s", w.Put.Key(), w.Key)
	}
	if n := max(w.Put.Size(), w.Set.Size()); n > MaxItem {
		return fmt.Errorf("%w: the row %s has %d bytes, %d are possible", ErrTooLarge, w.Key, n, MaxItem)
	}
	return nil
}
