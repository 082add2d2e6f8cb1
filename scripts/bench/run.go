package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/scripts/bench/market"
	"kerf.sh/kerf/scripts/bench/report"
)

// run is the program: it measures, writes the results and returns errTargets when
// asked to check and something failed.
func run(args []string, stdout, stderr io.Writer) error {
	cfg, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if cfg.root, err = repository(); err != nil {
		return err
	}
	if cfg.out == "" {
		cfg.out = filepath.Join(cfg.root, "build", "bench")
	}
	b := &bench{cfg: cfg, log: stderr}
	if cfg.from != "" {
		err = b.load()
	} else {
		err = b.start()
	}
	if err != nil {
		return err
	}
	b.run.Evaluate()
	if err := b.run.Terminal(stdout); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	if err := b.write(); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nWritten to %s: results.json, results.md, chart.svg\n", cfg.out)
	broken := b.run.Broken()
	for _, t := range broken {
		fmt.Fprintf(stderr, "failed: %s: %s, limit %s (%s)\n", t.What, t.Value, t.Limit, t.Where)
	}
	if cfg.check && len(broken) > 0 {
		return errTargets
	}
	return nil
}

// start measures everything.
func (b *bench) start() error {
	m, err := market.New(catalog.Default())
	if err != nil {
		return err
	}
	b.market = m
	b.run = report.Run{
		Date: time.Now().UTC().Format(time.DateOnly), Mode: string(b.cfg.mode), Go: runtime.Version(),
		System:    fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Karpenter: dependency("sigs.k8s.io/karpenter"),
		Catalogue: fmt.Sprintf("%s of %s, %s", m.Catalog.Region, m.Catalog.Date, m.Catalog.Source),
		Types:     len(m.View(market.Variant{}).Columns),
	}
	if b.cfg.drawn > 0 {
		b.run.Seed = b.cfg.seed
	}
	return b.measure()
}

// load reads the figures of an earlier run.
func (b *bench) load() error {
	f, err := os.Open(b.cfg.from)
	if err != nil {
		return fmt.Errorf("read an earlier run: %w", err)
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(&b.run); err != nil {
		return fmt.Errorf("read an earlier run from %s: %w", b.cfg.from, err)
	}
	return nil
}

// repository is the folder of the main module.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module kerf.sh/kerf\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not inside the repository (no go.mod of kerf.sh/kerf above it); run it from scripts/bench or give -out")
		}
		dir = parent
	}
}

// dependency is the version of a module that was compiled in.
func dependency(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return d.Version
			}
		}
	}
	return "of unknown version"
}

func (b *bench) write() error {
	if err := os.MkdirAll(b.cfg.out, 0o755); err != nil {
		return fmt.Errorf("make the folder of the results: %w", err)
	}
	for name, render := range map[string]func(io.Writer) error{
		"results.json": b.run.JSON, "results.md": b.run.Markdown, "chart.svg": b.run.Chart,
	} {
		if err := writeFile(filepath.Join(b.cfg.out, name), render); err != nil {
			return err
		}
	}
	if !b.cfg.writeDocs {
		return nil
	}
	docs := filepath.Join(b.cfg.root, "docs")
	if err := writeFile(filepath.Join(docs, "benchmark.svg"), b.run.Chart); err != nil {
		return err
	}
	return report.Embed(filepath.Join(docs, "benchmark.md"), &b.run)
}

func writeFile(path string, render func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := errors.Join(render(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
