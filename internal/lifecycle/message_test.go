package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var sentAt = time.Date(2026, 11, 30, 9, 30, 12, 345e6, time.UTC)

const halfPast = 1796031000 // 2026-11-30T09:30:00Z

func TestDecodeTick(t *testing.T) {
	const scheduled = `{"version":"0","id":"d32c5","detail-type":"Scheduled Event","source":"aws.scheduler","account":"123456789012","time":"2026-11-30T09:30:41Z","region":"us-east-1","resources":["arn:aws:scheduler:us-east-1:123456789012:schedule/default/tick"],"detail":"{}"}`
	second := func(s int) time.Time { return time.Date(2026, 11, 30, 9, 30, s, 0, time.UTC) }
	for _, tc := range []struct {
		name, body, err string
		want            Tick
	}{
		{"slot", `{"kind":"slot","slot":1796031010,"sent":"2026-11-30T09:30:00Z"}`, "", Tick{TickSlot, halfPast + 10, second(0)}},
		{"any order, another zone", `{"sent":"2026-11-30T10:30:00+01:00","slot":1796031010,"kind":"slot"}`, "", Tick{TickSlot, halfPast + 10, second(0)}},
		{"urgent", `{"kind":"urgent","sent":"2026-11-30T09:30:01Z"}`, "", Tick{TickUrgent, 0, second(1)}},
		{"a schedule's minute", `{"kind":"minute","sent":"2026-11-30T09:30:41Z"}`, "", Tick{TickMinute, halfPast, second(41)}},
		{"nothing put the time in", `{"kind":"minute","sent":"<aws.scheduler.scheduled-time>"}`, "", Tick{TickMinute, halfPast, sentAt}},
		{"no time at all", `{"kind":"minute"}`, "", Tick{TickMinute, halfPast, sentAt}},
		{"a schedule without input", scheduled, "", Tick{TickMinute, halfPast, second(41)}},
		{"white space", " {\n\t\"kind\": \"minute\"\r\n} \n", "", Tick{TickMinute, halfPast, sentAt}},

		{"nothing", ``, "want one JSON object", Tick{}},
		{"no object", `["minute"]`, "want one JSON object", Tick{}},
		{"null", `null`, "want one JSON object", Tick{}},
		{"cut off", `{"kind":"minute"`, "want one JSON object", Tick{}},
		{"cut off in a value", `{"kind":"min`, `field "kind"`, Tick{}},
		{"two", `{"kind":"minute"}{"kind":"minute"}`, "there is more behind the JSON object", Tick{}},
		{"empty object", `{}`, `kind "" is not known; want minute, slot or urgent`, Tick{}},
		{"another kind", `{"kind":"hour"}`, `kind "hour" is not known`, Tick{}},
		{"capitals", `{"Kind":"minute"}`, `field "Kind" is not known; there are kind, slot, sent`, Tick{}},
		{"more fields", `{"kind":"minute","b":1,"a":2}`, `field "a", "b" is not known`, Tick{}},
		{"twice", `{"kind":"minute","kind":"urgent"}`, `field "kind" is there twice`, Tick{}},
		{"kind is a number", `{"kind":1}`, `field "kind": want a string, not 1`, Tick{}},
		{"kind is null", `{"kind":null}`, `field "kind": want a string, not null`, Tick{}},
		{"slot is text", `{"kind":"slot","slot":"1"}`, `field "slot": want a whole number, not "1"`, Tick{}},
		{"slot is a fraction", `{"kind":"slot","slot":1.5}`, `field "slot": want a whole number, not 1.5`, Tick{}},
		{"slot too large", `{"kind":"slot","slot":99999999999999999999}`, `field "slot": want a whole number`, Tick{}},
		{"slot beyond time", `{"kind":"slot","slot":253402300800}`, "slot 253402300800: want seconds since 1970", Tick{}},
		{"slot in milliseconds", `{"kind":"slot","slot":1796031010000}`, "want seconds since 1970", Tick{}},
		{"slot is missing", `{"kind":"slot"}`, "slot 0: want seconds since 1970", Tick{}},
		{"slot before 1970", `{"kind":"slot","slot":-10}`, "slot -10", Tick{}},
		{"slot within the minute", `{"kind":"minute","slot":1796031001}`, "want the start of a minute", Tick{}},
		{"urgent with a slot", `{"kind":"urgent","slot":1796031001}`, "an urgent tick has none", Tick{}},
		{"a time that is none", `{"kind":"minute","sent":"yesterday"}`, `field "sent": want a time like 2006-01-02T15:04:05Z, not "yesterday"`, Tick{}},
		{"a time of another age", `{"kind":"minute","sent":"0001-01-01T00:00:00Z"}`, "sent is missing, or no time that anything is sent at", Tick{}},
		{"another source", strings.Replace(scheduled, "aws.scheduler\"", "aws.ec2\"", 1), "is not known; there are kind, slot, sent", Tick{}},
		{"too long", `{"kind":"minute"` + strings.Repeat(" ", 70_000) + `}`, "it has 70017 bytes, more than 65536", Tick{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := DecodeTick(tc.body, sentAt)
			checkDrop(t, err, tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got, err := DecodeTick(`{"kind":"minute"}`, time.Time{}); err == nil {
		t.Errorf("without any time: %+v", got)
	}
}

func TestDecodeWork(t *testing.T) {
	for _, tc := range []struct {
		name, body, err string
		want            Work
	}{
		{"register", `{"kind":"register"}`, "", Work{Kind: WorkRegister}},
		{"node", `{"kind":"node","claim":"default-x7k2p","step":3}`, "", Work{Kind: WorkNode, Claim: "default-x7k2p", Step: 3}},
		{"command", `{"kind":"command","command":"2026-11-30T09:30:00Z_1"}`, "", Work{Kind: WorkCommand, Command: "2026-11-30T09:30:00Z_1"}},

		{"no kind", `{"claim":"a"}`, `kind "" is not known; want register, node or command`, Work{}},
		{"no claim", `{"kind":"node","step":3}`, `node "": want a name`, Work{}},
		{"no command", `{"kind":"command"}`, `command "": want a name`, Work{}},
		{"a claim too many", `{"kind":"register","claim":"a"}`, `register: claim "a" and command "" do not go with it`, Work{}},
		{"both", `{"kind":"node","claim":"a","command":"b"}`, `node: claim "a" and command "b" do not go with it`, Work{}},
		{"a claim for a command", `{"kind":"command","claim":"a","command":"b"}`, "do not go with it", Work{}},
		{"a name that is a path", `{"kind":"node","claim":"../secrets"}`, `node "../secrets": want a name`, Work{}},
		{"a name too long", `{"kind":"node","claim":"` + strings.Repeat("a", 254) + `"}`, "want a name", Work{}},
		{"a step before the first", `{"kind":"node","claim":"a","step":-1}`, "step -1 is negative", Work{}},
		{"a step that is none", `{"kind":"node","claim":"a","step":1e3}`, `field "step": want a whole number, not 1e3`, Work{}},
		{"two mistakes", `{"kind":"node","claim":1,"step":"x"}`, "field \"claim\": want a string, not 1\nfield \"step\": want a whole number", Work{}},
		{"a tick", `{"kind":"minute","sent":"2026-11-30T09:30:00Z"}`, `field "sent" is not known`, Work{}},
		{"not JSON", "hello \xff", `read work from "hello \xff": want one JSON object`, Work{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := DecodeWork(tc.body)
			checkDrop(t, err, tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkDrop: what cannot be read is dropped, and the message says why.
func checkDrop(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want %q", err, want)
	}
	if err != nil && !errors.Is(err, ErrDrop) {
		t.Errorf("it would come back: %v", err)
	}
}

// TestLongBodiesAreCut: an error shows where a body begins, not all of it.
func TestLongBodiesAreCut(t *testing.T) {
	_, err := DecodeWork(strings.Repeat("é", 20_000))
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, bad := range []interface{ Encode() (string, error) }{
		Tick{}, Tick{Kind: TickMinute, Slot: 60}, Tick{Kind: TickSlot, Sent: sentAt}, Tick{Kind: TickUrgent, Slot: 1, Sent: sentAt},
		Tick{Kind: TickMinute, Slot: 61, Sent: sentAt}, Tick{Kind: TickUrgent, Sent: time.Unix(1<<40, 0)},
		Work{}, Work{Kind: WorkNode}, Work{Kind: WorkCommand, Command: "a b"}, Work{Kind: WorkRegister, Step: -1},
	} {
		if body, err := bad.Encode(); err == nil {
			t.Errorf("%+v became %s", bad, body)
		}
	}
}

// TestMessagesSurvive: what is written is read as it was, whatever it is.
func TestMessagesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := Tick{Kind: rapid.SampledFrom([]TickKind{TickMinute, TickSlot, TickUrgent}).Draw(t, "kind"),
			Sent: time.Unix(rapid.Int64Range(1, lastSecond).Draw(t, "sent"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()}
		switch tick.Kind {
		case TickMinute:
			tick.Slot = minute * rapid.Int64Range(1, lastSecond/minute).Draw(t, "minute")
		case TickSlot:
			tick.Slot = rapid.Int64Range(1, lastSecond).Draw(t, "slot")
		}
		body, err := tick.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeTick(body, time.Unix(1, 0)); err != nil || got != tick {
			t.Fatalf("%+v as %s: %+v, %v", tick, body, got, err)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		w := Work{Kind: rapid.SampledFrom([]WorkKind{WorkRegister, WorkNode, WorkCommand}).Draw(t, "kind"), Step: rapid.Int64Min(0).Draw(t, "step")}
		name := rapid.StringMatching(`[a-zA-Z0-9._:-]{1,253}`).Draw(t, "name")
		switch w.Kind {
		case WorkNode:
			w.Claim = name
		case WorkCommand:
			w.Command = name
		}
		body, err := w.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeWork(body); err != nil || got != w {
			t.Fatalf("%+v as %s: %+v, %v", w, body, got, err)
		}
	})
}

func TestOld(t *testing.T) {
	const interval = 10 * time.Second
	at := func(s float64) time.Time { return time.Unix(halfPast, 0).Add(time.Duration(s * float64(time.Second))) }
	for _, tc := range []struct {
		tick Tick
		now  float64
		want bool
	}{
		{Tick{TickSlot, halfPast + 10, at(0)}, 10, false},
		{Tick{TickSlot, halfPast + 10, at(0)}, 30, false},
		{Tick{TickSlot, halfPast + 10, at(0)}, 30.001, true},
		{Tick{TickSlot, halfPast + 10, at(0)}, -3600, false}, // a clock that is behind
		{Tick{TickMinute, halfPast, at(41)}, 45, false},      // late, and it brings the minute's others
		{Tick{TickMinute, halfPast, at(41)}, 120, false},
		{Tick{TickMinute, halfPast, at(41)}, 120.001, true},
		{Tick{TickUrgent, 0, at(5)}, 25, false},
		{Tick{TickUrgent, 0, at(5)}, 25.001, true},
	} {
		if got := tc.tick.Old(at(tc.now), interval); got != tc.want {
			t.Errorf("%+v at %v: old = %v", tc.tick, tc.now, got)
		}
	}
}

func TestRest(t *testing.T) {
	start := time.Unix(halfPast, 0).UTC()
	for _, tc := range []struct {
		name     string
		kind     TickKind
		now      time.Duration // into the minute
		interval time.Duration
		want     string // slot+delay, in seconds of the minute
	}{
		{"on time", TickMinute, 0, 10 * time.Second, "10+10 20+20 30+30 40+40 50+50"},
		{"late", TickMinute, 25500 * time.Millisecond, 10 * time.Second, "30+4.5 40+14.5 50+24.5"},
		{"too late for any", TickMinute, 55 * time.Second, 10 * time.Second, ""},
		{"early, by another clock", TickMinute, -2 * time.Second, 20 * time.Second, "20+22 40+42"},
		{"no divisor of a minute", TickMinute, 0, 25 * time.Second, "25+25 50+50"},
		{"once a minute", TickMinute, 0, time.Minute, ""},
		{"seldomer", TickMinute, 0, time.Hour, ""},
		{"a slot brings nothing", TickSlot, 0, 10 * time.Second, ""},
		{"an urgent one brings nothing", TickUrgent, 0, 10 * time.Second, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := start.Add(tc.now)
			out, err := Tick{Kind: tc.kind, Slot: halfPast, Sent: start}.Rest(now, tc.interval)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range out {
				tick, err := DecodeTick(m.Body, now)
				if err != nil || tick.Kind != TickSlot || !tick.Sent.Equal(now) {
					t.Fatalf("%s: %+v, %v", m.Body, tick, err)
				}
				got = append(got, fmt.Sprintf("%d+%v", tick.Slot-halfPast, m.Delay.Seconds()))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	if out, err := (Tick{Kind: TickMinute, Slot: halfPast, Sent: start}).Rest(start, 0); err == nil {
		t.Errorf("without an interval: %v", out)
	}
}

func TestDelay(t *testing.T) {
	why := errors.New("throttled")
	err := fmt.Errorf("do it: %w", &Delay{After: 3 * time.Second, Err: why})
	if !errors.Is(err, why) || err.Error() != "do it: throttled (again in 3s)" {
		t.Error(err)
	}
}

// FuzzMessages: whatever comes in, it is read or dropped; what is read is written as the
// same thing again.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{`{"kind":"minute"}`, `{"kind":"slot","slot":1796031010,"sent":"2026-11-30T09:30:00Z"}`, `{"kind":"node","claim":"a-1","step":2}`,
		`{"source":"aws.scheduler","detail-type":"Scheduled Event","time":"2026-11-30T09:30:41Z","resources":[]}`, `{"kind":"minute","sent":"<aws.scheduler.scheduled-time>"}`, `{"a":{"b":[1,{}]}}`, "", "{", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if tick, err := DecodeTick(body, sentAt); err == nil {
			again, err := tick.Encode()
			if err != nil {
				t.Fatalf("%+v: %v", tick, err)
			}
			if got, err := DecodeTick(again, time.Time{}); err != nil || got != tick {
				t.Fatalf("%+v as %s: %+v, %v", tick, again, got, err)
			}
		} else if !errors.Is(err, ErrDrop) {
			t.Fatal(err)
		}
		if work, err := DecodeWork(body); err == nil {
			again, err := work.Encode()
			if err != nil {
				t.Fatalf("%+v: %v", work, err)
			}
			if got, err := DecodeWork(again); err != nil || got != work {
				t.Fatalf("%+v as %s: %+v, %v", work, again, got, err)
			}
		} else if !errors.Is(err, ErrDrop) {
			t.Fatal(err)
		}
	})
}
