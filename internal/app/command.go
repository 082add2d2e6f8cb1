package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Exit statuses of the plan command.
const (
	exitPlanned    = 0
	exitNoPlan     = 2
	exitIncomplete = 3
)

// Command is the plan command: the answer goes to Stdout, everything a person should
// know besides to Stderr.
type Command struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ is the environment; only what concerns the terminal is read of it.
	Environ []string
	// Facts asks AWS for types and prices; nil: the program cannot.
	Facts Facts
}

// Main runs a command that has no way to ask AWS for types and prices.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	return Command{Stdin: stdin, Stdout: stdout, Stderr: stderr, Environ: environ}.Main(args)
}

// Main runs it. It returns the exit status: 0 planned, 2 no plan, 3 planned on less than
// everything.
func (c Command) Main(args []string) int {
	o, err := parseFlags(args)
	if errors.Is(err, errHelp) {
		if _, err := io.WriteString(c.Stdout, usage); err != nil {
			return exitNoPlan
		}
		return exitPlanned
	}
	if err == nil {
		var status int
		if status, err = o.run(c); err == nil {
			return status
		}
	}
	msg := err.Error()
	var r *handler.Refusal
	if errors.As(err, &r) && r.Code == plan.NotSupported {
		msg = string(r.Code) + ": " + msg // scripts tell a missing feature from a mistake
	}
	say(c.Stderr, msg)
	return exitNoPlan
}

// say writes a message, each line with the program's name.
func say(w io.Writer, msg string) {
	for line := range strings.Lines(strings.TrimRight(msg, "\n") + "\n") {
		fmt.Fprintf(w, "plan: %s", line)
	}
}

func (o *options) run(cmd Command) (int, error) {
	stdin, stdout, stderr := cmd.Stdin, cmd.Stdout, cmd.Stderr
	set, err := o.loadSettings()
	if err != nil {
		return 0, err
	}
	table, err := o.table()
	if err != nil {
		return 0, err
	}
	in := handler.Input{Cluster: o.cluster, Region: o.region, Now: o.now, Seed: o.seed, Settings: set.Apply, Workloads: o.work, Save: o.snapshot != ""}
	if in.Cluster == "" {
		in.Cluster = set.Cluster
	}
	sources, err := o.sources(&in, stdin, stderr)
	if err != nil {
		return 0, err
	}
	over := kube.Overlay{Remove: o.remove}
	if over.Sources, err = kube.Files(o.whatIf, stdin); err != nil {
		return 0, fmt.Errorf("--what-if: %w", err)
	}
	region := defaultRegion
	if table != nil && table.Region != "" {
		region = table.Region
	}
	var remembered *memory
	if o.ledger != "" {
		remembered = o.memory(in.Region)
		in.Remember = remembered.into
	}
	reading, report, err := read(sources, over, in, region, time.Now)
	if err = errors.Join(err, remembered.failed()); err != nil {
		return 0, err
	}
	if present, err := o.present(cmd.Facts, reading, in.Region != "", stderr); err != nil {
		return 0, err
	} else if present != nil {
		table = present
	}
	if o.snapshot != "" {
		if err := save(o.snapshot, reading.Snapshot); err != nil {
			return 0, err
		}
	}
	solver := handler.Solver(solve)
	if o.consolidate {
		solver = handler.WithMoves(solve, moves)
	}
	p, err := handler.Make(reading, table, o.explain, solver)
	if err != nil {
		return 0, err
	}
	out, err := o.render(p, stdout, cmd.Environ)
	if err != nil {
		return 0, err
	}
	if _, err := stdout.Write(out); err != nil {
		return 0, fmt.Errorf("write the answer: %w", err)
	}
	o.notes(stderr, p, reading, report)
	if !p.Complete {
		return exitIncomplete, nil
	}
	return exitPlanned, nil
}

// loadSettings reads the settings files, then --set over them.
func (o *options) loadSettings() (handler.Settings, error) {
	var pairs []config.Pair
	for _, f := range o.settings {
		data, err := os.ReadFile(f)
		if err != nil {
			return handler.Settings{}, fmt.Errorf("read the settings: %w", err)
		}
		more, err := config.ParseFile(f, data)
		if err != nil {
			return handler.Settings{}, err
		}
		pairs = append(pairs, more...)
	}
	return settings(append(pairs, o.pairs...))
}

// table reads --catalog; nil means the embedded table.
func (o *options) table() (*catalog.Catalog, error) {
	if o.catalog == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.catalog)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	c, err := catalog.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue %s: %w", o.catalog, err)
	}
	return c, nil
}

// save writes the snapshot beside its name and renames it, so that a file is
// never half written.
func save(path string, s *snapshot.Snapshot) (err error) {
	defer func() {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // it names the temporary file, which says nothing
		}
		if err != nil {
			err = fmt.Errorf("write the snapshot %s: %w", path, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), ".snapshot-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone after the rename
	if err := errors.Join(kube.Save(f, s), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (o *options) render(p *plan.Plan, stdout io.Writer, environ []string) ([]byte, error) {
	r := handler.Rendering{Format: o.format, Diff: o.diff, Indent: true}
	if o.format == "text" {
		r.Text = terminal(stdout, environ)
	}
	return r.Write(p)
}

// terminal finds out how text is to be written: colour only on a terminal that
// has not been told otherwise (NO_COLOR), at most 100 columns.
func terminal(stdout io.Writer, environ []string) plan.TextOptions {
	o := plan.TextOptions{Width: 100}
	f, ok := stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	o.Color = lookup(environ, "NO_COLOR") == "" && lookup(environ, "TERM") != "dumb"
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		o.Width = min(w, o.Width)
	} else if w, err := strconv.Atoi(lookup(environ, "COLUMNS")); err == nil && w > 0 {
		o.Width = min(w, o.Width)
	}
	return o
}

// notes names on stderr what the plan was made without.
func (o *options) notes(stderr io.Writer, p *plan.Plan, reading *handler.Reading, report *kube.Report) {
	for i := range p.Warnings {
		if w := &p.Warnings[i]; w.Code == plan.CatalogueOfOther || w.Code == plan.LedgerInRecovery {
			say(stderr, w.Detail)
		}
	}
	for i := range reading.Left {
		say(stderr, reading.Left[i].Detail)
	}
	if n := len(reading.Left); !p.Complete && (n == 0 || len(p.Incomplete) > 1) {
		say(stderr, "the reading is not complete: "+strings.Join(p.Incomplete, "; "))
	}
	if n := len(reading.Snapshot.Workloads); n > 0 && len(reading.Snapshot.Pods) == 0 && !reading.Snapshot.Settings.PlanWorkloads {
		say(stderr, fmt.Sprintf("%s but no pod in the input: --workloads plans the pods that they would have", plan.Count(n, "workload")))
	}
	total := 0
	for _, n := range report.Ignored {
		total += n
	}
	if total == 0 {
		return
	}
	if !o.verbose {
		say(stderr, fmt.Sprintf("%s of %s ignored, as they decide nothing (-v names them)", plan.Count(total, "object"), plan.Count(len(report.Ignored), "kind")))
		return
	}
	for _, k := range slices.Sorted(maps.Keys(report.Ignored)) {
		say(stderr, fmt.Sprintf("ignored: %s, %s", k, plan.Count(report.Ignored[k], "object")))
	}
}
