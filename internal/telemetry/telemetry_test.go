package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/rapidtest"
	"kerf.sh/kerf/internal/telemetry/report"
)

func TestMain(m *testing.M) { rapidtest.Main(m, nil) }

// clock is a clock that a test moves.
type clock struct{ now time.Time }

func setUp(function string, level slog.Level) (*Telemetry, *clock, *bytes.Buffer) {
	c, out := &clock{time.Date(2026, 11, 30, 9, 30, 12, 345e6, time.UTC)}, &bytes.Buffer{}
	return New(Options{Out: out, Level: level, Cluster: "prod", Function: function, Now: func() time.Time { return c.now }}), c, out
}

func request(ctx context.Context) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: "8f5c"})
}

func TestLog(t *testing.T) {
	tel, c, out := setUp("sweep", slog.LevelInfo)
	tel.Log.DebugContext(request(t.Context()), "not written")
	tel.Log.InfoContext(request(t.Context()), "pods are pending", "count", 3)
	c.now = c.now.Add(time.Second)
	tel.Log.With("pod", "ns/a").WithGroup("why").Warn("no", "time", "x")
	want := `{"timestamp":"2026-11-30T09:30:12.345Z","level":"INFO","message":"pods are pending","function":"sweep","count":3,"requestId":"8f5c"}
{"timestamp":"2026-11-30T09:30:13.345Z","level":"WARN","message":"no","function":"sweep","pod":"ns/a","why":{"time":"x"}}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestSummary(t *testing.T) {
	tel, c, out := setUp("sweep", slog.LevelError)
	tel.Calls.add("kube.GET", 9, c.now, false) // before the invocation
	tel.Begin()
	c.now = c.now.Add(1234567 * time.Microsecond)
	tel.Calls.add("kube.GET", 1, c.now.Add(-20*time.Millisecond), false)
	tel.Calls.add("kube.GET", 1, c.now.Add(-5*time.Millisecond), true)
	var r report.Report
	r.Add(report.Launched, 2)
	r.Add(report.Launched, 1)
	r.Add(report.Failures, 0)
	r.Set(report.OldestPendingSeconds, 0.75)
	r.Say("planId", "p1")
	r.Count("claims", 2)
	r.Count("claims", 1)
	r.Say("planId", "p2")
	if err := tel.Summary(request(t.Context()), &r); err != nil {
		t.Fatal(err)
	}
	want := `{"timestamp":"2026-11-30T09:30:13.579567Z","level":"INFO","message":"summary","requestId":"8f5c","Cluster":"prod","Function":"sweep",` +
		`"OldestPendingSeconds":0.75,"Launched":3,"Failures":0,"seconds":1.235,"calls":{"kube.GET":{"n":2,"failed":1,"ms":25}},"planId":"p2","claims":3,` +
		`"_aws":{"CloudWatchMetrics":[` +
		`{"Namespace":"Kerf","Dimensions":[["Cluster"]],"Metrics":[{"Name":"OldestPendingSeconds","Unit":"Seconds"},{"Name":"Launched","Unit":"Count"},{"Name":"Failures","Unit":"Count"}]}],"Timestamp":1796031013579}}` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// TestSummaryOfNothing: without metrics CloudWatch is told of none; without a beginning
// there is no duration.
func TestSummaryOfNothing(t *testing.T) {
	tel, _, out := setUp("plan", slog.LevelInfo)
	if err := tel.Summary(t.Context(), &report.Report{}); err != nil {
		t.Fatal(err)
	}
	if want := `{"timestamp":"2026-11-30T09:30:12.345Z","level":"INFO","message":"summary","Cluster":"prod","Function":"plan"}` + "\n"; out.String() != want {
		t.Error(out.String())
	}
}

// TestSummaryHoldsEverything: what cannot be written as it is does not take the line with it.
func TestSummaryHoldsEverything(t *testing.T) {
	tel, _, out := setUp("lifecycle", slog.LevelInfo)
	var r report.Report
	r.Set(report.Failures, math.NaN())
	r.Set(report.InFlight, math.Inf(1))
	r.Set(report.Left, 1)
	r.Set(report.TickSuccess, 1) // not lifecycle's to report
	r.Say("level", "high")
	r.Say("_aws", "mine")
	r.Say("Left", 7)
	r.Say("broken", func() {})
	r.Say("huge", strings.Repeat("x", maxLine))
	r.Say("note", "a\nb")
	if err := tel.Summary(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	want := `{"timestamp":"2026-11-30T09:30:12.345Z","level":"INFO","message":"summary","Cluster":"prod","Function":"lifecycle","TickSuccess":1,"Left":1,` +
		`"level_":"high","_aws_":"mine","Left_":7,"broken":"cannot be written: json: unsupported type: func()","note":"a\nb","propertiesLeftOut":1,` +
		`"_aws":{"CloudWatchMetrics":[{"Namespace":"Kerf","Dimensions":[["Cluster"]],"Metrics":[{"Name":"Left","Unit":"Count"}]}],"Timestamp":1796031012345}}` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// TestSummaryProperty: whatever is reported, the line is one line of JSON that Lambda does
// not cut, and CloudWatch is told of exactly the metrics that are the function's and numbers.
func TestSummaryProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		function := rapid.SampledFrom([]string{"sweep", "lifecycle", "catalog", "plan", "x"}).Draw(t, "function")
		tel, _, out := setUp(function, slog.LevelInfo)
		var r report.Report
		want := map[string]float64{}
		for _, row := range report.Table() {
			if !rapid.Bool().Draw(t, "set") {
				continue
			}
			v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(-1), 0, 1e300})).Draw(t, "value")
			r.Set(row.Metric, v)
			mine := false
			for _, f := range row.Functions {
				mine = mine || f == function
			}
			if mine && !math.IsNaN(v) && !math.IsInf(v, 0) {
				want[string(row.Metric)] = v
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "properties") {
			r.Say(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"_aws", "_aws_", "Launched", "Cluster", "seconds"})).Draw(t, "key"),
				strings.Repeat(rapid.String().Draw(t, "text"), rapid.SampledFrom([]int{1, 1000, 30_000}).Draw(t, "times")))
		}
		if err := tel.Summary(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || len(text) > maxLine+4096 {
			t.Fatalf("%d lines of %d bytes", strings.Count(text, "\n"), len(text))
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		got := map[string]float64{}
		if emf, ok := line["_aws"].(map[string]any); ok {
			for _, d := range emf["CloudWatchMetrics"].([]any) {
				for _, m := range d.(map[string]any)["Metrics"].([]any) {
					name := m.(map[string]any)["Name"].(string)
					got[name] = line[name].(float64)
				}
				for _, dim := range d.(map[string]any)["Dimensions"].([]any)[0].([]any) {
					if _, ok := line[dim.(string)].(string); !ok {
						t.Fatalf("dimension %s is not in the line", dim)
					}
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestLinesStayWhole: lines of several goroutines do not run into each other.
func TestLinesStayWhole(t *testing.T) {
	tel, _, out := setUp("sweep", slog.LevelInfo)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				tel.Log.Info("x", "i", i)
				tel.Calls.add("kube.GET", 1, tel.Now(), false)
			}
			if err := tel.Summary(t.Context(), &report.Report{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("%q", line)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 8*51 {
		t.Errorf("%d lines", n)
	}
}

func TestSummaryFails(t *testing.T) {
	full := errors.New("full")
	tel := New(Options{Out: failing{full}, Now: time.Now})
	if err := tel.Summary(t.Context(), &report.Report{}); !errors.Is(err, full) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestCallsOfAWS(t *testing.T) {
	answers := []int{503, 200, 400}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(answers[0])
		answers = answers[1:]
		fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}`)
	}))
	defer server.Close()
	c := &clock{time.Now()}
	calls := NewCalls(func() time.Time { c.now = c.now.Add(10 * time.Millisecond); return c.now })
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &server.URL, APIOptions: []func(*middleware.Stack) error{calls.AWS},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})})
	if _, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")}); err == nil {
		t.Fatal("no error")
	}
	if d := cmp.Diff(map[string]Count{"sqs.GetQueueUrl": {N: 3, Failed: 1, Millis: 20}}, calls.Take()); d != "" {
		t.Error(d)
	}
	if got := calls.Take(); len(got) != 0 {
		t.Errorf("taken twice: %v", got)
	}
}

func TestCallsOfTransport(t *testing.T) {
	calls := NewCalls(time.Now)
	for _, status := range []int{200, 404, 409, 410, 500, 0} {
		client := http.Client{Transport: calls.Transport("kube", transport(func(*http.Request) (*http.Response, error) {
			if status == 0 {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		}))}
		resp, err := client.Get("http://x/")
		if (err != nil) != (status == 0) || err == nil && resp.StatusCode != status {
			t.Errorf("%d became %v, %v", status, resp, err)
		}
	}
	got := calls.Take()["kube.GET"]
	if got.N != 6 || got.Failed != 3 {
		t.Errorf("%+v", got)
	}
}
