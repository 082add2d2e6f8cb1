package ledger

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestFile: what a plan is made on is the same from the file as from the table.
func TestFile(t *testing.T) {
	ctx, c := t.Context(), newClock()
	m := NewMemory("table-1")
	l, _ := ready(t, m, c)
	lease := acquire(t, l)
	recs, err := l.Commit(ctx, lease, []lifecycle.Record{intent(c, "n1", "p", 1), intent(c, "n2", "p", 2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := l.Begin(ctx, lease, lifecycle.Attempt{ID: "at", Request: []byte{0, 1, 255}}, recs[:1], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := begun.Attempt.Answer(lifecycle.Outcome{Instances: []lifecycle.Instance{{ID: "i-1", Zone: "a"}}, At: c.now})
	if at, err = l.Answer(ctx, begun.Attempt, at); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Settle(ctx, at, known(1)); err != nil {
		t.Fatal(err)
	}
	if err := l.PutPart(ctx, Part{Name: "types", Data: []byte("some types"), Generation: 5}); err != nil {
		t.Fatal(err)
	}
	if err := l.Shortage(ctx, lifecycle.Offer{InstanceType: "a", Zone: "b", CapacityType: "spot"}, "ICE"); err != nil {
		t.Fatal(err)
	}
	if err := l.Decide(ctx, lifecycle.Decision{At: c.now, ID: "plan-1", Why: "<&> \u2028"}); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := l.Export(ctx, &first, day(c.now)); err != nil {
		t.Fatal(err)
	}
	read, err := Import(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Rows(), read.Rows()); diff != "" {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
	from := testLedger(read, c, "reader")
	if err := from.Export(ctx, &second, day(c.now)); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("exported twice, two files")
	}
	want, err := l.Remember(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err := from.Remember(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got.Nominations) != 2 || len(got.Health) != 1 || len(got.Attempts) != 1 {
		t.Errorf("%d nominations, (-want +got)\n%s", len(got.Nominations), diff)
	}
	snap := snapshot.Snapshot{Now: c.now, NodeClaims: []snapshot.NodeClaim{{Name: "n2", UID: "u"}}}
	got.Into(&snap)
	if len(snap.NodeClaims) != 2 || snap.NodeClaims[1].ProviderID != "aws:///a/i-1" || len(snap.Nominations) != 2 {
		t.Errorf("snapshot %+v", snap)
	}
	if got := got.Unavailable(c.now); len(got) != 1 || got[0].InstanceType != "a" || len(from.mustRemember(t).Unavailable(c.in(time.Hour))) != 0 {
		t.Errorf("unavailable %v", got)
	}
	if !strings.Contains(first.String(), `"claim": "n1"`) {
		t.Error("a person cannot read the file")
	}

	for text, says := range map[string]string{
		``: "EOF", `[]`: "array", `{}`: `format ""`, `{"format":"kerf-ledger/1","more":1}`: "more",
		`{"format":"kerf-ledger/2"}`:                                                                    "kerf-ledger/2",
		`{"format":"kerf-ledger/1","rows":[{"pk":"","sk":"x"}]}`:                                        "rows[0]",
		`{"format":"kerf-ledger/1","rows":[{"pk":"A","sk":"x"},{"pk":"A","sk":"y","bytes":{"b":"?"}}]}`: "rows[1].bytes.b",
		`{"format":"kerf-ledger/1","rows":[{"pk":"A","sk":"x","numbers":{"n":1.5}}]}`:                   "1.5",
	} {
		if _, err := Import(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to name %q", text, err, says)
		}
	}
}

func (l *Ledger) mustRemember(t *testing.T) Remembered {
	t.Helper()
	m, err := l.Remember(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRestored: a table restored from a backup is in recovery, whoever held its lease has
// none, and its tokens are ahead of all that were given out since the backup.
func TestRestored(t *testing.T) {
	ctx, c := t.Context(), newClock()
	l, _ := ready(t, NewMemory("table-1"), c)
	backup := l.Table.(*Memory).Restore("table-2")
	var last Lease
	for range 5 { // after the backup, life went on
		c.pass(time.Hour)
		last = acquire(t, l)
	}
	r := testLedger(backup, c, "a")
	m, err := r.Open(ctx)
	if err != nil || m.Mode != Recovery || m.Why != "the table was restored from a backup of table-1" {
		t.Fatalf("open: %+v, %v", m, err)
	}
	if _, err := r.Acquire(ctx, time.Minute); err == nil {
		t.Fatal("acquired before recovery")
	}
	if _, err := r.Commit(ctx, last, []lifecycle.Record{intent(c, "x", "p", 1)}, nil); err == nil {
		t.Fatal("a lease of the other table commits")
	}
	if err := r.BeginRecovery(ctx, m.Why); err != nil {
		t.Fatal(err)
	}
	lease, err := r.AcquireRecovery(ctx, time.Minute)
	if err != nil || lease.Token <= last.Token {
		t.Fatalf("token %d after %d, %v", lease.Token, last.Token, err)
	}
	if err := r.EndRecovery(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if now := acquire(t, r); now.Token <= lease.Token {
		t.Errorf("token %d", now.Token)
	}
	if m, err := r.Open(ctx); err != nil || m.Mode != Normal || m.Table != "table-2" {
		t.Errorf("open: %+v, %v", m, err)
	}
}

// TestExpired: a row past its expiry is not there, also before DynamoDB deletes it.
func TestExpired(t *testing.T) {
	ctx, c := t.Context(), newClock()
	m := NewMemory("t")
	l := testLedger(m, c, "a")
	it := expires(item("X", "1", Item{attrVersion: N(3)}), c.in(time.Minute))
	must(t, m, put(it, Cond{}))
	if got, err := l.get(ctx, it.Key()); got == nil || err != nil {
		t.Fatal("gone too early", err)
	}
	c.pass(time.Minute)
	if got, err := l.get(ctx, it.Key()); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := l.query(ctx, "X"); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	m.Sweep(c.now.Unix() + 1)
	if len(m.Rows()) != 0 {
		t.Error("not swept")
	}
}
