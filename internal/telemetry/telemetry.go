package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"kerf.sh/kerf/internal/telemetry/report"
)

// Options say who speaks, and where to.
type Options struct {
	// Out takes whole lines, each with one Write: standard output in a function.
	Out io.Writer
	// Level is the least level that is logged; summaries are written at every level.
	Level    slog.Level
	Cluster  string
	Function string
	// Optional: metrics that are optional are metrics too.
	Optional bool
	Now      func() time.Time
}

// Telemetry is what a function speaks with. It is for several goroutines, but for one
// invocation at a time.
type Telemetry struct {
	Options
	// Log is the function's logger: its lines have the function and, logged with a context
	// of Lambda's, the id of the request.
	Log *slog.Logger
	// Calls counts requests to APIs, until a summary takes them.
	Calls *Calls

	out   io.Writer
	mu    sync.Mutex
	begun time.Time
}

// New sets a function's telemetry up.
func New(o Options) *Telemetry {
	out := &lines{to: o.Out}
	h := slog.NewJSONHandler(out, &slog.HandlerOptions{Level: o.Level, ReplaceAttr: lambdacontext.ReplaceAttr})
	return &Telemetry{Options: o, out: out, Calls: NewCalls(o.Now),
		Log: slog.New(&handler{Handler: h, now: o.Now}).With("function", o.Function)}
}

// lines keeps lines whole, whoever writes them.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

// handler adds what every line has.
type handler struct {
	slog.Handler
	now func() time.Time
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	r.Time = h.now().UTC()
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("requestId", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(as []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(as), h.now}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.now}
}

// RequestID is Lambda's id of the invocation, "" outside Lambda.
func RequestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}

// Begin starts the clock of an invocation, and its count of calls: what was counted while
// the function was set up, or by an invocation without a summary, is forgotten.
func (t *Telemetry) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = t.Now()
	t.Calls.Take()
}

// maxLine is the longest summary, in bytes: Lambda cuts lines at 256 KiB, and a line that
// is cut is no JSON and has no metrics.
const maxLine = 128 << 10

// Summary writes the line of an invocation. What goes wrong goes wrong in the line itself:
// a property that cannot be written says so, a metric that the function is not to report
// is a property (see report.Table: every one is paid for), and properties beyond what a
// line holds are left out and counted.
func (t *Telemetry) Summary(ctx context.Context, r *report.Report) error {
	t.mu.Lock()
	begun := t.begun
	t.mu.Unlock()
	now := t.Now()
	var line object
	line.add("timestamp", now.UTC())
	line.add("level", slog.LevelInfo.String())
	line.add("message", "summary")
	if id := RequestID(ctx); id != "" {
		line.add("requestId", id)
	}
	line.add(report.DimensionCluster, t.Cluster)
	line.add(report.DimensionFunction, t.Function)
	metrics := t.metrics(&line, r)
	if !begun.IsZero() {
		line.add("seconds", math.Round(now.Sub(begun).Seconds()*1000)/1000)
	}
	if calls := t.Calls.Take(); len(calls) > 0 {
		line.add("calls", calls)
	}
	left := 0
	for _, p := range r.Properties() {
		if !line.fits(p.Key, p.Value, maxLine) {
			left++
		}
	}
	if left > 0 {
		line.add("propertiesLeftOut", left)
	}
	if len(metrics) > 0 {
		line.add("_aws", map[string]any{"Timestamp": now.UnixMilli(), "CloudWatchMetrics": metrics})
	}
	if _, err := t.out.Write(line.end()); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

// directive is what CloudWatch is to make of some values of the line.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []named
}

type named struct {
	Name report.Metric
	Unit string
}

// metrics adds the values and says what they are. A value that is no number is left out.
func (t *Telemetry) metrics(line *object, r *report.Report) []directive {
	var out []directive
	for _, row := range report.Table() {
		v, ok := r.Value(row.Metric)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		line.add(string(row.Metric), v)
		if !slices.Contains(row.Functions, t.Function) || row.Optional && !t.Optional {
			continue
		}
		if out == nil {
			out = []directive{{Namespace: report.Namespace, Dimensions: [][]string{{report.DimensionCluster}}}}
		}
		out[0].Metrics = append(out[0].Metrics, named{row.Metric, row.Unit})
	}
	return out
}

// object is a JSON object in the order in which it is written; the first of two fields of
// a name stays.
type object struct {
	buf  []byte
	keys map[string]bool
}

func (o *object) add(key string, v any) { o.fits(key, v, math.MaxInt) }

// fits adds a field if the object is then not longer than most.
func (o *object) fits(key string, v any, most int) bool {
	for o.keys[key] || key == "_aws" && most != math.MaxInt {
		key += "_"
	}
	value, err := json.Marshal(v)
	if err != nil {
		value, _ = json.Marshal("cannot be written: " + err.Error())
	}
	name, _ := json.Marshal(key)
	if len(o.buf)+len(name)+len(value) > most {
		return false
	}
	if o.keys == nil {
		o.keys = map[string]bool{}
	}
	o.keys[key] = true
	sep := byte(',')
	if len(o.buf) == 0 {
		sep = '{'
	}
	o.buf = append(append(append(append(o.buf, sep), name...), ':'), value...)
	return true
}

// end is the object as a line.
func (o *object) end() []byte { return append(o.buf, '}', '\n') }
