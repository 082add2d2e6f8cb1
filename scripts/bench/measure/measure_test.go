package measure

import (
	"runtime"
	"testing"
	"time"
)

var sink [][]byte

func TestOnceCountsWorkAndAllocations(t *testing.T) {
	u := Once(func() {
		for start := time.Now(); time.Since(start) < 30*time.Millisecond; {
			sink = append(sink[:0], make([]byte, 1<<16))
		}
	})
	if u.Wall < 30*time.Millisecond || u.CPU <= 0 || u.CPU > 100*u.Wall {
		t.Errorf("30 ms of work is %v of CPU in %v", u.CPU, u.Wall)
	}
	if u.Allocs == 0 || u.AllocBytes < u.Allocs {
		t.Errorf("%d allocations of %d bytes", u.Allocs, u.AllocBytes)
	}
}

func TestMedian(t *testing.T) {
	run := func(cpu time.Duration) Usage { return Usage{CPU: cpu} }
	if got := Median([]Usage{run(9), run(1), run(5)}); got.CPU != 5 {
		t.Errorf("median of 9, 1, 5 is %d", got.CPU)
	}
	if got := Median([]Usage{run(9), run(1)}); got.CPU != 1 {
		t.Errorf("median of 9, 1 is %d, want the lower", got.CPU)
	}
}

func TestRepeatStops(t *testing.T) {
	n := 0
	if runs := len(Repeat(7, time.Hour, func() { n++ })); runs != 7 || n != 7 {
		t.Errorf("%d runs reported, %d made, want 7", runs, n)
	}
	n = 0
	if runs := len(Repeat(7, 0, func() { n++ })); runs != 1 || n != 1 {
		t.Errorf("%d runs reported, %d made, want 1: there is no budget for more", runs, n)
	}
}

func TestPeakSeesAnAllocation(t *testing.T) {
	const size = 64 << 20
	m, ok := Peak(func() {
		b := make([]byte, size)
		for i := 0; i < size; i += 4096 {
			b[i] = 1
		}
		sink = [][]byte{b}
	})
	sink = nil
	if ok && m.Peak-m.Before < size/2 {
		t.Errorf("touching %d bytes moved the peak from %d to %d", size, m.Before, m.Peak)
	}
}

func TestDifferenceRunsBothInTurn(t *testing.T) {
	var order []byte
	f, base := func() { order = append(order, 'f') }, func() { order = append(order, 'b') }
	Difference(5, time.Hour, f, base)
	if string(order) != "fbfbfbfbfb" {
		t.Errorf("ran %q, want five times both", order)
	}
	order = nil
	Difference(100, -1, f, base)
	if string(order) != "fbfbfb" {
		t.Errorf("without a budget ran %q, want three times both", order)
	}
}

// A clock that moves with timer ticks would measure a run of a millisecond as nothing, or
// as several.
func TestThreadTimeIsFine(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	steps := 0
	for last := begin; last < begin+20*time.Millisecond; {
		if now := threadTime(); now != last {
			steps, last = steps+1, now
		}
	}
	if steps < 400 {
		t.Errorf("%d steps in 20 ms", steps)
	}
}
