//go:build !linux

package measure

import "time"

// threadTime is the CPU time of the process: other systems do not tell that of a thread.
func threadTime() time.Duration { return cpuTime() }
