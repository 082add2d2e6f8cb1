package measure

import (
	"syscall"
	"time"
)

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration { return usage(syscall.RUSAGE_THREAD) }
