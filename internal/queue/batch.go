package queue

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
)

// chunks divides entries into what one call takes: at most ten, at most MaxBody bytes.
func chunks(es []entry) iter.Seq[[]entry] {
	return func(yield func([]entry) bool) {
		for len(es) > 0 {
			n, size := 0, 0
			for n < len(es) && n < maxBatch && (n == 0 || size+len(es[n].body) <= MaxBody) {
				size += len(es[n].body)
				n++
			}
			if !yield(es[:n:n]) {
				return
			}
			es = es[n:]
		}
	}
}

func sorted(fs []Failed) []Failed {
	slices.SortFunc(fs, func(a, b Failed) int { return cmp.Compare(a.Index, b.Index) })
	return fs
}

// wait waits for a time, or reports that there is none left.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
