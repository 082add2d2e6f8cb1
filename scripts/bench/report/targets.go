package report

import (
	"fmt"
	"math"

	"kerf.sh/kerf/internal/workload"
)

// Outcome of a target.
type Outcome string

// Outcomes.
const (
	Pass        Outcome = "pass"
	Fail        Outcome = "FAIL"
	NotMeasured Outcome = "not measured"
)

// Target is one promise about the workloads, with what was measured.
type Target struct {
	What    string  `json:"what"`
	Limit   string  `json:"limit"`
	Value   string  `json:"value"`
	Where   string  `json:"where,omitempty"` // the row that decides
	Rows    int     `json:"rows"`            // how many rows count
	Outcome Outcome `json:"outcome"`
	// Quality targets depend on the input alone. The others depend on the machine
	// too and never fail a run.
	Quality bool `json:"quality"`
}

// extreme is the worst of several values and where it is.
type extreme struct {
	value float64
	where string
	rows  int
}

// worst returns the greatest value over rows (the smallest when sign is -1); rows for
// which f says false do not count.
func worst(rows []Row, sign float64, f func(*Row) (float64, bool)) extreme {
	e := extreme{value: math.NaN()}
	for i := range rows {
		v, ok := f(&rows[i])
		if !ok {
			continue
		}
		e.rows++
		if e.rows == 1 || v*sign > e.value*sign {
			e.value, e.where = v, rows[i].Workload+", "+rows[i].Pool.String()
		}
	}
	return e
}

func (e extreme) target(what, format string, limit float64, sign float64, quality bool) Target {
	relation := "<= "
	if sign < 0 {
		relation = ">= "
	}
	t := Target{What: what, Limit: relation + fmt.Sprintf(format, limit), Where: e.where, Rows: e.rows, Quality: quality, Outcome: NotMeasured}
	if e.rows == 0 {
		return t
	}
	t.Value = fmt.Sprintf(format, e.value)
	t.Outcome = Pass
	if e.value*sign > limit*sign {
		t.Outcome = Fail
	}
	return t
}

// few reports whether a workload has few shapes, so that its pods form classes.
func few(r *Row) bool { return r.Kind != workload.Diverse }

// ruled reports whether rules between pods decide what a workload costs.
func ruled(r *Row) bool {
	return r.Kind == workload.Zonal || r.Kind == workload.AntiAffinity || r.Kind == workload.Hostname
}

// planned reports whether the planner made a plan whose cost resources alone decide.
func planned(r *Row) bool { return r.Kerf != nil && !ruled(r) }

// Evaluate compares the rows with the targets and sets r.Targets.
func (r *Run) Evaluate() {
	ratio := func(pick func(*Row) bool) extreme {
		return worst(r.Rows, 1, func(row *Row) (float64, bool) {
			if !planned(row) || !pick(row) {
				return 0, false
			}
			return row.Kerf.Ratio, true
		})
	}
	const dollars, times = "%.4f", "%.0f x"
	r.Targets = []Target{
		r.whole(),
		ratio(func(row *Row) bool { return few(row) && row.Pods >= 1000 }).
			target("price / bound: uniform, mixedweb, memcpu, 1,000 pods and more", dollars, 1.01, 1, true),
		ratio(func(row *Row) bool { return !few(row) && row.Pods >= 1000 }).
			target("price / bound: diverse, 1,000 pods and more", dollars, 1.02, 1, true),
		ratio(func(row *Row) bool { return row.Pods < 1000 }).
			target("price / bound: 100 pods", dollars, 1.03, 1, true),
		worst(r.Rows, 1, func(row *Row) (float64, bool) {
			if !planned(row) {
				return 0, false
			}
			return row.Kerf.WorstRatio, true
		}).target("every launch at its dearest option: price / bound", dollars, 1.20, 1, true),
		worst(r.Rows, -1, func(row *Row) (float64, bool) {
			return row.CPURatio(), planned(row) && few(row) && row.Pods == 10000 && row.CPURatio() > 0
		}).target("CPU of Karpenter / CPU of Kerf: uniform, mixedweb, memcpu, 10,000 pods", times, 1000, -1, false),
		worst(r.Rows, -1, func(row *Row) (float64, bool) {
			return row.CPURatio(), planned(row) && !few(row) && row.Pods == 5000 && row.CPURatio() > 0
		}).target("CPU of Karpenter / CPU of Kerf: diverse, 5,000 pods", times, 50, -1, false),
		r.rules(func(row *Row) bool { return row.Pods >= 1000 && row.Kind != workload.Hostname }).
			target("price / bound by filled nodes: zonal, antiaffinity, 1,000 pods and more", dollars, 1.03, 1, true),
		r.rules(func(row *Row) bool { return row.Pods >= 1000 && row.Kind == workload.Hostname }).
			target("price / bound by filled nodes: hostname, 1,000 pods and more", dollars, 1.03, 1, true),
		worst(r.Rows, -1, func(row *Row) (float64, bool) {
			return row.CPURatio(), row.Kerf != nil && ruled(row) && row.Kind != workload.Hostname && row.Pods == 1000 && row.CPURatio() > 0
		}).target("CPU of Karpenter / CPU of Kerf: zonal, antiaffinity, 1,000 pods", times, 150, -1, false),
		worst(r.Rows, 1, func(row *Row) (float64, bool) {
			return row.Kerf.cpuMS(), row.Kerf != nil && ruled(row) && row.Pods == 50000
		}).target("whole call, zonal, antiaffinity, hostname, 50,000 pods, CPU", "%.0f ms", 300, 1, false),
		r.growth().target("solve on ready classes: 50,000 pods / 5,000 pods (not diverse)", "%.1f x", 3, 1, false),
		r.rest(0).target("reading, grouping and writing, CPU a pod, every size", "%.2f us", 3, 1, false),
		r.rest(5000).target("the same, 5,000 pods and more", "%.2f us", 3, 1, false),
		worst(r.Rows, 1, func(row *Row) (float64, bool) {
			if !planned(row) || row.Pods != 50000 || !few(row) {
				return 0, false
			}
			return row.Kerf.CPU * 1e3, true
		}).target("whole call, 50,000 pods (not diverse), CPU", "%.0f ms", 300, 1, false),
		worst(r.Rows, 1, func(row *Row) (float64, bool) {
			if !planned(row) || row.Pods != 50000 || few(row) {
				return 0, false
			}
			return row.Kerf.CPU, true
		}).target("whole call, diverse, 50,000 pods, CPU", "%.2f s", 10, 1, false),
		r.memory(),
	}
	r.Targets = append(r.Targets, r.consolidationTargets()...)
}

// rules is the greatest price against the bound under rules between pods.
func (r *Run) rules(pick func(*Row) bool) extreme {
	return worst(r.Rows, 1, func(row *Row) (float64, bool) {
		if row.Kerf == nil || !ruled(row) || !pick(row) {
			return 0, false
		}
		return row.Kerf.Ratio, true
	})
}

// cpuMS is the CPU time of the whole call in milliseconds.
func (k *Kerf) cpuMS() float64 {
	if k == nil {
		return 0
	}
	return k.CPU * 1e3
}

// whole counts the rows that the independent check found right.
func (r *Run) whole() Target {
	e := extreme{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Kerf == nil {
			continue
		}
		e.rows++
		if len(row.Faults) > 0 || row.Kerf.Unscheduled > 0 {
			e.value++
			if e.where == "" {
				e.where = row.Workload + ", " + row.Pool.String()
			}
		}
	}
	return e.target("plans with a pod left out, or that the independent check refuses", "%.0f", 0, 1, true)
}

// rest is the greatest CPU time a pod, in microseconds, that is not the solver's. What
// does not depend on pods (types, offers) is shared by few pods in small workloads.
func (r *Run) rest(from int) extreme {
	return worst(r.Rows, 1, func(row *Row) (float64, bool) {
		if !planned(row) || !row.Kerf.Stages.Known || row.Pods < from {
			return 0, false
		}
		return (row.Kerf.Stages.Group + row.Kerf.Stages.Write) / float64(row.Pods) * 1e6, true
	})
}

// growth compares the solver's time at 50,000 and 5,000 pods of the same workload.
func (r *Run) growth() extreme {
	small := map[string]float64{}
	key := func(row *Row) string { return row.Kind + "/" + row.Pool.String() }
	for i := range r.Rows {
		if row := &r.Rows[i]; planned(row) && row.Kerf.Stages.Known && !row.Drawn && row.Pods == 5000 {
			small[key(row)] = row.Kerf.Stages.Solve
		}
	}
	return worst(r.Rows, 1, func(row *Row) (float64, bool) {
		if !planned(row) || !row.Kerf.Stages.Known || row.Drawn || row.Pods != 50000 || !few(row) || small[key(row)] == 0 {
			return 0, false
		}
		return row.Kerf.Stages.Solve / small[key(row)], true
	})
}

func (r *Run) memory() Target {
	e := extreme{}
	if r.World != nil && r.World.RSSPeak > 0 {
		e = extreme{value: float64(r.World.RSSPeak) / (1 << 20), rows: 1,
			where: fmt.Sprintf("%d nodes, %d running and %d pending pods", r.World.Nodes, r.World.Running, r.World.Pending)}
	}
	return e.target("peak memory of the process, 5,000 nodes and 50,000 pods", "%.0f MiB", 512, 1, false)
}

// Broken returns the quality targets that failed.
func (r *Run) Broken() []Target {
	var out []Target
	for _, t := range r.Targets {
		if t.Quality && t.Outcome == Fail {
			out = append(out, t)
		}
	}
	return out
}
