package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/lifecycle"
)

func event(n int) events.SQSEvent {
	var e events.SQSEvent
	for i := range n {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprintf("id%d", i), ReceiptHandle: fmt.Sprintf("r%d", i), Body: fmt.Sprintf("b%d", i), EventSource: "aws:sqs",
			Attributes: map[string]string{"SentTimestamp": "1796031012345", "ApproximateReceiveCount": fmt.Sprint(i + 1)}})
	}
	return e
}

func ids(r events.SQSEventResponse) []string {
	out := []string{}
	for _, f := range r.BatchItemFailures {
		out = append(out, f.ItemIdentifier)
	}
	return out
}

func TestDecode(t *testing.T) {
	payload, err := os.ReadFile(filepath.Join("testdata", "event.json"))
	if err != nil {
		t.Fatal(err)
	}
	e, ok := Decode(payload)
	if !ok {
		t.Fatal("an event of SQS is not recognised")
	}
	want := []Message{
		{ID: "059f36b4-87a3-44ab-83d2-661975830a7d", Receipt: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a...", Body: `{"kind":"minute","sent":"2026-11-30T09:30:00Z"}`, Sent: time.Date(2026, 11, 30, 9, 30, 12, 345e6, time.UTC), Receives: 1},
		{ID: "2e1424d4-f796-459a-8184-9c92662be6da", Receipt: "AQEBzWwaftRI0KuVm4tP+/7q1rGgNqicHq...", Body: "Test message."},
	}
	if d := cmp.Diff(want, Messages(e)); d != "" {
		t.Error(d)
	}
	for name, payload := range map[string]string{
		"nothing":             ``,
		"no JSON":             `hello`,
		"a direct invocation": `{"mode":"sweep"}`,
		"no records":          `{"Records":[]}`,
		"null":                `null`,
		"a list":              `[]`,
		"records of S3":       `{"Records":[{"eventSource":"aws:s3","s3":{}}]}`,
		"records of both":     `{"Records":[{"eventSource":"aws:sqs"},{"eventSource":"aws:s3"}]}`,
		"records of no form":  `{"Records":[{"eventSource":"aws:sqs","body":1}]}`,
	} {
		if e, ok := Decode([]byte(payload)); ok || len(e.Records) != 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestEach draws outcomes and looks for each in all it should show in.
func TestEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcome := rapid.SliceOfN(rapid.SampledFrom([]string{"ok", "drop", "fail", "panic", "nil panic", "delay", "wrapped delay"}), 0, 25).Draw(t, "outcome")
		begun := rapid.IntRange(0, len(outcome)).Draw(t, "begun") // then the time is up
		now := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), now.Add(time.Hour))
		defer cancel()
		f, log := &fake{}, &bytes.Buffer{}
		c := Consumer{Queue: New(f, "u"), Margin: time.Minute, Reserve: time.Second, Again: Backoff(2*time.Second, 20*time.Second),
			Now: func() time.Time { return now }, Log: slog.New(slog.NewJSONHandler(log, nil))}
		if begun == 0 {
			now = now.Add(time.Hour)
		}
		did := 0
		got := c.Each(ctx, event(len(outcome)), func(ctx context.Context, m Message) error {
			if m.Body != fmt.Sprintf("b%d", did) {
				t.Fatalf("message %d is %+v", did, m)
			}
			if did++; did == begun {
				now = now.Add(time.Hour - time.Minute + 1)
			}
			switch outcome[did-1] {
			case "drop":
				return fmt.Errorf("read it: %w", ErrDrop)
			case "fail":
				return errors.New("throttled")
			case "panic":
				panic("broken: " + m.ID)
			case "nil panic":
				panic(nil)
			case "delay":
				return &lifecycle.Delay{After: 7 * time.Second, Err: errors.New("later")}
			case "wrapped delay":
				return fmt.Errorf("do it: %w", &lifecycle.Delay{After: 100 * time.Hour, Err: errors.New("later")})
			}
			return nil
		})
		if did != begun {
			t.Fatalf("%d of %d were begun, want %d", did, len(outcome), begun)
		}
		want := Result{Left: len(outcome) - begun}
		back, changed := []string{}, map[string]int32{}
		for i, o := range outcome {
			id, r := fmt.Sprintf("id%d", i), fmt.Sprintf("r%d", i)
			lines := strings.Count(log.String(), `"messageId":"`+id+`"`)
			if i < begun && o == "ok" {
				want.Handled++
				if lines != 0 {
					t.Fatalf("%s went well, and there is a line about it", id)
				}
				continue
			}
			if lines != 1 {
				t.Fatalf("%s (%s) has %d lines in the log:\n%s", id, o, lines, log)
			}
			switch {
			case i >= begun:
				changed[r] = 1
			case o == "drop":
				want.Dropped++
				continue
			case o == "delay":
				changed[r] = 7
			case o == "wrapped delay":
				changed[r] = 43200
			default:
				changed[r] = min(20, int32(2)<<min(i, 10))
			}
			if i < begun {
				want.Failed++
			}
			back = append(back, id)
		}
		if d := cmp.Diff(back, ids(got.Response)); d != "" {
			t.Fatalf("handed back: %s", d)
		}
		if len(changed) > 0 || len(f.changed) > 0 {
			if d := cmp.Diff(changed, f.changed); d != "" {
				t.Fatalf("when they come back: %s", d)
			}
		}
		want.Response = got.Response
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		if p := strings.Count(log.String(), `"stack":"goroutine`); p != count(outcome[:begun], "panic")+count(outcome[:begun], "nil panic") {
			t.Fatalf("%d stacks in the log", p)
		}
	})
}

// TestAtATime: several messages at a time, no more than asked for, and what failed is still
// answered in the order of the event.
func TestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most, running atomic.Int32
		c := Consumer{AtATime: 4, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		start := time.Now()
		got := c.Each(t.Context(), event(10), func(_ context.Context, m Message) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second - time.Duration(m.Receives)*time.Millisecond) // later ones end first
			if m.Receives%3 == 0 {
				return errors.New("throttled")
			}
			if m.Receives == 4 {
				panic("broken")
			}
			return nil
		})
		if took := time.Since(start); took > 3*time.Second || took <= 2*time.Second {
			t.Errorf("it took %s", took)
		}
		if most.Load() != 4 {
			t.Errorf("%d at a time", most.Load())
		}
		if got.Handled != 6 || got.Failed != 4 || !slices.Equal(ids(got.Response), []string{"id2", "id3", "id5", "id8"}) {
			t.Errorf("%+v", got)
		}
	})
}

// TestAnswer: Lambda takes an answer without failures only as an empty list; null would
// bring everything back.
func TestAnswer(t *testing.T) {
	c := Consumer{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	got, err := json.Marshal(c.Each(t.Context(), event(1), func(context.Context, Message) error { return nil }).Response)
	if err != nil || string(got) != `{"batchItemFailures":[]}` {
		t.Errorf("%s, %v", got, err)
	}
}

// TestDeadlineOfAMessage: what handles a message is told to end before the function does.
func TestDeadlineOfAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		f := &fake{}
		c := Consumer{Queue: New(f, "u"), Margin: 5 * time.Second, Reserve: 2 * time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		start := time.Now()
		got := c.Each(ctx, event(3), func(ctx context.Context, m Message) error {
			if m.ID == "id0" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(start); took != 18*time.Second {
			t.Errorf("it took %s", took)
		}
		if got.Handled != 1 || got.Failed != 1 || got.Left != 1 || !slices.Equal(ids(got.Response), []string{"id1", "id2"}) {
			t.Errorf("%+v", got)
		}
		// Without an Again the failed one is the queue's to bring back.
		if d := cmp.Diff(map[string]int32{"r2": 1}, f.changed); d != "" {
			t.Error(d)
		}
	})
}

// TestDone: a context that is done begins nothing, and the messages still come back soon.
func TestDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &fake{}
	c := Consumer{Queue: New(f, "u"), Reserve: time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	got := c.Each(ctx, event(2), func(context.Context, Message) error { t.Error("begun"); return nil })
	if got.Left != 2 || len(got.Response.BatchItemFailures) != 2 || len(f.changed) != 2 {
		t.Errorf("%+v, %v", got, f.changed)
	}
}

// TestServiceFails: that messages cannot be told when to come back changes nothing about
// which do.
func TestServiceFails(t *testing.T) {
	log := &bytes.Buffer{}
	c := Consumer{Queue: New(&fake{fail: []error{errors.New("no route")}}, "u"), Again: Backoff(time.Second, time.Second), Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}
	got := c.Each(t.Context(), event(2), func(_ context.Context, m Message) error {
		if m.ID == "id1" {
			return errors.New("no")
		}
		return nil
	})
	if !slices.Equal(ids(got.Response), []string{"id1"}) || !strings.Contains(log.String(), "come back later than asked for") || !strings.Contains(log.String(), "no route") {
		t.Errorf("%+v\n%s", got, log)
	}
}

func TestBackoff(t *testing.T) {
	again := Backoff(2*time.Second, 30*time.Second)
	for receives, want := range map[int]time.Duration{0: 2, 1: 2, 2: 4, 3: 8, 4: 16, 5: 30, 6: 30, 1 << 40: 30} {
		if got := again(Message{Receives: receives}); got != want*time.Second {
			t.Errorf("delivery %d: %s, want %ds", receives, got, want)
		}
	}
	if got := Backoff(time.Minute, time.Second)(Message{}); got != time.Second {
		t.Errorf("first above most: %s", got)
	}
}
