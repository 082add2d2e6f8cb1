package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/telemetry"
)

// noticeWorld is what the function interruption works with. Every request takes its time.
type noticeWorld struct {
	handler.Cluster
	execute.Cloud
	ledger.Table

	f     *interruptionFunction
	log   bytes.Buffer
	start time.Time
	asked time.Time // EKS

	mu        sync.Mutex
	requests  int            // to the table
	described int            // requests to EKS
	tainted   map[string]int // node -> requests to the table before
	when      map[string]time.Duration
	fail      map[string]error // of EC2, by instance
	sent      map[string][]string
	back      map[string]int32 // receipt -> seconds
	refuse    bool             // the dead-letter queue
}

const (
	tableTakes = 15 * time.Millisecond
	kubeTakes  = 40 * time.Millisecond
)

func newNoticeWorld(t *testing.T, nodes int) *noticeWorld {
	t.Helper()
	w := &noticeWorld{start: time.Now(), tainted: map[string]int{}, when: map[string]time.Duration{}, fail: map[string]error{}, sent: map[string][]string{}, back: map[string]int32{}}
	w.Table = ledger.NewMemory("table-1")
	conf := config.Default()
	conf.Cluster = "prod"
	b := &base{conf: conf, region: "us-east-1", name: "kerf-interruption", now: time.Now}
	b.tel = telemetry.New(telemetry.Options{Out: &w.log, Cluster: "prod", Function: "interruption", Now: time.Now})
	w.f = &interruptionFunction{
		base: b, table: func() ledger.Table { return w }, cloud: func() execute.Cloud { return w },
		cluster: func(_ context.Context, keep time.Duration) (handler.Cluster, error) {
			if w.described == 0 || time.Since(w.asked) >= keep {
				w.described++
				w.asked = time.Now()
			}
			return w, nil
		},
		notices: func() *queue.Queue { return queue.New(w, "notices") }, dead: func() *queue.Queue { return queue.New(w, "dead") },
		ticks: queue.New(w, "ticks"), work: queue.New(w, "work"),
	}
	l := b.ledgerOn(w.Table, "test")
	if err := l.BeginRecovery(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		r := lifecycle.Record{Claim: fmt.Sprintf("c%d", i), UID: "u", Phase: lifecycle.Initialized, NodePool: "general", Node: fmt.Sprintf("n%d", i), NodeUID: "n", Step: 3,
			Instance: lifecycle.Instance{ID: instance(i), Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}}
		if _, err := l.Adopt(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func instance(i int) string { return fmt.Sprintf("i-%017x", i) }

func (w *noticeWorld) count(d time.Duration) {
	w.mu.Lock()
	w.requests++
	w.mu.Unlock()
	time.Sleep(d)
}

func (w *noticeWorld) ID(ctx context.Context) (string, error) {
	w.count(tableTakes)
	return w.Table.ID(ctx)
}

func (w *noticeWorld) Get(ctx context.Context, key ledger.Key) (ledger.Item, error) {
	w.count(tableTakes)
	return w.Table.Get(ctx, key)
}

func (w *noticeWorld) Query(ctx context.Context, pk, after string) ([]ledger.Item, string, error) {
	w.count(tableTakes)
	return w.Table.Query(ctx, pk, after)
}

func (w *noticeWorld) Write(ctx context.Context, x ledger.Write) (ledger.Item, error) {
	w.count(tableTakes)
	return w.Table.Write(ctx, x)
}

func (w *noticeWorld) Transact(ctx context.Context, token string, ws []ledger.Write) error {
	w.count(2 * tableTakes)
	return w.Table.Transact(ctx, token, ws)
}

func (w *noticeWorld) ChangeNode(_ context.Context, name, _ string, x api.NodeChange) (bool, error) {
	w.mu.Lock()
	before := w.requests
	w.mu.Unlock()
	time.Sleep(2 * kubeTakes) // it is read, then changed
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(x.Taints, snapshot.Disrupted) {
		w.tainted[name], w.when[name] = before, time.Since(w.start)
	}
	return true, nil
}

func (w *noticeWorld) Emit(context.Context, api.Event) (bool, error) {
	time.Sleep(kubeTakes)
	return true, nil
}

func (w *noticeWorld) Describe(_ context.Context, ids []string) ([]launch.Described, []string, error) {
	if err := w.fail[ids[0]]; err != nil {
		return nil, nil, err
	}
	return nil, ids, nil
}

func (w *noticeWorld) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if *in.QueueUrl == "dead" && w.refuse {
		return nil, errors.New("AccessDenied")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		w.sent[*in.QueueUrl] = append(w.sent[*in.QueueUrl], *e.MessageBody)
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (w *noticeWorld) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		w.back[*e.ReceiptHandle] = e.VisibilityTimeout
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func spot(id string, at time.Time) string {
	return fmt.Sprintf(`{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","time":%q,"detail":{"instance-id":%q}}`, at.UTC().Format(time.RFC3339), id)
}

// batch brings bodies as SQS and Lambda do, and answers the ids that are to come back.
func (w *noticeWorld) batch(t *testing.T, bodies ...string) []string {
	t.Helper()
	var e events.SQSEvent
	for i, b := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprintf("m%d", i), ReceiptHandle: fmt.Sprintf("r%d", i), Body: b, EventSource: "aws:sqs",
			Attributes: map[string]string{"ApproximateReceiveCount": "1"}})
	}
	payload, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w.start = time.Now()
	got, err := w.f.invocation(w.f.invoke)(ctx, payload)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, f := range got.(events.SQSEventResponse).BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// TestWarmNotices: a batch of ten in a process that has seen others. Before its node is
// tainted, a notice asks the table three times and nobody else, and the last of the ten is
// tainted within 300 ms; one urgent tick and ten steps are sent.
func TestWarmNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNoticeWorld(t, 11)
		if back := w.batch(t, spot(instance(10), time.Now())); len(back) != 0 {
			t.Fatalf("cold: %v come back", back)
		}
		if w.when["n10"] > 300*time.Millisecond {
			t.Errorf("cold, the node was tainted after %s", w.when["n10"])
		}
		// Everything that is asked for anew from time to time is due.
		time.Sleep(time.Hour)
		w.requests, w.sent = 0, map[string][]string{}
		var bodies []string
		for i := range 10 {
			bodies = append(bodies, spot(instance(i), time.Now()))
		}
		if back := w.batch(t, bodies...); len(back) != 0 {
			t.Fatalf("%v come back", back)
		}
		for i := range 10 {
			n := fmt.Sprintf("n%d", i)
			if before, ok := w.tainted[n]; !ok || before > 3*10 {
				t.Errorf("%s: tainted %t, after %d requests of ten notices to the table; want 3 each", n, ok, before)
			}
			if w.when[n] > 300*time.Millisecond {
				t.Errorf("%s was tainted %s after the batch came", n, w.when[n])
			}
		}
		if len(w.sent["ticks"]) != 1 || !strings.Contains(w.sent["ticks"][0], "urgent") || len(w.sent["work"]) != 10 {
			t.Errorf("sent: %v", w.sent)
		}
		if line := w.summary(t); line["messages"] != 10. || line["Failures"] != 0. || line["slowestTaintMs"] == nil {
			t.Errorf("summary: %v", line)
		}
	})
}

// TestOneNotice: exactly what one notice in a warm process asks the table for.
func TestOneNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNoticeWorld(t, 2)
		w.batch(t, spot(instance(0), time.Now()))
		w.requests = 0
		w.batch(t, spot(instance(1), time.Now()))
		if w.tainted["n1"] != 3 {
			t.Errorf("%d requests to the table before the taint, want 3: whose it is, its record, the notice", w.tainted["n1"])
		}
		if w.described != 1 {
			t.Errorf("EKS was asked %d times", w.described)
		}
		time.Sleep(time.Hour)
		w.batch(t, spot(instance(1), time.Now()))
		if w.described != 2 {
			t.Errorf("EKS was asked %d times, want anew after an hour", w.described)
		}
	})
}

// summary is the last line of the log.
func (w *noticeWorld) summary(t *testing.T) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	var out map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &out); err != nil || out["message"] != "summary" {
		t.Fatalf("the last line is %s, %v", lines[len(lines)-1], err)
	}
	return out
}

// TestPartialBatch is BC-34: exactly what failed comes back, within seconds; what cannot be
// read is counted, put aside and acknowledged; the rest is done.
func TestPartialBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNoticeWorld(t, 10)
		var bodies []string
		for i := range 10 {
			bodies = append(bodies, spot(instance(i), time.Now()))
		}
		bodies[4] = "this is no JSON"
		for _, i := range []int{6, 9} { // EC2 is asked about instances that the ledger does not know
			bodies[i] = spot(instance(100+i), time.Now())
			w.fail[instance(100+i)] = errors.New("RequestLimitExceeded")
		}
		if d := cmp.Diff([]string{"m6", "m9"}, w.batch(t, bodies...)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]int32{"r6": 2, "r9": 2}, w.back); d != "" {
			t.Errorf("when they come back: %s", d)
		}
		if d := cmp.Diff([]string{"this is no JSON"}, w.sent["dead"]); d != "" {
			t.Error(d)
		}
		if len(w.tainted) != 7 {
			t.Errorf("tainted: %v", w.tainted)
		}
		line := w.summary(t)
		if line["messages"] != 7. || line["messagesDropped"] != 1. || line["messagesFailed"] != 2. || line["Failures"] != 2. {
			t.Errorf("summary: %v", line)
		}
		// It cannot be put aside: SQS keeps it until it can.
		w.refuse = true
		if d := cmp.Diff([]string{"m0"}, w.batch(t, "no JSON either", spot(instance(4), time.Now()))); d != "" {
			t.Error(d)
		}
	})
}

// TestShapesOfNotices is BC-38 through the whole function: nothing of any shape stops the
// batch or comes back for ever.
func TestShapesOfNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNoticeWorld(t, 1)
		wrapped, _ := json.Marshal(map[string]string{"Type": "Notification", "Message": spot(instance(0), time.Now())})
		bodies := []string{"", "{}", "[]", "null", `{"detail-type":"x"}`, `{"source":"x","detail-type":"y"}`, spot("", time.Now()), spot("i-XYZ!", time.Now()), strings.Repeat("x", 300<<10), string(wrapped)}
		if back := w.batch(t, bodies...); len(back) != 0 {
			t.Errorf("%v come back", back)
		}
		if w.tainted["n0"] == 0 {
			t.Error("the one that SNS wrapped was not acted on")
		}
		if n := len(w.sent["dead"]); n != 7 {
			t.Errorf("%d were put aside, want 7: not the empty one, not the unknown source", n)
		}
	})
}

// TestUnknownInstance: EC2 hears of what it made with a delay, so that a notice comes back
// for minutes; then it is acknowledged.
func TestUnknownInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNoticeWorld(t, 0)
		body := spot(instance(7), time.Now())
		if d := cmp.Diff([]string{"m0"}, w.batch(t, body)); d != "" || w.back["r0"] != 5 {
			t.Errorf("%s, back %v", d, w.back)
		}
		time.Sleep(4 * time.Minute)
		if back := w.batch(t, body); len(back) != 0 {
			t.Errorf("%v come back", back)
		}
	})
}

// TestForeignTable: a table that is another cluster's is not written to.
func TestForeignTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNoticeWorld(t, 1)
		w.f.conf.Cluster = "other"
		if d := cmp.Diff([]string{"m0"}, w.batch(t, spot(instance(0), time.Now()))); d != "" || len(w.tainted) > 0 {
			t.Errorf("%s; tainted %v", d, w.tainted)
		}
	})
}

// TestDirectNotice: the samples are taken as they are.
func TestDirectNotice(t *testing.T) {
	files, err := filepath.Glob("../../events/interruption/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))) // the samples are not of today
			w := newNoticeWorld(t, 0)
			l := w.f.ledgerOn(w.Table, "sample")
			if _, err := l.Adopt(t.Context(), lifecycle.Record{Claim: "c", Phase: lifecycle.Launched, NodePool: "general", Instance: lifecycle.Instance{ID: "i-0123456789abcdef0"}}); err != nil {
				t.Fatal(err)
			}
			payload, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			w.Cluster = optedOut{}
			got, err := w.f.invocation(w.f.invoke)(t.Context(), payload)
			if err != nil {
				t.Fatal(err)
			}
			told := got.(InterruptionAnswer).Notices
			want := map[string]string{"rebalance": "OptedOut", "running": "Ignored"}[strings.TrimSuffix(filepath.Base(f), ".json")]
			if want == "" {
				want = "Handled"
			}
			if len(told) == 0 || told[0].Outcome != want {
				t.Errorf("%s: %+v, want %s", filepath.Base(f), told, want)
			}
			if want == "Handled" && len(w.sent["ticks"])+len(w.sent["work"]) < 2 {
				t.Errorf("%s: sent %v", filepath.Base(f), w.sent)
			}
		})
	}
	w := newNoticeWorld(t, 0)
	if _, err := w.f.invocation(w.f.invoke)(t.Context(), json.RawMessage(`{}`)); err == nil {
		t.Error("{} is no event")
	}
}

// optedOut has no pool that wants to hear of recommendations.
type optedOut struct{ handler.Cluster }

func (optedOut) Some(context.Context, ...string) (*snapshot.Snapshot, error) {
	return &snapshot.Snapshot{NodePools: []snapshot.NodePool{{Name: "general"}}}, nil
}

// TestOutbox: what comes within a moment goes together, what comes last goes before Close
// returns, and an error is not lost.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent [][]lifecycle.Outgoing
		o := &outbox{to: sendFunc(func(ms []lifecycle.Outgoing) error {
			sent = append(sent, ms)
			n := len(sent)
			time.Sleep(time.Second)
			if n == 2 {
				return errors.New("throttled")
			}
			return nil
		})}
		put := func(body string) { _ = o.Send(t.Context(), lifecycle.Outgoing{Body: body}) }
		put("a")
		put("b")
		time.Sleep(2 * linger)
		put("c")
		err := o.Close(t.Context())
		if err == nil || err.Error() != "throttled" {
			t.Errorf("error %v", err)
		}
		if d := cmp.Diff([][]lifecycle.Outgoing{{{Body: "a"}, {Body: "b"}}, {{Body: "c"}}}, sent); d != "" {
			t.Error(d)
		}
	})
}

type sendFunc func([]lifecycle.Outgoing) error

func (f sendFunc) Send(_ context.Context, ms ...lifecycle.Outgoing) error { return f(ms) }
