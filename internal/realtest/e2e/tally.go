package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// TableCall is a request to DynamoDB: when it came, who made it (a function's access key),
// and what it was ("GetItem").
type TableCall struct {
	At         time.Time
	Caller, Op string
}

// tally stands in front of DynamoDB and notes what is asked.
type tally struct {
	url    string
	server *http.Server

	mu    sync.Mutex
	calls []TableCall
}

func startTally(to string) (*tally, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand in front of DynamoDB: %w", err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	t := &tally{url: "http://" + l.Addr().String()}
	t.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		t.note(TableCall{time.Now(), callerOf(r), op})
		proxy.ServeHTTP(w, r)
	})}
	go t.server.Serve(l) //nolint:errcheck // it ends with stop
	return t, nil
}

func (t *tally) stop() { t.server.Close() }

func (t *tally) note(c TableCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, c)
}

// between are a function's requests from one time to another.
func (t *tally) between(function string, from, to time.Time) []TableCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.calls), func(c TableCall) bool {
		return c.Caller != keyOf(function) || c.At.Before(from) || c.At.After(to)
	})
}

// callerOf is the access key that a request is signed with.
func callerOf(r *http.Request) string {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	return key
}
