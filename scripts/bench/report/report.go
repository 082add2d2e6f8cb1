// Package report holds the figures of a benchmark run and renders them: as JSON, as
// tables for a terminal and for Markdown, and as a chart.
package report

import (
	"encoding/json"
	"io"
	"time"

	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/scripts/bench/market"
)

// Run is a whole benchmark run.
type Run struct {
	Date      string `json:"date"`
	Mode      string `json:"mode"`
	Seed      int64  `json:"seed"` // of the drawn workloads
	Go        string `json:"go"`
	System    string `json:"system"`
	Karpenter string `json:"karpenterVersion"`
	Catalogue string `json:"catalogue"`
	Types     int    `json:"instanceTypes"` // that the open pool allows
	Rows      []Row  `json:"rows"`
	World     *World `json:"world,omitempty"`
	// Consolidation has half-empty clusters, by size.
	Consolidation []Consolidation `json:"consolidation,omitempty"`
	Targets       []Target        `json:"targets"`
}

// Row is one workload under one form of the pool.
type Row struct {
	Workload string         `json:"workload"`
	Kind     string         `json:"kind"`
	Pods     int            `json:"pods"`
	Drawn    bool           `json:"drawn"` // from a seed, not published
	Pool     market.Variant `json:"pool"`
	// NotBuilt says which rule the planner does not apply yet; then nothing below is
	// measured on its side.
	NotBuilt string `json:"notBuilt,omitempty"`
	// LPBound is the certified resource relaxation; Bound the highest proven bound,
	// which for a workload of one shape is the optimum. Micro-dollars per hour.
	LPBound   snapshot.Price `json:"lpBoundMicros"`
	Bound     snapshot.Price `json:"boundMicros"`
	Kerf      *Kerf          `json:"kerf,omitempty"`
	Karpenter *Karpenter     `json:"karpenter,omitempty"`
	// Faults is what the independent check found wrong.
	Faults []string `json:"faults,omitempty"`
}

// Cost is what a run took, seconds and bytes; the median of Repeats.
type Cost struct {
	CPU        float64 `json:"cpuSeconds"`
	Wall       float64 `json:"wallSeconds"`
	Allocs     uint64  `json:"allocs"`
	AllocBytes uint64  `json:"allocBytes"`
	Repeats    int     `json:"repeats"`
}

// Kerf is the planner's side of a row.
type Kerf struct {
	Cost
	Stages    Stages         `json:"stages"`
	Classes   int            `json:"classes"` // of equal pods
	RSSBefore int64          `json:"rssBeforeBytes"`
	RSSPeak   int64          `json:"rssPeakBytes"` // 0 = the system does not tell
	Nodes     int            `json:"nodes"`
	Price     snapshot.Price `json:"priceMicros"`
	Worst     snapshot.Price `json:"worstPriceMicros"` // every launch at its dearest option
	OwnBound  snapshot.Price `json:"ownBoundMicros"`
	// OwnConfirmed: the independent solver proves as much as OwnBound.
	OwnConfirmed bool    `json:"ownBoundConfirmed"`
	Unscheduled  int     `json:"unscheduled"`
	Ratio        float64 `json:"priceOverBound"`
	WorstRatio   float64 `json:"worstOverBound"`
}

// Stages splits the CPU seconds of a plan, each stage run alone: what every plan takes
// whatever the pods, reading and grouping pods, the solver on ready classes, writing
// the answer.
type Stages struct {
	Known bool    `json:"known"`
	Fixed float64 `json:"fixedCPUSeconds"`
	Group float64 `json:"groupCPUSeconds"`
	Solve float64 `json:"solveCPUSeconds"`
	Write float64 `json:"writeCPUSeconds"`
}

// Karpenter is Karpenter's side of a row.
type Karpenter struct {
	Cost
	Nodes       int            `json:"nodes"`
	Price       snapshot.Price `json:"priceMicros"`
	Ratio       float64        `json:"priceOverBound"` // 0 when not everything was scheduled
	Unscheduled int            `json:"unscheduled"`
	TimedOut    bool           `json:"timedOut"`
	Options     float64        `json:"meanInstanceTypeOptions"`
}

// World is the plan of a large running cluster, for its memory.
type World struct {
	Nodes       int     `json:"nodes"`
	Running     int     `json:"runningPods"`
	Pending     int     `json:"pendingPods"`
	CPU         float64 `json:"cpuSeconds"`
	RSSBefore   int64   `json:"rssBeforeBytes"`
	RSSPeak     int64   `json:"rssPeakBytes"`
	Placed      int     `json:"placedOnExistingNodes"`
	Launches    int     `json:"launches"`
	Unscheduled int     `json:"unscheduled"`
}

// JSON writes the run, indented.
func (r *Run) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// CPURatio is Karpenter's CPU time over the planner's; 0 when either is missing or
// Karpenter did not finish.
func (r *Row) CPURatio() float64 {
	if r.Kerf == nil || r.Karpenter == nil || r.Karpenter.TimedOut || r.Kerf.CPU == 0 {
		return 0
	}
	return r.Karpenter.CPU / r.Kerf.CPU
}

// Seconds converts a duration for a report.
func Seconds(d time.Duration) float64 { return d.Seconds() }
