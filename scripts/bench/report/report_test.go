package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/scripts/bench/market"
)

// row is a measured row of a workload of n pods: ratio and worst over a bound of 1 $/h.
func row(kind string, n int, ratio, worst float64) Row {
	const dollar = 1_000_000
	return Row{
		Workload: kind + "-x", Kind: kind, Pods: n, LPBound: dollar, Bound: dollar,
		Kerf: &Kerf{
			Cost: Cost{CPU: 0.01, Allocs: 12_345}, Stages: Stages{Known: true, Group: 1e-6 * float64(n), Solve: 0.004, Write: 1e-6 * float64(n)},
			Nodes: 3, Price: int64(ratio * dollar), Worst: int64(worst * dollar), OwnBound: dollar, Ratio: ratio, WorstRatio: worst, RSSPeak: 50 << 20,
		},
	}
}

func outcomes(r *Run) map[string]Outcome {
	r.Evaluate()
	out := map[string]Outcome{}
	for _, t := range r.Targets {
		out[t.What] = t.Outcome
	}
	return out
}

const (
	faulty  = "plans with a pod left out, or that the independent check refuses"
	large   = "price / bound: uniform, mixedweb, memcpu, 1,000 pods and more"
	diverse = "price / bound: diverse, 1,000 pods and more"
	small   = "price / bound: 100 pods"
	dearest = "every launch at its dearest option: price / bound"
	speed   = "CPU of Karpenter / CPU of Kerf: uniform, mixedweb, memcpu, 10,000 pods"
)

func TestEachTargetCanPassAndFail(t *testing.T) {
	spoil := func(r Row, f func(*Row)) Row { f(&r); return r }
	for _, c := range []struct {
		what string
		row  Row
		want Outcome
	}{
		{large, row("mixedweb", 1000, 1.0099, 1.1), Pass},
		{large, row("mixedweb", 1000, 1.0101, 1.1), Fail},
		{large, row("diverse", 1000, 1.5, 1.1), NotMeasured},
		{large, row("uniform", 100, 1.5, 1.1), NotMeasured},
		{large, row("zonal", 1000, 1.5, 1.1), NotMeasured},
		{diverse, row("diverse", 1000, 1.0199, 1.1), Pass},
		{diverse, row("diverse", 50000, 1.0201, 1.1), Fail},
		{small, row("memcpu", 100, 1.03, 1.1), Pass},
		{small, row("memcpu", 100, 1.031, 1.1), Fail},
		{dearest, row("memcpu", 100, 1, 1.2), Pass},
		{dearest, row("memcpu", 100, 1, 1.201), Fail},
		{faulty, row("memcpu", 100, 1, 1), Pass},
		{faulty, spoil(row("memcpu", 100, 1, 1), func(r *Row) { r.Faults = []string{"x"} }), Fail},
		{faulty, spoil(row("memcpu", 100, 1, 1), func(r *Row) { r.Kerf.Unscheduled = 1 }), Fail},
		{faulty, Row{Kind: "zonal", NotBuilt: "spread"}, NotMeasured},
		{speed, row("memcpu", 10000, 1, 1), NotMeasured},
		{speed, spoil(row("memcpu", 10000, 1, 1), func(r *Row) { r.Karpenter = &Karpenter{Cost: Cost{CPU: 10}, Ratio: 1.4} }), Pass},
		{speed, spoil(row("memcpu", 10000, 1, 1), func(r *Row) { r.Karpenter = &Karpenter{Cost: Cost{CPU: 9.9}, Ratio: 1.4} }), Fail},
		{speed, spoil(row("memcpu", 10000, 1, 1), func(r *Row) { r.Karpenter = &Karpenter{Cost: Cost{CPU: 1}, TimedOut: true} }), NotMeasured},
	} {
		r := Run{Rows: []Row{c.row}}
		if got := outcomes(&r)[c.what]; got != c.want {
			t.Errorf("%s with %s, ratio %+v: %q, want %q", c.what, c.row.Workload, c.row.Kerf, got, c.want)
		}
	}
}

func TestTheWorstRowDecides(t *testing.T) {
	r := Run{Rows: []Row{row("uniform", 1000, 1.002, 1.1), row("memcpu", 5000, 1.008, 1.1), row("mixedweb", 1000, 1.004, 1.1)}}
	r.Evaluate()
	for _, x := range r.Targets {
		if x.What == large && (x.Value != "1.0080" || x.Where != "memcpu-x, open" || x.Rows != 3) {
			t.Errorf("decided by %+v, want memcpu-x with 1.0080 of 3 rows", x)
		}
	}
}

func TestOnlyQualityBreaksARun(t *testing.T) {
	slow := row("memcpu", 50000, 1, 1)
	slow.Kerf.CPU = 100
	dear := row("memcpu", 1000, 2, 1)
	r := Run{Rows: []Row{slow, dear}}
	r.Evaluate()
	var broken []string
	for _, x := range r.Broken() {
		broken = append(broken, x.What)
	}
	if diff := cmp.Diff([]string{large}, broken); diff != "" {
		t.Error(diff)
	}
}

func TestGrowthComparesTheSameWorkload(t *testing.T) {
	a, b, other := row("uniform", 5000, 1, 1), row("uniform", 50000, 1, 1), row("memcpu", 50000, 1, 1)
	a.Kerf.Stages.Solve, b.Kerf.Stages.Solve, other.Kerf.Stages.Solve = 0.002, 0.005, 9
	r := Run{Rows: []Row{a, b, other}}
	if e := r.growth(); e.rows != 1 || e.value != 2.5 {
		t.Errorf("growth is %+v, want 2.5 of one row", e)
	}
}

func sample() *Run {
	withKarpenter := row("mixedweb", 1000, 1.004, 1.18)
	withKarpenter.Karpenter = &Karpenter{Cost: Cost{CPU: 1.25}, Nodes: 2, Price: 1_414_000, Ratio: 1.414}
	late := row("uniform", 10000, 1, 1.1)
	late.Pool = market.Variant{CapVCPU: 32}
	late.Karpenter = &Karpenter{Cost: Cost{CPU: 300}, Nodes: 9, Unscheduled: 17, TimedOut: true}
	drawn := row("diverse", 1000, 1.01, 1.1)
	drawn.Drawn, drawn.Faults = true, []string{"pod <default/a> is nowhere & lost"}
	r := &Run{Date: "2026-01-02", Mode: "smoke", Seed: 5, Go: "go1", System: "linux", Karpenter: "v1", Catalogue: "c", Types: 9,
		Rows: []Row{withKarpenter, late, {Workload: "zonal-100", Kind: "zonal", Pods: 100, NotBuilt: "spread"}, drawn}}
	r.Evaluate()
	return r
}

func TestTables(t *testing.T) {
	for name, render := range map[string]func(io.Writer) error{"markdown": sample().Markdown, "terminal": sample().Terminal} {
		var b bytes.Buffer
		if err := render(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"125 x", "timeout, 17 pods left", "> 300.00", "not built yet", "1.0040", "(faulty)", "-seed 5", "12 k",
			"FAULT diverse-x, open: pod <default/a> is nowhere & lost", "Drawn workloads",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, b.String())
			}
		}
		if name == "markdown" {
			checkMarkdown(t, b.String())
		}
	}
}

// checkMarkdown: all lines of a table have the same number of cells.
func checkMarkdown(t *testing.T, s string) {
	t.Helper()
	cells := 0
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		n := strings.Count(line, "|")
		if cells != 0 && n != cells {
			t.Errorf("a line has %d separators, the one above it %d: %s", n, cells, line)
		}
		cells = n
	}
}

func TestChartIsWellFormedAndShowsPublishedRows(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Chart(&b); err != nil {
		t.Fatal(err)
	}
	bars := 0
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the chart is not XML: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	// Background, 2 keys; price and CPU of Kerf twice; of Karpenter once whole, once
	// its CPU alone because it timed out.
	if want := 1 + 2 + 4 + 3; bars != want {
		t.Errorf("%d rectangles, want %d", bars, want)
	}
	for _, want := range []string{"mixedweb-x", "1.414", "1.25 s (125 x)", "17 pods left at the time limit", "Pool capped at 32 vCPU"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(b.String(), "diverse-x") {
		t.Error("a drawn workload is in the chart")
	}
}

func TestEmbedReplacesOnlyWhatIsBetweenTheMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	doc := "# Title\n\nbefore\n\n" + embedBegin + "old\n" + embedEnd + "\nafter\n"
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time replaces the first
		if err := Embed(path, sample()); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	if !strings.HasPrefix(got, "# Title\n\nbefore\n\n"+embedBegin) || !strings.HasSuffix(got, embedEnd+"\nafter\n") {
		t.Errorf("text around the marks changed:\n%s", got)
	}
	if strings.Contains(got, "old") || strings.Count(got, "### Targets") != 1 {
		t.Errorf("want the new table once and the old one gone:\n%s", got)
	}
	for _, broken := range []string{"no marks", embedBegin + "no end"} {
		if _, err := embed([]byte(broken), nil); err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("embed in %q says %v", broken, err)
		}
	}
}
