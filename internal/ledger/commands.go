package ledger

import (
	"context"
	"errors"
	"fmt"

	"kerf.sh/kerf/internal/lifecycle"
)

// Commands are all commands that are under way, and those that ended lately, by id.
func (l *Ledger) Commands(ctx context.Context) ([]lifecycle.Command, error) {
	out, err := unrows[lifecycle.Command](l.query(ctx, pkCommands))
	if err != nil {
		return nil, fmt.Errorf("read the commands: %w", err)
	}
	return out, nil
}

// SaveCommand writes a command over the version that it was read with (0 = a new one),
// under the lease. The errors are ErrLostLease, ErrRecovery and ErrChanged.
func (l *Ledger) SaveCommand(ctx context.Context, lease Lease, c lifecycle.Command) (lifecycle.Command, error) {
	if lease.Mode != Normal {
		return c, fmt.Errorf("save command %s: %w", c.ID, ErrRecovery)
	}
	was := c.Version
	c.Version, c.Fence = was+1, lease.Token
	it, err := row(pkCommands, c.ID, c.Version, c)
	if err != nil {
		return c, err
	}
	if c.Over() {
		expires(it, l.Now().Add(keepCommand))
	}
	err = l.transact(ctx, []Write{l.check(lease), {Key: it.Key(), Put: it, When: stored(was)}})
	if cancelled, ok := errors.AsType[*CanceledError](err); ok {
		err = whyChanged(cancelled)
	}
	if err != nil {
		return c, fmt.Errorf("save command %s: %w", c.ID, err)
	}
	return c, nil
}
