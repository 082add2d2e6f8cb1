package kube

import (
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Options are what the objects themselves do not say.
type Options struct {
	// Cluster, Region, Now and Seed go into the snapshot. Where one is zero, that
	// of a saved snapshot among the sources holds.
	Cluster string
	Region  string
	Now     time.Time
	Seed    uint64
	// Settings go into the snapshot. When they are zero or the defaults, those of a
	// saved snapshot among the sources hold; without one, the defaults.
	Settings snapshot.Settings
	// Workloads plans pods for workloads that have none in the input; so do settings
	// with PlanWorkloads.
	Workloads bool
	// Clock is the time of the snapshot when neither Now nor a saved snapshot gives one.
	Clock time.Time
	// Unadmitted keeps in the snapshot what manifests and templates said before
	// admission, for a snapshot that will be saved.
	Unadmitted bool
	// Remember adds what is known beside the objects (the ledger), once the time of the
	// snapshot is settled and before anything is taken away from it; nil = nothing. saved
	// tells that a saved snapshot is among the sources: it remembers for itself.
	Remember func(s *snapshot.Snapshot, saved bool)
}

// Report says what became of the objects that were read.
type Report struct {
	// Objects counts what is in the snapshot, by kind.
	Objects map[string]int
	// Ignored counts objects of kinds that cannot matter, by "group/kind" (core
	// kinds: "kind").
	Ignored map[string]int
	// Left are objects that can matter and were left out; the plan is one without
	// them. Sorted.
	Left []LeftOut
	// Warnings are remarks that stop nothing. Sorted.
	Warnings []plan.Warning
	// Changes are what an overlay changed, by object.
	Changes []plan.Change
}

// maxProblems is how many problems are gathered before reading stops.
const maxProblems = 20

// Read reads all sources into one snapshot. The order of sources, documents and
// items does not matter, except that of two objects with one name the first is
// kept. The error, if any, joins up to 20 *Problem.
func Read(sources []Source, o Options) (*snapshot.Snapshot, *Report, error) {
	r := newReader(o)
	if err := r.sources(sources); err != nil {
		return nil, nil, err
	}
	if err := r.finish(); err != nil {
		return nil, nil, err
	}
	return r.snap, r.report, nil
}

// sources reads what sources hold.
func (r *reader) sources(sources []Source) error {
	if len(sources) == 0 && r.over == nil {
		return errors.New("read objects: no files were given")
	}
	for _, src := range sources {
		if src.Feed != nil {
			if err := r.feed(src); err != nil {
				return err
			}
			continue
		}
		if err := readSource(src, r); err != nil {
			return r.error()
		}
	}
	if len(r.problems) > 0 {
		return r.error()
	}
	return nil
}

// reader gathers objects. It is the sink of the streams.
type reader struct {
	opts     Options
	snap     *snapshot.Snapshot
	report   *Report
	problems []*Problem
	seen     map[objectKey]place
	drafts   []draft
	head     *savedHead // of a saved snapshot among the sources
	// unadmitted is what that says of its objects before admission.
	unadmitted []snapshot.Unadmitted
	over       *overlay // nil: this is a reading as it is
	fed        bool     // a source has fed objects, and says itself what is missing
	living     bool     // what is read comes from a cluster: nobody is there to correct it
}

type objectKey struct {
	kind, namespace, name string
}

func newReader(o Options) *reader {
	return &reader{
		opts:   o,
		snap:   &snapshot.Snapshot{},
		report: &Report{Objects: map[string]int{}, Ignored: map[string]int{}},
		seen:   map[objectKey]place{},
	}
}

var errTooManyProblems = errors.New("too many problems")

func (r *reader) problem(p *Problem) error {
	r.problems = append(r.problems, p)
	if len(r.problems) >= maxProblems {
		return errTooManyProblems
	}
	return nil
}

func (r *reader) error() error {
	var all []error
	for _, p := range r.problems {
		all = append(all, p)
	}
	if len(all) >= maxProblems {
		all = append(all, fmt.Errorf("(reading stopped after %d problems)", len(all)))
	}
	return errors.Join(all...)
}

func (r *reader) leave(p *Problem) { r.report.Left = append(r.report.Left, *p) }

func (r *reader) warn(object string, code plan.Code, format string, args ...any) {
	r.report.Warnings = append(r.report.Warnings, plan.Warning{Object: object, Code: code, Detail: fmt.Sprintf(format, args...)})
}
