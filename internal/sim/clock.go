package sim

import (
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"testing/synctest"
	"time"
)

// epoch is when every world begins.
var epoch = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// event is something that happens at a time. Events of one time happen in the order in
// which they were arranged.
type event struct {
	at  time.Time
	seq int
	do  func()
}

type agenda []*event

func (e agenda) Len() int { return len(e) }
func (e agenda) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].seq < e[j].seq
}
func (e agenda) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *agenda) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *agenda) Pop() any {
	old := *e
	n := len(old) - 1
	out := old[n]
	old[n] = nil
	*e = old[:n]
	return out
}

// clock has what is still to happen. The time itself is that of the bubble.
type clock struct {
	queue agenda
	seq   int
}

func (c *clock) now() time.Time { return time.Now().UTC() }

// at arranges something for a time; what is past happens next.
func (c *clock) at(t time.Time, do func()) {
	if now := c.now(); t.Before(now) {
		t = now
	}
	c.seq++
	heap.Push(&c.queue, &event{t, c.seq, do})
}

func (c *clock) after(d time.Duration, do func()) { c.at(c.now().Add(d), do) }

// step lets the next thing happen, if it happens by a time.
func (c *clock) step(until time.Time) bool {
	if len(c.queue) == 0 || c.queue[0].at.After(until) {
		c.pass(until)
		return false
	}
	e := heap.Pop(&c.queue).(*event)
	c.pass(e.at)
	e.do()
	return true
}

// pass lets time pass, with the timers of contexts that are due in it.
func (c *clock) pass(until time.Time) {
	if d := until.Sub(c.now()); d > 0 {
		time.Sleep(d)
		synctest.Wait()
	}
}

// dice are one stream of chance: what is drawn from it changes no other one.
type dice struct{ *rand.Rand }

func newDice(seed uint64, name string) dice {
	h := fnv.New64a()
	h.Write([]byte(name))
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// in reports whether something that happens so many times in a million happens.
func (d dice) in(million int) bool { return million > 0 && d.IntN(1_000_000) < million }

// between draws a time, most often a short one.
func (d dice) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	f := d.Float64()
	return (least + time.Duration(float64(f*f)*float64(most-least))).Truncate(time.Millisecond)
}

// upTo draws 1 to n.
func (d dice) upTo(n int) int { return 1 + d.IntN(n) }

func pick[T any](d dice, list []T) T { return list[d.IntN(len(list))] }
