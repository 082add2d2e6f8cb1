// Package measure runs functions and says what they took from the machine.
package measure

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Usage is what one run took. CPU is user and system time of the whole process, so
// the garbage collector's share is included.
type Usage struct {
	CPU, Wall  time.Duration
	Allocs     uint64
	AllocBytes uint64
}

// Once collects garbage, then runs f.
func Once(f func()) Usage {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	f()
	u := Usage{CPU: cpuTime() - cpu, Wall: time.Since(start)}
	runtime.ReadMemStats(&after)
	u.Allocs, u.AllocBytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return u
}

// Repeat runs f at least once and goes on, up to most times, while the runs together
// took less than budget.
func Repeat(most int, budget time.Duration, f func()) []Usage {
	var runs []Usage
	var spent time.Duration
	for len(runs) == 0 || len(runs) < most && spent < budget {
		u := Once(f)
		runs, spent = append(runs, u), spent+u.CPU
	}
	return runs
}

// Median returns the run of median CPU time, the lower one of an even number.
func Median(runs []Usage) Usage {
	s := slices.Clone(runs)
	slices.SortFunc(s, func(a, b Usage) int { return int(a.CPU - b.CPU) })
	return s[(len(s)-1)/2]
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(fmt.Sprintf("getrusage of this process: %v", err)) // cannot fail with these arguments
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// Memory is resident memory in bytes, that of this process with everything in it.
type Memory struct{ Before, Peak int64 }

// Peak runs f and returns the resident memory just before it and at its peak. ok is
// false where the system does not tell (it needs Linux).
func Peak(f func()) (m Memory, ok bool) {
	debug.FreeOSMemory()
	// 5 resets the peak to the current value (proc(5), clear_refs).
	reset := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
	before, okBefore := resident()
	f()
	peak, okPeak := resident()
	return Memory{before, peak}, reset && okBefore && okPeak
}

// resident reads the peak resident memory since the last reset.
func resident() (int64, bool) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("VmHWM:"))
		if !ok {
			continue
		}
		f := bytes.Fields(rest)
		if len(f) != 2 || string(f[1]) != "kB" {
			return 0, false
		}
		n, err := strconv.ParseInt(string(f[0]), 10, 64)
		return n << 10, err == nil
	}
	return 0, false
}
