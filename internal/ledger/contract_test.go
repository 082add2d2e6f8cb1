package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contract is what a Table has to do; both implementations pass it. make returns an empty
// table.
func contract(t *testing.T, make func(t *testing.T) Table) {
	tests := []struct {
		name string
		run  func(t *testing.T, tb Table)
	}{
		{"get", contractGet},
		{"conditions", contractConditions},
		{"updates", contractUpdates},
		{"query pages in order", contractQuery},
		{"transactions are whole", contractTransact},
		{"a transaction takes 100 actions", contractHundred},
		{"a token is applied once", contractToken},
		{"too large", contractTooLarge},
		{"bad writes", contractBad},
		{"any name of an attribute", contractNames},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, make(t)) })
	}
}

func item(pk, sk string, more Item) Item {
	it := Item{attrPK: S(pk), attrSK: S(sk)}
	for name, v := range more {
		it[name] = v
	}
	return it
}

func put(it Item, when Cond) Write { return Write{Key: it.Key(), Put: it, When: when} }

// must writes, and fails the test if that does not work.
func must(t *testing.T, tb Table, w Write) Item {
	t.Helper()
	defer quiet(tb)()
	it, err := tb.Write(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// quiet switches faults off until the function that it returns is called.
func quiet(tb Table) func() {
	m, ok := tb.(*Memory)
	if !ok {
		return func() {}
	}
	f := m.Fault
	m.Fault = nil
	return func() { m.Fault = f }
}

func want(t *testing.T, tb Table, key Key, it Item) {
	t.Helper()
	got, err := tb.Get(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(it, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", key, diff)
	}
}

func contractGet(t *testing.T, tb Table) {
	id, err := tb.ID(t.Context())
	if err != nil || id == "" {
		t.Errorf("ID = %q, %v", id, err)
	}
	want(t, tb, Key{"A", "1"}, nil)
	it := item("A", "1", Item{"s": S("text"), "empty": S(""), "n": N(-7), "big": N(1<<62 + 1), "b": B([]byte{0, 255})})
	must(t, tb, put(it, Cond{}))
	want(t, tb, Key{"A", "1"}, it)
	want(t, tb, Key{"A", "2"}, nil)
	must(t, tb, put(item("A", "1", Item{"other": N(1)}), Cond{}))
	want(t, tb, Key{"A", "1"}, item("A", "1", Item{"other": N(1)}))
	must(t, tb, Write{Key: Key{"A", "1"}, Delete: true})
	want(t, tb, Key{"A", "1"}, nil)
	must(t, tb, Write{Key: Key{"A", "1"}, Delete: true})
}

func contractConditions(t *testing.T, tb Table) {
	row := item("C", "row", Item{"n": N(5), "s": S("x")})
	must(t, tb, put(row, Cond{}))
	tests := []struct {
		name string
		cond Cond
		row  bool // holds on the row
		none bool // holds where there is none
	}{
		{"nothing", Cond{}, true, true},
		{"all of nothing", All(), true, true},
		{"absent key", Absent(attrPK), false, true},
		{"absent attribute", Absent("q"), true, true},
		{"exists", Exists("n"), true, false},
		{"equal number", Eq("n", N(5)), true, false},
		{"another number", Eq("n", N(6)), false, false},
		{"equal string", Eq("s", S("x")), true, false},
		{"a string is no number", Eq("s", N(0)), false, false},
		{"less", Less("n", 6), true, false},
		{"not less", Less("n", 5), false, false},
		{"at most", AtMost("n", 5), true, false},
		{"more", AtMost("n", 4), false, false},
		{"at least", AtLeast("n", 5), true, false},
		{"not enough", AtLeast("n", 6), false, false},
		{"a string is not at most a number", AtMost("s", 1<<40), false, false},
		{"missing is not at most", AtMost("q", 1), false, false},
		{"negative", AtLeast("n", -1), true, false},
		{"all", All(Exists("n"), Eq("s", S("x"))), true, false},
		{"not all", All(Exists("n"), Eq("s", S("y"))), false, false},
		{"any", Any(Absent("n"), Eq("s", S("x"))), true, true},
		{"none of any", Any(Absent("n"), Eq("s", S("y"))), false, true},
		{"any within all", All(Exists("s"), Any(Absent("n"), AtMost("n", 5))), true, false},
		{"all within any", Any(All(Exists("s"), Less("n", 5)), Absent("s")), false, true},
		{"empty all within all", All(All(), Exists("s")), true, false},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range []struct {
				key   Key
				old   Item
				holds bool
			}{{row.Key(), row, tt.row}, {Key{"C", fmt.Sprintf("none%d", i)}, nil, tt.none}} {
				next := item(c.key.PK, c.key.SK, Item{"n": N(5), "s": S("x")})
				for _, w := range []Write{put(next, tt.cond), {Key: c.key, Set: Item{"n": N(5)}, When: tt.cond}, {Key: c.key, Delete: true, When: tt.cond}} {
					// As it was before each.
					if c.old != nil {
						must(t, tb, put(c.old, Cond{}))
					} else {
						must(t, tb, Write{Key: c.key, Delete: true})
					}
					_, err := tb.Write(t.Context(), w)
					failed, ok := errors.AsType[*ConditionError](err)
					if ok == c.holds || err != nil && !ok {
						t.Fatalf("%s: put %v, delete %v: %v, want it to hold: %v", c.key, w.Put != nil, w.Delete, err, c.holds)
					}
					if ok {
						if diff := cmp.Diff(c.old, failed.Old); diff != "" {
							t.Errorf("the row as it is (-want +got)\n%s", diff)
						}
						want(t, tb, c.key, c.old)
					}
				}
			}
			must(t, tb, put(row, Cond{}))
		})
	}
}

func contractUpdates(t *testing.T, tb Table) {
	key := Key{"U", "1"}
	got := must(t, tb, Write{Key: key, Set: Item{"a": S("1")}, Add: map[string]int64{"n": 3}})
	made := item("U", "1", Item{"a": S("1"), "n": N(3)})
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("answer (-want +got)\n%s", diff)
	}
	want(t, tb, key, made)
	got = must(t, tb, Write{Key: key, Set: Item{"b": B([]byte("x"))}, Add: map[string]int64{"n": -5, "m": 0}, Remove: []string{"a", "never"}, When: Eq("n", N(3))})
	made = item("U", "1", Item{"b": B([]byte("x")), "n": N(-2), "m": N(0)})
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("answer (-want +got)\n%s", diff)
	}
	want(t, tb, key, made)
	if _, err := tb.Write(t.Context(), Write{Key: key, Add: map[string]int64{"b": 1}}); err == nil {
		t.Error("a number was added to bytes")
	}
}

func contractQuery(t *testing.T, tb Table) {
	// More than a page, in an order that is not that of writing; neighbours stay out.
	const n, size = 30, 60_000
	pad := S(strings.Repeat("x", size))
	for i := range n {
		must(t, tb, put(item("Q", fmt.Sprintf("k%02d", (i*7)%n), Item{"pad": pad}), Cond{}))
	}
	must(t, tb, put(item("Q#", "a", nil), Cond{}))
	must(t, tb, put(item("P", "z", nil), Cond{}))
	read := func(after string) (keys []string, pages int) {
		t.Helper()
		for {
			items, next, err := tb.Query(t.Context(), "Q", after)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, it := range items {
				keys = append(keys, it.Key().SK)
				if len(it["pad"].s) != size {
					t.Fatalf("%s came back short", it.Key())
				}
			}
			if next == "" {
				return keys, pages
			}
			after = next
		}
	}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%02d", i))
	}
	got, pages := read("")
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if pages < 2 {
		t.Errorf("%d bytes came in %d page: the test does not test paging", n*size, pages)
	}
	got, _ = read("k27")
	if diff := cmp.Diff(all[28:], got); diff != "" {
		t.Errorf("after k27 (-want +got)\n%s", diff)
	}
	got, _ = read("k27x") // a row that is not there
	if diff := cmp.Diff(all[28:], got); diff != "" {
		t.Errorf("after k27x (-want +got)\n%s", diff)
	}
	if items, next, err := tb.Query(t.Context(), "none", ""); err != nil || len(items) != 0 || next != "" {
		t.Errorf("an empty partition: %v, %q, %v", items, next, err)
	}
}

func contractTransact(t *testing.T, tb Table) {
	ctx := t.Context()
	a, b := item("T", "a", Item{"v": N(1)}), item("T", "b", Item{"v": N(1)})
	must(t, tb, put(a, Cond{}))
	must(t, tb, put(b, Cond{}))
	c := item("T", "c", Item{"x": S("new")})
	err := tb.Transact(ctx, "", []Write{
		put(item("T", "a", Item{"v": N(2)}), Eq("v", N(1))),
		{Key: b.Key(), Set: Item{"s": S("set")}, Add: map[string]int64{"v": 1}, When: Eq("v", N(9))},
		put(c, Absent(attrPK)),
		{Key: Key{"T", "lease"}, When: Exists("owner")},
	})
	cancelled, ok := errors.AsType[*CanceledError](err)
	if !ok {
		t.Fatalf("got %v, want a cancelled transaction", err)
	}
	wantReasons := []Reason{
		{Key: a.Key(), Code: ReasonNone}, {Key: b.Key(), Code: ReasonCondition, Old: b},
		{Key: c.Key(), Code: ReasonNone}, {Key: Key{"T", "lease"}, Code: ReasonCondition},
	}
	if diff := cmp.Diff(wantReasons, cancelled.Reasons); diff != "" {
		t.Errorf("reasons (-want +got)\n%s", diff)
	}
	want(t, tb, a.Key(), a)
	want(t, tb, b.Key(), b)
	want(t, tb, c.Key(), nil)

	must(t, tb, put(item("T", "lease", Item{"owner": S("me")}), Cond{}))
	err = tb.Transact(ctx, "", []Write{
		{Key: a.Key(), Delete: true, When: Eq("v", N(1))},
		{Key: b.Key(), Set: Item{"s": S("set")}, Add: map[string]int64{"v": 1}, Remove: []string{"none"}, When: Eq("v", N(1))},
		put(c, Absent(attrPK)),
		{Key: Key{"T", "lease"}, When: Eq("owner", S("me"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, tb, a.Key(), nil)
	want(t, tb, b.Key(), item("T", "b", Item{"v": N(2), "s": S("set")}))
	want(t, tb, c.Key(), c)
	want(t, tb, Key{"T", "lease"}, item("T", "lease", Item{"owner": S("me")}))
}

func contractHundred(t *testing.T, tb Table) {
	var ws []Write
	for i := range MaxActions {
		ws = append(ws, put(item("H", fmt.Sprintf("%03d", i), nil), Absent(attrPK)))
	}
	if err := tb.Transact(t.Context(), "", ws); err != nil {
		t.Fatal(err)
	}
	if items, _, err := tb.Query(t.Context(), "H", ""); err != nil || len(items) != MaxActions {
		t.Errorf("%d rows, %v", len(items), err)
	}
	more := append(ws[:MaxActions:MaxActions], put(item("H", "more", nil), Cond{}))
	if err := tb.Transact(t.Context(), "", more); !errors.Is(err, ErrTooLarge) {
		t.Errorf("101 actions: %v", err)
	}
	err := tb.Transact(t.Context(), "", ws)
	if c, ok := errors.AsType[*CanceledError](err); !ok || len(c.Reasons) != MaxActions || c.Reasons[99].Code != ReasonCondition || c.Reasons[99].Old == nil {
		t.Errorf("all again: %v", err)
	}
}

func contractToken(t *testing.T, tb Table) {
	id, err := tb.ID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token := func(n string) string { return id[:min(len(id), 20)] + n }
	add := []Write{{Key: Key{"K", "n"}, Add: map[string]int64{"n": 1}}}
	for range 2 {
		if err := tb.Transact(t.Context(), token("1"), add); err != nil {
			t.Fatal(err)
		}
	}
	want(t, tb, Key{"K", "n"}, item("K", "n", Item{"n": N(1)}))
	if err := tb.Transact(t.Context(), token("2"), add); err != nil {
		t.Fatal(err)
	}
	want(t, tb, Key{"K", "n"}, item("K", "n", Item{"n": N(2)}))
	// A transaction that was cancelled did not use its token.
	guarded := []Write{{Key: Key{"K", "n"}, Add: map[string]int64{"n": 1}, When: Eq("n", N(7))}}
	if err := tb.Transact(t.Context(), token("3"), guarded); err == nil {
		t.Fatal("the condition did not hold")
	}
	must(t, tb, put(item("K", "n", Item{"n": N(7)}), Cond{}))
	if err := tb.Transact(t.Context(), token("3"), guarded); err != nil {
		t.Fatal(err)
	}
	want(t, tb, Key{"K", "n"}, item("K", "n", Item{"n": N(8)}))
}

func contractTooLarge(t *testing.T, tb Table) {
	ctx := t.Context()
	huge := item("L", "1", Item{"d": S(strings.Repeat("x", MaxItem))})
	if _, err := tb.Write(ctx, put(huge, Cond{})); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "L/1") {
		t.Errorf("put: %v", err)
	}
	if err := tb.Transact(ctx, "", []Write{put(huge, Cond{})}); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "L/1") {
		t.Errorf("transact: %v", err)
	}
	want(t, tb, huge.Key(), nil)
	// Just below is taken, and grows too large by an update.
	near := item("L", "2", Item{"d": B(make([]byte, MaxItem-100))})
	must(t, tb, put(near, Cond{}))
	grow := Write{Key: near.Key(), Set: Item{"more": S(strings.Repeat("y", 200))}}
	if _, err := tb.Write(ctx, grow); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "L/2") {
		t.Errorf("update: %v", err)
	}
	if err := tb.Transact(ctx, "", []Write{grow}); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "L/2") {
		t.Errorf("update in a transaction: %v", err)
	}
	want(t, tb, near.Key(), near)
	var ws []Write
	for i := range 12 {
		ws = append(ws, put(item("L", fmt.Sprintf("m%d", i), Item{"d": B(make([]byte, 380*1024))}), Cond{}))
	}
	if err := tb.Transact(ctx, "", ws); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a transaction of 4.5 MB: %v", err)
	}
	want(t, tb, Key{"L", "m0"}, nil)
}

func contractBad(t *testing.T, tb Table) {
	ctx := t.Context()
	for _, w := range []Write{
		{Key: Key{"", "x"}, Set: Item{"a": S("")}}, {Key: Key{"x", ""}, Set: Item{"a": S("")}},
		{Key: Key{"B", "1"}, Put: item("B", "2", nil)},
	} {
		if _, err := tb.Write(ctx, w); err == nil {
			t.Errorf("written: %+v", w)
		}
		if err := tb.Transact(ctx, "", []Write{w}); err == nil {
			t.Errorf("transacted: %+v", w)
		}
	}
	one := put(item("B", "1", nil), Cond{})
	if err := tb.Transact(ctx, "", []Write{one, one}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a row twice: %v", err)
	}
	if err := tb.Transact(ctx, "", nil); err == nil {
		t.Error("nothing was transacted")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := tb.Write(gone, one); err == nil {
		t.Error("written without a context")
	}
}

func contractNames(t *testing.T, tb Table) {
	w := Write{Key: Key{"N", "1"}, Set: Item{"size": S("reserved word"), "u:nvidia.com/gpu": N(1)}, Add: map[string]int64{"u:a.b-c/d": 2}}
	must(t, tb, w)
	w = Write{Key: w.Key, Add: map[string]int64{"u:nvidia.com/gpu": 3}, Remove: []string{"size"}, When: All(AtMost("u:nvidia.com/gpu", 1), Eq("size", S("reserved word")))}
	must(t, tb, w)
	want(t, tb, w.Key, item("N", "1", Item{"u:nvidia.com/gpu": N(4), "u:a.b-c/d": N(2)}))
}

// TestTwin holds the table in memory to the contract.
func TestTwin(t *testing.T) {
	contract(t, func(*testing.T) Table { return NewMemory("table-1") })
}
