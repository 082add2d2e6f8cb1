package interruption

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	at  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	now = at.Add(5 * time.Second)
)

const (
	id1 = "i-0123456789abcdef0"
	id2 = "i-0123456789abcdef1"
	id3 = "i-0fedcba9876543210"
)

// TestSamples reads the samples that people invoke the function with.
func TestSamples(t *testing.T) {
	want := map[string]*Notice{
		"spot":             {Kind: SpotInterrupted, Instances: []string{id1}, At: at, Deadline: at.Add(2 * time.Minute)},
		"spot-sns":         {Kind: SpotInterrupted, Instances: []string{id1}, At: at, Deadline: at.Add(2 * time.Minute)},
		"rebalance":        {Kind: RebalanceRecommended, Instances: []string{id1}, At: at, Optional: true},
		"stopping":         {Kind: InstanceStopped, Instances: []string{id1}, At: at, Deadline: at},
		"terminated":       {Kind: InstanceTerminated, Instances: []string{id1}, At: at, Deadline: at},
		"reservation":      {Kind: ReservationInterrupted, Instances: []string{id1}, At: at, Deadline: at.Add(2 * time.Minute)},
		"scheduled-change": {Kind: ScheduledChange, Instances: []string{id1, id2, id3}, At: at, Deadline: time.Date(2026, 12, 14, 6, 0, 0, 0, time.UTC)},
		"running":          nil,
	}
	files, err := filepath.Glob("../../events/interruption/*.json")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d samples, %v; want %d", len(files), err, len(want))
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		got, err := Parse(string(body), now)
		if want[name] == nil {
			if !errors.Is(err, ErrIgnored) {
				t.Errorf("%s: %+v, %v; want it ignored", name, got, err)
			}
			continue
		}
		if d := cmp.Diff(want[name], got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// TestShapes is BC-38: bodies of every wrong shape.
func TestShapes(t *testing.T) {
	event := func(source, kind, detail string) string {
		return `{"version":"0","source":"` + source + `","detail-type":"` + kind + `","time":"2026-11-30T12:00:00Z","detail":` + detail + `}`
	}
	const spot, state, health = "EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification", "AWS Health Event"
	for _, tt := range []struct {
		name, body string
		want       error
	}{
		{"empty", "", ErrMalformed},
		{"empty object", "{}", ErrMalformed},
		{"list", "[]", ErrMalformed},
		{"null", "null", ErrMalformed},
		{"half", `{"source":"aws.ec2","detail-type":`, ErrMalformed},
		{"more behind", event("aws.ec2", spot, `{"instance-id":"`+id1+`"}`) + "{}", ErrMalformed},
		{"no source", `{"detail-type":"` + spot + `","detail":{"instance-id":"` + id1 + `"}}`, ErrMalformed},
		{"source is a number", `{"source":1,"detail-type":"` + spot + `"}`, ErrMalformed},
		{"unknown source", event("aws.s3", spot, "{}"), ErrIgnored},
		{"unknown kind", event("aws.ec2", "EC2 Something", "{}"), ErrIgnored},
		{"no instance", event("aws.ec2", spot, "{}"), ErrMalformed},
		{"no detail", `{"source":"aws.ec2","detail-type":"` + spot + `"}`, ErrMalformed},
		{"odd instance", event("aws.ec2", spot, `{"instance-id":"i-XYZ!"}`), ErrMalformed},
		{"detail is a list", event("aws.ec2", spot, `[1]`), ErrMalformed},
		{"running", event("aws.ec2", state, `{"instance-id":"`+id1+`","state":"running"}`), ErrIgnored},
		{"pending", event("aws.ec2", state, `{"instance-id":"`+id1+`","state":"Pending"}`), ErrIgnored},
		{"health of another service", event("aws.health", health, `{"service":"RDS","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"`+id1+`"}]}`), ErrIgnored},
		{"health issue", event("aws.health", health, `{"service":"EC2","eventTypeCategory":"issue","affectedEntities":[{"entityValue":"`+id1+`"}]}`), ErrIgnored},
		{"health of volumes", event("aws.health", health, `{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"vol-1"}]}`), ErrIgnored},
		{"health that is over", event("aws.health", health, `{"service":"EC2","eventTypeCategory":"scheduledChange","statusCode":"closed","affectedEntities":[{"entityValue":"`+id1+`"}]}`), ErrIgnored},
		{"large", event("aws.ec2", spot, `{"instance-id":"`+id1+`","pad":"`+strings.Repeat("x", 300<<10)+`"}`), ErrMalformed},
		{"SNS around nothing", `{"Type":"Notification","Message":"hello"}`, ErrMalformed},
		{"SNS around SNS", `{"Type":"Notification","Message":"{\"Type\":\"Notification\",\"Message\":\"{}\"}"}`, ErrMalformed},
	} {
		if n, err := Parse(tt.body, now); !errors.Is(err, tt.want) || n != nil {
			t.Errorf("%s: %+v, %v; want %v", tt.name, n, err, tt.want)
		}
	}
}

func TestTimes(t *testing.T) {
	n, err := Parse(`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"`+id1+`","state":"SHUTTING-DOWN"}}`, now)
	if err != nil || n.Kind != InstanceTerminated || !n.At.Equal(now) {
		t.Errorf("%+v, %v", n, err)
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../../events/interruption/*.json")
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body))
	}
	f.Fuzz(func(t *testing.T, body string) {
		n, err := Parse(body, now)
		switch {
		case (n == nil) == (err == nil):
			t.Errorf("%q: %+v, %v", body, n, err)
		case err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrIgnored):
			t.Errorf("%q: %v", body, err)
		case n != nil && len(n.Instances) == 0:
			t.Errorf("%q: a notice about nothing", body)
		}
	})
}
