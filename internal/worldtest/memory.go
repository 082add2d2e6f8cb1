package worldtest

import (
	"fmt"
	"slices"
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
//	learned m5.large mem=6Gi cpu=1930m pods=29 all-mem=7Gi image=ami-amd64 class=default
//	     what pods can have of a node, and with all- what there is; other=1: another shape
func (w *World) addMemory(l *opts) (bool, error) {
	switch l.kind {
	case "shortage":
		return true, w.addShortage(l)
	case "learned":
		return true, w.addLearned(l)
	}
	return false, nil
}

func (w *World) addShortage(l *opts) error {
	text := l.or("until", "12:03")
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	at, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		return fmt.Errorf("option until: %w", err)
	}
	until := time.Date(Clock.Year(), Clock.Month(), Clock.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
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
	if len(w.nominations)+len(w.shortages)+len(w.learned) == 0 {
		return nil
	}
	s.Nominations = append(s.Nominations, w.nominations...)
	s.Shortages = append(s.Shortages, w.shortages...)
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

// relearn puts sizes that nodes of a class turned out to have into its types.
func relearn(s *snapshot.Snapshot, class *snapshot.NodeClass, types []catalog.Resolved) {
	for _, l := range s.Learned {
		if l.Shape != lifecycle.Shape(class, s.Settings) {
			continue
		}
		for i := range types {
			r := &types[i]
			if r.Type.Name != l.InstanceType || r.Image != l.ImageID || r.Image == "" || r.Unusable != "" {
				continue
			}
			r.Capacity = reported(r.Capacity, l.Capacity)
			r.Allocatable = reported(r.Allocatable, l.Allocatable)
			for _, name := range r.Allocatable.Names() {
				r.Allocatable = r.Allocatable.With(name, min(r.Allocatable.Get(name), r.Capacity.Get(name)))
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
