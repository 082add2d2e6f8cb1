package sim

import (
	"slices"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/lifecycle"
)

// dayRecord is what was seen of a day.
type dayRecord struct {
	w       *World
	notices []lifecycle.Notice
	samples []daySample
	warns   []dayWarning
	events  []dayEvent
	created map[string]time.Time // pods that do not run yet, by UID
	waits   []dayWait
}

type daySample struct {
	at                       time.Duration
	price                    int64
	spot, onDemand, starting int
	wanted, running, pending int
	oldest                   time.Duration
	floor, bound             int64
}

type dayEvent struct {
	at   time.Duration
	text string
}

type dayWarning struct {
	at      time.Duration
	i       *ec2fake.Instance
	node    string
	pods    int
	drained time.Duration // after the warning; 0 = not yet
	left    int
}

// dayWait is how long a pod waited until it ran.
type dayWait struct {
	at, wait time.Duration
	pod      string
}

func (r *dayRecord) begin(w *World) {
	r.w, r.created = w, map[string]time.Time{}
	for at := time.Minute; at <= dayLength; at += time.Minute {
		w.at(epoch.Add(at-time.Millisecond), func() { r.sample(at) })
	}
	for at := 5 * time.Second; at < dayLength; at += 5 * time.Second {
		w.at(epoch.Add(at), r.look)
	}
}

func (r *dayRecord) since(t time.Time) time.Duration { return t.Sub(epoch) }

// look sees which pods run by now, and how far nodes with a warning have drained.
func (r *dayRecord) look() {
	for _, p := range r.w.cluster.pods.all() {
		if isDaemon(&p.v) {
			continue
		}
		_, waits := r.created[p.uid]
		switch {
		case p.v.Started.IsZero() && p.deleting.IsZero():
			r.created[p.uid] = p.created
		case waits && !p.v.Started.IsZero():
			r.waits = append(r.waits, dayWait{r.since(p.created), p.v.Started.Sub(p.created), p.v.Name})
			delete(r.created, p.uid)
		case waits:
			delete(r.created, p.uid)
		}
	}
	for i := range r.warns {
		d := &r.warns[i]
		if d.drained > 0 {
			continue
		}
		left := 0
		for _, p := range r.w.cluster.podsOf(d.node) {
			if !isDaemon(&p.v) {
				left++
			}
		}
		if d.i.ShuttingFrom.IsZero() {
			d.left = left
		}
		if left == 0 {
			d.drained = r.since(r.w.now()) - d.at
		}
	}
}

func (r *dayRecord) warned(i *ec2fake.Instance) {
	d := dayWarning{at: r.since(r.w.now()), i: i, node: r.w.cluster.machines[i.ID].node}
	for _, p := range r.w.cluster.podsOf(d.node) {
		if !isDaemon(&p.v) {
			d.pods++
		}
	}
	r.warns = append(r.warns, d)
}

func (r *dayRecord) said(what string) {
	r.events = append(r.events, dayEvent{r.since(r.w.now()), what})
}

func (r *dayRecord) sample(at time.Duration) {
	w := r.w
	s := daySample{at: at}
	for _, i := range w.aws.ec2.Instances() {
		if !i.ShuttingFrom.IsZero() {
			continue
		}
		s.price += i.Price
		n := w.cluster.nodes.by[w.cluster.machines[i.ID].node]
		switch {
		case n == nil || !ready(&n.v):
			s.starting++
		case i.Spot:
			s.spot++
		default:
			s.onDemand++
		}
	}
	for _, p := range w.cluster.pods.all() {
		if isDaemon(&p.v) || !p.deleting.IsZero() {
			continue
		}
		s.wanted++
		if p.v.Started.IsZero() {
			s.pending++
			s.oldest = max(s.oldest, w.now().Sub(p.created))
		} else {
			s.running++
		}
	}
	if at%(10*time.Minute) == 0 {
		s.floor, s.bound = w.repacked()
	}
	r.samples = append(r.samples, s)
}

func (r *dayRecord) end() {
	slices.SortFunc(r.waits, func(a, b dayWait) int { return int(b.wait - a.wait) })
}
