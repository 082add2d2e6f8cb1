package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// TestPresent: where types and prices come from, and what is said of it.
func TestPresent(t *testing.T) {
	paris := &catalog.Catalog{Region: "eu-west-3"}
	denied := []plan.Warning{{Code: plan.FactsNotRead, Detail: "spot prices could not be read: denied"}}
	for _, tt := range []struct {
		name  string
		o     options
		known bool
		got   *catalog.Catalog
		warn  []plan.Warning
		err   error
		// asked is the region that is asked about, "-" where nobody is asked.
		asked, says, fails, region string
	}{
		{name: "files", o: options{facts: factsAuto}, asked: "-", region: "us-east-1"},
		{name: "a cluster", o: options{facts: factsAuto, context: "x"}, known: true, got: paris, asked: "us-east-1", region: "us-east-1"},
		{name: "a cluster of an unknown region", o: options{facts: factsAuto, context: "x"}, got: paris, asked: "", region: "eu-west-3"},
		{name: "no credentials", o: options{facts: factsAuto, context: "x"}, err: ErrNoCredentials, asked: "", says: "the embedded table of us-east-1, ", region: "us-east-1"},
		{name: "the table is meant", o: options{facts: factsTable, context: "x"}, asked: "-", region: "us-east-1"},
		{name: "a catalogue is given", o: options{facts: factsAuto, context: "x", catalog: "f"}, asked: "-", region: "us-east-1"},
		{name: "a part is missing", o: options{facts: factsAuto, context: "x"}, known: true, got: paris, warn: denied, asked: "us-east-1", says: "spot prices could not be read: denied", region: "us-east-1"},
		{name: "AWS or nothing, no credentials", o: options{facts: factsLive}, err: ErrNoCredentials, asked: "", fails: "--facts live: no AWS credentials", region: "us-east-1"},
		{name: "AWS or nothing, all is denied", o: options{facts: factsLive}, warn: denied, asked: "", fails: "--facts live: spot prices could not be read: denied", region: "us-east-1"},
		{name: "another error", o: options{facts: factsAuto, context: "x"}, err: errors.New("bad config"), asked: "", says: "bad config", region: "us-east-1"},
	} {
		r := &handler.Reading{Snapshot: &snapshot.Snapshot{Region: "us-east-1"}}
		asked := "-"
		var msg bytes.Buffer
		c, err := tt.o.present(func(_ context.Context, q Asking) (*catalog.Catalog, []plan.Warning, error) {
			asked = q.Region
			return tt.got, tt.warn, tt.err
		}, r, tt.known, &msg)
		if c != tt.got && asked != "-" || (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %v, %v", tt.name, c, err)
		}
		if asked != tt.asked || !strings.Contains(msg.String(), tt.says) || tt.says == "" && msg.Len() > 0 || r.Snapshot.Region != tt.region {
			t.Errorf("%s: asked about %q, said %q, region %s", tt.name, asked, msg.String(), r.Snapshot.Region)
		}
		if err == nil && tt.warn != nil && len(r.Warnings) != len(tt.warn) {
			t.Errorf("%s: warnings %v", tt.name, r.Warnings)
		}
	}
	var out, msg bytes.Buffer
	if status := Main([]string{"-f", "testdata/files/world.yaml", "--commitments"}, nil, &out, &msg, nil); status != exitNoPlan || !strings.Contains(msg.String(), "add --facts live") {
		t.Errorf("--commitments alone: %d, %s", status, msg.String())
	}
	msg.Reset()
	if status := Main([]string{"-f", "testdata/files/world.yaml", "--facts", "live"}, nil, &out, &msg, nil); status != exitNoPlan || !strings.Contains(msg.String(), "NotSupported") {
		t.Errorf("--facts live without a way to ask: %d, %s", status, msg.String())
	}
}
