package app

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// defaultRegion is the region when nobody names one.
const defaultRegion = "us-east-1"

// PlanFunction builds the handler of the plan function from its environment.
func PlanFunction(environ []string) (*handler.Plan, error) {
	base, err := config.Environment(environ)
	if err != nil {
		return nil, fmt.Errorf("read the function's settings: %w", err)
	}
	region, table := lookup(environ, "AWS_REGION"), lookup(environ, "KERF_TABLE")
	h := &handler.Plan{
		Settings: func(set map[string]string) (handler.Settings, error) {
			return settings(append(base[:len(base):len(base)], config.FromMap(set, "settings")...))
		},
		Read: func(manifests []string, in handler.Input) (*handler.Reading, error) {
			if in.Region == "" {
				in.Region = region
			}
			if table != "" {
				m := &memory{name: table, open: tableNamed(table, region), now: time.Now}
				in.Remember = m.into
			}
			over := kube.Overlay{Sources: texts("whatIf", in.WhatIf), Remove: in.Remove}
			reading, _, err := read(texts("objects", manifests), over, in, defaultRegion, time.Now)
			return reading, err
		},
		Solve: solve,
		Moves: moves,
	}
	if table != "" { // a stack that only plans on what it is sent has none, and no way into the cluster
		if h.Live, err = liveReader(environ); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// settings checks pairs and gives what applies them.
func settings(pairs []config.Pair) (handler.Settings, error) {
	c, err := config.Apply(config.Default(), pairs)
	if err != nil {
		code := plan.InvalidRequest
		if errors.Is(err, config.ErrNotSupported) {
			code = plan.NotSupported
		}
		return handler.Settings{}, &handler.Refusal{Code: code, Message: err.Error()}
	}
	return handler.Settings{Cluster: c.Cluster, Apply: func(s snapshot.Settings) snapshot.Settings {
		// The pairs were found good above, whatever they are applied to.
		c, _ := config.Apply(config.Config{Settings: s}, pairs)
		return c.Settings
	}}, nil
}

// texts are sources of the texts of a payload's field.
func texts(field string, manifests []string) []kube.Source {
	var out []kube.Source
	for i, m := range manifests {
		out = append(out, kube.Source{
			Name: fmt.Sprintf("%s[%d]", field, i),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(m)), nil },
		})
	}
	return out
}

// read turns sources into a reading, with what is laid over them. region and now are
// taken when neither the input nor a saved snapshot gives one.
func read(sources []kube.Source, over kube.Overlay, in handler.Input, region string, now func() time.Time) (*handler.Reading, *kube.Report, error) {
	o := kube.Options{
		Cluster: in.Cluster, Region: in.Region, Now: in.Now, Seed: in.Seed, Workloads: in.Workloads,
		Clock: now().UTC().Truncate(time.Second), Unadmitted: in.Save, Remember: in.Remember,
	}
	if over.Empty() {
		s, report, err := kube.Read(sources, o)
		if err != nil {
			return nil, nil, &handler.Refusal{Code: plan.InvalidInput, Message: err.Error()}
		}
		return reading(s, report, in, region), report, nil
	}
	before, after, err := kube.ReadWhatIf(sources, over, o)
	var unknown *kube.UnknownError
	if errors.As(err, &unknown) {
		return nil, nil, handler.Unknown("remove", unknown.Ref, unknown.Known)
	}
	if err != nil {
		return nil, nil, &handler.Refusal{Code: plan.InvalidInput, Message: err.Error()}
	}
	r := reading(after.Snapshot, after.Report, in, region)
	r.Before, r.Changes = reading(before.Snapshot, before.Report, in, region), after.Report.Changes
	return r, after.Report, nil
}

// reading completes a snapshot with what its objects do not say, and puts what
// reading it had to say in the terms of plans.
func reading(s *snapshot.Snapshot, report *kube.Report, in handler.Input, region string) *handler.Reading {
	if s.Region == "" {
		s.Region = region
	}
	if s.Settings == (snapshot.Settings{}) {
		s.Settings = snapshot.DefaultSettings()
	}
	s.Settings = in.Settings(s.Settings)
	s.Settings.PlanWorkloads = s.Settings.PlanWorkloads || in.Workloads
	r := &handler.Reading{Snapshot: s, Warnings: report.Warnings}
	for i := range report.Left {
		l := &report.Left[i]
		r.Left = append(r.Left, plan.Warning{Object: object(l.Object), Code: plan.IncompleteReading, Detail: "left out: " + leftOut(l)})
	}
	for _, m := range s.Remarks {
		w := plan.Warning{Object: m.Object, Code: plan.Code(m.Code), Detail: m.Detail}
		if w.Code == plan.IncompleteReading {
			r.Left = append(r.Left, w)
		} else {
			r.Warnings = append(r.Warnings, w)
		}
	}
	s.Remarks = nil
	for _, w := range slices.Concat(r.Warnings, r.Left) {
		s.Remarks = append(s.Remarks, snapshot.Remark{Object: w.Object, Code: string(w.Code), Detail: w.Detail})
	}
	return r
}

// object turns "Pod ns/web" into "pod/ns/web", as plans name objects.
func object(name string) string {
	kind, rest, ok := strings.Cut(name, " ")
	if !ok {
		return name
	}
	return strings.ToLower(kind) + "/" + rest
}

// leftOut says where an object is and why it was left out.
func leftOut(l *kube.LeftOut) string { return l.Error() }

func lookup(environ []string, key string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(environ[i], "="); k == key {
			return v
		}
	}
	return ""
}

// Recover is deferred by a main: a panic is a mistake of ours, so it is said as
// such, with what a report needs, and the exit status is that of no plan.
func Recover(stderr io.Writer, exit func(int)) {
	r := recover()
	if r == nil {
		return
	}
	fmt.Fprintf(stderr, "plan: this is a bug in Kerf, not in your input: %v\n"+
		"Please report it with the lines below and, if you can, the input (--save-snapshot writes one file).\n\n%s", r, debug.Stack())
	exit(2)
}
