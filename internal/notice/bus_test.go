package notice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/notice"
)

// bus keeps what it is sent, and refuses what names a command of bad.
type bus struct {
	calls [][]types.PutEventsRequestEntry
	bad   string
	err   error
}

func (b *bus) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	if len(in.Entries) == 0 || len(in.Entries) > 10 {
		return nil, fmt.Errorf("ValidationException: %d entries", len(in.Entries))
	}
	b.calls = append(b.calls, in.Entries)
	out := &eventbridge.PutEventsOutput{}
	for _, e := range in.Entries {
		r := types.PutEventsResultEntry{EventId: aws.String("1")}
		if b.bad != "" && strings.Contains(*e.Detail, b.bad) {
			r = types.PutEventsResultEntry{ErrorCode: aws.String("ThrottlingException"), ErrorMessage: aws.String("slower")}
			out.FailedEntryCount++
		}
		out.Entries = append(out.Entries, r)
	}
	return out, b.err
}

func TestNotify(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	b := &bus{}
	n := notice.Bus{Client: b, Name: "people"}
	err := n.Notify(t.Context(), []lifecycle.Notice{{
		At: at, Cluster: "prod", Command: "empty-1", Phase: lifecycle.Removing, Reason: "Empty", Pools: []string{"general"}, Nodes: []string{"n1", "n2"},
		Detail: "no pod would have to move", Saving: 96_000, Price: 31_200_000,
	}, {At: at, Cluster: "prod", Command: "drifted-2", Phase: lifecycle.RolledBack, Reason: "Drifted", Why: "no", Saving: -5}})
	if err != nil || len(b.calls) != 1 || len(b.calls[0]) != 2 {
		t.Fatalf("%v, %d calls", err, len(b.calls))
	}
	e := b.calls[0][0]
	if *e.EventBusName != "people" || *e.Source != "kerf.sh" || *e.DetailType != "Node Disruption" || !e.Time.Equal(at) {
		t.Errorf("%+v", e)
	}
	for i, want := range []string{
		`{"cluster":"prod","command":"empty-1","phase":"Removing","reason":"Empty","nodePools":["general"],"nodes":["n1","n2"],"nodeCount":2,"detail":"no pod would have to move","savingPerHour":0.096000,"pricePerHour":31.200000}`,
		`{"cluster":"prod","command":"drifted-2","phase":"RolledBack","reason":"Drifted","nodePools":[],"nodes":[],"nodeCount":0,"why":"no","savingPerHour":-0.000005,"pricePerHour":0.000000}`,
	} {
		if diff := cmp.Diff(want, *b.calls[0][i].Detail); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNotifyMany(t *testing.T) {
	var list []lifecycle.Notice
	for i := range 23 {
		list = append(list, lifecycle.Notice{Command: fmt.Sprintf("c-%02d", i), Nodes: make([]string, 700)})
	}
	b := &bus{}
	n := notice.Bus{Client: b, Name: "people"}
	if err := n.Notify(t.Context(), list); err != nil || len(b.calls) != 3 || len(b.calls[2]) != 3 {
		t.Fatalf("%v, %d calls", err, len(b.calls))
	}
	var d struct {
		Nodes     []string
		NodeCount int
	}
	if err := json.Unmarshal([]byte(*b.calls[2][2].Detail), &d); err != nil || len(d.Nodes) != 500 || d.NodeCount != 700 {
		t.Errorf("%v, names %d of %d nodes", err, len(d.Nodes), d.NodeCount)
	}
	b.bad = "c-11"
	if err := n.Notify(t.Context(), list); err == nil || !strings.Contains(err.Error(), "c-11") || !strings.Contains(err.Error(), "ThrottlingException: slower") {
		t.Errorf("one is refused: %v", err)
	}
	b.bad, b.err = "", errors.New("AccessDenied")
	if err := n.Notify(t.Context(), list); !errors.Is(err, b.err) || !strings.Contains(err.Error(), "event bus people") {
		t.Errorf("none is taken: %v", err)
	}
	if err := n.Notify(t.Context(), nil); err != nil {
		t.Errorf("nothing to say: %v", err)
	}
}
