// Command bench plans the same pending pods with Kerf and with Karpenter's own
// scheduler, in one process, on the same types, prices, pool and daemonsets, and
// checks Kerf's plans and lower bounds with an independent solver.
//
//	go run .                  every workload; Karpenter up to 1,000 pods
//	go run . -smoke           a few workloads, under two minutes
//	go run . -full            Karpenter up to 10,000 pods: about half an hour
//	go run . -seed 42         repeat a run's drawn workloads
//	go run . -check           exit status 1 when a price target fails
//	go run . -write-docs      put the tables and the chart into docs/
//	go run . -from FILE       report an earlier run again, from its results.json
//
// Results go to build/bench: results.json, results.md, chart.svg.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errTargets):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// errTargets means that a quality target failed; the report has said which.
var errTargets = errors.New("a quality target failed")

// config is the command line.
type config struct {
	mode      mode
	seed      int64
	drawn     int
	only      *regexp.Regexp
	karpenter karpenterLimits
	timeout   time.Duration
	world     bool
	clusters  bool
	check     bool
	writeDocs bool
	root      string // of the repository
	out       string
	from      string // results.json of an earlier run
}

func parse(args []string, stderr io.Writer) (config, error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	smokeFlag := fs.Bool("smoke", false, "a few workloads, under two minutes")
	fullFlag := fs.Bool("full", false, "run Karpenter up to 10,000 pods too; takes about half an hour")
	seed := fs.Int64("seed", 0, "seed of the drawn workloads; 0 = draw one and print it")
	drawn := fs.Int("drawn", 20, "number of drawn workloads; 10 with -smoke, if not given")
	only := fs.String("only", "", "run only cases whose name matches this regular expression, as in 'mixedweb-1000, open$'")
	limits := fs.String("karpenter", "", "largest workload for Karpenter, by kind (uniform=10000,diverse=5000) or for all; 0 = leave Karpenter out")
	timeout := fs.Duration("timeout", 5*time.Minute, "wall time after which one Karpenter run is stopped and reported as such")
	world := fs.Bool("world", true, "also plan a running cluster of 5,000 nodes, for its memory")
	clusters := fs.Bool("consolidation", true, "also consolidate half-empty clusters of 100 to 5,000 nodes")
	check := fs.Bool("check", false, "exit status 1 when a price target or a check of a plan fails; never on time")
	writeDocs := fs.Bool("write-docs", false, "put the result into docs/benchmark.md and docs/benchmark.svg")
	out := fs.String("out", "", "folder of the results (default build/bench in the repository)")
	from := fs.String("from", "", "report an earlier run again from its results.json instead of measuring")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	if fs.NArg() > 0 {
		return config{}, fmt.Errorf("argument %q is not understood; see -help", fs.Arg(0))
	}
	c := config{mode: normal, seed: *seed, drawn: *drawn, timeout: *timeout, world: *world, clusters: *clusters, check: *check, writeDocs: *writeDocs, out: *out, from: *from}
	switch {
	case *smokeFlag && *fullFlag:
		return config{}, errors.New("-smoke and -full exclude each other")
	case *smokeFlag:
		c.mode = smoke
		given := false
		fs.Visit(func(f *flag.Flag) { given = given || f.Name == "drawn" })
		if !given {
			c.drawn = 10
		}
	case *fullFlag:
		c.mode = full
	}
	if c.drawn < 0 {
		return config{}, fmt.Errorf("-drawn %d: must not be negative", c.drawn)
	}
	if c.seed == 0 {
		c.seed = time.Now().UnixNano()%1_000_000_000 + 1
	}
	var err error
	if c.only, err = regexp.Compile(*only); err != nil {
		return config{}, fmt.Errorf("-only: %w", err)
	}
	c.karpenter = c.mode.karpenterLimits()
	if *limits != "" {
		if err := c.karpenter.set(*limits); err != nil {
			return config{}, fmt.Errorf("-karpenter: %w", err)
		}
	}
	return c, nil
}
