package main

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/market"
)

// mode says how much is run.
type mode string

const (
	smoke  mode = "smoke"
	normal mode = "normal"
	full   mode = "full"
)

// testCase is one workload under one form of the pool.
type testCase struct {
	kind      string
	pods      int
	seed      int64 // of a drawn workload
	drawn     bool
	pool      market.Variant
	karpenter bool
}

func (c testCase) workload() workload.Workload {
	if c.drawn {
		return workload.Random(c.kind, c.pods, c.seed)
	}
	return workload.Named(c.kind, c.pods)
}

// packed are the kinds whose cost resources alone decide.
var packed = []string{workload.Uniform, workload.MixedWeb, workload.MemCPU, workload.Diverse}

// ruled are the kinds whose cost rules between pods decide too.
var ruled = []string{workload.Zonal, workload.AntiAffinity, workload.Hostname}

// sizes are the pod counts of the published workloads in a mode.
func (m mode) sizes() []int {
	if m == smoke {
		return []int{100, 1000}
	}
	return workload.Sizes()
}

// karpenterLimits are the largest workloads, by kind, that Karpenter is run on. Its
// time grows with pods times open nodes, so everything takes hours.
type karpenterLimits map[string]int

func (m mode) karpenterLimits() karpenterLimits {
	if m == full {
		return karpenterLimits{
			workload.Uniform: 10000, workload.MixedWeb: 10000, workload.MemCPU: 10000, workload.Diverse: 5000,
			workload.Zonal: 1000, workload.AntiAffinity: 1000, workload.Hostname: 1000,
		}
	}
	l := karpenterLimits{workload.Zonal: 1000, workload.AntiAffinity: 1000, workload.Hostname: 100}
	for _, k := range packed {
		l[k] = 1000
	}
	return l
}

// set reads "uniform=10000,diverse=5000" or "1000" (every kind).
func (l karpenterLimits) set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		kind, size, one := strings.Cut(part, "=")
		if !one {
			size = kind
		}
		n, err := strconv.Atoi(size)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of pods; write uniform=10000,diverse=5000 or one number for all kinds", size)
		}
		switch {
		case !one:
			for _, k := range workload.Kinds() {
				l[k] = n
			}
		case !slices.Contains(workload.Kinds(), kind):
			return fmt.Errorf("%q is not a kind of workload; they are %q", kind, workload.Kinds())
		default:
			l[kind] = n
		}
	}
	return nil
}

// any reports whether Karpenter is run on something.
func (l karpenterLimits) any() bool {
	for _, n := range l {
		if n > 0 {
			return true
		}
	}
	return false
}

func (l karpenterLimits) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, fmt.Sprintf("%s=%d", k, l[k]))
	}
	return strings.Join(parts, ",")
}

// allows says whether Karpenter is run. Larger nodes and fewer of them are quick for
// it; a capped pool and spot are run at smaller sizes only.
func (l karpenterLimits) allows(c testCase, m mode) bool {
	limit := l[c.kind]
	switch {
	case m == smoke:
		// A few published ones: the two kinds that differ most, with and without a cap.
		if c.drawn || c.pool.Spot || c.kind != workload.MixedWeb && c.kind != workload.MemCPU {
			return false
		}
	case slices.Contains(ruled, c.kind) && c.pool != (market.Variant{}):
		return false // half a minute each
	case c.pool.Spot, c.drawn:
		limit = min(limit, 1000)
	case c.pool.CapVCPU > 0 && m == full:
		limit = min(limit, 5000)
	case c.pool.CapVCPU > 0:
		limit = min(limit, 1000)
	}
	return c.pods <= limit && !(c.drawn && c.pool.Spot)
}

// cases lists what a mode runs: every published workload, then drawn ones, each
// under the four forms of the pool. The same arguments give the same list.
func (m mode) cases(drawn int, seed int64, limits karpenterLimits) []testCase {
	var out []testCase
	add := func(c testCase, pools []market.Variant) {
		for _, v := range pools {
			c.pool = v
			c.karpenter = limits.allows(c, m)
			out = append(out, c)
		}
	}
	for _, kind := range packed {
		for _, n := range m.sizes() {
			add(testCase{kind: kind, pods: n}, market.Variants())
		}
	}
	for _, kind := range ruled {
		if m == smoke {
			add(testCase{kind: kind, pods: 1000}, market.Variants()[:1])
			continue
		}
		for _, n := range m.sizes() {
			add(testCase{kind: kind, pods: n}, market.Variants())
		}
	}
	r := rand.New(rand.NewSource(seed))
	sizes := []int{1000, 100, 5000, 10000, 1000}
	if m == smoke {
		sizes = []int{1000, 100}
	}
	for i := range drawn {
		c := testCase{kind: packed[i%len(packed)], pods: sizes[i/len(packed)%len(sizes)], seed: int64(r.Int31()), drawn: true}
		add(c, market.Variants())
	}
	return out
}
