package daypage

import (
	"fmt"
	"time"
)

// Day is what was seen of a day. Money is micro-dollars, times are since Begins.
type Day struct {
	Begins time.Time // in the zone of those who read the clock
	// Step is the time between samples; Kerf, Never and Floor have the same number of them.
	Step  time.Duration
	Kerf  Run
	Never Run
	// Floor is what nodes for the same pods would cost if all of them were bought anew.
	Floor []int64
	// BadImage is from when to when new nodes did not join.
	BadImage      Span
	Image         Image
	Chapters      []Chapter
	Interruptions []Interruption
	Moves         []Move
	Pools         string // what NodePools say, in words
}

// Run is one way through the day.
type Run struct {
	Samples []Sample
	// Longest is the longest time that a pod waited until it ran, from when on, and how many
	// did not run at the end.
	Longest Wait
	Waits   int // pods that started
	P95     time.Duration
}

// Wait is how long a pod waited.
type Wait struct {
	Pod  string
	At   time.Duration
	Long time.Duration
}

// Sample is the cluster at a time. Price is per hour.
type Sample struct {
	Price                    int64
	Spot, OnDemand, Starting int // nodes
	Running, Pending         int // pods
}

// Nodes are all of a sample.
func (s Sample) Nodes() int { return s.Spot + s.OnDemand + s.Starting }

// Span is from when to when.
type Span struct{ From, To time.Duration }

// Image is what became of the image whose nodes never join.
type Image struct {
	Launched, Joined, RolledBack int
	// Cost is what its instances cost in the end.
	Cost int64
	// Renewed nodes were replaced for the image that works, by Until.
	Renewed int
	Until   time.Duration
}

// Chapter is a part of the day.
type Chapter struct {
	Span
	Title string
	Text  []string
	Kind  string // calm, up, spot, image, down
}

// Interruption is a spot instance that EC2 took.
type Interruption struct {
	At    time.Duration
	Node  string // what it was
	Pods  int
	Empty time.Duration // how long after the warning its last pod had left; 0 = it never had
	Lost  int           // pods that were on it when it ended
	New   []string      // what was launched meanwhile
}

// Move is nodes that went, or should have.
type Move struct {
	At     time.Duration
	Took   time.Duration
	Reason string
	Nodes  []string
	New    []string
	Detail string
	Why    string // it was taken back
	Open   bool   // it was under way at the end
	Saving int64
	Pods   int
}

// Back reports whether the move was taken back.
func (m Move) Back() bool { return m.Why != "" }

// cost is what a curve comes to over the day: what a sample says holds until the next one.
func (d *Day) cost(n int, at func(i int) int64) int64 {
	var sum int64
	for i := range n - 1 {
		sum += at(i)
	}
	return sum * int64(d.Step/time.Second) / 3600
}

// Paid is what the day cost.
func (d *Day) Paid() int64 {
	return d.cost(len(d.Kerf.Samples), func(i int) int64 { return d.Kerf.Samples[i].Price })
}

// PaidNever is what it cost without consolidation.
func (d *Day) PaidNever() int64 {
	return d.cost(len(d.Never.Samples), func(i int) int64 { return d.Never.Samples[i].Price })
}

// PaidFloor is what the floor comes to.
func (d *Day) PaidFloor() int64 {
	return d.cost(len(d.Floor), func(i int) int64 { return d.Floor[i] })
}

// Clock is a time of the day as people read it.
func (d *Day) Clock(at time.Duration) string { return d.Begins.Add(at).Format("15:04") }

// Dollars are micro-dollars as dollars and cents.
func Dollars(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "−", -micro
	}
	return fmt.Sprintf("%s$%d.%02d", sign, (micro+5_000)/1_000_000, (micro+5_000)/10_000%100)
}

// Long is a duration in few letters.
func Long(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 10*time.Minute && d%time.Minute != 0:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	}
	return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
}

// percentLess is how much less a is than b, in percent.
func percentLess(a, b int64) string {
	if b == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%d %%", ((b-a)*200+b)/(2*b))
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
