package live

import (
	"context"
	"io"
	"net/http"
)

// again repeats a request that was answered with 401, once, with a renewed identity.
// A token can end between two requests of one pass, or its key be replaced; a second 401
// says that it is not the token.
type again struct {
	next  http.RoundTripper
	renew func(context.Context, *http.Request) (bool, error)
}

// maxDrain is what is read of an answer that is not looked at, to use its connection again.
const maxDrain = 64 << 10

func (a *again) RoundTrip(q *http.Request) (*http.Response, error) {
	res, err := a.next.RoundTrip(q)
	if err != nil || res.StatusCode != http.StatusUnauthorized || q.Body != nil && q.GetBody == nil {
		return res, err
	}
	if a.renew != nil {
		sent := res.Request
		if sent == nil {
			sent = q
		}
		if ok, err := a.renew(q.Context(), sent); err != nil || !ok {
			return res, nil // the 401 is the answer; why there is no other identity comes with the next request
		}
	}
	repeat := q.Clone(q.Context())
	if q.GetBody != nil {
		if repeat.Body, err = q.GetBody(); err != nil {
			return res, nil
		}
	}
	io.CopyN(io.Discard, res.Body, maxDrain) //nolint:errcheck // only for the connection
	res.Body.Close()
	return a.next.RoundTrip(repeat)
}

// WrappedRoundTripper lets client-go find the transport below.
func (a *again) WrappedRoundTripper() http.RoundTripper { return a.next }
