package live

import (
	"context"
	"errors"
	"fmt"

	"kerf.sh/kerf/internal/kube"
)

// Some is a part of the cluster as a source of kube.Read: a few kinds ("NodePool", "Node",
// ...), each listed completely. It returns an error when one of them cannot be: nobody could
// tell from the snapshot what is missing. A kind that need not be installed may be missing.
func (c *Client) Some(ctx context.Context, names ...string) kube.Source {
	return kube.Source{Name: "the cluster at " + c.host, Feed: func(f *kube.Feed) error {
		want := make([]*kind, len(names))
		for i, name := range names {
			if want[i] = kindNamed(name); want[i] == nil {
				return fmt.Errorf("%s is no kind that is read", name)
			}
		}
		got := make([]outcome, len(want))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		parallel(len(want), c.opts.Parallel, func(i int) {
			if got[i] = c.list(ctx, want[i], f); got[i].err != nil && !want[i].missing(got[i].err) {
				cancel()
			}
		})
		var first error
		for i := range got {
			err := got[i].err
			if err == nil || want[i].missing(err) {
				continue
			}
			// The others were cancelled because of one.
			if first == nil || errors.Is(first, context.Canceled) && !errors.Is(err, context.Canceled) {
				first = err
			}
		}
		if first != nil {
			return first
		}
		for i := range got {
			if got[i].err == nil {
				if err := f.Add(got[i].list); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// missing reports whether an error says that a kind is not served which need not be.
func (k *kind) missing(err error) bool {
	return k.need == optional && errors.Is(err, ErrMissingKind)
}
