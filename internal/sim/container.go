package sim

import (
	"time"

	"kerf.sh/kerf/internal/lifecycle"
)

// container is an execution environment of a function: what is warm lives in it, and one
// invocation at a time runs in it.
type container struct {
	w    *World
	f    *function
	id   int
	proc *proc
	// skew is how far its clock is off.
	skew time.Duration
	// beside is how many calls go on at a time: they still happen one after the other, each
	// in its share of the time.
	beside int
	// asked counts the requests of the invocation by service and what they ask.
	asked map[string]int
	tick  lifecycle.Tick
	// sawPods: pods waited when it looked.
	sawPods bool
	state   any // what the function keeps warm
	// stale: the function was configured anew meanwhile; it is not used again.
	stale bool
}

func (c *container) now() time.Time { return c.w.now().Add(c.skew) }

func (c *container) count(s *service, b *bound) {
	c.w.stats.Boundaries++
	if c.asked != nil {
		c.asked[s.name]++
		c.asked[s.name+"."+b.Op]++
	}
}

// together makes calls beside one another.
func (c *container) together(n int, do func()) {
	was := c.beside
	c.beside = n
	defer func() { c.beside = was }()
	do()
}
