package measure

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Share runs f again and again for budget of CPU time under the profiler and returns
// which part of the samples in package within fell into calls of package of: 0 to 1.
// Both are prefixes of function names. Samples outside within (garbage collection that
// runs by itself) count for neither, so they are shared out in proportion. ok is false
// when there were too few samples to tell.
func Share(within, of string, budget time.Duration, f func()) (share float64, ok bool, err error) {
	var buf bytes.Buffer
	if err := pprof.StartCPUProfile(&buf); err != nil {
		return 0, false, fmt.Errorf("start the profiler: %w", err)
	}
	for start := cpuTime(); cpuTime()-start < budget; {
		f()
	}
	pprof.StopCPUProfile()
	p, err := profile.Parse(&buf)
	if err != nil {
		return 0, false, fmt.Errorf("read the profile: %w", err)
	}
	var all, part int64
	for _, s := range p.Sample {
		switch {
		case calls(s, of):
			all, part = all+s.Value[0], part+s.Value[0]
		case calls(s, within):
			all += s.Value[0]
		}
	}
	if all < leastSamples {
		return 0, false, nil
	}
	return float64(part) / float64(all), true, nil
}

// leastSamples is how many samples a share is drawn from; the profiler takes 100 a
// second.
const leastSamples = 10

func calls(s *profile.Sample, prefix string) bool {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			if line.Function != nil && strings.HasPrefix(line.Function.Name, prefix) {
				return true
			}
		}
	}
	return false
}
