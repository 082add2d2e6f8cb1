package page_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/plan"
)

var (
	rowRanks = regexp.MustCompile(`<div class="tr" role="row" style="((?:--k\d+:\d+;)+)">(.*)</div>`)
	oneRank  = regexp.MustCompile(`--k(\d+):(\d+);`)
	cells    = regexp.MustCompile(`<span role="cell"[^>]*>([^<]*)</span>`)
)

// tableOf are the rows of a sorted table in the order of one of its keys: the cells of each.
func tableOf(t *testing.T, html, id string, key int) [][]string {
	t.Helper()
	from := strings.Index(html, `<div class="sorted `+id+`">`)
	if from < 0 {
		t.Fatalf("there is no table of %s", id)
	}
	to := strings.Index(html[from:], "</details>")
	rows := rowRanks.FindAllStringSubmatch(html[from:from+to], -1)
	out := make([][]string, len(rows))
	for _, row := range rows {
		for _, r := range oneRank.FindAllStringSubmatch(row[1], -1) {
			if r[1] != strconv.Itoa(key) {
				continue
			}
			at, err := strconv.Atoi(r[2])
			if err != nil || at >= len(out) || out[at] != nil {
				t.Fatalf("ranks of %s by key %d are no order: %s", id, key, row[1])
			}
			for _, c := range cells.FindAllStringSubmatch(row[2], -1) {
				out[at] = append(out[at], c[1])
			}
		}
	}
	if slices.ContainsFunc(out, func(r []string) bool { return r == nil }) {
		t.Fatalf("a row of %s has no rank by key %d", id, key)
	}
	return out
}

// TestSortedTables: every node and every pod of the plan has a row, and each key puts them in
// order without a script.
func TestSortedTables(t *testing.T) {
	p := demo(t)
	got := html(t, p)
	byPrice := tableOf(t, got, "nodes", 1)
	if len(byPrice) != len(p.Nodes)+len(p.Launches) {
		t.Fatalf("%d rows for %d nodes and %d launches", len(byPrice), len(p.Nodes), len(p.Launches))
	}
	last := 1e9
	for _, row := range byPrice {
		price, err := strconv.ParseFloat(strings.TrimPrefix(row[8], "$"), 64)
		if err != nil && row[8] != "unknown" || price > last {
			t.Errorf("by price: %v after %v", row, last)
		}
		last = price
	}
	names := tableOf(t, got, "nodes", 0)
	if !slices.IsSortedFunc(names, func(a, b []string) int { return strings.Compare(a[0], b[0]) }) {
		t.Errorf("by name: %v", names)
	}
	pods := map[string]string{}
	for _, row := range tableOf(t, got, "pods", 3) {
		pods[row[0]] = row[3] + " " + row[4]
	}
	for i := range p.Launches {
		for _, pod := range p.Launches[i].Pods {
			if want := "new node " + p.Launches[i].Name; pods[pod] != want {
				t.Errorf("%s: %q, want %q", pod, pods[pod], want)
			}
		}
	}
	for k, key := range []string{"name", "price", "free cpu", "free memory", "pods", "state"} {
		if !strings.Contains(got, fmt.Sprintf(`<label for="nodes-%d">%s</label>`, k, key)) || !strings.Contains(got, fmt.Sprintf(".k%d:checked ~ .rows > .tr { order: var(--k%d); }", k, k)) {
			t.Errorf("nobody can sort by %s", key)
		}
		tableOf(t, got, "nodes", k)
	}
	for _, want := range []string{"prefers-color-scheme: dark", "@media (max-width: 760px)", `name="viewport"`, "default-src 'none'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}

// TestSortedTableIsCut: of very many nodes the dearest are shown, and the page says where all
// are.
func TestSortedTableIsCut(t *testing.T) {
	p := &plan.Plan{}
	for i := range 5000 {
		p.Nodes = append(p.Nodes, plan.NodeUse{Name: fmt.Sprintf("n%04d", i), Price: int64(i/1000) * 1000, PriceKnown: true})
	}
	got := html(t, p)
	rows := tableOf(t, got, "nodes", 1)
	if len(rows) != 1000 || rows[0][0] != "n4000" || rows[999][0] != "n4999" || !strings.Contains(got, "the first 1000; JSON (-o json) has all") {
		t.Errorf("%d rows, the first %v", len(rows), rows[0])
	}
	if len(got) > 2<<20 {
		t.Errorf("the page has %d bytes", len(got))
	}
}
