package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restarts is how often a list is begun anew when it cannot be finished: its continue
// token has expired, or the pages are not of one state of the cluster.
const restarts = 3

// errPages: the pages of a list do not belong together.
var errPages = errors.New("the pages are not of one state of the cluster")

// pages reads a list page by page. begin is called before the first page, and again when
// the list must be read from the beginning: what it was given so far is then void. Every
// page goes to take, which returns the page's metadata and how many objects it held. The
// list is whole when there is no error.
func (c *Client) pages(ctx context.Context, q *request, begin func(), take func(answer) (*metav1.ListMeta, int, error)) error {
	for try := 1; ; try++ {
		begin()
		err := c.once(ctx, q, take)
		if err == nil {
			return nil
		}
		if !expired(err) && !errors.Is(err, errPages) || ctx.Err() != nil {
			return err
		}
		if try == restarts {
			return &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Is: ErrUnavailable, Err: err,
				Detail: fmt.Sprintf("begun %d times and never finished: %v", restarts, err)}
		}
	}
}

// once reads a list from its first page to its last.
func (c *Client) once(ctx context.Context, base *request, take func(answer) (*metav1.ListMeta, int, error)) error {
	var version, token string
	var read int64
	for first := true; ; first = false {
		q := *base
		q.params = map[string]string{"limit": strconv.FormatInt(c.opts.PageSize, 10)}
		for k, v := range base.params {
			q.params[k] = v
		}
		if token != "" {
			q.params["continue"] = token
		}
		a, err := c.do(ctx, &q)
		if err != nil {
			return err
		}
		meta, n, err := take(a)
		if err != nil {
			return &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Is: ErrUnavailable, Err: err, Detail: shorten(err.Error())}
		}
		read += int64(n)
		switch {
		case first:
			version = meta.ResourceVersion
		case meta.ResourceVersion != version:
			return fmt.Errorf("list %s: %w (resource versions %s and %s)", q.resource, errPages, version, meta.ResourceVersion)
		case meta.Continue != "" && meta.Continue == token:
			return &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Is: ErrUnavailable, Detail: "the API server gives the same page again and again", Err: errPages}
		}
		c.progress(base, meta, read)
		if token = meta.Continue; token == "" {
			return nil
		}
	}
}

func (c *Client) progress(q *request, meta *metav1.ListMeta, read int64) {
	if c.opts.Progress == nil {
		return
	}
	p := Progress{Kind: q.resource, Read: read, Done: meta.Continue == ""}
	if meta.RemainingItemCount != nil {
		p.Left = *meta.RemainingItemCount
	}
	c.opts.Progress(p)
}
