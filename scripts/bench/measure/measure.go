// Package measure runs functions and says what they took from the machine.
package measure

import (
	"bytes"
	"fmt"
	"math"
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

func cpuTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

func usage(who int) time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(who, &ru); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err)) // cannot fail with these arguments
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// Difference is the CPU time that f takes beyond what base takes, each at its quickest:
// whatever else runs can only make a run slower. Both run in turn, at least three times
// and up to most while together they took less than budget; only the thread counts that
// runs them.
func Difference(most int, budget time.Duration, f, base func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	quickest := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	spent := time.Duration(0)
	for n := 0; n < 3 || n < most && spent < budget; n++ {
		for i, run := range [...]func(){f, base} {
			runtime.GC()
			start := threadTime()
			run()
			took := threadTime() - start
			quickest[i], spent = min(quickest[i], took), spent+took
		}
	}
	return quickest[0] - quickest[1]
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
