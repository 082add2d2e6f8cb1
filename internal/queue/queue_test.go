package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/lifecycle"
)

func numbered(n int) []lifecycle.Outgoing {
	out := make([]lifecycle.Outgoing, n)
	for i := range out {
		out[i] = lifecycle.Outgoing{Body: fmt.Sprintf("m%d", i), Delay: time.Duration(i) * time.Second}
	}
	return out
}

func TestSend(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	for _, tc := range []struct {
		name  string
		in    []lifecycle.Outgoing
		sizes []int
		sent  []string
		err   string
	}{
		{"nothing", nil, nil, nil, ""},
		{"one, at once", numbered(1), []int{1}, []string{"m0+0"}, ""},
		{"never early", []lifecycle.Outgoing{{Body: "a", Delay: 1}, {Body: "b", Delay: 1001 * time.Millisecond}, {Body: "c", Delay: 900 * time.Second}}, []int{3}, []string{"a+1", "b+2", "c+900"}, ""},
		{"eleven", numbered(11), []int{10, 1}, []string{"m0+0", "m1+1", "m2+2", "m3+3", "m4+4", "m5+5", "m6+6", "m7+7", "m8+8", "m9+9", "m10+10"}, ""},
		{"by size", []lifecycle.Outgoing{{Body: big}, {Body: big}, {Body: big}}, []int{2, 1}, []string{big + "+0", big + "+0", big + "+0"}, ""},
		{"a delay too long does not keep the others", []lifecycle.Outgoing{{Body: "a", Delay: 901 * time.Second}, {Body: "b"}}, []int{1}, []string{"b+0"}, "send 1 of 2 messages: the delay is out of bounds: 15m1s, want 0s to 15m0s"},
		{"just too long", []lifecycle.Outgoing{{Body: "a", Delay: 900*time.Second + 1}}, nil, nil, "the delay is out of bounds"},
		{"before now", []lifecycle.Outgoing{{Body: "a", Delay: -1}}, nil, nil, "send 1 of 1 messages: the delay is out of bounds: -1ns"},
		{"no body", []lifecycle.Outgoing{{}}, nil, nil, "the body has 0 bytes, want 1 to 262144"},
		{"too large", []lifecycle.Outgoing{{Body: strings.Repeat("x", MaxBody+1)}, {Body: "b"}}, []int{1}, []string{"b+0"}, "the body has 262145 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{}
			err := New(f, "u").Send(t.Context(), tc.in...)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if d := cmp.Diff(tc.sizes, f.sizes); d != "" {
				t.Error(d)
			}
			if !slices.Equal(tc.sent, f.sent) {
				t.Errorf("sent %.300v", f.sent)
			}
		})
	}
}

// TestSendAgain: what SQS did not take for its own reasons is sent again, alone; what it
// will never take is not.
func TestSendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := map[string]int{}
		f := &fake{refuse: func(body string) *types.BatchResultErrorEntry {
			times[body]++
			switch {
			case body == "m1" && times[body] < 3:
				return entryError("InternalError", false)
			case body == "m2":
				return entryError("InvalidMessageContents", true)
			case body == "m11":
				return entryError("ServiceUnavailable", false)
			}
			return nil
		}}
		start := time.Now()
		err := New(f, "u").Send(t.Context(), numbered(12)...)
		if d := cmp.Diff([]int{10, 2, 2, 2}, f.sizes); d != "" {
			t.Errorf("batches: %s", d)
		}
		if n := len(f.sent); n != 10 || !slices.Contains(f.sent, "m1+1") {
			t.Errorf("sent %v", f.sent)
		}
		if took := time.Since(start); took != 3*pause {
			t.Errorf("waited %s", took)
		}
		be, _ := errors.AsType[*BatchError](err)
		if be == nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range be.Failed {
			got = append(got, fmt.Sprintf("%d %v", x.Index, x.Err))
		}
		if d := cmp.Diff([]string{"2 InvalidMessageContents: for a test", "11 ServiceUnavailable: for a test"}, got); d != "" {
			t.Error(d)
		}
		if want := "send 2 of 12 messages: InvalidMessageContents: for a test"; err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestSendFailsInPart: a call that fails takes its ten with it, and no others.
func TestSendFailsInPart(t *testing.T) {
	lost := errors.New("connection reset")
	f := &fake{fail: []error{nil, lost}}
	err := New(f, "u").Send(t.Context(), numbered(25)...)
	be, _ := errors.AsType[*BatchError](err)
	if be == nil || !errors.Is(err, lost) || len(be.Failed) != 10 || be.Failed[0].Index != 10 || be.Failed[9].Index != 19 || len(f.sent) != 15 {
		t.Fatalf("%v; sent %v", err, f.sent)
	}
}

func TestSendWithoutTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{refuse: func(string) *types.BatchResultErrorEntry { cancel(); return entryError("InternalError", false) }}
	be, _ := errors.AsType[*BatchError](New(f, "u").Send(ctx, numbered(2)...))
	if be == nil || len(be.Failed) != 2 || len(f.sizes) != 1 {
		t.Errorf("%+v in %d calls", be, len(f.sizes))
	}
	be, _ = errors.AsType[*BatchError](New(&fake{}, "u").Send(ctx, numbered(1)...))
	if be == nil || !errors.Is(be, context.Canceled) {
		t.Error(be)
	}
}

// TestAnswersAreChecked: an answer that does not account for a message is not believed.
func TestAnswersAreChecked(t *testing.T) {
	q := New(&fake{forget: true}, "u")
	if err := q.Send(t.Context(), numbered(2)...); err == nil || !strings.Contains(err.Error(), "the answer is about 1 of 2 messages") {
		t.Error(err)
	}
	if err := q.ChangeVisibility(t.Context(), Visibility{Receipt: "r"}); err == nil || !strings.Contains(err.Error(), "0 of 1") {
		t.Error(err)
	}
}

func TestChangeVisibility(t *testing.T) {
	f := &fake{refuse: func(r string) *types.BatchResultErrorEntry {
		if r == "gone" {
			return entryError("ReceiptHandleIsInvalid", true)
		}
		return nil
	}}
	err := New(f, "u").ChangeVisibility(t.Context(), Visibility{"a", 0}, Visibility{"gone", 0}, Visibility{"b", 1500 * time.Millisecond}, Visibility{"c", MaxVisibility}, Visibility{"d", MaxVisibility + 1}, Visibility{"e", -1})
	if want := "change when to bring back 3 of 6 messages: ReceiptHandleIsInvalid: for a test"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if !errors.Is(err, ErrDelay) {
		t.Error("the delays out of bounds are not told")
	}
	if d := cmp.Diff(map[string]int32{"a": 1, "b": 2, "c": 43200}, f.changed); d != "" {
		t.Error(d)
	}
}

// TestSendProperty: whatever fails, a message is sent or reported, never both, never
// neither, and in batches that SQS takes.
func TestSendProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcome := rapid.SliceOfN(rapid.SampledFrom([]string{"ok", "sender", "late", "huge"}), 0, 40).Draw(t, "outcome")
		lost := rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "lost")
		f := &fake{refuse: func(body string) *types.BatchResultErrorEntry {
			if strings.HasPrefix(body, "sender") {
				return entryError("InvalidMessageContents", true)
			}
			return nil
		}}
		for _, l := range lost {
			f.fail = append(f.fail, map[bool]error{true: errors.New("lost")}[l])
		}
		var in []lifecycle.Outgoing
		for i, o := range outcome {
			m := lifecycle.Outgoing{Body: fmt.Sprintf("%s-%d", o, i)}
			switch o {
			case "late":
				m.Delay = MaxDelay + time.Second
			case "huge":
				m.Body += strings.Repeat("x", MaxBody/3)
			}
			in = append(in, m)
		}
		err := New(f, "u").Send(context.Background(), in...)
		failed := map[int]bool{}
		if be, ok := errors.AsType[*BatchError](err); ok {
			for _, x := range be.Failed {
				if failed[x.Index] {
					t.Fatalf("%d is reported twice", x.Index)
				}
				failed[x.Index] = true
			}
		} else if err != nil {
			t.Fatal(err)
		}
		for i, m := range in {
			n := 0
			for _, s := range f.sent {
				if strings.HasPrefix(s, m.Body+"+") {
					n++
				}
			}
			if want := map[bool]int{true: 0, false: 1}[failed[i]]; n != want {
				t.Fatalf("message %d (%s): sent %d times, reported = %v: %v", i, outcome[i], n, failed[i], err)
			}
			if (outcome[i] == "sender" || outcome[i] == "late") && !failed[i] {
				t.Fatalf("message %d (%s) is not reported", i, outcome[i])
			}
		}
		if !slices.Contains(lost, true) && len(failed) != count(outcome, "sender")+count(outcome, "late") {
			t.Fatalf("%d failed of %v", len(failed), outcome)
		}
	})
}

func count(s []string, want string) int {
	n := 0
	for _, x := range s {
		if x == want {
			n++
		}
	}
	return n
}

// TestWire: what the SDK's client makes of it, and of SQS's answer.
func TestWire(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Header.Get("X-Amz-Target")+" "+string(body))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch {
		case strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ChangeMessageVisibilityBatch"):
			io.WriteString(w, `{"Successful":[{"Id":"0"},{"Id":"1"}],"Failed":[]}`)
		case len(asked) == 1:
			w.WriteHeader(http.StatusServiceUnavailable) // the client tries again
			io.WriteString(w, `{"__type":"com.amazonaws.sqs#ServiceUnavailable"}`)
		default:
			io.WriteString(w, `{"Successful":[{"Id":"0","MessageId":"5fea","MD5OfMessageBody":"0cc175b9c0f1b6a831c399e269772661"}],
				"Failed":[{"Id":"1","Code":"InvalidMessageContents","Message":"no","SenderFault":true}]}`)
		}
	}))
	defer server.Close()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	}, Options)
	q := New(client, server.URL+"/123456789012/work")
	err := q.Send(t.Context(), lifecycle.Outgoing{Body: "a", Delay: 30 * time.Second}, lifecycle.Outgoing{Body: "b"})
	if want := "send 1 of 2 messages: InvalidMessageContents: no"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := q.ChangeVisibility(t.Context(), Visibility{"r", 0}, Visibility{"s", 3 * time.Second}); err != nil {
		t.Error(err)
	}
	if len(asked) != 3 || asked[0] != asked[1] {
		t.Fatalf("asked %q", asked)
	}
	for i, want := range map[int]string{
		1: `{"QueueUrl":"U","Entries":[{"Id":"0","MessageBody":"a","DelaySeconds":30},{"Id":"1","MessageBody":"b"}]}`,
		2: `{"QueueUrl":"U","Entries":[{"Id":"0","ReceiptHandle":"r","VisibilityTimeout":1},{"Id":"1","ReceiptHandle":"s","VisibilityTimeout":3}]}`,
	} {
		_, body, _ := strings.Cut(asked[i], " ")
		var got, exp any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(strings.Replace(want, `"U"`, `"`+q.url+`"`, 1)), &exp); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(exp, got); d != "" {
			t.Errorf("call %d: %s", i, d)
		}
	}
}
