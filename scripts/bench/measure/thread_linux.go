package measure

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of the calling thread. It asks the thread's own clock:
// getrusage knows the time of a thread that runs only as of the last timer tick.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(fmt.Sprintf("clock_gettime: %v", err)) // cannot fail with these arguments
	}
	return time.Duration(ts.Nano())
}
