package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is rows of cells under a head; left columns are text, the others numbers.
type table struct {
	head []string
	left map[int]bool
	rows [][]string
}

func (t *table) widths() []int {
	w := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			w[i] = max(w[i], utf8.RuneCountInString(c))
		}
	}
	return w
}

// write renders the table with padded columns: between is put between cells, edge at
// both ends of a line, rule is the line below the head.
func (t *table) write(w io.Writer, edge, between string, rule func(width int, left bool) string) error {
	widths := t.widths()
	line := func(cells []string) string {
		return strings.TrimRight(edge+strings.Join(cells, between)+edge, " ")
	}
	pad := func(i int, s string) string {
		space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
		if t.left[i] {
			return s + space
		}
		return space + s
	}
	var b strings.Builder
	format := func(row []string) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = pad(i, c)
		}
		b.WriteString(line(cells) + "\n")
	}
	format(t.head)
	rules := make([]string, len(t.head))
	for i := range rules {
		rules[i] = rule(widths[i], t.left[i])
	}
	b.WriteString(line(rules) + "\n")
	for _, row := range t.rows {
		format(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *table) terminal(w io.Writer) error {
	return t.write(w, "", "  ", func(width int, _ bool) string { return strings.Repeat("-", width) })
}

func (t *table) markdown(w io.Writer) error {
	return t.write(w, "|", "|", func(width int, left bool) string {
		if left {
			return strings.Repeat("-", max(width, 1))
		}
		return strings.Repeat("-", max(width-1, 1)) + ":"
	})
}

// rows builds the table of figures. Drawn workloads and named ones go apart.
func (r *Run) rows(drawn bool) *table {
	t := &table{
		head: []string{"workload", "pool", "resources $/h", "bound $/h", "Kerf $/h", "/ bound", "/ own bound", "worst option", "nodes", "CPU ms", "of it solve", "us/pod rest",
			"allocs", "peak MiB", "Karpenter $/h", "/ bound", "nodes", "CPU s", "CPU ratio"},
		left: map[int]bool{0: true, 1: true},
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Drawn != drawn {
			continue
		}
		cells := []string{row.Workload, row.Pool.String()}
		if row.NotBuilt != "" {
			cells = append(cells, "", "", "not built yet")
		} else {
			cells = append(cells, price(row.LPBound), price(row.Bound))
		}
		cells = append(cells, kerfCells(row)...)
		cells = append(cells, karpenterCells(row)...)
		for len(cells) < len(t.head) {
			cells = append(cells, "")
		}
		t.rows = append(t.rows, cells[:len(t.head)])
	}
	return t
}

func kerfCells(row *Row) []string {
	k := row.Kerf
	switch {
	case row.NotBuilt != "":
		return make([]string, 9)
	case k == nil:
		return make([]string, 10)
	}
	cost := price(k.Price)
	if k.Unscheduled > 0 {
		cost = fmt.Sprintf("%d pods left out", k.Unscheduled)
	}
	if len(row.Faults) > 0 {
		cost += " (faulty)"
	}
	solve, rest := "", ""
	if k.Stages.Known {
		solve = fmt.Sprintf("%.2f", k.Stages.Solve*1e3)
		rest = fmt.Sprintf("%.2f", (k.Stages.Group+k.Stages.Write)/float64(row.Pods)*1e6)
	}
	own := ""
	if k.OwnBound > 0 {
		own = fmt.Sprintf("%.4f", float64(k.Price)/float64(k.OwnBound))
		if !k.OwnConfirmed {
			own += " *"
		}
	}
	return []string{cost, fmt.Sprintf("%.4f", k.Ratio), own, fmt.Sprintf("%.3f", k.WorstRatio), fmt.Sprint(k.Nodes),
		fmt.Sprintf("%.2f", k.CPU*1e3), solve, rest, count(k.Allocs), mebibytes(k.RSSPeak)}
}

func karpenterCells(row *Row) []string {
	k := row.Karpenter
	if k == nil {
		return nil
	}
	cpu := fmt.Sprintf("%.2f", k.CPU)
	if k.TimedOut {
		return []string{fmt.Sprintf("timeout, %d pods left", k.Unscheduled), "", fmt.Sprint(k.Nodes), "> " + cpu, ""}
	}
	if k.Unscheduled > 0 {
		return []string{fmt.Sprintf("%d pods left out", k.Unscheduled), "", fmt.Sprint(k.Nodes), cpu, ""}
	}
	ratio := ""
	if c := row.CPURatio(); c > 0 {
		ratio = fmt.Sprintf("%.0f x", c)
	}
	return []string{price(k.Price), fmt.Sprintf("%.4f", k.Ratio), fmt.Sprint(k.Nodes), cpu, ratio}
}

func (r *Run) targetTable() *table {
	t := &table{head: []string{"target", "limit", "measured", "rows", "", "decided by"}, left: map[int]bool{0: true, 4: true, 5: true}}
	for _, x := range r.Targets {
		t.rows = append(t.rows, []string{x.What, x.Limit, x.Value, fmt.Sprint(x.Rows), string(x.Outcome), x.Where})
	}
	return t
}

func price(micros int64) string { return fmt.Sprintf("%.4f", float64(micros)/1e6) }

func count(n uint64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.0f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.0f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func mebibytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n >> 20)
}

// about says what was run, as lines of text.
func (r *Run) about() []string {
	lines := []string{
		fmt.Sprintf("%s run of %s, %s, %s.", r.Mode, r.Date, r.Go, r.System),
		fmt.Sprintf("Karpenter %s, one worker. Catalogue: %s; the open pool allows %d types.", r.Karpenter, r.Catalogue, r.Types),
	}
	if r.Seed != 0 {
		lines = append(lines, fmt.Sprintf("Seed of the drawn workloads: %d (repeat them with -seed %d).", r.Seed, r.Seed))
	}
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Kerf != nil && !row.Kerf.OwnConfirmed }) {
		lines = append(lines, "Own bound: the one that the plan carries; with * it claims more than the independent solver proves, and counts for nothing here.")
	}
	if w := r.World; w != nil {
		lines = append(lines, fmt.Sprintf("Running cluster: %d nodes, %d running and %d pending pods planned in %.0f ms CPU (%d pods onto existing nodes, %d launches); resident memory %s MiB before, %s MiB at the peak.",
			w.Nodes, w.Running, w.Pending, w.CPU*1e3, w.Placed, w.Launches, mebibytes(w.RSSBefore), mebibytes(w.RSSPeak)))
	}
	return lines
}

// Terminal writes the run for a person at a terminal.
func (r *Run) Terminal(w io.Writer) error {
	return r.render(w, func(title string) string { return "\n" + title + "\n\n" }, (*table).terminal)
}

// Markdown writes the run as Markdown, headings of level 3.
func (r *Run) Markdown(w io.Writer) error {
	return r.render(w, func(title string) string { return "\n### " + title + "\n\n" }, (*table).markdown)
}

func (r *Run) render(w io.Writer, heading func(string) string, put func(*table, io.Writer) error) error {
	if _, err := io.WriteString(w, strings.Join(r.about(), "\n")+"\n"); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		table *table
	}{{"Targets", r.targetTable()}, {"Published workloads", r.rows(false)}, {"Drawn workloads", r.rows(true)}, {"Consolidation of half-empty clusters", r.consolidation()}} {
		if len(part.table.rows) == 0 {
			continue
		}
		if _, err := io.WriteString(w, heading(part.title)); err != nil {
			return err
		}
		if err := put(part.table, w); err != nil {
			return err
		}
	}
	return r.faults(w)
}

func (r *Run) faults(w io.Writer) error {
	for i := range r.Rows {
		for _, f := range r.Rows[i].Faults {
			if _, err := fmt.Fprintf(w, "\nFAULT %s, %s: %s\n", r.Rows[i].Workload, r.Rows[i].Pool, f); err != nil {
				return err
			}
		}
	}
	return nil
}
