package worldtest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// sizeLine is a line of a size that was learned: the shape is that of a class, which is
// known once all is read.
type sizeLine struct {
	size  snapshot.LearnedSize
	class string
}

// addMemory adds what the ledger remembers; false when the line is none of it.
//
//	shortage type=m5.large,m5.xlarge zone=z-a,z-b captype=spot until=12:03 code=...
//	     every combination; what is left out stands for whichever; reservation=cr-1
//	setback type=m5.large zone=z-a captype=spot interrupted=11:00,11:30 failures=2 failed=11:55
//	     as shortage; times are those of the day
//	learned m5.large mem=6Gi cpu=1930m pods=29 all-mem=7Gi image=ami-amd64 class=default
//	     what pods can have of a node, and with all- what there is; other=1: another shape
func (w *World) addMemory(l *opts) (bool, error) {
	switch l.kind {
	case "shortage":
		return true, w.addShortage(l)
	case "setback":
		return true, w.addSetback(l)
	case "learned":
		return true, w.addLearned(l)
	}
	return false, nil
}

// ofDay is a time of the day of the clock.
func ofDay(option, text string) (time.Time, error) {
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	at, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		return at, fmt.Errorf("option %s: %w", option, err)
	}
	return time.Date(Clock.Year(), Clock.Month(), Clock.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC), nil
}

func (w *World) addSetback(l *opts) error {
	b := snapshot.Setback{InstanceType: l.get("type"), Zone: l.get("zone"), CapacityType: l.get("captype"), ReservationID: l.get("reservation")}
	for _, text := range l.list("interrupted") {
		at, err := ofDay("interrupted", text)
		if err != nil {
			return err
		}
		b.Interrupted = append(b.Interrupted, at)
	}
	if l.has("failures") {
		n, err := strconv.Atoi(l.get("failures"))
		if err != nil {
			return fmt.Errorf("option failures: %w", err)
		}
		at, err := ofDay("failed", l.or("failed", "11:55"))
		if err != nil {
			return err
		}
		b.Failures, b.Failed = n, at
	}
	w.setbacks = append(w.setbacks, b)
	return nil
}

func (w *World) addShortage(l *opts) error {
	until, err := ofDay("until", l.or("until", "12:03"))
	if err != nil {
		return err
	}
	orAny := func(key string) []string {
		if list := l.list(key); list != nil {
			return list
		}
		return []string{""}
	}
	for _, typ := range orAny("type") {
		for _, zone := range orAny("zone") {
			for _, capacity := range orAny("captype") {
				w.shortages = append(w.shortages, snapshot.Shortage{
					InstanceType: typ, Zone: zone, CapacityType: capacity, ReservationID: l.get("reservation"),
					Until: until, Code: l.or("code", "InsufficientInstanceCapacity"),
				})
			}
		}
	}
	return nil
}

func (w *World) addLearned(l *opts) error {
	s := sizeLine{class: l.or("class", "default"), size: snapshot.LearnedSize{InstanceType: l.name, ImageID: l.or("image", "ami-amd64")}}
	for key, name := range map[string]string{"cpu": snapshot.CPU, "mem": snapshot.Memory, "pods": snapshot.Pods, "disk": snapshot.EphemeralStorage, "gpu": catalog.NvidiaGPU} {
		for prefix, into := range map[string]*snapshot.Resources{"": &s.size.Allocatable, "all-": &s.size.Capacity} {
			if !l.has(prefix + key) {
				continue
			}
			v, err := snapshot.ParseQuantity(name, l.get(prefix+key))
			if err != nil {
				return fmt.Errorf("option %s%s: %w", prefix, key, err)
			}
			*into = into.With(name, v)
		}
	}
	if l.has("other") {
		s.size.Shape = "another-" + l.get("other")
	}
	w.learned = append(w.learned, s)
	return nil
}

// remember puts what the lines say that the ledger remembers into a snapshot.
func (w *World) remember(s *snapshot.Snapshot) error {
	if len(w.nominations)+len(w.shortages)+len(w.setbacks)+len(w.learned) == 0 {
		return nil
	}
	s.Nominations = append(s.Nominations, w.nominations...)
	s.Shortages = append(s.Shortages, w.shortages...)
	s.Setbacks = append(s.Setbacks, w.setbacks...)
	for _, l := range w.learned {
		size := l.size
		if size.Shape == "" {
			i := slices.IndexFunc(s.NodeClasses, func(c snapshot.NodeClass) bool { return c.Name == l.class })
			if i < 0 {
				return fmt.Errorf("learned %s: there is no class %s", size.InstanceType, l.class)
			}
			size.Shape = lifecycle.Shape(&s.NodeClasses[i], s.Settings)
		}
		s.Learned = append(s.Learned, size)
	}
	s.Normalize()
	return nil
}

// shortNow reports whether an offer is to be left alone.
func shortNow(s *snapshot.Snapshot, typ string, o *catalog.Offering) bool {
	for _, x := range s.Shortages {
		reservation := ""
		if o.Reservation != nil {
			reservation = o.Reservation.ID
		}
		if (x.InstanceType == "" || x.InstanceType == typ) && (x.Zone == "" || x.Zone == o.Zone) && (x.CapacityType == "" || x.CapacityType == o.CapacityType) &&
			(x.ReservationID == "" || x.ReservationID == reservation) && s.Now.Before(x.Until) {
			return true
		}
	}
	return false
}

// setBack is the price of a supply as a plan compares it: more by a share of it for every
// notice and failed launch, half of which is forgotten after 12 hours or one.
func setBack(s *snapshot.Snapshot, sup *Supply) int64 {
	half := func(share float64, age, life time.Duration) float64 {
		for ; age >= life; age -= life {
			share /= 2
		}
		return share * (1 - float64(max(age, 0))/float64(life)/2)
	}
	total := 0.0
	for _, b := range s.Setbacks {
		if b.InstanceType != "" && b.InstanceType != sup.Type || b.Zone != "" && b.Zone != sup.Zone ||
			b.CapacityType != "" && b.CapacityType != sup.Capacity || b.ReservationID != "" && b.ReservationID != sup.Reservation {
			continue
		}
		share := 0.0
		for _, at := range b.Interrupted {
			share += half(0.15, s.Now.Sub(at), 12*time.Hour)
		}
		if b.Failures > 0 {
			share += half(0.1*float64(min(b.Failures, 4)), s.Now.Sub(b.Failed), time.Hour)
		}
		total += min(math.Floor(share*100+1e-6)/100, 1)
	}
	return sup.Price + int64(math.Floor(float64(sup.Price)*min(total, 1)+1e-6))
}

// relearn puts sizes that nodes of a class turned out to have into its types.
func relearn(s *snapshot.Snapshot, class *snapshot.NodeClass, types []catalog.Resolved) {
	defer supposed(types, slices.Clone(types))
	for _, l := range s.Learned {
		if l.Shape != lifecycle.Shape(class, s.Settings) {
			continue
		}
		for i := range types {
			r := &types[i]
			if r.Type.Name != l.InstanceType || r.Image != l.ImageID || r.Image == "" || r.Unusable != "" {
				continue
			}
			r.Supposed = -1 // it is seen
			r.Capacity = reported(r.Capacity, l.Capacity)
			r.Allocatable = reported(r.Allocatable, l.Allocatable)
			for _, name := range r.Allocatable.Names() {
				r.Allocatable = r.Allocatable.With(name, min(r.Allocatable.Get(name), r.Capacity.Get(name)))
			}
		}
	}
}

// supposed takes from types that were not seen what all fall short by that were: a share, or
// an amount, when that is nearly one figure and more than 2 %.
func supposed(types, computed []catalog.Resolved) {
	for _, name := range []string{snapshot.CPU, snapshot.Memory} {
		type pair struct{ share, amount float64 }
		of := map[string][]pair{}
		for i := range types {
			if was := computed[i].Allocatable.Get(name); types[i].Supposed == -1 && was > 0 {
				less := float64(was - types[i].Allocatable.Get(name))
				of[types[i].Image] = append(of[types[i].Image], pair{math.Trunc(less * 1e6 / float64(was)), less})
			}
		}
		for i := range types {
			r, seen := &types[i], of[types[i].Image]
			if r.Supposed == -1 || len(seen) < 2 || r.Unusable != "" {
				continue
			}
			low, high := seen[0], seen[0]
			for _, x := range seen {
				low = pair{min(low.share, x.share), min(low.amount, x.amount)}
				high = pair{max(high.share, x.share), max(high.amount, x.amount)}
			}
			was := r.Allocatable.Get(name)
			less := int64(0)
			switch {
			case low.share < 20000:
			case high.share-low.share <= math.Trunc(low.share/4):
				less = int64(math.Trunc(float64(was) * low.share / 1e6))
			case high.amount-low.amount <= math.Trunc(low.amount/4) && low.amount < float64(was/4):
				less = int64(low.amount)
			}
			if is := was - less; less > 0 && name == snapshot.Memory {
				r.Allocatable = r.Allocatable.With(name, is>>20<<20)
			} else if less > 0 {
				r.Allocatable = r.Allocatable.With(name, is)
			}
		}
	}
}

// reported is a computed size with what a node says: all of the basic resources that it
// names, and fewer devices.
func reported(computed, node snapshot.Resources) snapshot.Resources {
	for _, name := range computed.Names() {
		v := node.Get(name)
		_, device := computed.Extended[name]
		if v > 0 && (!device || v < computed.Get(name)) {
			computed = computed.With(name, v)
		}
	}
	return computed
}

// shortages: a pod that is said to wait for capacity could have an offer that is short,
// and a pod that could is not said to fit nothing.
func (j *judge) shortages() {
	if !slices.ContainsFunc(j.s.Shortages, func(x snapshot.Shortage) bool { return j.s.Now.Before(x.Until) }) {
		for _, v := range j.p.Verdicts {
			if v.Code == plan.InsufficientCapacity {
				j.fail("%s is said to wait for capacity, and nothing is short", v.Object)
			}
		}
		return
	}
	plenty := *j.s
	plenty.Shortages = nil
	than := newJudge(&plenty, j.c, j.p)
	for _, v := range j.p.Verdicts {
		ref, ok := strings.CutPrefix(v.Object, "pod/")
		pod := j.pods[ref]
		if !ok || pod == nil || pod.NodeName != "" {
			continue
		}
		could, surely := false, false
		for _, name := range sortedKeys(than.pools) {
			pool := than.pools[name]
			could = could || than.hosts(pool, []*snapshot.Pod{pod}, false, nil) != nil
			surely = surely || !than.strictMinValues(pool) && than.hosts(pool, []*snapshot.Pod{pod}, true, than.acceptsNew(pod, map[string]bool{})) != nil
		}
		switch {
		case v.Code == plan.InsufficientCapacity && !could:
			j.fail("pod %s is said to wait for capacity, and fits no offer that is short", ref)
		case surely && (v.Code == plan.NoInstanceTypeFits || v.Code == plan.NoOffering || v.Code == plan.Unschedulable):
			j.fail("pod %s is refused (%s), and nothing is in its way but a shortage", ref, v.Code)
		}
	}
}
