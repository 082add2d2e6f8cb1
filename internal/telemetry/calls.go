package telemetry

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
)

// Count is what is known of the requests of one operation.
type Count struct {
	// N counts the requests as they went out, tries included; Failed those calls that came
	// back with an error in the end.
	N      int `json:"n"`
	Failed int `json:"failed,omitempty"`
	// Millis is how long the calls took together.
	Millis int64 `json:"ms"`
}

// Calls counts requests by API and operation: "dynamodb.Query", "kube.GET".
type Calls struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[string]Count
}

// NewCalls counts from nothing, by a clock.
func NewCalls(now func() time.Time) *Calls { return &Calls{now: now} }

func (c *Calls) add(name string, requests int, begun time.Time, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]Count{}
	}
	n := c.by[name]
	n.N += requests
	n.Millis += c.now().Sub(begun).Milliseconds()
	if failed {
		n.Failed++
	}
	c.by[name] = n
}

// Take returns the counts and begins anew.
func (c *Calls) Take() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.by
	c.by = nil
	return out
}

// AWS counts the calls of a client of the SDK: one of aws.Config.APIOptions.
func (c *Calls) AWS(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KerfCalls",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			begun := c.now()
			out, meta, err := next.HandleInitialize(ctx, in)
			requests := 1
			if tries, ok := retry.GetAttemptResults(meta); ok {
				requests = max(len(tries.Results), 1)
			}
			name := strings.ToLower(strings.ReplaceAll(awsmiddleware.GetServiceID(ctx), " ", "")) + "." + awsmiddleware.GetOperationName(ctx)
			c.add(name, requests, begun, err != nil)
			return out, meta, err
		}), middleware.After)
}

// Transport counts the requests of an HTTP client, by method. An answer of 400 and above
// is a failure, except for what every reader of an API server gets: nothing there (404),
// somebody was quicker (409).
func (c *Calls) Transport(api string, next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		begun := c.now()
		resp, err := next.RoundTrip(r)
		failed := err != nil ||
			resp.StatusCode >= 400 && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusConflict
		c.add(api+"."+r.Method, 1, begun, failed)
		return resp, err
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
